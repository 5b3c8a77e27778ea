// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_handle.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kArgvLimitBytes = 128U << 10U;
constexpr std::size_t kEnvironmentLimitBytes = 1U << 20U;
constexpr std::size_t kStatusBytes = 8U << 10U;  // about 1.5 KiB, more with many groups or CPUs
constexpr std::size_t kRollupBytes = 4U << 10U;
constexpr std::size_t kSmapsPieceBytes = 32U << 10U;
constexpr std::size_t kStatBytes = 1U << 10U;
constexpr std::size_t kStatmBytes = 256;

// Descriptors that stay free for everybody else in the tool: the run file, markers, single reads.
constexpr rlim_t kReservedDescriptors = 64;

Error gone(const std::string& path) {
  return Error{Errc::kGone, fmt::format("{}: the process has ended", path), ESRCH};
}

// The kernel hands out the lowest free number, so a high one means that few are left.
bool worth_keeping(const Fd& fd) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return true;
  }
  return static_cast<rlim_t>(fd.get()) + kReservedDescriptors < limit.rlim_cur;
}

Result<std::uint64_t> start_ticks_in(int directory, const std::string& path) {
  auto fd = open_at(directory, "stat", O_RDONLY);
  if (!fd) {
    return fd.error().code == Errc::kNotFound ? gone(path) : fd.error();
  }
  std::array<char, kStatBytes> buffer;
  const auto size = pread_once(fd->get(), buffer);
  if (!size) {
    return size.error().code == Errc::kGone ? gone(path) : size.error();
  }
  const auto stat = parse_stat({buffer.data(), *size});
  if (!stat) {
    return Error{Errc::kMalformed, fmt::format("{}/stat: not a /proc/PID/stat line", path)};
  }
  return stat->start_ticks;
}

Result<Fd> open_directory(const std::string& path) {
  auto directory = open_file(path, O_PATH | O_DIRECTORY);
  if (!directory && directory.error().code == Errc::kNotFound) {
    return gone(path);
  }
  return directory;
}

Result<Fd> open_directory_of(const std::string& path, const ProcessKey& key) {
  auto directory = open_directory(path);
  if (!directory) {
    return directory;
  }
  TIDEMARK_TRY_ASSIGN(const auto start_ticks, start_ticks_in(directory->get(), path));
  if (start_ticks != key.start_ticks) {
    return Error{Errc::kGone,
                 fmt::format("{}: the process has ended, another one has its pid", path), ESRCH};
  }
  return directory;
}

std::string process_path(const std::string& proc_root, pid_t pid) {
  return fmt::format("{}/{}", proc_root, pid);
}

bool may_be_no_such_file(const Error& error) {
  return error.code == Errc::kNotFound || error.code == Errc::kGone;
}

}  // namespace

ProcessHandle::ProcessHandle(ProcessKey key, std::string path, Fd directory, Fd status)
    : key_(key),
      path_(std::move(path)),
      directory_(std::move(directory)),
      status_(std::move(status)) {}

Result<ProcessHandle> ProcessHandle::open(const std::string& proc_root, const ProcessKey& key) {
  std::string path = process_path(proc_root, key.pid);
  TIDEMARK_TRY_ASSIGN(auto directory, open_directory_of(path, key));
  auto status = open_at(directory.get(), "status", O_RDONLY);
  if (!status) {
    return may_be_no_such_file(status.error()) ? gone(path) : status.error();
  }
  if (!worth_keeping(*status)) {
    directory.reset();
    status->reset();
  }
  return ProcessHandle(key, std::move(path), std::move(directory), std::move(*status));
}

Result<ProcessHandle::Directory> ProcessHandle::directory() const {
  if (directory_) {
    return Directory{directory_.get(), Fd()};
  }
  TIDEMARK_TRY_ASSIGN(auto fresh, open_directory_of(path_, key_));
  const int fd = fresh.get();
  return Directory{fd, std::move(fresh)};
}

Error ProcessHandle::explain(const Directory& directory, const std::string& name,
                             Error error) const {
  if (may_be_no_such_file(error)) {
    const auto start_ticks = start_ticks_in(directory.fd, path_);
    if (!start_ticks && start_ticks.error().code == Errc::kGone) {
      return gone(path_);
    }
  }
  error.what = fmt::format("{}/{}: {}", path_, name, error.what);
  return error;
}

Result<Fd> ProcessHandle::open_in(const Directory& directory, const std::string& name) const {
  auto fd = open_at(directory.fd, name, O_RDONLY);
  if (!fd) {
    return explain(directory, name, fd.error());
  }
  return fd;
}

// The main thread has ended, others live on: the memory is theirs, and only their files tell.
StatusFields ProcessHandle::status_of_another_thread(const StatusFields& leader) const {
  auto dir = directory();
  auto tasks = dir ? DirectoryStream::open_at(dir->fd, "task") : dir.error();
  if (!tasks) {
    return leader;
  }
  while (const dirent* entry = tasks->next()) {
    const auto text = read_file_at(tasks->fd(), std::string(entry->d_name) + "/status");
    const auto fields = text ? parse_status(*text) : text.error();
    if (fields && fields->rss_bytes) {
      StatusFields living = *fields;
      living.comm = leader.comm;
      return living;
    }
  }
  return leader;
}

Result<StatusFields> ProcessHandle::status() const {
  int fd = status_.get();
  Fd own;
  if (!status_) {
    TIDEMARK_TRY_ASSIGN(const auto dir, directory());
    TIDEMARK_TRY_ASSIGN(own, open_in(dir, "status"));
    fd = own.get();
  }
  std::array<char, kStatusBytes> buffer;
  const auto size = pread_once(fd, buffer);
  if (!size) {
    return size.error().code == Errc::kGone ? gone(path_) : size.error();
  }
  auto fields = parse_status({buffer.data(), *size});
  if (*size < buffer.size() && fields) {
    const bool leader_has_ended = fields->state == 'Z' && fields->threads.value_or(0) > 1;
    return leader_has_ended ? status_of_another_thread(*fields) : fields;
  }
  if (*size == buffer.size()) {  // a process in thousands of groups
    TIDEMARK_TRY_ASSIGN(auto whole, read_start("status", kEnvironmentLimitBytes));
    fields = parse_status(whole);
  }
  if (!fields) {
    return Error{fields.error().code, fmt::format("{}/status: {}", path_, fields.error().what)};
  }
  return fields;
}

Result<StatmFields> ProcessHandle::statm() {
  int fd = statm_.get();
  Fd own;
  if (!statm_) {
    TIDEMARK_TRY_ASSIGN(const auto dir, directory());
    TIDEMARK_TRY_ASSIGN(auto opened, open_in(dir, "statm"));
    fd = opened.get();
    Fd& keeper = directory_ && worth_keeping(opened) ? statm_ : own;
    keeper = std::move(opened);
  }
  std::array<char, kStatmBytes> buffer;
  const auto size = pread_once(fd, buffer);
  if (!size) {
    return size.error().code == Errc::kGone ? gone(path_) : size.error();
  }
  auto fields = parse_statm({buffer.data(), *size});
  if (!fields) {
    return Error{fields.error().code, fmt::format("{}/statm: {}", path_, fields.error().what)};
  }
  return fields;
}

Result<PssFields> ProcessHandle::pss() {
  TIDEMARK_TRY_ASSIGN(const auto dir, directory());
  if (!rollup_lacks_split_) {
    auto fields = pss_from_rollup(dir);
    if (fields && !fields->split_estimated) {
      return fields;
    }
    if (!fields && !may_be_no_such_file(fields.error())) {
      return fields;
    }
    rollup_lacks_split_ = fields.has_value();
  }
  return pss_from_smaps(dir);
}

// Opened anew each time: an open smaps_rollup belongs to the memory that the process had before
// its last exec.
Result<PssFields> ProcessHandle::pss_from_rollup(const Directory& directory) const {
  TIDEMARK_TRY_ASSIGN(auto fd, open_at(directory.fd, "smaps_rollup", O_RDONLY));
  std::array<char, kRollupBytes> buffer;
  TIDEMARK_TRY_ASSIGN(const auto size, pread_once(fd.get(), buffer));
  return parse_smaps_rollup({buffer.data(), size});
}

Status ProcessHandle::smaps(const std::function<void(std::string_view piece)>& take) const {
  TIDEMARK_TRY_ASSIGN(const auto dir, directory());
  TIDEMARK_TRY_ASSIGN(auto fd, open_in(dir, "smaps"));
  std::array<char, kSmapsPieceBytes> piece;
  off_t offset = 0;
  while (true) {
    const auto size = pread_once(fd.get(), piece, offset);
    if (!size) {
      return explain(dir, "smaps", size.error());
    }
    if (*size == 0) {
      break;
    }
    take({piece.data(), *size});
    offset += static_cast<off_t>(*size);
  }
  if (offset == 0) {
    return Error{Errc::kGone,
                 fmt::format("{} has no memory: it has ended or is the kernel's own", path_)};
  }
  return ok();
}

Result<PssFields> ProcessHandle::pss_from_smaps(const Directory& directory) const {
  SmapsAccumulator sums;
  TIDEMARK_TRY(smaps([&](std::string_view piece) { sums.add(piece); }));
  auto fields = sums.finish();
  return fields ? fields : explain(directory, "smaps", fields.error());
}

Result<std::string> ProcessHandle::read_start(const std::string& name,
                                              std::size_t limit_bytes) const {
  TIDEMARK_TRY_ASSIGN(const auto dir, directory());
  TIDEMARK_TRY_ASSIGN(auto fd, open_in(dir, name));
  std::string text;
  std::size_t size = 0;
  while (size == text.size() && size < limit_bytes) {
    text.resize(std::min(limit_bytes, std::max<std::size_t>(4096, size * 2)));
    const auto more = pread_full(fd.get(), std::span(text).subspan(size), static_cast<off_t>(size));
    if (!more) {
      return explain(dir, name, more.error());
    }
    size += *more;
  }
  text.resize(size);
  return text;
}

Result<std::vector<std::string>> ProcessHandle::argv() const {
  TIDEMARK_TRY_ASSIGN(const auto text, read_start("cmdline", kArgvLimitBytes));
  std::vector<std::string> words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

Result<std::string> ProcessHandle::exe() const {
  TIDEMARK_TRY_ASSIGN(const auto dir, directory());
  auto target = read_link_at(dir.fd, "exe");
  if (!target) {
    return explain(dir, "exe", target.error());
  }
  return target;
}

Result<std::vector<pid_t>> ProcessHandle::children(std::optional<std::uint32_t> threads) const {
  TIDEMARK_TRY_ASSIGN(const auto dir, directory());
  auto pids = threads == 1U ? children_of_thread(dir.fd, key_.pid) : children_of_threads(dir.fd);
  if (pids) {
    return pids;
  }
  Error error = explain(dir, "task/*/children", pids.error());
  if (error.code == Errc::kNotFound) {
    error.code = Errc::kUnsupported;
    error.what += " (the kernel was built without CONFIG_PROC_CHILDREN)";
  }
  return error;
}

Result<std::vector<std::string>> ProcessHandle::environment(
    std::span<const std::string> names) const {
  TIDEMARK_TRY_ASSIGN(const auto text, read_start("environ", kEnvironmentLimitBytes));
  std::vector<std::string> found;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() < entry.size() && std::find(names.begin(), names.end(), name) != names.end()) {
      found.emplace_back(entry);
    }
  }
  return found;
}

std::optional<std::uint64_t> ProcessHandle::stack_start() const {
  const auto text = read_start("stat", kStatBytes);
  if (!text) {
    return std::nullopt;
  }
  const auto stat = parse_stat(*text);
  return stat && stat->stack_start != 0 ? std::optional(stat->stack_start) : std::nullopt;
}

Result<ProcessKey> process_key_of(const std::string& proc_root, pid_t pid) {
  const std::string path = process_path(proc_root, pid);
  TIDEMARK_TRY_ASSIGN(const auto directory, open_directory(path));
  TIDEMARK_TRY_ASSIGN(const auto start_ticks, start_ticks_in(directory.get(), path));
  return ProcessKey{pid, start_ticks};
}

}  // namespace tidemark::monitor
