// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/attached.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::collect {
namespace {

// Loaded libraries are looked for so often.
constexpr std::int64_t kSearchEveryNs = 2 * kNsPerSecond;

// Signals that ask to stop wait while one of these lives, so that nothing is left half done.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      sigaddset(&signals_, signal);
    }
    sigset_t blocked = signals_;
    sigaddset(&blocked, SIGTSTP);  // Ctrl-Z: not while a process is stopped by us
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool has_come() const {
    sigset_t pending = {};
    ::sigpending(&pending);
    for (int signal = 1; signal < NSIG; ++signal) {
      if (::sigismember(&signals_, signal) == 1 && ::sigismember(&pending, signal) == 1) {
        return true;
      }
    }
    return false;
  }

 private:
  sigset_t signals_ = {};
  sigset_t before_ = {};
};

}  // namespace

Result<AttachedProcesses> AttachedProcesses::attach(pid_t pid, const TraceOptions& trace,
                                                    std::int64_t timeout_ns) {
  TIDEMARK_TRY(inject::check_target(pid));
  if (auto before = reader::TraceDirectory::find_in_view_of(pid)) {
    before->keep();
    TIDEMARK_TRY_ASSIGN(auto again, attach_again(pid, timeout_ns));
    again.directory_.emplace(*std::move(before));
    again.trace_ = trace;
    return again;
  }
  TIDEMARK_TRY_ASSIGN(auto directory, reader::TraceDirectory::create_for(pid));
  AttachedProcesses attached(timeout_ns);
  attached.directory_.emplace(std::move(directory));
  attached.trace_ = trace;
  TIDEMARK_TRY(attached.add(pid));
  return attached;
}

Result<AttachedProcesses> AttachedProcesses::attach_again(pid_t pid, std::int64_t timeout_ns) {
  const StopSignals signals;
  TIDEMARK_TRY_ASSIGN(auto attachment, inject::Attachment::find(pid));
  if (const Status hooked = attachment.hook_modules(timeout_ns); !hooked) {
    (void)attachment.unhook_modules(timeout_ns);
    return hooked.error();
  }
  AttachedProcesses attached(timeout_ns);
  attached.was_there_ = true;
  attached.figures_ = attachment.figures();
  attached.attached_.emplace(pid, std::move(attachment));
  return attached;
}

AttachedProcesses::~AttachedProcesses() { detach({}); }

Status AttachedProcesses::add(pid_t pid) {
  const StopSignals signals;
  inject::AttachOptions options;
  TIDEMARK_TRY_ASSIGN(options.library, find_tracer());
  options.request = trace_request(trace_, directory_->seen_as());
  options.timeout_ns = timeout_ns_;
  options.is_cancelled = [&signals] { return signals.has_come(); };
  TIDEMARK_TRY_ASSIGN(auto attachment, inject::Attachment::attach(pid, options));
  directory_->keep();  // the tracer in the process has its file there, whatever comes
  Status hooked = attachment.hook_modules(timeout_ns_);
  if (hooked && signals.has_come()) {
    hooked = Error{Errc::kIo, "attaching was interrupted", EINTR};
  }
  if (!hooked) {
    (void)attachment.unhook_modules(timeout_ns_);
    return hooked.error();
  }
  figures_ = attachment.figures();
  attached_.emplace(pid, std::move(attachment));
  return ok();
}

bool AttachedProcesses::is_traced(pid_t pid) const {
  return attached_.contains(pid) || inject::Attachment::find(pid).has_value();
}

std::vector<std::string> AttachedProcesses::hook_new_modules() {
  std::vector<std::string> problems;
  const std::int64_t now_ns = SystemClock().monotonic_ns();
  if (now_ns < next_search_ns_) {
    return problems;
  }
  next_search_ns_ = now_ns + kSearchEveryNs;
  for (auto& [pid, attachment] : attached_) {
    const Status done = attachment.hook_modules(timeout_ns_);
    if (!done && done.error().code != Errc::kGone && done.error().code != Errc::kNotFound) {
      problems.push_back(fmt::format(
          "libraries that process {} has loaded since are not traced: {}", pid, done.error().what));
    }
  }
  return problems;
}

std::vector<std::string> AttachedProcesses::detach(const std::vector<pid_t>& traced) {
  const StopSignals signals;
  std::vector<std::string> problems;
  const auto undo = [&](pid_t pid, inject::Attachment& attachment) {
    const Status done = attachment.unhook_modules(timeout_ns_);
    if (!done && done.error().code != Errc::kGone && done.error().code != Errc::kNotFound) {
      problems.push_back(
          fmt::format("the tracer is not out of process {}: {}", pid, done.error().what));
    }
  };
  for (const pid_t pid : traced) {
    if (!attached_.contains(pid)) {
      if (auto forked = inject::Attachment::find(pid)) {
        undo(pid, *forked);
      }
    }
  }
  for (auto& [pid, attachment] : attached_) {
    undo(pid, attachment);
  }
  attached_.clear();
  return problems;
}

Status detach_from(pid_t pid) {
  constexpr std::int64_t kTimeoutNs = 10 * kNsPerSecond;
  const StopSignals signals;
  TIDEMARK_TRY_ASSIGN(auto attachment, inject::Attachment::find(pid));
  return attachment.unhook_modules(kTimeoutNs);
}

std::string attach_text(pid_t pid, const inject::AttachFigures& figures, std::int64_t took_ns) {
  constexpr double kNsPerMs = 1e6;
  return fmt::format(
      "attached to pid {} in {:.2f} s; one thread of it stood still for {:.1f} ms, all of them for "
      "{:.1f} ms; {} in {} call the tracer{}",
      pid, to_seconds(took_ns), static_cast<double>(figures.thread_stopped_ns) / kNsPerMs,
      static_cast<double>(figures.process_stopped_ns) / kNsPerMs,
      format_count(figures.slots, "function pointer"), format_count(figures.modules, "module"),
      figures.foreign_slots == 0
          ? ""
          : fmt::format("; {} of another tool were left alone", figures.foreign_slots));
}

}  // namespace tidemark::collect
