// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_world.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"
#include "profiler/reader/debug_server.h"
#include "profiler/reader/symbolizer.h"

namespace tidemark::reader {
namespace {

constexpr std::size_t kMostModulesTold = 5;  // the rest are one more line
constexpr std::size_t kMostMapsBytes = 64U << 20U;

std::optional<std::uint64_t> pid_namespace(const std::string& proc_root, std::string_view pid) {
  struct stat info {};
  const std::string path = fmt::format("{}/{}/ns/pid", proc_root, pid);
  return ::stat(path.c_str(), &info) == 0 ? std::optional<std::uint64_t>(info.st_ino)
                                          : std::nullopt;
}

class RealTraceWorld final : public TraceWorld {
 public:
  explicit RealTraceWorld(std::string proc_root)
      : proc_root_(std::move(proc_root)), own_namespace_(pid_namespace(proc_root_, "self")) {
    if (auto proc = open_file(proc_root_, O_RDONLY | O_DIRECTORY)) {
      proc_ = *std::move(proc);
    }
  }

  std::optional<ProcessKey> find(const TraceIdentity& identity) override {
    const bool is_ours =
        !own_namespace_ || identity.pid_namespace == 0 || identity.pid_namespace == *own_namespace_;
    if (!is_ours) {
      return find_in_namespace(identity);
    }
    // Also when it has ended already: its file is worth reading all the same.
    return ProcessKey{static_cast<pid_t>(identity.pid), identity.start_ticks};
  }

  bool is_alive(const ProcessKey& key) override { return start_ticks(key.pid) == key.start_ticks; }

  bool is_in_tree(const ProcessKey& key, pid_t root) override {
    constexpr int kDeepest = 1024;
    pid_t pid = key.pid;
    for (int depth = 0; pid > 0 && depth < kDeepest; ++depth) {
      if (pid == root) {
        return true;
      }
      const auto stat = living(pid);
      pid = stat ? stat->ppid : 0;
    }
    return false;
  }

  // By its name alone, which no two trace files share: the path may be another one over there.
  std::optional<bool> is_mapped(const ProcessKey& key, const std::string& file_name) override {
    const auto maps =
        read_file(fmt::format("{}/{}/maps", proc_root_, living_thread(key.pid)), kMostMapsBytes);
    if (!maps) {
      return std::nullopt;
    }
    return maps->find('/' + file_name) != std::string::npos;
  }

  std::vector<SourceFrame> name(const ProcessKey& key, const std::vector<StackFrame>& stack,
                                const std::vector<TraceModule>& modules) override {
    return symbolizer_of(key).resolve(stack, modules);
  }

  std::optional<Residency> residency(const ProcessKey& key,
                                     std::span<const MemoryRange> ranges) override {
    ResidencyOptions options;
    options.proc = proc_root_;
    options.most_pages = std::uint64_t{1} << 16U;
    return residency_of(living_thread(key.pid), ranges, options);
  }

  std::optional<std::vector<MemoryArea>> areas(const ProcessKey& key) override {
    return memory_areas_of(living_thread(key.pid), proc_root_);
  }

  std::vector<std::string> take_problems() override {
    std::vector<std::string> problems;
    if (auto silent = server_->problem(); silent && !has_told_of_server_) {
      has_told_of_server_ = true;
      problems.push_back(*std::move(silent));
    }
    for (const auto& [place, symbolizer] : symbolizers_) {
      for (const ModuleProblem& problem : symbolizer.problems()) {
        const bool is_file = problem.module.starts_with('/');  // else [vdso] and its like
        if (is_file && told_modules_.size() <= kMostModulesTold &&
            told_modules_.insert(problem.module).second) {
          problems.push_back(told_modules_.size() > kMostModulesTold
                                 ? "more modules have no names"
                                 : fmt::format("no names of {}: {}", problem.module, problem.what));
        }
      }
    }
    return problems;
  }

  void wait_until(std::int64_t until_ns) override { server_->wait_until(until_ns); }

 private:
  // nullopt also for a zombie, which holds nothing any more.
  std::optional<monitor::StatFields> living(pid_t pid) const {
    const auto stat = monitor::read_stat(proc_.get(), pid);
    return stat && !monitor::has_ended(*stat) ? stat : std::nullopt;
  }

  // A main thread that has ended has no memory: that of the process is then another thread's, whose
  // files are to be had by its number as well.
  pid_t living_thread(pid_t pid) const {
    const auto leader = monitor::read_stat(proc_.get(), pid);
    if (!leader || !monitor::has_ended(leader->state)) {
      return pid;
    }
    auto threads = monitor::DirectoryStream::open_at(proc_.get(), fmt::format("{}/task", pid));
    while (const dirent* entry = threads ? threads->next() : nullptr) {
      const auto thread = parse_number<pid_t>(entry->d_name);
      const auto stat = thread ? monitor::read_stat(proc_.get(), *thread) : std::nullopt;
      if (stat && !monitor::has_ended(stat->state)) {
        return *thread;
      }
    }
    return pid;
  }

  std::optional<std::uint64_t> start_ticks(pid_t pid) const {
    const auto stat = living(pid);
    return stat ? std::optional(stat->start_ticks) : std::nullopt;
  }

  // A process in a container sees other files under the same names.
  Symbolizer& symbolizer_of(const ProcessKey& key) {
    const std::string root = fmt::format("{}/{}/root", proc_root_, living_thread(key.pid));
    struct stat ours {};
    struct stat theirs {};
    const bool is_other = ::stat("/", &ours) == 0 && ::stat(root.c_str(), &theirs) == 0 &&
                          (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
    const auto place =
        is_other ? std::pair(theirs.st_dev, theirs.st_ino) : std::pair(dev_t{}, ino_t{});
    auto it = symbolizers_.find(place);
    if (it == symbolizers_.end()) {
      it = symbolizers_.emplace(place, Symbolizer({"", server_})).first;
    }
    it->second.set_root(is_other ? root : "");
    return it->second;
  }

  // By its start and its namespace; start times are rarely alike.
  std::optional<ProcessKey> find_in_namespace(const TraceIdentity& identity) {
    auto processes = monitor::DirectoryStream::open_at(AT_FDCWD, proc_root_);
    if (!processes) {
      return std::nullopt;
    }
    while (const dirent* entry = processes->next()) {
      const auto pid = parse_number<pid_t>(entry->d_name);
      if (pid && start_ticks(*pid) == identity.start_ticks &&
          pid_namespace(proc_root_, entry->d_name) == identity.pid_namespace) {
        return ProcessKey{*pid, identity.start_ticks};
      }
    }
    return std::nullopt;
  }

  std::string proc_root_;
  Fd proc_;
  std::optional<std::uint64_t> own_namespace_;
  const std::shared_ptr<DebugServer> server_ = std::make_shared<DebugServer>();
  bool has_told_of_server_ = false;
  std::set<std::string> told_modules_;
  std::map<std::pair<dev_t, ino_t>, Symbolizer> symbolizers_;  // by root folder
};

}  // namespace

std::unique_ptr<TraceWorld> make_trace_world(std::string proc_root) {
  return std::make_unique<RealTraceWorld>(std::move(proc_root));
}

}  // namespace tidemark::reader
