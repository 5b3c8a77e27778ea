// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/attached.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::collect {
namespace {

// Loaded libraries are looked for so often.
constexpr std::int64_t kSearchEveryNs = 2 * kNsPerSecond;

// Not of a process that has exited meanwhile, or runs another program.
bool is_worth_a_word(const Error& error, const inject::Attachment& attachment) {
  return error.code != Errc::kGone && error.code != Errc::kNotFound && attachment.is_there();
}

// Whether the run is alive that a process has its trace file of.
bool is_profiled_now(pid_t pid) {
  const auto mappings = inject::read_mappings(pid);
  return mappings &&
         std::any_of(mappings->begin(), mappings->end(), [&](const inject::Mapping& each) {
           if (!each.name.ends_with(wire::kTraceSuffix)) {
             return false;
           }
           const auto lock = reader::adopt_trace_folder(
               fmt::format("/proc/{}/root{}", pid, each.name.substr(0, each.name.rfind('/'))));
           return !lock && lock.error().sys_errno == EWOULDBLOCK;
         });
}

}  // namespace

// Those that are ignored never come, but would be seen as pending while they are blocked.
StopSignals::StopSignals(Also also) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_IGN) {
      sigaddset(&signals_, signal);
    }
  }
  sigset_t blocked = signals_;
  if (also == Also::kPause) {
    sigaddset(&blocked, SIGTSTP);
  }
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

StopSignals::~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool StopSignals::has_come() const {
  sigset_t pending = {};
  ::sigpending(&pending);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&signals_, signal) == 1 && ::sigismember(&pending, signal) == 1) {
      return true;
    }
  }
  return false;
}

Result<AttachedProcesses> AttachedProcesses::attach(pid_t pid, const TraceOptions& trace,
                                                    std::int64_t timeout_ns) {
  AttachedProcesses attached(trace, timeout_ns);
  TIDEMARK_TRY(attached.choose_folder(pid));
  const Status added = attached.add(pid, timeout_ns);
  // A tracer that was preloaded needs no more than to be woken, by its file, which is ours.
  if (!added && attached.was_there() && added.error().code == Errc::kPermission) {
    attached.problem_ = fmt::format(
        "the tracer in pid {} is woken, which is enough if it was preloaded; else it records "
        "nothing: {}",
        pid, added.error().what);
    return attached;
  }
  if (!added) {
    return added.error();
  }
  return attached;
}

Status AttachedProcesses::choose_folder(pid_t pid) {
  if (auto before = reader::find_trace_of(pid, reader::trace_bases())) {
    auto lock = reader::adopt_trace_folder(*before);
    if (!lock && lock.error().sys_errno == EWOULDBLOCK) {
      // We would put it to sleep at our end, and the other one would take that for the end of
      // growth.
      return Error{Errc::kUnsupported, "another tidemark profiles it now"};
    }
    folder_.path = *before;
    folder_.seen_as = *std::move(before);
    folder_.was_there = true;
    folder_.is_of_a_run = lock.has_value();
    if (lock) {
      folder_.lock = *std::move(lock);
    }
    return ok();
  }
  TIDEMARK_TRY(inject::check_target(pid));
  auto made = reader::TraceDirectory::find_in_view_of(pid);
  if (made) {
    made->keep();
    folder_.was_there = true;
  } else {
    TIDEMARK_TRY_ASSIGN(auto created, reader::TraceDirectory::create_for(pid));
    made.emplace(std::move(created));
  }
  folder_.path = made->path();
  folder_.seen_as = made->seen_as();
  folder_.owner = made->owner();
  folder_.made.emplace(*std::move(made));
  return ok();
}

AttachedProcesses::~AttachedProcesses() { detach({}); }

// Whether a process can have its file in the folder of the others.
Status AttachedProcesses::check_view(pid_t pid) const {
  struct stat process {};
  struct stat here {};
  struct stat there {};
  if (!folder_.is_of_a_run) {
    return Error{Errc::kUnsupported, "it was not started with the tracer, as the others were"};
  }
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &process) != 0) {
    return Error{Errc::kGone, fmt::format("process {} has exited", pid)};
  }
  if (process.st_uid != folder_.owner.value_or(::geteuid())) {
    return Error{Errc::kUnsupported, fmt::format("it runs as another user than the process that "
                                                 "was attached to first; profile it by itself: "
                                                 "tidemark profile --pid {}",
                                                 pid)};
  }
  const std::string seen_as = fmt::format("/proc/{}/root{}", pid, folder_.seen_as);
  if (::stat(folder_.path.c_str(), &here) != 0 || ::stat(seen_as.c_str(), &there) != 0 ||
      here.st_dev != there.st_dev || here.st_ino != there.st_ino) {
    return Error{Errc::kUnsupported, fmt::format("it sees other files than the process that was "
                                                 "attached to first (a container); profile it by "
                                                 "itself: tidemark profile --pid {}",
                                                 pid)};
  }
  return ok();
}

// Its file is in our folder, or will be: it was forked, and has the library where its parent has
// it.
bool AttachedProcesses::is_ours(const inject::Attachment& attachment) const {
  const bool is_forked = std::any_of(attached_.begin(), attached_.end(), [&](const auto& each) {
    return each.second.tracer_address() == attachment.tracer_address();
  });
  return is_forked || has_file(attachment.pid());
}

bool AttachedProcesses::has_file(pid_t pid) const {
  return reader::has_trace_of(folder_.path, folder_.owner.value_or(::geteuid()), pid);
}

Result<inject::Attachment> AttachedProcesses::load(pid_t pid, std::int64_t timeout_ns,
                                                   const std::function<bool()>& is_cancelled) {
  TIDEMARK_TRY(inject::check_target(pid));
  TIDEMARK_TRY(check_view(pid));
  inject::AttachOptions options;
  TIDEMARK_TRY_ASSIGN(options.library, find_tracer());
  options.request = trace_request(trace_, folder_.seen_as);
  options.folder = folder_.path;
  options.folder_seen_as = folder_.seen_as;
  options.timeout_ns = timeout_ns;
  options.is_cancelled = is_cancelled;
  auto attachment = inject::Attachment::attach(pid, options);
  // The tracer in the process has its file there, whatever comes; it may also start after we have
  // given up waiting for it.
  const auto left = attachment ? Result<inject::Attachment>(Error{Errc::kNotFound, ""})
                               : inject::Attachment::find(pid);
  if (folder_.made && (attachment || (left && left->was_attached()))) {
    folder_.made->keep();
  }
  return attachment;
}

Status AttachedProcesses::hook(pid_t pid, inject::Attachment attachment, std::int64_t timeout_ns) {
  if (trace_.python_objects && !attachment.see_python_objects() && problem_.empty()) {
    problem_ = fmt::format(
        "pid {} has no small objects of Python that could be seen one by one: there is no "
        "interpreter that exports its allocator, or it uses malloc",
        pid);
  }
  if (const Status hooked = attachment.hook_modules(timeout_ns); !hooked) {
    (void)attachment.unhook_modules(timeout_ns);
    return hooked.error();
  }
  figures_ = attachment.figures();
  attached_.insert_or_assign(pid, std::move(attachment));
  return ok();
}

Status AttachedProcesses::add(pid_t pid, std::int64_t timeout_ns) {
  if (const auto known = attached_.find(pid); known != attached_.end()) {
    if (known->second.is_there()) {
      return ok();
    }
    attached_.erase(known);  // it runs another program by now
  }
  const StopSignals signals(StopSignals::Also::kPause);
  auto attachment = inject::Attachment::find(pid);
  if (attachment && attachment->was_attached() && !is_ours(*attachment)) {
    return Error{Errc::kUnsupported,
                 "the tracer is in it already: somebody else profiles it now, or its trace file "
                 "was removed"};
  }
  // Of those that are not attached to, one that has a file was preloaded.
  const bool has_tracer = attachment && (attachment->was_attached() || has_file(pid));
  was_loaded_ = !has_tracer;
  had_tracer_ = !attachment && folder_.was_there && has_file(pid);
  if (!has_tracer) {
    attachment = load(pid, timeout_ns, [&signals] { return signals.has_come(); });
    if (!attachment) {
      return attachment.error();
    }
  }
  TIDEMARK_TRY(hook(pid, *std::move(attachment), timeout_ns));
  if (signals.has_come()) {
    const auto interrupted = attached_.find(pid);
    (void)interrupted->second.unhook_modules(timeout_ns);
    attached_.erase(interrupted);
    return Error{Errc::kIo, "attaching was interrupted", EINTR};
  }
  return ok();
}

void AttachedProcesses::add_if_forked(pid_t pid) {
  if (const auto known = attached_.find(pid); known != attached_.end()) {
    if (known->second.is_there()) {
      return;
    }
    attached_.erase(known);
  }
  const StopSignals signals(StopSignals::Also::kPause);
  auto attachment = inject::Attachment::find(pid);
  if (attachment && attachment->was_attached() && is_ours(*attachment)) {
    (void)hook(pid, *std::move(attachment), timeout_ns_);  // tried again with its next library
  }
}

std::vector<std::string> AttachedProcesses::hook_new_modules() {
  std::vector<std::string> problems;
  const std::int64_t now_ns = SystemClock().monotonic_ns();
  if (now_ns < next_search_ns_) {
    return problems;
  }
  next_search_ns_ = now_ns + kSearchEveryNs;
  std::erase_if(attached_, [](const auto& each) { return !each.second.is_there(); });
  for (auto& [pid, attachment] : attached_) {
    const Status done = attachment.hook_modules(timeout_ns_);
    if (!done && is_worth_a_word(done.error(), attachment)) {
      problems.push_back(fmt::format(
          "libraries that process {} has loaded since are not traced: {}", pid, done.error().what));
    }
  }
  return problems;
}

std::vector<std::string> AttachedProcesses::detach(const std::vector<pid_t>& traced) {
  const StopSignals signals(StopSignals::Also::kPause);
  std::vector<std::string> problems;
  const auto undo = [&](pid_t pid, inject::Attachment& attachment) {
    const Status done = attachment.unhook_modules(timeout_ns_);
    if (!done && is_worth_a_word(done.error(), attachment)) {
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
  if (::access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0) {
    return Error{Errc::kNotFound, fmt::format("there is no process {}", pid)};
  }
  const StopSignals signals(StopSignals::Also::kPause);
  TIDEMARK_TRY_ASSIGN(auto attachment, inject::Attachment::find(pid));
  if (is_profiled_now(pid)) {
    // It would go on, and take the end of the records for the end of growth.
    return Error{
        Errc::kUsage,
        fmt::format("another tidemark profiles process {} now: end that one (Ctrl-C)", pid)};
  }
  if (!attachment.was_attached()) {
    return Error{Errc::kNotFound, fmt::format("the tracer was preloaded into process {}", pid)};
  }
  return attachment.unhook_modules(kTimeoutNs);
}

std::string attach_hint(const Error& error, pid_t pid) {
  switch (error.code) {
    case Errc::kPermission:
      return inject::permission_hint(pid);
    case Errc::kGone:
    case Errc::kNotFound:
    case Errc::kUsage:
      return "tidemark find lists the jobs that run";
    default:
      return fmt::format(
          "start it with tidemark profile -- COMMAND, or watch it as it is: "
          "tidemark track --pid {}",
          pid);
  }
}

std::string attach_text(pid_t pid, const inject::AttachFigures& figures, std::int64_t took_ns) {
  constexpr double kNsPerMs = 1e6;
  return fmt::format(
             "attached to pid {} in {:.2f} s; one thread of it stood still for {:.1f} ms, all of "
             "them for "
             "{:.1f} ms; {} in {} call the tracer{}",
             pid, to_seconds(took_ns), static_cast<double>(figures.thread_stopped_ns) / kNsPerMs,
             static_cast<double>(figures.process_stopped_ns) / kNsPerMs,
             format_count(figures.slots, "function pointer"),
             format_count(figures.modules, "module"),
             figures.foreign_slots == 0
                 ? ""
                 : fmt::format("; {} of another tool were left alone", figures.foreign_slots)) +
         (figures.detour.empty()
              ? ""
              : fmt::format("; its Python has loaded the tracer (PEP 768), because {}",
                            figures.detour));
}

}  // namespace tidemark::collect
