/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Digital UNIX declares the operations of getsysinfo() in a header of this name. */
#include <profil/osf1.h>
