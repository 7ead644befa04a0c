/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The name under which Digital UNIX has what is asked of getsysinfo(). */
#include <profil/osf1.h>
