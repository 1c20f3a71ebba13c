/*
 * An LD_PRELOAD library that records what a process does to the files below one directory, in order, so that
 * replay.ts can rebuild what a disk would hold had the power been cut at any moment.
 *
 *   MOIRAI_RECORD_DIR   the directory, an absolute real path, on one file system (inode numbers are identities)
 *   MOIRAI_RECORD_LOG   the log, outside that directory
 *
 * A record is the 32-byte header below, little-endian, and `length` bytes. log.ts reads it.
 *
 * Not recorded: `-shm` files (mapped memory, which SQLite rebuilds after a crash) and any door not interposed here
 * (shared writable mappings, copy_file_range, io_uring). record.ts compares the replayed end with the real directory,
 * so a write that came through another door fails the run instead of passing unseen.
 *
 * Build: cc -shared -fPIC -O2 -o recorder.so recorder.c -ldl -pthread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE = 1, REMOVE, RENAME, WRITE, TRUNCATE, SYNC_START, DIRECTORY_SYNC_START, SYNC_FINISH };

struct header {
  uint32_t kind;
  uint32_t length; /* bytes that follow: data of a write, path of a name operation ("from\0to" for a rename) */
  uint64_t file;   /* inode */
  int64_t value;   /* offset of a write, new size of a truncation, result of a sync */
  uint64_t sync;   /* pairs a sync's start with its finish */
};

struct target {
  uint64_t file;
  int directory;
  char path[PATH_MAX]; /* relative to the recorded directory */
};

/* Looked up at the first call: libraries call these before our constructor could have run. */
#define REAL(name)                                              \
  ({                                                            \
    static __typeof__(&name) real;                              \
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
    real;                                                       \
  })

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int log_fd = -1;
static uint32_t syncs;

/* A recorder that drops a record would turn a broken store into a passing test. */
static void die(const char *reason) {
  dprintf(STDERR_FILENO, "power-cut recorder: %s: %s\n", reason, strerror(errno));
  abort();
}

static void start(void) {
  const char *log = getenv("MOIRAI_RECORD_LOG");
  const char *directory = getenv("MOIRAI_RECORD_DIR");
  if (!log || !directory) return;
  log_fd = REAL(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (log_fd < 0) die("cannot open MOIRAI_RECORD_LOG");
  root_length = strlen(directory);
  root = strdup(directory);
}

static int recording(void) {
  pthread_once(&once, start);
  return root != NULL;
}

/*
 * An operation and its record happen under one lock, so the log's order is the order of the operations. The mutex
 * orders the threads of a process, flock the processes (each opens the log for itself, so each holds its own lock).
 */
static void enter(void) {
  pthread_mutex_lock(&mutex);
  while (flock(log_fd, LOCK_EX) != 0)
    if (errno != EINTR) die("cannot lock the log");
}

static void leave(void) {
  int saved = errno; /* the caller wants to see the errno of its own operation */
  flock(log_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = saved;
}

static void append(const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t n = REAL(write)(log_fd, at, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) die("cannot write the log");
    at += n;
    length -= (size_t)n;
  }
}

static void record(enum kind kind, uint64_t file, int64_t value, uint64_t sync, const void *payload, size_t length) {
  struct header header = {kind, (uint32_t)length, file, value, sync};
  append(&header, sizeof header);
  append(payload, length);
}

/* Sets target->path when the real path is the recorded directory or below it, and is not a -shm file. */
static int below(const char *path, struct target *target) {
  size_t length = strlen(path);
  if (length < root_length || memcmp(path, root, root_length) != 0) return 0;
  if (path[root_length] != '\0' && path[root_length] != '/') return 0;
  if (length >= 4 && strcmp(path + length - 4, "-shm") == 0) return 0;
  strcpy(target->path, path[root_length] == '/' ? path + root_length + 1 : "");
  return 1;
}

/* Whether fd is a file or directory we record. */
static int find(int fd, struct target *target) {
  struct stat status;
  if (!recording() || fd == log_fd || fstat(fd, &status) != 0) return 0;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  const char deleted[] = " (deleted)"; /* the kernel's mark on a removed file, which can still be written */
  size_t mark = sizeof deleted - 1;
  if (status.st_nlink == 0 && (size_t)length > mark && strcmp(path + length - mark, deleted) == 0)
    path[(size_t)length - mark] = '\0';
  target->file = status.st_ino;
  target->directory = S_ISDIR(status.st_mode);
  return below(path, target);
}

/* Whether an existing name is one we record. */
static int find_name(int dirfd, const char *name, struct target *target) {
  char joined[PATH_MAX], path[PATH_MAX];
  if (dirfd == AT_FDCWD || name[0] == '/') {
    snprintf(joined, sizeof joined, "%s", name);
  } else {
    snprintf(joined, sizeof joined, "/proc/self/fd/%d/%s", dirfd, name);
  }
  struct stat status;
  if (!realpath(joined, path) || stat(path, &status) != 0) return 0;
  target->file = status.st_ino;
  target->directory = S_ISDIR(status.st_mode);
  return below(path, target);
}

/* ---- names: open, unlink, rename ---- */

/* Only an open that may create or truncate changes the disk. */
#define OPEN(call, dirfd, name, flags)                                                          \
  mode_t mode = 0;                                                                              \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                  \
    va_list rest;                                                                               \
    va_start(rest, flags);                                                                      \
    mode = va_arg(rest, mode_t);                                                                \
    va_end(rest);                                                                               \
  }                                                                                             \
  if (!(flags & (O_CREAT | O_TRUNC)) || !recording()) return call;                              \
  enter();                                                                                      \
  int existed = faccessat(dirfd, name, F_OK, 0) == 0;                                           \
  int fd = call;                                                                                \
  struct target target;                                                                         \
  if (fd >= 0 && find(fd, &target)) {                                                           \
    if (!existed) record(CREATE, target.file, 0, 0, target.path, strlen(target.path));          \
    else if (flags & O_TRUNC) record(TRUNCATE, target.file, 0, 0, NULL, 0);                     \
  }                                                                                             \
  leave();                                                                                      \
  return fd;

int open(const char *name, int flags, ...) { OPEN(REAL(open)(name, flags, mode), AT_FDCWD, name, flags) }
int open64(const char *name, int flags, ...) { OPEN(REAL(open64)(name, flags, mode), AT_FDCWD, name, flags) }
int openat(int dir, const char *name, int flags, ...) { OPEN(REAL(openat)(dir, name, flags, mode), dir, name, flags) }
int openat64(int dir, const char *name, int flags, ...) {
  OPEN(REAL(openat64)(dir, name, flags, mode), dir, name, flags)
}

#define UNLINK(call, dirfd, name)                                                     \
  if (!recording()) return call;                                                      \
  struct target target;                                                               \
  enter();                                                                            \
  int ours = find_name(dirfd, name, &target) && !target.directory;                    \
  int result = call;                                                                  \
  if (result == 0 && ours) record(REMOVE, target.file, 0, 0, target.path, strlen(target.path)); \
  leave();                                                                            \
  return result;

int unlink(const char *name) { UNLINK(REAL(unlink)(name), AT_FDCWD, name) }
int unlinkat(int dir, const char *name, int flags) { UNLINK(REAL(unlinkat)(dir, name, flags), dir, name) }

#define RENAME_AT(call, from_dir, from, to_dir, to)                                    \
  if (!recording()) return call;                                                       \
  struct target old, new;                                                              \
  enter();                                                                             \
  int was_ours = find_name(from_dir, from, &old);                                      \
  int result = call;                                                                   \
  if (result == 0 && was_ours) {                                                       \
    if (find_name(to_dir, to, &new)) {                                                 \
      size_t length = strlen(old.path) + 1;                                            \
      char both[2 * PATH_MAX];                                                         \
      strcpy(both, old.path);                                                          \
      strcpy(both + length, new.path);                                                 \
      record(RENAME, new.file, 0, 0, both, length + strlen(new.path));                 \
    } else {                                                                           \
      record(REMOVE, old.file, 0, 0, old.path, strlen(old.path));                      \
    }                                                                                  \
  }                                                                                    \
  leave();                                                                             \
  return result;

int rename(const char *from, const char *to) { RENAME_AT(REAL(rename)(from, to), AT_FDCWD, from, AT_FDCWD, to) }
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  RENAME_AT(REAL(renameat)(from_dir, from, to_dir, to), from_dir, from, to_dir, to)
}

/* ---- contents ---- */

/* Records the `written` bytes that the kernel took: a short write is recorded as short. */
static void record_write(const struct target *target, off_t offset, const struct iovec *pieces, size_t written) {
  struct header header = {WRITE, (uint32_t)written, target->file, offset, 0};
  append(&header, sizeof header);
  for (; written > 0; pieces++) {
    size_t length = pieces->iov_len < written ? pieces->iov_len : written;
    append(pieces->iov_base, length);
    written -= length;
  }
}

/* `offset` is evaluated after the call. */
#define WRITE_PIECES(call, pieces, offset)                                    \
  struct target target;                                                       \
  if (!find(fd, &target)) return call;                                        \
  enter();                                                                    \
  ssize_t written = call;                                                     \
  if (written > 0) record_write(&target, offset, pieces, (size_t)written);    \
  leave();                                                                    \
  return written;

/* The position after the call, less what was written, is right for O_APPEND files too. */
#define AT_POSITION (lseek(fd, 0, SEEK_CUR) - written)
#define ONE_PIECE (&(struct iovec){(void *)data, length})

ssize_t write(int fd, const void *data, size_t length) {
  WRITE_PIECES(REAL(write)(fd, data, length), ONE_PIECE, AT_POSITION)
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  WRITE_PIECES(REAL(pwrite)(fd, data, length, offset), ONE_PIECE, offset)
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  WRITE_PIECES(REAL(pwrite64)(fd, data, length, offset), ONE_PIECE, offset)
}
ssize_t writev(int fd, const struct iovec *pieces, int count) {
  WRITE_PIECES(REAL(writev)(fd, pieces, count), pieces, AT_POSITION)
}
ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) {
  WRITE_PIECES(REAL(pwritev)(fd, pieces, count, offset), pieces, offset)
}
ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t offset) {
  WRITE_PIECES(REAL(pwritev64)(fd, pieces, count, offset), pieces, offset)
}

/* After any of these the size is a fact to ask for: fallocate may or may not extend. */
#define RESIZE(call)                                                          \
  struct target target;                                                       \
  if (!find(fd, &target)) return call;                                        \
  enter();                                                                    \
  int result = call;                                                          \
  struct stat status;                                                         \
  if (result == 0 && fstat(fd, &status) == 0) record(TRUNCATE, target.file, status.st_size, 0, NULL, 0); \
  leave();                                                                    \
  return result;

int ftruncate(int fd, off_t size) { RESIZE(REAL(ftruncate)(fd, size)) }
int ftruncate64(int fd, off64_t size) { RESIZE(REAL(ftruncate64)(fd, size)) }
int fallocate(int fd, int mode, off_t offset, off_t length) { RESIZE(REAL(fallocate)(fd, mode, offset, length)) }
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  RESIZE(REAL(fallocate64)(fd, mode, offset, length))
}
int posix_fallocate(int fd, off_t offset, off_t length) { RESIZE(REAL(posix_fallocate)(fd, offset, length)) }
int posix_fallocate64(int fd, off64_t offset, off64_t length) { RESIZE(REAL(posix_fallocate64)(fd, offset, length)) }

/* ---- syncs ---- */

/*
 * Start and finish are two records and the lock is free between them: a sync promises only what was written before it
 * began, and promises it only once it has returned.
 */
static int record_sync(int fd, int (*sync)(int)) {
  struct target target;
  if (!find(fd, &target)) return sync(fd);
  enter();
  uint64_t id = (uint64_t)getpid() << 32 | syncs++;
  if (target.directory) record(DIRECTORY_SYNC_START, target.file, 0, id, target.path, strlen(target.path));
  else record(SYNC_START, target.file, 0, id, NULL, 0);
  leave();
  int result = sync(fd);
  int saved = errno;
  enter();
  record(SYNC_FINISH, target.file, result, id, NULL, 0);
  leave();
  errno = saved;
  return result;
}

int fsync(int fd) { return record_sync(fd, REAL(fsync)); }
int fdatasync(int fd) { return record_sync(fd, REAL(fdatasync)); }
