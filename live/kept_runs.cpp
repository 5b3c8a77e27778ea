// SPDX-License-Identifier: Apache-2.0
#include "live/kept_runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/messages.h"
#include "recording/files.h"

namespace tidemark::live {
namespace {

constexpr std::string_view kPrefix = "run-";
constexpr std::string_view kSuffix = ".tidemark";

std::string absolute_path_in(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value == '/' ? value : "";
}

// As the user database has it.
std::string home_of_user() {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr && found->pw_dir != nullptr && *found->pw_dir == '/' ? found->pw_dir : "";
}

Error refused(const std::string& folder, std::string_view reason) {
  return Error{Errc::kUsage, fmt::format("{} {}", folder, reason)};
}

// Whoever may replace what is in it could choose what we write to.
Status check_cache_folder(const Fd& folder, const std::string& name) {
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) {
    return system_error("cannot look at " + name, errno);
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return refused(name, "belongs to another user");
  }
  const bool is_open_to_all = (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
  return is_open_to_all ? Status(refused(name, "can be changed by everybody")) : ok();
}

// A folder of our own below another; made if it is not there.
Result<Fd> open_own(const Fd& parent, const char* name, const std::string& path) {
  if (::mkdirat(parent.get(), name, 0700) != 0 && errno != EEXIST) {
    return system_error("cannot make " + path, errno);
  }
  TIDEMARK_TRY_ASSIGN(auto folder,
                      open_at(parent.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) {
    return system_error("cannot look at " + path, errno);
  }
  if (info.st_uid != ::geteuid()) {
    return refused(path, "belongs to another user");
  }
  return folder;
}

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

}  // namespace

Result<std::string> KeptRuns::cache_folder() {
  if (std::string folder = absolute_path_in("XDG_CACHE_HOME"); !folder.empty()) {
    return folder;
  }
  std::string home = absolute_path_in("HOME");
  if (home.empty()) {
    home = home_of_user();
  }
  if (home.empty()) {
    return Error{Errc::kNotFound, "neither XDG_CACHE_HOME nor HOME names a folder"};
  }
  return home + "/.cache";
}

Result<KeptRuns> KeptRuns::open(const std::string& cache_folder) {
  (void)::mkdir(cache_folder.c_str(), 0700);  // what is wrong with it shows below
  TIDEMARK_TRY_ASSIGN(const auto cache, open_file(cache_folder, O_RDONLY | O_DIRECTORY));
  TIDEMARK_TRY(check_cache_folder(cache, cache_folder));
  const std::string own = cache_folder + "/tidemark";
  TIDEMARK_TRY_ASSIGN(const auto tidemark, open_own(cache, "tidemark", own));
  const std::string path = own + "/runs";
  TIDEMARK_TRY_ASSIGN(auto runs, open_own(tidemark, "runs", path));
  if (::fchmod(runs.get(), 0700) != 0) {
    return system_error("cannot make private " + path, errno);
  }
  return KeptRuns(path, std::move(runs));
}

std::string KeptRuns::new_path() const {
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> stamp{};
  (void)::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}/{}{}-{}{}", folder_, kPrefix, stamp.data(), ::getpid(), kSuffix);
}

std::uint64_t KeptRuns::bytes_of(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const std::string_view suffix : {"", "-wal"}) {
    struct stat info {};
    if (::lstat((path + std::string(suffix)).c_str(), &info) == 0) {
      bytes += static_cast<std::uint64_t>(info.st_size);
    }
  }
  return bytes;
}

std::vector<KeptRuns::Run> KeptRuns::runs() const {
  std::vector<Run> runs;
  const int copy = ::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(copy < 0 ? nullptr : ::fdopendir(copy),
                                                   &::closedir);
  // Nobody else reads from this stream. NOLINTNEXTLINE(concurrency-mt-unsafe)
  for (const dirent* entry = nullptr; folder && (entry = ::readdir(folder.get())) != nullptr;) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    struct stat info {};
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix) &&
        ::fstatat(descriptor_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode)) {
      std::string path = fmt::format("{}/{}", folder_, name);
      const std::uint64_t bytes = bytes_of(path);
      runs.push_back({std::move(path), nanoseconds(info.st_mtim), bytes});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::pair(a.written_ns, a.path) > std::pair(b.written_ns, b.path);
  });
  return runs;
}

Result<std::string> KeptRuns::last() const {
  const std::vector<Run> all = runs();
  if (all.empty()) {
    return Error{Errc::kNotFound, "no run is kept in " + folder_};
  }
  const auto closed = std::find_if(all.begin(), all.end(), [](const Run& run) {
    return !recording::process_that_has_open(run.path);
  });
  return (closed == all.end() ? all.front() : *closed).path;
}

void KeptRuns::remove(const std::string& path) const {
  for (const std::string_view suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string name = path.substr(folder_.size() + 1) + std::string(suffix);
    (void)::unlinkat(descriptor_.get(), name.c_str(), 0);  // gone already: so much the better
  }
}

void KeptRuns::trim(const std::string& own) const {
  std::uint64_t bytes = bytes_of(own);
  std::size_t kept = bytes > 0 ? 1 : 0;
  for (const Run& run : runs()) {
    if (run.path == own) {
      continue;
    }
    const bool has_room = kept < kMostRuns && bytes + run.bytes <= kMostBytes;
    if (!has_room && !recording::process_that_has_open(run.path)) {
      remove(run.path);
      continue;
    }
    bytes += run.bytes;
    ++kept;
  }
}

std::optional<KeptRuns> keep_run(WatchOptions& watch) {
  if (!watch.output.empty() || watch.json || ::isatty(STDOUT_FILENO) != 1) {
    return std::nullopt;
  }
  const auto cache = KeptRuns::cache_folder();
  auto runs = cache ? KeptRuns::open(*cache) : Result<KeptRuns>(cache.error());
  if (!runs) {
    print_note("note: this run is not kept for tidemark track --last: " + runs.error().what);
    return std::nullopt;
  }
  watch.output = runs->new_path();
  watch.is_kept = true;
  runs->trim(watch.output);
  return *std::move(runs);
}

}  // namespace tidemark::live
