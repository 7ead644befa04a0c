/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROFIL_DEVICE_H
#define PROFIL_DEVICE_H

#define PROFIL_EXPORT __attribute__((visibility("default")))

int profil_device_ioctl(unsigned long cmd, void *arg);

#endif /* PROFIL_DEVICE_H */
