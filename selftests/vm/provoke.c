// SPDX-License-Identifier: GPL-2.0
/* A module for test: what=warn makes the kernel complain, what=hold never lets go of profil.ko. */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "warn or hold");

static int __init provoke_init(void)
{
	WARN(!strcmp(what, "warn"), "provoked\n");
	if (!strcmp(what, "hold"))
		return PTR_ERR_OR_ZERO(filp_open("/dev/profil", O_RDWR, 0));
	return 0;
}
module_init(provoke_init);

MODULE_DESCRIPTION("Provokes what selftests/vm/run must notice");
MODULE_LICENSE("GPL");
