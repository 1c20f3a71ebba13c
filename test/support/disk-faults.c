/*
 * An LD_PRELOAD library that makes the disk of a running process fail, and work again, as a test says.
 *
 *   MOIRAI_DISK_FAULTS   a file. While it holds "full", writing a database fails with ENOSPC; while it holds "sync",
 *                        syncing one fails with EIO, after the data was written. Without it the disk works.
 *
 * Only files whose name contains ".db" are touched, and not their shared memory.
 *
 * Build: cc -shared -fPIC -O2 -o disk-faults.so disk-faults.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAL(name)                                              \
  ({                                                            \
    static __typeof__(&name) real;                              \
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
    real;                                                       \
  })

static int is_database(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, ".db") != NULL && strstr(path, "-shm") == NULL;
}

static int is_wrong(const char *what, int fd) {
  const char *control = getenv("MOIRAI_DISK_FAULTS");
  if (!control) return 0;
  int file = REAL(open)(control, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[16] = {0};
  ssize_t length = REAL(read)(file, text, sizeof text - 1);
  close(file);
  return length > 0 && strncmp(text, what, strlen(what)) == 0 && is_database(fd);
}

#define FAIL_WHEN(what, fd, code) \
  if (is_wrong(what, fd)) {       \
    errno = code;                 \
    return -1;                    \
  }

ssize_t write(int fd, const void *data, size_t size) {
  FAIL_WHEN("full", fd, ENOSPC)
  return REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  FAIL_WHEN("full", fd, ENOSPC)
  return REAL(pwrite)(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  FAIL_WHEN("full", fd, ENOSPC)
  return REAL(pwrite64)(fd, data, size, offset);
}

int fsync(int fd) {
  FAIL_WHEN("sync", fd, EIO)
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  FAIL_WHEN("sync", fd, EIO)
  return REAL(fdatasync)(fd);
}
