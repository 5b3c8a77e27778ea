// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/trace_store.h"

#include <linux/mman.h>

#include <cerrno>

#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint64_t kPage = 4096;
// After a failed extension the next one waits, each time longer: not every malloc on a full disk
// makes system calls.
constexpr std::uint64_t kFirstRetryNs = 1'000'000;
constexpr std::uint64_t kLongestRetryNs = 200'000'000;
constexpr std::uint64_t kPartBytes = 1U << 20U;  // of an extent
constexpr int kHighestDescriptor = 1023;         // a higher one would make the kernel's table large
constexpr rlim_t kFewDescriptors = 128;

constexpr std::uint64_t next_delay(std::uint64_t delay_ns) {
  const std::uint64_t next = delay_ns == 0 ? kFirstRetryNs : 2 * delay_ns;
  return next < kLongestRetryNs ? next : kLongestRetryNs;
}

// Whether enough space remains on the file system for others: a program that finds no page there
// for its own shared memory is killed.
bool leaves_enough_space(int fd, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kEnoughFree = std::uint64_t{256} << 20U;
  struct statfs space = {};
  if (sys::fstatfs(fd, &space) != 0 || space.f_blocks == 0) {
    return true;  // not known
  }
  const auto block_bytes = static_cast<std::uint64_t>(space.f_bsize);
  const std::uint64_t half = space.f_blocks * block_bytes / 2;
  const std::uint64_t left = space.f_bavail * block_bytes;
  return bytes <= left / 4 && left - bytes >= (half < kEnoughFree ? half : kEnoughFree);
}

constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
  return (bytes + kPage - 1) & ~(kPage - 1);
}

// Why a file must not get that long, as an error number; 0: it may. Beyond RLIMIT_FSIZE the target
// would get a signal.
int growth_problem(const wire::Header* header, std::uint64_t bytes) noexcept {
  rlimit most = {};
  if (sys::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
      bytes > most.rlim_cur) {
    return EFBIG;
  }
  const std::uint64_t wanted =
      header == nullptr ? 0 : header->control.most_file_bytes.load(std::memory_order_relaxed);
  return wanted != 0 && bytes > wanted ? EDQUOT : 0;
}

// For the time when the path cannot be opened: after chroot, without rights, or when all other
// descriptors are used up. With a high number, which programs do not get or expect; 0: there are so
// few that there is no such number.
int high_duplicate_of(int fd) noexcept {
  rlimit most = {};
  if (sys::getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur < kFewDescriptors) {
    return 0;
  }
  const auto numbers = most.rlim_cur <= kHighestDescriptor ? static_cast<int>(most.rlim_cur)
                                                           : kHighestDescriptor + 1;
  const int made = sys::duplicate(fd, numbers - 1);
  return made > 0 ? made : 0;
}

struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
};

// The program may have closed a descriptor and opened another file with the same number.
bool is_file(int fd, FileIdentity file, bool must_have_name) noexcept {
  struct stat status = {};
  return sys::fstat(fd, &status) == 0 && status.st_ino == file.inode &&
         status.st_dev == file.device && (!must_have_name || status.st_nlink > 0);
}

// nullptr: failed.
void* map_shared(int fd, std::uint64_t offset, std::uint64_t bytes,
                 bool hidden_from_children) noexcept {
  void* const base = sys::map(bytes, MAP_SHARED, fd, offset);
  if (base != nullptr && hidden_from_children) {
    sys::madvise(base, bytes, MADV_DONTFORK);
  }
  return base;
}

// Field 22 of /proc/self/stat; the name, field 2, is in brackets and may hold any character. 0: not
// known.
std::uint64_t start_ticks() noexcept {
  char text[1024];
  const int fd = sys::open("/proc/self/stat", O_RDONLY);
  if (fd < 0) {
    return 0;
  }
  const long bytes = sys::read(fd, text, sizeof(text) - 1);
  sys::close(fd);
  if (bytes <= 0) {
    return 0;
  }
  long at = bytes - 1;
  while (at > 0 && text[at] != ')') {
    --at;
  }
  constexpr int kSpaces = 20;  // from the end of the name to field 22
  int spaces = 0;
  for (; at < bytes && spaces < kSpaces; ++at) {
    spaces += text[at] == ' ' ? 1 : 0;
  }
  std::uint64_t ticks = 0;
  for (; at < bytes && text[at] >= '0' && text[at] <= '9'; ++at) {
    ticks = ticks * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return ticks;
}

std::uint64_t pid_namespace() noexcept {
  struct stat status = {};
  const long failed = sys::call_if_allowed(SYS_newfstatat, AT_FDCWD, sys::word("/proc/self/ns/pid"),
                                           sys::word(&status), 0);
  return failed == 0 ? status.st_ino : 0;
}

// What identifies the file and its process. What /proc does not tell stays 0.
void describe_process(wire::Header& header) noexcept {
  header.magic = wire::kMagic;
  header.format_version = wire::kFormatVersion;
  header.header_bytes = wire::kHeaderBytes;
  header.pid = static_cast<std::uint32_t>(sys::getpid());
  header.parent_pid = static_cast<std::uint32_t>(sys::getppid());
  header.start_ticks = start_ticks();
  header.pid_namespace = pid_namespace();
  header.created_ns = sys::monotonic_ns();
}

constexpr Table kAllTables[] = {Table::kStrings, Table::kModules, Table::kNodes, Table::kSites,
                                Table::kLive,    Table::kRanges,  Table::kCodes};
// The first item from `at` on from which `count` items lie in one extent.
constexpr std::uint64_t first_fitting(Table table, std::uint64_t at, std::uint64_t count) {
  for (;;) {
    const ItemPlace last = place_of(table, at + count - 1);
    if (place_of(table, at).extent == last.extent) {
      return at;
    }
    at += count - 1 - last.position;  // the rest of the extent stays unused
  }
}

// Of the others any item may be used at any time.
constexpr bool is_filled_in_order(Table table) {
  return table != Table::kLive && table != Table::kRanges;
}

static_assert(sizeof(kAllTables) / sizeof(kAllTables[0]) == wire::kTables);

}  // namespace

int check_trace_folder(const char* directory) noexcept {
  if (const int failed = sys::access(directory, W_OK | X_OK); failed < 0) {
    return -failed;
  }
  const int folder = sys::open(directory, O_PATH | O_DIRECTORY);
  if (folder < 0) {
    return sys::has_no_descriptors(folder) ? 0 : -folder;
  }
  const int owner = sys::open_at(folder, wire::kOwnerLock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  sys::close(folder);
  if (owner < 0) {
    return owner == -ENOENT || sys::has_no_descriptors(owner) ? 0 : -owner;
  }
  const bool is_gone = sys::flock(owner, LOCK_SH | LOCK_NB) == 0;
  sys::close(owner);
  return is_gone ? EOWNERDEAD : 0;
}

void TraceStore::fail(int error) noexcept {
  error_ = error;
  if (header_ != nullptr) {
    header_->extend_errno.store(static_cast<std::uint32_t>(error), std::memory_order_relaxed);
    header_->losses.extend_failures.fetch_add(1, std::memory_order_relaxed);
  }
}

bool TraceStore::create(const char* directory, std::uint64_t most_bytes) noexcept {
  directory_ = directory;
  error_ = check_trace_folder(directory);
  if (error_ != 0) {
    return false;
  }
  FixedText path(path_);
  path.add(directory).add('/').add_number(static_cast<std::uint64_t>(sys::getpid())).add('-');
  path.add_number(sys::monotonic_ns()).add(wire::kTraceSuffix).add(wire::kUnfinishedSuffix);
  if (!path.complete()) {
    error_ = ENAMETOOLONG;
    return false;
  }
  const int fd = sys::open(path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) {
    error_ = -fd;
    return false;
  }
  bool made = map_header(fd);
  if (made) {
    describe_process(*header_);
    header_->control.most_file_bytes.store(most_bytes, std::memory_order_relaxed);
    for (const Table table : kAllTables) {
      made = made && add_extent(fd, table);
    }
  }
  if (made) {
    kept_fd_ = high_duplicate_of(fd);
  }
  sys::close(fd);
  if (!made) {
    sys::unlink(path_);
    abandon(true);
  }
  return made;
}

bool TraceStore::map_header(int fd) noexcept {
  struct stat status = {};
  sys::fstat(fd, &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (const int problem = growth_problem(nullptr, wire::kHeaderBytes); problem != 0) {
    fail(problem);
    return false;
  }
  if (!allocate(fd, 0, wire::kHeaderBytes)) {
    return false;
  }
  header_ =
      static_cast<wire::Header*>(map_shared(fd, 0, wire::kHeaderBytes, hidden_from_children_));
  if (header_ == nullptr) {
    error_ = ENOMEM;
    return false;
  }
  end_ = wire::kHeaderBytes;
  header_->file_bytes.store(end_, std::memory_order_relaxed);
  return true;
}

bool TraceStore::publish() noexcept {
  static constinit char
      final_name[kPathBytes];  // not on the stack, which may be small; one thread only
  FixedText name(final_name);
  name.add(path_);
  final_name[name.size() - (sizeof(wire::kUnfinishedSuffix) - 1)] = '\0';
  if (const int failed = sys::rename(path_, final_name); failed < 0) {
    error_ = -failed;
    return false;
  }
  path_[name.size() - (sizeof(wire::kUnfinishedSuffix) - 1)] = '\0';
  return true;
}

template <typename Visit>
void TraceStore::for_each_mapping(Visit visit) noexcept {
  for (const Table table : kAllTables) {
    const auto which = static_cast<std::size_t>(table);
    for (std::size_t i = 0; i < extents_[which].load(std::memory_order_relaxed); ++i) {
      visit(bases_[which][i],
            round_up_to_page((first_items(table) << i) * wire::item_bytes(table)));
    }
  }
  if (header_ != nullptr) {
    visit(header_, wire::kHeaderBytes);
  }
}

// Also where system calls are stopped: else the hook would access memory that is not mapped.
void TraceStore::cover_with_private_memory() noexcept {
  for_each_mapping([](void* base, std::uint64_t bytes) {
    sys::call(SYS_mmap, sys::word(base), static_cast<long>(bytes), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  });
  covered_ = true;
}

void TraceStore::abandon(bool unmap) noexcept {
  if (unmap || covered_) {
    for_each_mapping([](void* base, std::uint64_t bytes) { sys::unmap(base, bytes); });
  }
  covered_ = false;
  if (kept_fd_ > 0 &&
      is_file(kept_fd_, {device_, inode_}, false)) {  // else the program has closed it
    sys::close(kept_fd_);
  }
  kept_fd_ = 0;
  for (std::size_t which = 0; which < wire::kTables; ++which) {
    extents_[which].store(0, std::memory_order_relaxed);
    room_[which].store(0, std::memory_order_relaxed);
    retry_at_ns_[which].store(0, std::memory_order_relaxed);
    retry_delay_ns_[which] = 0;
  }
  header_ = nullptr;
  extend_lock_.clear();
  end_ = 0;
}

bool TraceStore::allocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (!leaves_enough_space(fd, bytes)) {
    fail(ENOSPC);
    return false;
  }
  if (const int failed = sys::fallocate(fd, offset, bytes); failed < 0) {
    fail(-failed);
    return false;
  }
  return true;
}

// Fails unless the path still leads to the same file: not after chroot or when it was replaced.
int TraceStore::reopen() noexcept {
  const int fd = sys::open(path_, O_RDWR | O_NOFOLLOW);
  if (fd < 0) {
    fail(-fd);
    return -1;
  }
  if (!is_file(fd, {device_, inode_}, false)) {
    sys::close(fd);
    fail(ESTALE);
    return -1;
  }
  return fd;
}

// Then nothing more is to be recorded, until another run wakes the tracer.
bool TraceStore::is_abandoned() noexcept {
  if (check_trace_folder(directory_) != EOWNERDEAD) {
    return false;
  }
  header_->control.mode.store(static_cast<std::uint32_t>(wire::Mode::kDormant),
                              std::memory_order_relaxed);
  fail(EOWNERDEAD);
  return true;
}

// With its first part.
bool TraceStore::add_extent(int fd, Table table) noexcept {
  const std::size_t index = extents(table);
  const std::uint64_t items = first_items(table) << index;
  const std::uint64_t bytes = round_up_to_page(items * wire::item_bytes(table));
  if (index >= wire::kMaxExtents) {
    return false;
  }
  if (const int problem = growth_problem(header_, end_ + bytes); problem != 0) {
    fail(problem);
    return false;
  }
  if (const int failed = sys::truncate(fd, end_ + bytes); failed < 0) {
    fail(-failed);
    return false;
  }
  void* const base = map_shared(fd, end_, bytes, hidden_from_children_);
  if (base == nullptr) {
    fail(ENOMEM);
    return false;
  }
  const auto which = static_cast<std::size_t>(table);
  bases_[which][index] = base;
  last_offset_[which] = end_;
  if (!add_part(fd, table, index)) {
    sys::unmap(base, bytes);
    return false;
  }
  wire::TableDirectory& listed = directory(table);
  listed.extent[index] = {end_, items};
  end_ += bytes;
  header_->file_bytes.store(end_, std::memory_order_relaxed);
  listed.extents.store(static_cast<std::uint32_t>(index + 1), std::memory_order_release);
  extents_[which].store(index + 1, std::memory_order_release);
  return true;
}

// The next part of the last extent, behind those that are allocated.
bool TraceStore::add_part(int fd, Table table, std::size_t index) noexcept {
  const auto which = static_cast<std::size_t>(table);
  const std::uint64_t size = wire::item_bytes(table);
  const std::uint64_t items = first_items(table) << index;
  const std::uint64_t done = round_up_to_page((room(table) - items_in(table, index)) * size);
  const std::uint64_t left = round_up_to_page(items * size) - done;
  const std::uint64_t part = is_filled_in_order(table) && left > kPartBytes ? kPartBytes : left;
  if (!allocate(fd, last_offset_[which] + done, part)) {
    return false;
  }
  if ((table == Table::kNodes || table == Table::kSites) && index > 0) {
    // One call instead of a page fault for every page.
    sys::madvise(extent<char>(table, index) + done, part, MADV_POPULATE_WRITE);
  }
  const std::uint64_t opened = (done + part) / size;
  room_[which].store(items_in(table, index) + (opened < items ? opened : items),
                     std::memory_order_release);
  return true;
}

bool TraceStore::make_room(Table table, std::uint64_t known) noexcept {
  if (room(table) > known) {
    return true;
  }
  std::atomic<std::uint64_t>& again = retry_at_ns_[static_cast<std::size_t>(table)];
  const std::uint64_t waiting = again.load(std::memory_order_relaxed);
  if (waiting != 0 && sys::monotonic_ns() < waiting) {
    return false;
  }
  const BoundedLockGuard guard(extend_lock_, BoundedLockGuard::Wait::kTryOnce);
  if (!guard) {
    return false;
  }
  if (room(table) > known) {
    return true;
  }
  // A deleted file has no reader and grows no more.
  const bool kept = kept_fd_ > 0 && is_file(kept_fd_, {device_, inode_}, true);
  const int fd = is_abandoned() ? -1 : kept ? kept_fd_ : reopen();
  const bool is_whole = room(table) == items_in(table, extents(table));
  const bool made =
      fd >= 0 && (is_whole ? add_extent(fd, table) : add_part(fd, table, extents(table) - 1));
  if (fd >= 0 && !kept) {
    sys::close(fd);
  }
  std::uint64_t& pause = retry_delay_ns_[static_cast<std::size_t>(table)];
  pause = made ? 0 : next_delay(pause);
  again.store(made ? 0 : sys::monotonic_ns() + pause, std::memory_order_relaxed);
  return made;
}

void TraceStore::stop_system_calls() noexcept {
  for (const Table table : kAllTables) {
    const std::uint64_t wanted = header_ == nullptr ? 0 : items_in(table, extents(table) + 1);
    while (room(table) < wanted && make_room(table, room(table))) {
    }
  }
  const BoundedLockGuard guard(
      extend_lock_, BoundedLockGuard::Wait::kBounded);  // no thread is extending the file
  sys::g_calls_stopped.fetch_add(sys::kOwnFilter, std::memory_order_relaxed);
}

// If the file cannot grow nothing is handed out, so that the table continues without a gap once it
// can.
bool TraceStore::take(Table table, std::uint64_t count, std::uint64_t& index) noexcept {
  std::atomic<std::uint64_t>& used = directory(table).used;
  std::uint64_t before = used.load(std::memory_order_relaxed);
  BoundedWait wait;
  for (;;) {
    const std::uint64_t known = room(table);
    index = before;
    if (place_of(table, before).extent > extents(table)) {
      return false;  // never handed out: the file is damaged
    }
    index = first_fitting(table, before, count);
    if (index + count <= known) {
      if (used.compare_exchange_weak(before, index + count, std::memory_order_relaxed)) {
        return true;
      }
      continue;
    }
    // It also fails while another thread holds the lock.
    if (!make_room(table, known) && (cannot_grow(table) || !wait.keep_waiting())) {
      return false;
    }
    before = used.load(std::memory_order_relaxed);
  }
}

bool TraceStore::has_room(Table table) noexcept {
  const std::uint64_t known = room(table);
  return used(table) < known || make_room(table, known) || !cannot_grow(table);
}

}  // namespace tidemark::tracer
