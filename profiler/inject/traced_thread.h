// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"

namespace tidemark::inject {

using Registers = user_regs_struct;

// Until when something may take, by CLOCK_MONOTONIC.
struct Deadline {
  std::int64_t at_ns = 0;

  static Deadline in(std::int64_t ns);
  // The earlier of this and one in so long.
  Deadline or_in(std::int64_t ns) const;
  bool has_passed() const;
};

// A thread of ours that traces threads of a process. To be used for all that is below: when it
// exits, the kernel lets go of whatever it traces. Threads that could not be stopped in time, that
// were killed or have called exec would else wait for us as long as we live.
class TracingThread {
 public:
  explicit TracingThread(pid_t pid);
  ~TracingThread();  // and waits until the kernel has let go
  TracingThread(const TracingThread&) = delete;
  TracingThread& operator=(const TracingThread&) = delete;

  // Runs `work` on it and waits for that.
  void run(const std::function<void()>& work);

 private:
  void serve();

  const pid_t pid_;
  std::mutex mutex_;  // guards what follows, but for the thread
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool is_over_ = false;
  pid_t tid_ = 0;
  std::thread thread_;
};

// Runs `work` on such a thread, which then exits.
void in_tracing_thread(pid_t pid, const std::function<void()>& work);

// Why a thread has stopped.
struct ThreadStop {
  enum class Cause {
    kSystemCall,  // it enters or leaves one
    kSignal,      // which is about to be delivered
    kInterrupt,   // it was asked to, or SIGSTOP and SIGCONT stop and resume all of its process
    kNewProcess,  // it has started one, which is traced, too, and stops before it runs
  };
  Cause cause = Cause::kSystemCall;
  int signal = 0;
  pid_t process = 0;  // the new one
};

// A thread of another process under ptrace. Seizing does not stop it. Whatever becomes of this
// object, the thread runs on: a stop that interrupted a system call is not seen by the program.
// To be used by one thread, the one that seized.
class TracedThread {
 public:
  static Result<TracedThread> seize(pid_t tid);
  // The only thread of a process that a traced thread has started: it is traced as that is.
  static TracedThread of_new_process(pid_t pid) { return TracedThread(pid); }
  ~TracedThread();
  TracedThread(TracedThread&& other) noexcept;
  TracedThread& operator=(TracedThread&&) = delete;

  pid_t tid() const { return tid_; }
  // As the last wait for it has shown.
  bool has_exited() const { return tid_ == 0; }
  // Asks it to stop, and waits until it has. Errc::kGone: the thread has exited.
  Status interrupt();
  Status wait_for_stop(Deadline deadline);
  Status stop(Deadline deadline);
  // Lets it run on, traced by nobody. One that was asked to stop is waited for: without that its
  // system call would end with EINTR. False: it has not stopped in time.
  bool let_go(Deadline deadline);
  // Waits for it no more: it is let go when this thread exits.
  void leave() { tid_ = 0; }
  // Stopped by SIGSTOP and the like, with all of its process.
  bool is_in_group_stop() const { return is_group_stop_; }
  Status resume();
  // Runs on to its next entry to or return from a system call, with this signal. A signal that is
  // about to be delivered ends it too: its number, else 0. SIGSTOP stops the thread as it always
  // does, and this waits for SIGCONT.
  Result<int> run_to_system_call(Deadline deadline, int signal = 0);
  // Runs on to its next stop for whatever cause, with this signal.
  Result<ThreadStop> run_to_stop(Deadline deadline, int signal = 0);
  // PTRACE_O_... beside what is set when it is seized.
  Status set_options(std::uint64_t options) const;
  // Of the signal that is about to be delivered.
  Result<siginfo_t> signal_information() const;
  // Whether the program has a handler for a signal.
  bool catches(int signal) const;

  // While it is stopped.
  Result<Registers> registers() const;
  Status set_registers(const Registers& registers) const;
  // The thread was found in a system call that the stop has interrupted, and is about to make it
  // again. If a signal waits that its program handles, the call ends as the kernel would have it.
  Status interrupt_as_found(const Registers& found);
  // As the instruction XSAVE writes them, in the standard format.
  Result<std::vector<char>> extended_state() const;
  Result<std::uint64_t> signal_mask() const;
  Status set_signal_mask(std::uint64_t mask) const;
  // Whether the thread is in a restartable sequence, which must not be left in this way.
  bool is_in_restartable_sequence(const Registers& registers) const;

 private:
  explicit TracedThread(pid_t tid) : tid_(tid) {}
  Result<int> wait(Deadline deadline);
  Result<ThreadStop> cause_of(int status);
  void hide_interruption() const;

  pid_t tid_ = 0;
  bool is_stopped_ = false;
  bool is_stop_due_ = false;    // it was asked to stop
  bool is_group_stop_ = false;  // by SIGSTOP and the like
};

// The registers with which a thread that was interrupted in a system call does the call again.
Registers registers_to_resume(const Registers& stopped);

std::vector<pid_t> threads_of(pid_t pid);
// Whether a thread waits in a system call. Asked without stopping it.
bool waits_in_system_call(pid_t pid, pid_t tid);

// All threads of a process, stopped as long as this lives.
class StoppedProcess {
 public:
  static Result<StoppedProcess> stop(pid_t pid, Deadline deadline);
  ~StoppedProcess();
  StoppedProcess(StoppedProcess&&) noexcept = default;
  StoppedProcess& operator=(StoppedProcess&&) = delete;

  // The first thread of the process is the last one. Some may have exited.
  std::vector<TracedThread>& threads() { return threads_; }

 private:
  StoppedProcess() = default;
  Status interrupt(pid_t tid);  // one more thread, unless it has exited

  std::vector<TracedThread> threads_;
};

}  // namespace tidemark::inject
