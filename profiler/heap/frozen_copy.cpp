// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/frozen_copy.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/quiet_thread.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/proc_smaps.h"
#include "profiler/heap/memory_room.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/remote_system_call.h"
#include "profiler/inject/target_checks.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::heap {
namespace {

using inject::Deadline;
using inject::RemoteMemory;
using inject::StoppedProcess;
using inject::SystemCall;
using inject::TracedThread;

constexpr std::int64_t kNsPerMs = 1'000'000;

Error cannot_stop(std::string why) { return {Errc::kIo, std::move(why), ETIMEDOUT}; }
bool may_try_again(const Error& error) { return error.sys_errno == ETIMEDOUT; }

char state_of(pid_t pid, pid_t tid) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  const auto stat = text ? monitor::parse_stat(*text) : std::nullopt;
  return stat ? stat->state : '?';
}

// Whether the children of a process are in another pid namespace than itself (it has called unshare
// or setns). A copy might be the first there: with its end the process could start no more.
bool has_other_namespace_for_children(pid_t pid) {
  struct stat own {};
  struct stat of_children {};
  const std::string folder = fmt::format("/proc/{}/ns/", pid);
  if (::stat((folder + "pid").c_str(), &own) != 0) {
    return false;
  }
  if (::stat((folder + "pid_for_children").c_str(), &of_children) == 0) {
    return of_children.st_ino != own.st_ino;
  }
  // It is not there before the first of them is, nor where the kernel does not know it.
  return errno == ENOENT && ::access("/proc/self/ns/pid_for_children", F_OK) == 0;
}

// A thread in a call that cannot be interrupted: it waits for a disk, or for a child of vfork();
// 0: there is none.
pid_t find_uninterruptible(pid_t pid) {
  for (const pid_t tid : inject::threads_of(pid)) {
    if (state_of(pid, tid) == 'D') {
      return tid;
    }
  }
  return 0;
}

// Most such calls are over soon. All other threads would stand still while one waits for its end.
void wait_for_interruptible(pid_t pid, Deadline deadline) {
  constexpr std::chrono::milliseconds kPause(2);
  while (find_uninterruptible(pid) != 0 && !deadline.has_passed()) {
    std::this_thread::sleep_for(kPause);
  }
}

// Adds the time that it lives to a sum.
class StopWatch {
 public:
  explicit StopWatch(std::int64_t& sum_ns)
      : sum_ns_(sum_ns), begun_ns_(SystemClock().monotonic_ns()) {}
  ~StopWatch() { sum_ns_ += SystemClock().monotonic_ns() - begun_ns_; }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  std::int64_t& sum_ns_;
  std::int64_t begun_ns_;
};

// Makes one system call in some thread of a process, all of which stand still meanwhile. On a
// thread that traces.
class CallWhileStopped {
 public:
  explicit CallWhileStopped(pid_t pid) : pid_(pid) {}

  // What takes longer than standing still should. Anew after each failure: programs start others.
  Status prepare() {
    TIDEMARK_TRY_ASSIGN(auto memory, RemoteMemory::open(pid_));
    TIDEMARK_TRY_ASSIGN(mappings_, inject::read_mappings(pid_));
    memory_.emplace(std::move(memory));
    code_ = inject::find_system_call_code(mappings_, *memory_);
    if (!code_.is_complete()) {
      // What has exited since has nothing mapped. What has called exec is another program by now.
      TIDEMARK_TRY_ASSIGN(const auto now, inject::read_mappings(pid_));
      return now.empty() ? Error{Errc::kGone, fmt::format("process {} has exited", pid_)}
                         : cannot_stop(fmt::format(
                               "process {} has no code to make a system call with", pid_));
    }
    return ok();
  }

  // `before` is called in between, when all stand still.
  Result<std::int64_t> make(SystemCall call, std::int64_t attempt_ns, std::uint64_t options,
                            const std::function<void()>& before,
                            const std::function<void(pid_t)>& on_new_process) const {
    TIDEMARK_TRY_ASSIGN(auto stopped, StoppedProcess::stop(pid_, Deadline::in(attempt_ns)));
    TIDEMARK_TRY_ASSIGN(Chosen chosen, choose(stopped.threads()));
    TracedThread* const thread = chosen.thread;
    if (before) {
      before();
    }
    // Not before it stands still: a process that it starts itself would be ours.
    TIDEMARK_TRY(thread->set_options(options));
    call.instruction = code_.call;
    if (call.number == SYS_clone) {
      call.arguments[1] = chosen.back.stack_of_new_process();
    }
    // It always ends. Nothing could be done with a thread that is left in it.
    constexpr std::int64_t kForEverNs = 3600 * kNsPerSecond;
    auto result = inject::make_system_call(*thread, call, chosen.back, Deadline::in(kForEverNs),
                                           on_new_process);
    if (!thread->has_exited()) {
      (void)thread->set_options(0);
    }
    return result;
  }

  std::uint64_t instruction() const { return code_.call; }

 private:
  struct Chosen {
    TracedThread* thread = nullptr;
    inject::WayBack back;
  };

  // The first thread of the process, by which people know it, if it may; one whose waits would not
  // begin anew if we are killed comes before one whose waits would.
  Result<Chosen> choose(std::vector<TracedThread>& threads) const {
    std::optional<Chosen> found;
    std::string why = "all have exited";
    for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread) {
      if (thread->has_exited()) {
        continue;
      }
      auto back = inject::WayBack::prepare(*thread, *memory_, mappings_, code_);
      if (!back) {
        why = fmt::format("thread {}: {}", thread->tid(), back.error().what);
      } else if (!found || back->is_exact()) {
        found = Chosen{&*thread, *std::move(back)};
      }
      if (found && found->back.is_exact()) {
        break;
      }
    }
    return found ? Result<Chosen>(*std::move(found))
                 : cannot_stop(fmt::format("no thread of process {} is at a place where it may "
                                           "make a system call: {}",
                                           pid_, why));
  }

  pid_t pid_;
  std::optional<RemoteMemory> memory_;
  std::vector<inject::Mapping> mappings_;
  inject::SystemCallCode code_;
};

// It stops before its first instruction, and goes when the thread that traces it does. Called when
// the process runs again: on a busy machine a new process waits long for its turn. If we are killed
// before, the copy exits (see WayBack::stack_of_new_process).
void hold(pid_t copy) {
  TracedThread thread = TracedThread::of_new_process(copy);
  if (thread.wait_for_stop(Deadline::in(kNsPerSecond))) {
    (void)thread.set_options(PTRACE_O_EXITKILL);
  }
  thread.leave();
}

// A process that was killed in the middle of clone() may have a copy that we were not told of.
void end_unknown_copy(pid_t process) {
  constexpr int kTimes = 20;
  constexpr std::chrono::milliseconds kPause(1);
  for (int i = 0; i < kTimes; ++i) {
    int status = 0;
    const pid_t found = ::waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
    if (found < 0) {
      return;  // there is none
    }
    // A thread of the process that has not stopped in time is none.
    if (found > 0 && WIFSTOPPED(status) &&
        ::access(fmt::format("/proc/{}/task/{}", process, found).c_str(), F_OK) != 0) {
      ::kill(found, SIGKILL);
    } else if (found == 0) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

// Files that the process closes would stay open, and locked, as long as the copy lives.
void close_files(pid_t copy, std::uint64_t instruction) {
  constexpr std::int64_t kLongestNs = kNsPerSecond / 2;
  const Deadline deadline = Deadline::in(kLongestNs);
  constexpr std::uint64_t kLast = ~0U;
  TracedThread thread = TracedThread::of_new_process(copy);
  const auto closed = inject::make_system_call_for_good(
      thread, {instruction, SYS_close_range, {0, kLast, 0}}, deadline);
  if (closed && *closed == -ENOSYS) {  // before Linux 5.9
    auto folder = monitor::DirectoryStream::open_at(AT_FDCWD, fmt::format("/proc/{}/fd", copy));
    while (const dirent* const entry = folder ? folder->next() : nullptr) {
      const std::string_view name(entry->d_name);
      std::uint64_t number = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc() &&
          !inject::make_system_call_for_good(thread, {instruction, SYS_close, {number}},
                                             deadline)) {
        break;
      }
    }
  }
  thread.leave();
}

// The kernel takes it before all others when there is too little memory.
Status offer_to_kernel(pid_t copy) {
  TIDEMARK_TRY_ASSIGN(const auto file,
                      open_file(fmt::format("/proc/{}/oom_score_adj", copy), O_WRONLY));
  return write_all(file.get(), "1000");
}

Error explain_refusal(pid_t pid, std::int64_t result) {
  const int why = static_cast<int>(-result);
  std::string text = fmt::format("process {} cannot be copied", pid);
  if (why == EAGAIN) {
    text += ": its user or its control group may have no more processes (RLIMIT_NPROC, pids.max)";
  } else if (why == ENOMEM) {
    text += ": the kernel has no memory for it, or promises no more (vm.overcommit_memory)";
  } else if (why == EPERM || why == ENOSYS || why == EACCES) {
    text += ": a filter refuses the system call (seccomp)";
  } else {
    return system_error(std::move(text), why);
  }
  return {Errc::kUnsupported, std::move(text), why};
}

// Kills the copy before the machine or the job gets short of memory on its account.
class RoomGuard {
 public:
  RoomGuard(pid_t copy, MemoryRoom room) : copy_(copy), room_(std::move(room)) {
    const auto left = room_.left();
    constexpr std::uint64_t kShare = 4;
    least_bytes_ = left ? left->bytes / kShare : 0;
    thread_ = start_quiet_thread([this] { watch(); });
  }
  ~RoomGuard() { end(); }
  RoomGuard(const RoomGuard&) = delete;
  RoomGuard& operator=(const RoomGuard&) = delete;

  // The process identifier of the copy may be another's after that.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  bool has_killed() const { return has_killed_; }

 private:
  void watch() {
    constexpr std::chrono::milliseconds kPause(20);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kPause, [this] { return is_over_; })) {
      if (const auto left = room_.left(); left && left->bytes < least_bytes_) {
        has_killed_ = true;
        ::kill(copy_, SIGKILL);
        return;
      }
    }
  }

  const pid_t copy_;
  const MemoryRoom room_;
  std::uint64_t least_bytes_ = 0;
  std::atomic<bool> has_killed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

// As a zombie, too.
pid_t parent_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  const auto stat = text ? monitor::parse_stat(*text) : std::nullopt;
  return stat ? stat->ppid : 0;
}

// Until it is a zombie, which only we can see. False: it has not ended in time.
bool wait_until_ended(pid_t copy, Deadline deadline) {
  constexpr std::chrono::milliseconds kPause(1);
  while (true) {
    siginfo_t ended = {};
    const int waited =
        ::waitid(P_PID, static_cast<id_t>(copy), &ended, WEXITED | WNOWAIT | WNOHANG | __WALL);
    if (waited == 0 && ended.si_pid == copy) {
      return true;
    }
    if ((waited != 0 && errno != EINTR) || deadline.has_passed()) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
}

void reap(pid_t copy) {
  int status = 0;
  (void)::waitpid(copy, &status, __WALL | WNOHANG);
}

}  // namespace

struct FrozenCopy::State {
  explicit State(pid_t of) : target(of) {}

  Status take_once(std::int64_t attempt_ns);
  Status settle(MemoryRoom room);
  Status end();
  Status take_remains_away();

  const pid_t target;
  pid_t copy = 0;
  pid_t pid_there = 0;  // of the copy, in the namespace of the process
  std::int64_t paused_ns = 0;
  std::int64_t taken_ns = 0;
  std::uint64_t instruction = 0;
  std::optional<inject::TracingThread> tracer;  // traces the copy, not the process
  std::optional<RoomGuard> guard;
};

Status FrozenCopy::State::take_once(std::int64_t attempt_ns) {
  // No flags: of its memory it gets a copy, and its parent gets no signal when it ends.
  const SystemCall clone = {0, SYS_clone, {}};
  CallWhileStopped call(target);
  TIDEMARK_TRY(call.prepare());
  instruction = call.instruction();
  Result<std::int64_t> result = 0;
  {
    const StopWatch watch(paused_ns);
    result = call.make(clone, attempt_ns, PTRACE_O_TRACECLONE, {}, [this](pid_t process) {
      taken_ns = SystemClock().monotonic_ns();
      copy = process;
    });
  }
  if (copy != 0) {
    hold(copy);
  } else {
    if (!result && !may_try_again(result.error())) {
      end_unknown_copy(target);
    }
    return result ? explain_refusal(target, *result) : Status(result.error());
  }
  pid_there = result ? static_cast<pid_t>(*result) : 0;
  return result ? ok() : Status(result.error());
}

Status FrozenCopy::State::settle(MemoryRoom room) {
  TIDEMARK_TRY(offer_to_kernel(copy));
  guard.emplace(copy, std::move(room));
  tracer->run([this] { close_files(copy, instruction); });
  return ok();
}

Status FrozenCopy::State::take_remains_away() {
  constexpr std::int64_t kAttemptNs = 100 * kNsPerMs;
  CallWhileStopped call(target);
  TIDEMARK_TRY(call.prepare());
  const StopWatch watch(paused_ns);
  const SystemCall wait = {
      0, SYS_wait4, {static_cast<std::uint64_t>(pid_there), 0, __WALL | WNOHANG, 0}};
  // Now the process can see the zombie, and none of its threads waits for children.
  TIDEMARK_TRY_ASSIGN(const std::int64_t result,
                      call.make(wait, kAttemptNs, 0, [this] { reap(copy); }, {}));
  return result == pid_there || result == -ECHILD
             ? ok()
             : Status(system_error("cannot take away the remains of a copy",
                                   static_cast<int>(std::max<std::int64_t>(-result, EINVAL))));
}

Status FrozenCopy::State::end() {
  constexpr std::int64_t kLongestNs = 5 * kNsPerSecond;
  if (copy == 0) {
    return ok();
  }
  ::kill(copy, SIGKILL);
  if (guard) {
    guard->end();
  }
  const Deadline deadline = Deadline::in(kLongestNs);
  const bool has_ended = wait_until_ended(copy, deadline);
  Status done = has_ended ? ok() : Status(cannot_stop("a copy that was killed does not end"));
  // Where the process has exited, the copy has another parent, which takes it away.
  if (has_ended && pid_there > 0 && parent_of(copy) == target) {
    constexpr int kTimes = 20;
    for (int i = 0; i < kTimes; ++i) {
      wait_for_interruptible(target, deadline);
      // A thread of ours each time: it lets go of what has not stopped in time.
      inject::in_tracing_thread(target, [&] { done = take_remains_away(); });
      if (done || !may_try_again(done.error()) || deadline.has_passed()) {
        break;
      }
    }
    if (!done && done.error().code == Errc::kGone) {
      done = ok();
    }
  }
  reap(copy);
  tracer.reset();
  copy = 0;
  return done;
}

Result<FrozenCopy> FrozenCopy::take(pid_t pid, const FrozenLimits& limits) {
  TIDEMARK_TRY(inject::check_target_of_calls(pid));
  if (has_other_namespace_for_children(pid)) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} starts its children in another pid namespace", pid)};
  }
  MemoryRoom room = MemoryRoom::of("", pid);
  const CopyDemand demand = copy_demand("", pid);
  std::string too_little = why_no_room(demand, room.left());
  too_little = too_little.empty() ? why_no_promise("", demand) : too_little;
  if (!too_little.empty()) {
    return Error{Errc::kUnsupported, std::move(too_little), ENOMEM};
  }
  const Deadline deadline = Deadline::in(limits.timeout_ns);
  FrozenCopy frozen(std::make_unique<State>(pid));
  State& state = *frozen.state_;
  Status taken = ok();
  constexpr int kTimes = 8;
  for (int i = 0; i < kTimes; ++i) {
    wait_for_interruptible(pid, deadline.or_in(limits.timeout_ns / 4));
    state.tracer.emplace(pid);
    state.tracer->run([&] { taken = state.take_once(limits.attempt_ns); });
    if (taken || !may_try_again(taken.error()) || deadline.has_passed()) {
      break;
    }
    state.tracer.reset();  // lets go of what has not stopped in time
  }
  if (!taken) {
    const pid_t waits = may_try_again(taken.error()) ? find_uninterruptible(pid) : 0;
    return waits == 0 ? taken.error()
                      : cannot_stop(fmt::format("process {} cannot be stopped: its thread {} is in "
                                                "a call that cannot be interrupted",
                                                pid, waits));
  }
  TIDEMARK_TRY(state.settle(std::move(room)));
  return frozen;
}

FrozenCopy::FrozenCopy(std::unique_ptr<State> state) : state_(std::move(state)) {}
FrozenCopy::FrozenCopy(FrozenCopy&&) noexcept = default;

FrozenCopy::~FrozenCopy() {
  if (state_ != nullptr) {
    (void)release();
  }
}

pid_t FrozenCopy::pid() const { return state_->copy; }

std::int64_t FrozenCopy::taken_ns() const { return state_->taken_ns; }

double FrozenCopy::paused_s() const { return to_seconds(state_->paused_ns); }

Status FrozenCopy::check() const {
  if (state_->guard && state_->guard->has_killed()) {
    return Error{Errc::kGone, "the copy was given up: memory got short", ENOMEM};
  }
  const char is = state_->copy == 0 ? '?' : state_of(state_->copy, state_->copy);
  return is != '?' && !monitor::has_ended(is)
             ? ok()
             : Status(Error{Errc::kGone,
                            "the copy was killed: by the kernel, for the lack of memory, or with "
                            "its process"});
}

FrozenCopy::Cost FrozenCopy::cost() const {
  Cost cost;
  cost.page_table_bytes = copy_demand("", state_->copy).page_table_bytes;
  const auto text = read_file(fmt::format("/proc/{}/smaps_rollup", state_->copy));
  if (const auto memory = text ? monitor::parse_smaps_rollup(*text) : Error{}; memory) {
    cost.copied_bytes = memory->private_dirty_bytes;
  }
  return cost;
}

Status FrozenCopy::release() { return state_->end(); }

}  // namespace tidemark::heap
