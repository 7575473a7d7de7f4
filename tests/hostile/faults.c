/* Makes one call of the C library fail, below one folder: cc -shared -fPIC -o faults.so faults.c -ldl
 *
 * LD_PRELOAD=faults.so python, then fault_arm(folder, error, nth): the nth call that opens a file to write it, writes,
 * renames or makes a folder fails with `error`; with the error 0 it writes only half of what it is given, as any write
 * may. fault_disarm() returns whether it happened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static char below[4096];
static int error;
static long left; /* calls until the fault; 0 if there is none to come */
static int happened;

void fault_arm(const char *folder, int with, long nth) {
    snprintf(below, sizeof below, "%s", folder);
    error = with;
    left = nth;
    happened = 0;
}

int fault_disarm(void) {
    left = 0;
    return happened;
}

static int is_due(const char *path) {
    if (!left || !path || strncmp(path, below, strlen(below)) || --left)
        return 0;
    happened = 1;
    errno = error;
    return 1;
}

static int is_due_for(int file) {
    char link[64], path[4096];
    if (!left)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return is_due(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
    if (size && is_due_for(file)) {
        if (error)
            return -1;
        size = (size + 1) / 2;
    }
    return REAL(write)(file, data, size);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    if (size && is_due_for(to)) {
        if (error)
            return -1;
        size = 1; /* half of what is asked for may be more than there is */
    }
    return REAL(sendfile)(to, from, offset, size);
}

int rename(const char *from, const char *to) {
    return error && is_due(to) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    return error && is_due(path) ? -1 : REAL(mkdir)(path, mode);
}

#define OPEN(name)                                                                    \
    int name(const char *path, int flags, ...) {                                      \
        va_list rest;                                                                 \
        va_start(rest, flags);                                                        \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;       \
        va_end(rest);                                                                 \
        if (error && flags & (O_WRONLY | O_RDWR) && is_due(path))                     \
            return -1;                                                                \
        return REAL(name)(path, flags, mode);                                         \
    }

OPEN(open)
OPEN(open64)
