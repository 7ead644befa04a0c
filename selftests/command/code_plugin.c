// SPDX-License-Identifier: GPL-2.0
/* A library that code_work loads. */
#include "code_work.h"
