// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/traced_thread.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/quiet_thread.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::inject {
namespace {

// What the kernel has in the register of the result while it waits for a stop to end; user space
// never sees these (include/linux/errno.h).
constexpr std::int64_t kRestartSystemCall = 512;
constexpr std::int64_t kRestartWithoutInterruption = 513;
constexpr std::int64_t kRestartUnlessHandled = 514;
constexpr std::int64_t kRestartByBlock = 516;

// How long threads are waited for that have not stopped in time, when they are let go.
constexpr std::int64_t kLateStopNs = kNsPerSecond / 5;

bool is_in_system_call(const Registers& registers) {
  return static_cast<std::int64_t>(registers.orig_rax) >= 0;
}

bool is_interrupted(const Registers& registers) {
  const auto result = static_cast<std::int64_t>(registers.rax);
  return is_in_system_call(registers) &&
         (result == -EINTR || result == -kRestartSystemCall ||
          result == -kRestartWithoutInterruption || result == -kRestartUnlessHandled ||
          result == -kRestartByBlock);
}

// A descriptor is closed even where close() was interrupted, and may be another file's by now.
bool may_be_repeated(const Registers& registers) { return registers.orig_rax != SYS_close; }

long request(int what, pid_t tid, std::uint64_t address, std::uint64_t data) {
  return ::ptrace(static_cast<__ptrace_request>(what), tid,
                  reinterpret_cast<void*>(address),  // NOLINT(performance-no-int-to-ptr)
                  reinterpret_cast<void*>(data));    // NOLINT(performance-no-int-to-ptr)
}

Error error_of(const char* what, pid_t tid) {
  Error error = system_error(fmt::format("{} thread {}", what, tid), errno);
  if (errno == ESRCH) {
    error.code = Errc::kGone;
  }
  return error;
}

// A set of signals in hexadecimal, of /proc/PID/status.
std::uint64_t signal_set(std::string_view status, std::string_view key) {
  std::string_view line;
  std::uint64_t set = 0;
  while (monitor::take_line(status, line)) {
    if (line.starts_with(key)) {
      line.remove_prefix(key.size());
      const std::string_view word = monitor::take_word(line);
      std::from_chars(word.data(), word.data() + word.size(), set, 16);
    }
  }
  return set;
}

constexpr std::uint64_t bit_of(int signal) {
  return std::uint64_t{1} << static_cast<unsigned>(signal - 1);
}

// Whether a signal waits that the program will see. The kernel wakes a traced thread for others
// too.
bool has_deliverable_signal(pid_t tid) {
  constexpr std::uint64_t kWithoutEffect =
      bit_of(SIGCHLD) | bit_of(SIGURG) | bit_of(SIGWINCH) | bit_of(SIGCONT);
  const auto status = read_file(fmt::format("/proc/{}/status", tid));
  if (!status) {
    return true;
  }
  const std::uint64_t pending = signal_set(*status, "SigPnd:") | signal_set(*status, "ShdPnd:");
  const std::uint64_t dropped =
      signal_set(*status, "SigIgn:") | (kWithoutEffect & ~signal_set(*status, "SigCgt:"));
  return (pending & ~signal_set(*status, "SigBlk:") & ~dropped) != 0;
}

// A first thread that has exited before the others is still listed, and cannot be traced.
bool is_zombie(pid_t tid) {
  const auto status = read_file(fmt::format("/proc/{}/status", tid));
  const std::size_t at = status ? status->find("\nState:\t") : std::string::npos;
  return !status || (at != std::string::npos && status->find_first_of("ZX", at) == at + 8);
}

// A thread that calls exec waits until the others have exited and whoever traces them has seen it.
// Whoever wants to trace one more waits for the exec meanwhile: another thread of ours has to see
// it.
void reap_threads(pid_t pid) {
  for (const pid_t tid : threads_of(pid)) {
    // Only a zombie: of a thread that is traced, this would take the news of a stop as well.
    if (siginfo_t ignored = {}; tid != pid && is_zombie(tid)) {
      ::waitid(P_PID, static_cast<id_t>(tid), &ignored, WEXITED | WNOHANG | __WALL);
    }
  }
}

}  // namespace

Deadline Deadline::in(std::int64_t ns) { return {SystemClock().monotonic_ns() + ns}; }

Deadline Deadline::or_in(std::int64_t ns) const { return {std::min(at_ns, in(ns).at_ns)}; }

bool Deadline::has_passed() const { return SystemClock().monotonic_ns() >= at_ns; }

TracingThread::TracingThread(pid_t pid) : pid_(pid) {
  thread_ = start_quiet_thread([this] { serve(); });
}

TracingThread::~TracingThread() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  // The kernel lets go of what it traced a moment after that.
  const std::string entry = fmt::format("/proc/self/task/{}", tid_);
  while (::access(entry.c_str(), F_OK) == 0) {
    std::this_thread::yield();
  }
}

void TracingThread::serve() {
  // Threads stand still while they wait for this one: before all others, where that is allowed, and
  // awake again as soon as its short pauses are over.
  constexpr int kFirst = -20;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kFirst);
  (void)::prctl(PR_SET_TIMERSLACK, 1);
  std::unique_lock lock(mutex_);
  tid_ = ::gettid();
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || work_ != nullptr; });
    if (work_ == nullptr) {
      return;
    }
    lock.unlock();
    (*work_)();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

void TracingThread::run(const std::function<void()>& work) {
  constexpr std::chrono::milliseconds kPause(10);
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  while (!changed_.wait_for(lock, kPause, [this] { return work_ == nullptr; })) {
    lock.unlock();
    reap_threads(pid_);
    lock.lock();
  }
}

void in_tracing_thread(pid_t pid, const std::function<void()>& work) {
  TracingThread(pid).run(work);
}

Result<TracedThread> TracedThread::seize(pid_t tid) {
  if (request(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0) {
    return error_of("cannot trace", tid);
  }
  return TracedThread(tid);
}

TracedThread::TracedThread(TracedThread&& other) noexcept
    : tid_(std::exchange(other.tid_, 0)),
      is_stopped_(std::exchange(other.is_stopped_, false)),
      is_stop_due_(std::exchange(other.is_stop_due_, false)),
      is_group_stop_(other.is_group_stop_) {}

TracedThread::~TracedThread() { (void)let_go(Deadline::in(kLateStopNs)); }

bool TracedThread::let_go(Deadline deadline) {
  if (tid_ != 0 && !is_stopped_ && is_stop_due_) {
    (void)wait_for_stop(deadline);
  }
  if (tid_ == 0 || !is_stopped_) {
    return !is_stop_due_;  // it has exited, or was not to stop
  }
  hide_interruption();
  request(PTRACE_DETACH, tid_, 0, 0);
  tid_ = 0;
  return true;
}

// Some calls return EINTR after any stop, which a program that gets no signals does not expect.
void TracedThread::hide_interruption() const {
  auto now = registers();
  if (now && is_in_system_call(*now) && static_cast<std::int64_t>(now->rax) == -EINTR &&
      may_be_repeated(*now) && !has_deliverable_signal(tid_)) {
    now->rax = static_cast<std::uint64_t>(-kRestartWithoutInterruption);
    (void)set_registers(*now);
  }
}

Result<int> TracedThread::wait(Deadline deadline) {
  constexpr std::chrono::microseconds kPause(20);
  while (true) {
    // The news of a stop is left where it is: once it is taken, the signal that is about to be
    // delivered would be lost with us, if we are killed.
    siginfo_t news = {};
    const int waited = ::waitid(P_PID, static_cast<id_t>(tid_), &news,
                                WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    const bool is_gone = waited != 0 && errno != EINTR;  // a call of exec has ended it
    if (is_gone || (waited == 0 && news.si_pid == tid_ && news.si_code != CLD_TRAPPED)) {
      (void)::waitpid(tid_, nullptr, WNOHANG | __WALL);
      tid_ = 0;
      is_stop_due_ = false;
      return Error{Errc::kGone, "the thread has exited", ESRCH};
    }
    if (waited == 0 && news.si_pid == tid_) {
      constexpr int kStopped = 0x7f;  // as waitpid() gives it
      is_stopped_ = true;
      return news.si_status << 8 | kStopped;
    }
    if (deadline.has_passed()) {
      return Error{Errc::kIo, fmt::format("thread {} did not stop in time", tid_), ETIMEDOUT};
    }
    std::this_thread::sleep_for(kPause);
  }
}

Status TracedThread::interrupt() {
  is_stop_due_ = request(PTRACE_INTERRUPT, tid_, 0, 0) == 0;
  return is_stop_due_ ? ok() : Status(error_of("cannot stop", tid_));
}

Status TracedThread::wait_for_stop(Deadline deadline) {
  while (true) {
    TIDEMARK_TRY_ASSIGN(const int status, wait(deadline));
    const int signal = WSTOPSIG(status);
    if (status >> 16 == PTRACE_EVENT_STOP) {
      is_group_stop_ = signal != SIGTRAP;
      is_stop_due_ = false;
      return ok();
    }
    const bool is_system_call = signal == (SIGTRAP | 0x80);
    is_stopped_ = false;
    request(PTRACE_CONT, tid_, 0, is_system_call ? 0 : static_cast<std::uint64_t>(signal));
  }
}

Status TracedThread::stop(Deadline deadline) {
  TIDEMARK_TRY(interrupt());
  return wait_for_stop(deadline);
}

Status TracedThread::resume() {
  hide_interruption();
  is_stopped_ = false;
  if (request(is_group_stop_ ? PTRACE_LISTEN : PTRACE_CONT, tid_, 0, 0) != 0) {
    return error_of("cannot resume", tid_);
  }
  return ok();
}

Result<int> TracedThread::run_to_system_call(Deadline deadline, int signal) {
  int how = PTRACE_SYSCALL;
  while (true) {
    is_stopped_ = false;
    if (request(how, tid_, 0, static_cast<std::uint64_t>(signal)) != 0) {
      return error_of("cannot resume", tid_);
    }
    TIDEMARK_TRY_ASSIGN(const int status, wait(deadline));
    const int stopped_by = WSTOPSIG(status);
    if (status >> 16 == PTRACE_EVENT_STOP) {  // a group stop has begun, or ended
      how = stopped_by == SIGTRAP ? PTRACE_SYSCALL : PTRACE_LISTEN;
      signal = 0;
    } else if (stopped_by == SIGSTOP) {
      how = PTRACE_SYSCALL;
      signal = SIGSTOP;
    } else {
      return stopped_by == (SIGTRAP | 0x80) ? 0 : stopped_by;
    }
  }
}

Result<ThreadStop> TracedThread::run_to_stop(Deadline deadline, int signal) {
  is_stopped_ = false;
  if (request(PTRACE_SYSCALL, tid_, 0, static_cast<std::uint64_t>(signal)) != 0) {
    return error_of("cannot resume", tid_);
  }
  TIDEMARK_TRY_ASSIGN(const int status, wait(deadline));
  return cause_of(status);
}

Result<ThreadStop> TracedThread::cause_of(int status) {
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (event == PTRACE_EVENT_STOP) {
    is_group_stop_ = signal != SIGTRAP;
    is_stop_due_ = false;
    return ThreadStop{ThreadStop::Cause::kInterrupt};
  }
  if (event != 0) {
    unsigned long process = 0;
    if (request(PTRACE_GETEVENTMSG, tid_, 0, reinterpret_cast<std::uint64_t>(&process)) != 0) {
      return error_of("cannot ask for the new process of", tid_);
    }
    return ThreadStop{ThreadStop::Cause::kNewProcess, 0, static_cast<pid_t>(process)};
  }
  if (signal == (SIGTRAP | 0x80)) {
    return ThreadStop{ThreadStop::Cause::kSystemCall};
  }
  return ThreadStop{ThreadStop::Cause::kSignal, signal};
}

Status TracedThread::set_options(std::uint64_t options) const {
  if (request(PTRACE_SETOPTIONS, tid_, 0, PTRACE_O_TRACESYSGOOD | options) != 0) {
    return error_of("cannot set the options of", tid_);
  }
  return ok();
}

Result<siginfo_t> TracedThread::signal_information() const {
  siginfo_t information = {};
  if (request(PTRACE_GETSIGINFO, tid_, 0, reinterpret_cast<std::uint64_t>(&information)) != 0) {
    return error_of("cannot read the signal of", tid_);
  }
  return information;
}

bool TracedThread::catches(int signal) const {
  const auto status = read_file(fmt::format("/proc/{}/status", tid_));
  return status && (signal_set(*status, "SigCgt:") & bit_of(signal)) != 0;
}

Result<Registers> TracedThread::registers() const {
  Registers registers = {};
  iovec place = {&registers, sizeof(registers)};
  if (request(PTRACE_GETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uint64_t>(&place)) != 0) {
    return error_of("cannot read the registers of", tid_);
  }
  if (place.iov_len != sizeof(registers)) {
    return Error{Errc::kUnsupported, "it is a 32-bit process"};
  }
  return registers;
}

Status TracedThread::set_registers(const Registers& registers) const {
  Registers copy = registers;
  iovec place = {&copy, sizeof(copy)};
  if (request(PTRACE_SETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<std::uint64_t>(&place)) != 0) {
    return error_of("cannot set the registers of", tid_);
  }
  return ok();
}

Result<std::vector<char>> TracedThread::extended_state() const {
  constexpr std::size_t kMostBytes = 64U << 10U;
  std::vector<char> state(kMostBytes);
  iovec place = {state.data(), state.size()};
  if (request(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, reinterpret_cast<std::uint64_t>(&place)) !=
      0) {
    return error_of("cannot read the extended state of", tid_);
  }
  state.resize(place.iov_len);
  return state;
}

Result<std::uint64_t> TracedThread::signal_mask() const {
  std::uint64_t mask = 0;
  if (request(PTRACE_GETSIGMASK, tid_, sizeof(mask), reinterpret_cast<std::uint64_t>(&mask)) != 0) {
    return error_of("cannot read the signal mask of", tid_);
  }
  return mask;
}

Status TracedThread::set_signal_mask(std::uint64_t mask) const {
  if (request(PTRACE_SETSIGMASK, tid_, sizeof(mask), reinterpret_cast<std::uint64_t>(&mask)) != 0) {
    return error_of("cannot set the signal mask of", tid_);
  }
  return ok();
}

bool TracedThread::is_in_restartable_sequence(const Registers& registers) const {
  constexpr int kGetConfiguration = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION, since Linux 5.13
  constexpr std::uint64_t kSequenceOffset = 8;
  struct Configuration {
    std::uint64_t area;
    std::uint32_t bytes;
    std::uint32_t signature;
    std::uint32_t flags;
    std::uint32_t pad;
  } configuration = {};
  if (is_in_system_call(registers) ||
      request(kGetConfiguration, tid_, sizeof(configuration),
              reinterpret_cast<std::uint64_t>(&configuration)) <= 0 ||
      configuration.area == 0) {
    return false;
  }
  errno = 0;
  const long sequence = request(PTRACE_PEEKDATA, tid_, configuration.area + kSequenceOffset, 0);
  return errno == 0 && sequence != 0;
}

Registers registers_to_resume(const Registers& stopped) {
  Registers resumed = stopped;
  if (is_interrupted(stopped) && may_be_repeated(stopped)) {
    constexpr std::uint64_t kInstructionBytes = 2;  // of `syscall`
    resumed.rip -= kInstructionBytes;
    resumed.rax = stopped.orig_rax;
  }
  resumed.orig_rax = ~std::uint64_t{0};
  return resumed;
}

Status TracedThread::interrupt_as_found(const Registers& found) {
  constexpr std::int64_t kLongestNs = kNsPerSecond / 5;
  if (!is_interrupted(found) || !has_deliverable_signal(tid_)) {
    return ok();
  }
  Registers registers = found;
  if (static_cast<std::int64_t>(found.rax) != -kRestartSystemCall) {
    // All of these end with EINTR where there is a handler.
    registers.rax = static_cast<std::uint64_t>(-EINTR);
    registers.orig_rax = ~std::uint64_t{0};
    return set_registers(registers);
  }
  // Whether this one does, the handler decides (SA_RESTART): the thread stops once more as it was
  // found, and the kernel sees to it from there.
  TIDEMARK_TRY(set_registers(registers));
  TIDEMARK_TRY(interrupt());
  is_stopped_ = false;
  if (request(PTRACE_CONT, tid_, 0, 0) != 0) {
    return error_of("cannot resume", tid_);
  }
  return wait_for_stop(Deadline::in(kLongestNs));
}

bool waits_in_system_call(pid_t pid, pid_t tid) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  return text && !text->starts_with("running") && !text->starts_with("-1");
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  auto folder = monitor::DirectoryStream::open_at(AT_FDCWD, fmt::format("/proc/{}/task", pid));
  while (const dirent* const entry = folder ? folder->next() : nullptr) {
    const std::string_view name(entry->d_name);
    pid_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec == std::errc()) {
      threads.push_back(tid);
    }
  }
  return threads;
}

StoppedProcess::~StoppedProcess() {
  // The first thread first, see stop(). Those that have not stopped in time hold up no other.
  for (auto thread = threads_.rbegin(); thread != threads_.rend(); ++thread) {
    (void)thread->let_go(Deadline::in(0));
  }
  const Deadline late = Deadline::in(kLateStopNs);
  for (TracedThread& thread : threads_) {
    if (!thread.let_go(late)) {
      thread.leave();
    }
  }
}

Status StoppedProcess::interrupt(pid_t tid) {
  auto thread = TracedThread::seize(tid);
  if (!thread) {
    return thread.error().code == Errc::kGone || is_zombie(tid) ? ok() : Status(thread.error());
  }
  if (thread->interrupt()) {
    threads_.push_back(*std::move(thread));
  }
  return ok();
}

Result<StoppedProcess> StoppedProcess::stop(pid_t pid, Deadline deadline) {
  StoppedProcess stopped;
  std::set<pid_t> known;
  std::size_t waited_for = 0;
  for (bool has_new = true; has_new;) {
    has_new = false;
    std::vector<pid_t> threads = threads_of(pid);
    // The first thread last: the signals of the process go to another one while it is stopped.
    std::sort(threads.rbegin(), threads.rend());
    for (const pid_t tid : threads) {
      if (known.insert(tid).second) {
        has_new = true;
        TIDEMARK_TRY(stopped.interrupt(tid));
      }
    }
    for (; waited_for < stopped.threads_.size(); ++waited_for) {
      const Status done = stopped.threads_[waited_for].wait_for_stop(deadline);
      if (!done && done.error().code != Errc::kGone) {
        return done.error();
      }
    }
    if (has_new && deadline.has_passed()) {  // threads that start threads, and exit
      return Error{Errc::kIo, fmt::format("process {} starts threads all the time", pid),
                   ETIMEDOUT};
    }
  }
  if (std::all_of(stopped.threads_.begin(), stopped.threads_.end(),
                  [](const TracedThread& thread) { return thread.has_exited(); })) {
    return Error{Errc::kGone, fmt::format("process {} has exited", pid)};
  }
  return stopped;
}

}  // namespace tidemark::inject
