// SPDX-License-Identifier: Apache-2.0
//
// Tells Tidemark where a training loop is: steps, epochs, phases and gauges. One header, C99 or
// C++, no library to link; copy it into your project or add this directory to the include path.
//
//   #include "tidemark.h"
//   for (int64_t n = 1; n <= steps; ++n) {
//     train_one_step();
//     tidemark_step(n);
//   }
//
// Each call writes one record into a private shared-memory file that `tidemark` finds by the
// process's pid and start time, also when it attaches later. A call costs about as much as reading
// the clock. It never blocks, never allocates from the heap, keeps errno, may be made from any
// thread, and does nothing at all when the file cannot be made or TIDEMARK_MARKERS=off is set.
// A forked child gets a file of its own at its first call.
#ifndef TIDEMARK_H_
#define TIDEMARK_H_

#ifndef _DEFAULT_SOURCE  // shows what -std=c99 hides
#define _DEFAULT_SOURCE 1
#endif
#include <stdint.h>

// NOLINTBEGIN: a C header; the checks of this project are about C++

// ---- The ring file, as the writers (this header, tidemark.py) and the reader share it ----
//
// BASE/tidemark-UID/PID-START-NS.TAG.markers, where BASE is /dev/shm (or $XDG_RUNTIME_DIR where
// there is no /dev/shm), UID the effective user id, PID the pid and START the start time in clock
// ticks (field 22 of /proc/self/stat), NS the inode of the pid namespace, TAG one per kind of
// writer. The directory is 0700, the file 0600, both owned by UID. The file appears under its name
// only when it is complete: a header, then `capacity` records. Byte order is the machine's own.

#define TIDEMARK_RING_MAGIC UINT64_C(0x676e69724b4d4454) /* "TDMKring" in little endian */
#define TIDEMARK_RING_VERSION 1u
#define TIDEMARK_RING_CAPACITY 4096u
#define TIDEMARK_RING_NAME_BYTES 32u

enum tidemark_kind {
  TIDEMARK_KIND_STEP = 1,
  TIDEMARK_KIND_EPOCH = 2,
  TIDEMARK_KIND_PHASE_BEGIN = 3,
  TIDEMARK_KIND_PHASE_END = 4,
  TIDEMARK_KIND_GAUGE = 5
};

struct tidemark_ring_header {
  uint64_t magic;
  uint32_t version;
  uint32_t record_bytes;
  uint32_t capacity;  // records; a power of two
  uint32_t pid;       // as the process itself sees it
  uint64_t start_ticks;
  uint64_t users;  // parts of the process (executable, shared objects) that hold it open
  uint64_t reserved[3];

  uint64_t next;           // index of the next record; counts up for ever
  int64_t step;            // the latest, for those who attach later
  uint64_t step_time_ns;   // 0: no step yet
  int64_t epoch;           // the latest
  uint64_t epoch_time_ns;  // 0: no epoch yet
  uint64_t reserved_hot[3];
};

// Record number n is at position n % capacity. A writer takes n by adding 1 to `next`, fills the
// record and publishes it by storing its sequence, n + 1, last.
struct tidemark_ring_record {
  uint64_t sequence;
  uint64_t time_ns;  // CLOCK_MONOTONIC
  int64_t value;     // step, epoch, or what a gauge shows
  uint32_t kind;     // enum tidemark_kind
  uint32_t name_bytes;
  char name[TIDEMARK_RING_NAME_BYTES];  // of a phase or gauge; longer names are cut
};

struct tidemark_ring {
  struct tidemark_ring_header header;
  struct tidemark_ring_record records[TIDEMARK_RING_CAPACITY];
};

#ifndef TIDEMARK_LAYOUT_ONLY

#if defined(__linux__) && defined(__GNUC__)

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(MAP_ANONYMOUS) || !defined(O_CLOEXEC) || !defined(CLOCK_MONOTONIC)
#error "With -std=c99 include tidemark.h before any other header, or compile with -D_DEFAULT_SOURCE"
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18  // Linux 4.14
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#endif

#define TIDEMARK_LIKELY_(condition) __builtin_expect(!!(condition), 1)
#define TIDEMARK_SLOW_ static __attribute__((noinline, cold, unused))

// ---- State: one per translation unit; all of a process map the same file ----

enum tidemark_status_ {
  TIDEMARK_UNTRIED_ = 0,  // also what a forked child finds: the kernel wiped the page
  TIDEMARK_OPENING_ = 1,
  TIDEMARK_OPEN_ = 2,
  TIDEMARK_OFF_ = 3
};

// Lives in a page of its own that the kernel zeroes in a forked child (MADV_WIPEONFORK), so that
// the child can never write into its parent's ring.
struct tidemark_state_ {
  struct tidemark_ring* ring;  // NULL unless TIDEMARK_OPEN_
  int status;
  pid_t checked_pid;  // not 0 where the kernel does not wipe: then every call compares getpid()
  char path[256];
};

static struct tidemark_state_* tidemark_state_;

// ---- Opening: once per translation unit and process ----

// The start time of this process; 0 when /proc does not tell.
TIDEMARK_SLOW_ uint64_t tidemark_start_ticks_(void) {
  char text[1024];  // the line has some 350 bytes
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  const char* field = NULL;
  int number;
  if (fd >= 0) {
    close(fd);
  }
  if (length <= 0) {
    return 0;
  }
  text[length] = '\0';
  field = strrchr(text, ')');  // field 2, the name, may hold blanks and parentheses
  for (number = 2; field != NULL && number < 22; ++number) {
    field = strchr(field + 1, ' ');
  }
  return field == NULL ? 0 : strtoull(field, NULL, 10);
}

// Opens BASE/tidemark-UID and writes its path; -1 unless it is a directory that only we can use.
TIDEMARK_SLOW_ int tidemark_open_directory_in_(const char* base, char* path, size_t size) {
  struct stat info;
  int length, fd;
  if (base == NULL || base[0] != '/') {
    return -1;
  }
  length = snprintf(path, size, "%s/tidemark-%lu", base, (unsigned long)geteuid());
  if (length < 0 || (size_t)length >= size) {
    return -1;
  }
  (void)mkdir(path, 0700);
  fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 &&
      (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 07777) != 0700)) {
    close(fd);
    fd = -1;
  }
  return fd;
}

// Another user may have taken the name in /dev/shm, which is everybody's.
TIDEMARK_SLOW_ int tidemark_open_directory_(char* path, size_t size) {
  const int fd = tidemark_open_directory_in_("/dev/shm", path, size);
  return fd >= 0 ? fd : tidemark_open_directory_in_(getenv("XDG_RUNTIME_DIR"), path, size);
}

TIDEMARK_SLOW_ struct tidemark_ring* tidemark_map_(int fd) {
  void* address = mmap(NULL, sizeof(struct tidemark_ring), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE, fd, 0);  // page by page it looks like growth
  return address == MAP_FAILED ? NULL : (struct tidemark_ring*)address;
}

// The ring that another part of this process made, or this process before it called exec.
TIDEMARK_SLOW_ struct tidemark_ring* tidemark_join_ring_(int directory, const char* name,
                                                         uint64_t start_ticks) {
  struct stat info;
  struct tidemark_ring* ring = NULL;
  const int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return NULL;
  }
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      (info.st_mode & 077) == 0 && info.st_size == (off_t)sizeof(struct tidemark_ring)) {
    ring = tidemark_map_(fd);
  }
  close(fd);
  if (ring != NULL &&
      (ring->header.magic != TIDEMARK_RING_MAGIC || ring->header.version != TIDEMARK_RING_VERSION ||
       ring->header.capacity != TIDEMARK_RING_CAPACITY ||
       ring->header.record_bytes != sizeof(struct tidemark_ring_record) ||
       ring->header.pid != (uint32_t)getpid() || ring->header.start_ticks != start_ticks)) {
    munmap(ring, sizeof *ring);
    ring = NULL;
  }
  return ring;
}

// Removes one file if it is of a process of our pid namespace that has ended.
TIDEMARK_SLOW_ int tidemark_remove_if_dead_(int directory, const char* name,
                                            uint64_t pid_namespace) {
  char* end = NULL;
  const long pid = strtol(name, &end, 10);
  if (pid <= 0 || pid > INT32_MAX || *end != '-') {
    return 0;
  }
  (void)strtoull(end + 1, &end, 10);  // the start time: a pid that is used again counts as alive
  if (*end != '-' || strtoull(end + 1, &end, 10) != pid_namespace || *end != '.') {
    return 0;
  }
  return kill((pid_t)pid, 0) != 0 && errno == ESRCH && unlinkat(directory, name, 0) == 0;
}

// Removes what processes that were killed left behind: at most 64 files, among the first thousand
// or so, to keep the first call short. Not with opendir, which uses the heap.
TIDEMARK_SLOW_ void tidemark_remove_dead_(int directory, uint64_t pid_namespace) {
  uint64_t entries[512];  // struct linux_dirent64: the length is at byte 16, the name at byte 19
  int calls, removed = 0;
  for (calls = 0; calls < 16 && removed < 64; ++calls) {
    const long size = syscall(SYS_getdents64, directory, entries, sizeof entries);
    long at = 0;
    if (size <= 0) {
      return;
    }
    while (at < size && removed < 64) {
      const char* entry = (const char*)entries + at;
      uint16_t length;
      memcpy(&length, entry + 16, sizeof length);
      removed += tidemark_remove_if_dead_(directory, entry + 19, pid_namespace);
      at += length;
    }
  }
}

// Makes a complete ring under a name of its own, then links it to `name`. NULL also when somebody
// else linked one first.
TIDEMARK_SLOW_ struct tidemark_ring* tidemark_make_ring_(int directory, const char* name,
                                                         uint64_t start_ticks) {
  char draft[128];
  struct tidemark_ring* ring = NULL;
  struct rlimit file_size;
  int fd;
  // Beyond the limit on file sizes the kernel sends SIGXFSZ, which kills.
  if (getrlimit(RLIMIT_FSIZE, &file_size) != 0 || file_size.rlim_cur < sizeof *ring) {
    return NULL;
  }
  // The address keeps two translation units of one process apart.
  snprintf(draft, sizeof draft, "%s.%llx.new", name,
           (unsigned long long)(uintptr_t)(void*)&tidemark_state_);
  fd = openat(directory, draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return NULL;
  }
  // Not ftruncate: touching a hole of a full file system is SIGBUS.
  if (posix_fallocate(fd, 0, (off_t)sizeof *ring) == 0) {
    ring = tidemark_map_(fd);
  }
  close(fd);
  if (ring != NULL) {
    ring->header.magic = TIDEMARK_RING_MAGIC;
    ring->header.version = TIDEMARK_RING_VERSION;
    ring->header.record_bytes = sizeof(struct tidemark_ring_record);
    ring->header.capacity = TIDEMARK_RING_CAPACITY;
    ring->header.pid = (uint32_t)getpid();
    ring->header.start_ticks = start_ticks;
    if (linkat(directory, draft, directory, name, 0) != 0) {
      munmap(ring, sizeof *ring);
      ring = NULL;
    }
  }
  unlinkat(directory, draft, 0);
  return ring;
}

// Makes or joins the ring of this process and notes its path.
TIDEMARK_SLOW_ struct tidemark_ring* tidemark_open_ring_(char* path, size_t size) {
  const char* wanted = getenv("TIDEMARK_MARKERS");
  const uint64_t start_ticks = tidemark_start_ticks_();
  struct stat pid_namespace;
  struct tidemark_ring* ring = NULL;
  char name[80];
  int directory, attempt;
  size_t used;
  if ((wanted != NULL && strcmp(wanted, "off") == 0) || start_ticks == 0 ||
      stat("/proc/self/ns/pid", &pid_namespace) != 0) {
    return NULL;
  }
  snprintf(name, sizeof name, "%ld-%llu-%llu.c.markers", (long)getpid(),
           (unsigned long long)start_ticks, (unsigned long long)pid_namespace.st_ino);
  directory = tidemark_open_directory_(path, size - sizeof name - 1);
  if (directory < 0) {
    return NULL;
  }
  // Twice, for the case that another part of the process makes it at the same time.
  for (attempt = 0; attempt < 2 && ring == NULL; ++attempt) {
    ring = tidemark_join_ring_(directory, name, start_ticks);
    if (ring == NULL) {
      tidemark_remove_dead_(directory, (uint64_t)pid_namespace.st_ino);
      ring = tidemark_make_ring_(directory, name, start_ticks);
    }
  }
  close(directory);
  used = strlen(path);
  snprintf(path + used, size - used, "/%s", name);
  if (ring != NULL) {
    __atomic_add_fetch(&ring->header.users, 1, __ATOMIC_ACQ_REL);
  }
  return ring;
}

// The page that holds the state; made by whoever comes first.
TIDEMARK_SLOW_ struct tidemark_state_* tidemark_make_state_(void) {
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  struct tidemark_state_* expected = NULL;
  struct tidemark_state_* made = NULL;
  void* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return NULL;
  }
  made = (struct tidemark_state_*)page;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    made->checked_pid = getpid();
  }
  if (!__atomic_compare_exchange_n(&tidemark_state_, &expected, made, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    munmap(page, size);
    made = expected;
  }
  return made;
}

// The first call of this translation unit in this process, or markers are off. A call that comes
// while another thread (or the interrupted one, in a signal handler) is opening is dropped.
TIDEMARK_SLOW_ struct tidemark_ring* tidemark_open_(void) {
  const int saved_errno = errno;
  int untried = TIDEMARK_UNTRIED_;
  struct tidemark_ring* ring = NULL;
  struct tidemark_state_* state = __atomic_load_n(&tidemark_state_, __ATOMIC_ACQUIRE);
  if (state == NULL) {
    state = tidemark_make_state_();
  } else if (state->checked_pid != 0 && state->checked_pid != getpid()) {
    state->ring = NULL;  // we are a forked child, and alone: no other thread survives a fork
    state->status = TIDEMARK_UNTRIED_;
    state->checked_pid = getpid();
  }
  if (state != NULL && __atomic_compare_exchange_n(&state->status, &untried, TIDEMARK_OPENING_, 0,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    ring = tidemark_open_ring_(state->path, sizeof state->path);
    __atomic_store_n(&state->ring, ring, __ATOMIC_RELEASE);
    __atomic_store_n(&state->status, ring != NULL ? TIDEMARK_OPEN_ : TIDEMARK_OFF_,
                     __ATOMIC_RELEASE);
  }
  errno = saved_errno;
  return ring;
}

// At exit, and when the shared object that holds this translation unit is closed by dlclose: the
// last part of the process that used the ring removes it. After a crash, _exit or exec the reader,
// or the next process that makes a ring, removes it instead.
__attribute__((destructor, unused)) static void tidemark_close_(void) {
  const int saved_errno = errno;
  struct tidemark_state_* state = __atomic_load_n(&tidemark_state_, __ATOMIC_ACQUIRE);
  struct tidemark_ring* ring = NULL;
  if (state == NULL || (state->checked_pid != 0 && state->checked_pid != getpid())) {
    return;
  }
  ring = __atomic_exchange_n(&state->ring, (struct tidemark_ring*)NULL, __ATOMIC_ACQ_REL);
  __atomic_store_n(&state->status, TIDEMARK_OFF_, __ATOMIC_RELEASE);
  if (ring != NULL) {
    if (__atomic_sub_fetch(&ring->header.users, 1, __ATOMIC_ACQ_REL) == 0) {
      unlink(state->path);
    }
    // Gives the file's memory back, yet leaves an address where a thread that is still inside a
    // call can write: no munmap.
    (void)mmap(ring, sizeof *ring, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  errno = saved_errno;
}

// ---- Marking ----

static inline struct tidemark_ring* tidemark_ring_of_process_(void) {
  struct tidemark_state_* state = __atomic_load_n(&tidemark_state_, __ATOMIC_ACQUIRE);
  if (TIDEMARK_LIKELY_(state != NULL)) {
    struct tidemark_ring* ring = __atomic_load_n(&state->ring, __ATOMIC_ACQUIRE);
    if (TIDEMARK_LIKELY_(ring != NULL && state->checked_pid == 0)) {
      return ring;
    }
    if (ring != NULL && state->checked_pid == getpid()) {
      return ring;
    }
    if (__atomic_load_n(&state->status, __ATOMIC_ACQUIRE) == TIDEMARK_OFF_ &&
        (state->checked_pid == 0 || state->checked_pid == getpid())) {
      return NULL;
    }
  }
  return tidemark_open_();
}

// Writes one record; returns its time, 0 when markers are off.
static inline uint64_t tidemark_mark_(struct tidemark_ring* ring, uint32_t kind, int64_t value,
                                      const char* name) {
  struct timespec now;
  uint64_t time_ns, index;
  struct tidemark_ring_record* record;
  uint32_t length = 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  time_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
  index = __atomic_fetch_add(&ring->header.next, 1, __ATOMIC_ACQ_REL);
  record = &ring->records[index % TIDEMARK_RING_CAPACITY];
  record->time_ns = time_ns;
  record->value = value;
  record->kind = kind;
  if (name != NULL) {
    for (; length < TIDEMARK_RING_NAME_BYTES && name[length] != '\0'; ++length) {
      record->name[length] = name[length];
    }
  }
  record->name_bytes = length;
  __atomic_store_n(&record->sequence, index + 1, __ATOMIC_RELEASE);
  return time_ns;
}

// Step `n` is done. Count in any way that goes up; once per step.
static inline void tidemark_step(int64_t n) {
  struct tidemark_ring* ring = tidemark_ring_of_process_();
  if (TIDEMARK_LIKELY_(ring != NULL)) {
    const uint64_t time_ns = tidemark_mark_(ring, TIDEMARK_KIND_STEP, n, NULL);
    __atomic_store_n(&ring->header.step, n, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->header.step_time_ns, time_ns, __ATOMIC_RELEASE);
  }
}

// Epoch `n` begins.
static inline void tidemark_epoch(int64_t n) {
  struct tidemark_ring* ring = tidemark_ring_of_process_();
  if (TIDEMARK_LIKELY_(ring != NULL)) {
    const uint64_t time_ns = tidemark_mark_(ring, TIDEMARK_KIND_EPOCH, n, NULL);
    __atomic_store_n(&ring->header.epoch, n, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->header.epoch_time_ns, time_ns, __ATOMIC_RELEASE);
  }
}

// A phase such as "eval" or "checkpoint" begins and ends. Phases may nest; names are cut at 32
// bytes.
static inline void tidemark_phase_begin(const char* name) {
  struct tidemark_ring* ring = tidemark_ring_of_process_();
  if (TIDEMARK_LIKELY_(ring != NULL)) {
    tidemark_mark_(ring, TIDEMARK_KIND_PHASE_BEGIN, 0, name);
  }
}

static inline void tidemark_phase_end(const char* name) {
  struct tidemark_ring* ring = tidemark_ring_of_process_();
  if (TIDEMARK_LIKELY_(ring != NULL)) {
    tidemark_mark_(ring, TIDEMARK_KIND_PHASE_END, 0, name);
  }
}

// What something amounts to now, for example the bytes that a cache holds. Tidemark itself knows
// "torch_gpu_allocated_bytes" and "torch_gpu_reserved_bytes": see docs/markers.md.
static inline void tidemark_gauge(const char* name, int64_t value) {
  struct tidemark_ring* ring = tidemark_ring_of_process_();
  if (TIDEMARK_LIKELY_(ring != NULL)) {
    tidemark_mark_(ring, TIDEMARK_KIND_GAUGE, value, name);
  }
}

#pragma GCC diagnostic pop

#else  // not Linux, or a compiler without the GNU builtins: the calls compile and do nothing

static inline void tidemark_step(int64_t n) { (void)n; }
static inline void tidemark_epoch(int64_t n) { (void)n; }
static inline void tidemark_phase_begin(const char* name) { (void)name; }
static inline void tidemark_phase_end(const char* name) { (void)name; }
static inline void tidemark_gauge(const char* name, int64_t value) { (void)name, (void)value; }

#endif
#endif  // TIDEMARK_LAYOUT_ONLY

// NOLINTEND
#endif  // TIDEMARK_H_
