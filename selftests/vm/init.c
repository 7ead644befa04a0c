// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's first process, from the initramfs to the end of COMMAND
 *
 * It loads the drivers to reach the host, reads the settings from the "in" port, assembles the root
 * tree, loads profil.ko, and runs COMMAND with its streams on the ports (see relay.c). Afterwards
 * it kills the processes that COMMAND left, unloads the module, and looks for memory leaks if the
 * kernel can. It reports on the "result" port:
 *
 *	section NAME ADDRESS	where a section of profil.ko is, for --gdb
 *	loaded		with --gdb: COMMAND starts when one more string is on the "in" port
 *	started		COMMAND runs
 *	exit N		COMMAND ended; N is 128 + the signal if one killed it
 *	busy WHY	profil.ko could not be unloaded
 *	leak LINE	a line of kmemleak about memory that nobody can free any more
 *	error WHAT	the guest could not do its job
 *	end OUT ERR	the last line: how many bytes went to each stream
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "pump.h"

#define PATIENCE_MS 10000	/* for events that should happen at once */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The settings, which run writes in this order, each as a string. */
static struct {
	char *layers;		/* directories in the "cache" share for the root, topmost first */
	char *module;		/* path of profil.ko, or empty */
	char *module_args;
	char *user;		/* "user" or "root" */
	char *with;		/* not empty: there is a "with" share */
	char *terminal;		/* "ROWS COLUMNS TYPE": give COMMAND a terminal; or empty */
	char *gdb;		/* not empty: wait for gdb before COMMAND */
	char **command;
} want;

static int result_port = -1;
static struct pump in, out, err_;

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void nap(void)
{
	usleep(5000);
}

/* --- the report ------------------------------------------------------------------------------ */

static void __attribute__((format(printf, 1, 2))) report(const char *format, ...)
{
	char line[1024];
	va_list args;
	int n, fd = result_port;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (fd < 0)
		fd = open("/dev/kmsg", O_WRONLY);
	if (write(fd, line, n) != n)
		sync();
}

/* Ends the guest when the host has received everything. */
static void __attribute__((noreturn)) finish(void)
{
	struct pollfd host = { .fd = result_port };

	report("end %llu %llu", (unsigned long long)out.passed, (unsigned long long)err_.passed);
	while (result_port >= 0 && !(host.revents & POLLHUP))
		poll(&host, 1, -1);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	const char *why = strerror(errno);
	char text[900];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report("error %s: %s", text, why);
	finish();
}

/* --- the connection to the host -------------------------------------------------------------- */

static void load_module(const char *path, const char *args)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, args, 0) && errno != EEXIST))
		fail("cannot load %s%s%s", path, *args ? " " : "", args);
	close(fd);
}

/* The initramfs lists the modules for virtio, virtiofs and overlayfs in the order to load them. */
static void load_drivers(void)
{
	char path[256];
	FILE *list = fopen("/modules", "r");

	if (!list)
		fail("/modules");
	while (fscanf(list, "%255s", path) == 1)
		load_module(path, "");
	fclose(list);
}

/* Returns true if the virtio-serial port that sysfs lists as @port has the name @name. */
static bool port_is(const char *port, const char *name)
{
	char path[300], is[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", port);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%31s", is) != 1)
		*is = 0;
	fclose(file);
	return !strcmp(is, name);
}

/* Opens the port @name as soon as it exists. */
static int open_port(const char *name)
{
	long long deadline = now_ms() + PATIENCE_MS;
	char path[300] = "";
	struct dirent *port;
	int fd;

	for (; !*path; nap()) {
		DIR *ports = opendir("/sys/class/virtio-ports");

		while (ports && (port = readdir(ports)))
			if (port_is(port->d_name, name))
				snprintf(path, sizeof(path), "/dev/%s", port->d_name);
		if (ports)
			closedir(ports);
		if (now_ms() > deadline)
			fail("no port %s", name);
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail("port %s", name);
	return fd;
}

/* Reads one string of the settings. Until the host connects, read() returns 0. */
static char *read_string(int port)
{
	long long deadline = now_ms() + PATIENCE_MS;
	size_t size = 0, room = 64;
	char *string = malloc(room);
	ssize_t n;

	while (string) {
		/* One at a time: the bytes after the settings are for COMMAND. */
		n = read(port, string + size, 1);
		if (n < 0 || (n == 0 && now_ms() > deadline))
			fail("cannot read the settings");
		if (n == 0) {
			nap();
			continue;
		}
		if (!string[size])
			return string;
		if (++size == room)
			string = realloc(string, room *= 2);
	}
	fail("settings");
}

static void read_settings(int port)
{
	int i, words;

	want.layers = read_string(port);
	want.module = read_string(port);
	want.module_args = read_string(port);
	want.user = read_string(port);
	want.with = read_string(port);
	want.terminal = read_string(port);
	want.gdb = read_string(port);
	words = atoi(read_string(port));
	want.command = calloc(words + 1, sizeof(*want.command));
	if (!want.command)
		fail("settings");
	for (i = 0; i < words; i++)
		want.command[i] = read_string(port);
}

/* --- the root -------------------------------------------------------------------------------- */

static void mount_at(const char *what, const char *where, const char *type, int flags,
		     const char *data)
{
	if (mkdir(where, 0755) && errno != EEXIST)
		fail("mkdir %s", where);
	if (mount(what, where, type, flags, data))
		fail("cannot mount %s", where);
}

/* The root is an overlay: the cached layers below, and a tmpfs above, for changes. */
static void enter_root(void)
{
	char data[4096] = "upperdir=/upper/root,workdir=/upper/work,lowerdir=";
	char *layer, *sep = "";
	size_t n;

	mount_at("cache", "/cache", "virtiofs", MS_RDONLY, NULL);
	mount_at("upper", "/upper", "tmpfs", 0, "mode=755");
	mkdir("/upper/root", 0755);
	mkdir("/upper/work", 0755);
	for (layer = strtok(want.layers, ":"); layer; layer = strtok(NULL, ":"), sep = ":") {
		n = strlen(data);
		snprintf(data + n, sizeof(data) - n, "%s/cache/%s", sep, layer);
	}
	mount_at("root", "/root", "overlay", 0, data);

	if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) ||
	    mount("/proc", "/root/proc", NULL, MS_MOVE, NULL) ||
	    mount("/sys", "/root/sys", NULL, MS_MOVE, NULL) ||
	    chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		fail("cannot enter the root tree");
}

static void mount_the_usual(void)
{
	mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		 "gid=5,mode=620,ptmxmode=666");
	mount_at("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_at("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_at("tmp", "/tmp", "tmpfs", 0, "mode=1777");
	mount_at("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
	mount_at("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount_at("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount_at("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (*want.with)
		mount_at("with", "/mnt/with", "virtiofs", 0, NULL);
}

/* Does the part of udev's work in /dev that programs rely on. */
static void complete_dev(void)
{
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("fd/0", "/dev/stdin") ||
	    symlink("fd/1", "/dev/stdout") || symlink("fd/2", "/dev/stderr") ||
	    chmod("/dev/fuse", 0666))
		fail("cannot complete /dev");
}

static void loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		fail("cannot bring lo up");
	close(fd);
}

/* --- COMMAND --------------------------------------------------------------------------------- */

/* Sets the limits that systemd sets on Debian. For the others, Debian has the kernel's defaults. */
static void set_limits(void)
{
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 8 << 20, 8 << 20 });
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, 1 << 20 });
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, RLIM_INFINITY });
}

/* In the child: becomes COMMAND. Its streams are 0, 1 and 2 already. */
static void __attribute__((noreturn)) exec_command(const char *term)
{
	bool root = !strcmp(want.user, "root");
	const char *home = root ? "/root" : "/home/user";
	gid_t id = root ? 0 : 1000;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	set_limits();
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", home, 1);
	setenv("USER", want.user, 1);
	setenv("LOGNAME", want.user, 1);
	setenv("SHELL", "/bin/bash", 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("TERM", term, 1);
	if (setgroups(1, &id) || setresgid(id, id, id) || setresuid(id, id, id) ||
	    chdir(*want.with ? "/mnt/with" : home))
		dprintf(2, "vm/run: cannot become %s: %s\n", want.user, strerror(errno));
	else if (execvp(want.command[0], want.command))
		dprintf(2, "vm/run: cannot run %s: %s\n", want.command[0], strerror(errno));
	_exit(127);
}

static pid_t start_on_terminal(void)
{
	static char term[64];
	struct winsize size = { 0 };
	int master;
	pid_t pid;

	if (sscanf(want.terminal, "%hu %hu %63s", &size.ws_row, &size.ws_col, term) != 3)
		fail("terminal %s", want.terminal);
	pid = forkpty(&master, NULL, NULL, &size);
	if (pid < 0)
		fail("cannot start COMMAND");
	if (!pid)
		exec_command(term);
	fcntl(master, F_SETFD, FD_CLOEXEC);
	in.to = master;
	out.from = fcntl(master, F_DUPFD_CLOEXEC, 0);
	err_.ended = true;
	return pid;
}

static pid_t start_on_pipes(void)
{
	int pipes[3][2], i;
	pid_t pid;

	for (i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("cannot start COMMAND");
	if (!pid) {
		setsid();
		for (i = 0; i < 3; i++)
			dup2(pipes[i][i ? 1 : 0], i);
		exec_command("dumb");
	}
	for (i = 0; i < 3; i++)
		close(pipes[i][i ? 1 : 0]);
	in.to = pipes[0][1];
	out.from = pipes[1][0];
	err_.from = pipes[2][0];
	return pid;
}

/* Lets COMMAND see the end of its input, and a broken pipe if its output has no reader. */
static void pass_on_end(struct pump *p, int *our_end)
{
	if (pump_done(p) && *our_end >= 0) {
		close(*our_end);
		*our_end = -1;
	}
}

/* Moves data of the three streams once; returns after @timeout ms or earlier. */
static void pump_streams(int child_exits, int timeout)
{
	struct signalfd_siginfo info;
	struct pollfd fds[7];

	pump_want(&in, &fds[0]);
	pump_want(&out, &fds[2]);
	pump_want(&err_, &fds[4]);
	fds[6] = (struct pollfd){ .fd = child_exits, .events = POLLIN };
	if (poll(fds, 7, timeout) < 0)
		return;
	pump_move(&in, &fds[0]);
	pump_move(&out, &fds[2]);
	pump_move(&err_, &fds[4]);
	pass_on_end(&in, &in.to);
	pass_on_end(&out, &out.from);
	pass_on_end(&err_, &err_.from);
	while (read(child_exits, &info, sizeof(info)) > 0)
		;
}

/* Runs COMMAND to its end, then kills the processes that it left. */
static void run_command(void)
{
	int wait_status, status = -1, child_exits;
	long long deadline;
	pid_t pid, ended;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	child_exits = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);

	pid = *want.terminal ? start_on_terminal() : start_on_pipes();
	fcntl(in.to, F_SETFL, O_NONBLOCK);
	report("started");
	while (status < 0) {
		pump_streams(child_exits, -1);
		while ((ended = waitpid(-1, &wait_status, WNOHANG)) > 0)
			if (ended == pid)
				status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) :
								    WEXITSTATUS(wait_status);
	}
	report("exit %d", status);

	/* If a process does not die, unload() reports that the module is busy. */
	deadline = now_ms() + PATIENCE_MS;
	do {
		kill(-1, SIGKILL);
		pump_streams(child_exits, 5);
		while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
			;
	} while (ended == 0 && now_ms() < deadline);

	while (!pump_done(&out) || !pump_done(&err_))
		pump_streams(child_exits, -1);
}

/* Reports the sections of profil.ko, and waits until gdb is attached. */
static void wait_for_gdb(int in_port)
{
	DIR *sections = opendir("/sys/module/profil/sections");
	unsigned long long address;
	struct dirent *section;
	char path[300];
	FILE *file;

	while (sections && (section = readdir(sections))) {
		snprintf(path, sizeof(path), "/sys/module/profil/sections/%s", section->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%llx", &address) == 1)
			report("section %s %#llx", section->d_name, address);
		if (file)
			fclose(file);
	}
	report("loaded");
	free(read_string(in_port));
}

/* --- the end --------------------------------------------------------------------------------- */

/* Unloads profil.ko, if it is loaded; tries again for a while. */
static void unload(void)
{
	long long deadline = now_ms() + PATIENCE_MS;
	char users[16] = "?", *why;
	FILE *file;

	while (syscall(SYS_delete_module, "profil", O_NONBLOCK) && errno != ENOENT) {
		why = strerror(errno);
		if (now_ms() > deadline) {
			file = fopen("/sys/module/profil/refcnt", "r");
			if (file && fscanf(file, "%15s", users) != 1)
				*users = 0;
			report("busy %s, %s users", why, users);
			return;
		}
		nap();
	}
}

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

/* The functions of profil.ko, to name them after it is unloaded. */
static struct function {
	unsigned long long at;
	char name[64];
} functions[1000];

static int nr_functions;

/* It takes a second to read the list, so only kernels with kmemleak do that. */
static void learn_functions(void)
{
	FILE *list = access(KMEMLEAK, F_OK) ? NULL : fopen("/proc/kallsyms", "r");
	struct function *f = functions;
	char line[256], type, module[64];

	while (list && fgets(line, sizeof(line), list) && f < functions + ARRAY_SIZE(functions))
		if (sscanf(line, "%llx %c %63s %63s", &f->at, &type, f->name, module) == 4 &&
		    strchr("tT", type) && !strcmp(module, "[profil]"))
			f++;
	if (list)
		fclose(list);
	nr_functions = f - functions;
}

/* Reports a line of kmemleak. An address in profil.ko at its end becomes function+offset. */
static void report_leak(const char *line)
{
	const char *address = strstr(line, " 0xffffffff");
	const struct function *f, *found = NULL;
	unsigned long long at;

	if (address && strstr(line, "[<")) {
		at = strtoull(address, NULL, 16);
		for (f = functions; f < functions + nr_functions; f++)
			if (f->at <= at && at - f->at < 65536 && (!found || found->at < f->at))
				found = f;
	}
	if (found)
		report("leak     %s+%#llx [profil]", found->name, at - found->at);
	else
		report("leak %s", line);
}

/*
 * Asks kmemleak, if the kernel has it. It reports only memory that is at least 5 seconds old, and
 * that has not changed since its last scan.
 */
static void find_leaks(void)
{
	int i, fd = open(KMEMLEAK, O_WRONLY);
	char line[256];
	FILE *leaks;

	if (fd < 0)
		return;
	sleep(6);
	for (i = 0; i < 2; i++)
		if (write(fd, "scan", 4) != 4)
			fail("cannot look for leaks");
	close(fd);
	leaks = fopen(KMEMLEAK, "r");
	if (!leaks)
		fail("cannot read the leaks");
	for (i = 0; i < 200 && fgets(line, sizeof(line), leaks); i++) {
		line[strcspn(line, "\n")] = 0;
		report_leak(line);
	}
	fclose(leaks);
}

int main(void)
{
	int in_port, out_port, err_port;

	umask(022);
	mount_at("dev", "/dev", "devtmpfs", 0, "mode=755");
	mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_at("sys", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	load_drivers();
	result_port = open_port("result");
	out_port = open_port("out");
	err_port = open_port("err");
	in_port = open_port("in");
	read_settings(in_port);

	enter_root();
	mount_the_usual();
	complete_dev();
	loopback_up();
	sethostname("profil", strlen("profil"));
	if (*want.module)
		load_module(want.module, want.module_args);
	if (*want.gdb)
		wait_for_gdb(in_port);

	fcntl(in_port, F_SETFL, O_NONBLOCK);
	fcntl(out_port, F_SETFL, O_NONBLOCK);
	fcntl(err_port, F_SETFL, O_NONBLOCK);
	in = (struct pump){ .from = in_port };
	out = (struct pump){ .to = out_port };
	err_ = (struct pump){ .to = err_port };
	run_command();
	learn_functions();
	unload();
	find_leaks();
	sync();
	if (*want.with)
		umount2("/mnt/with", 0);
	finish();
}
