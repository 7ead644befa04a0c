/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBPROFIL_DEVICE_H
#define LIBPROFIL_DEVICE_H

#define PROFIL_EXPORT __attribute__((visibility("default")))

int libprofil_device_ioctl(unsigned long cmd, void *arg);

#endif /* LIBPROFIL_DEVICE_H */
