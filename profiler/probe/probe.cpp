// SPDX-License-Identifier: Apache-2.0
#include "profiler/probe/probe.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "profiler/probe/python_calls.h"

#include "profiler/probe/poison.h"

namespace tidemark::probe {
namespace {

using wire::kProbeUnknown;
using wire::ProbeControl;
using wire::ProbeOutcome;
using wire::ProbeResult;
using wire::ProbeStage;
using wire::ProbeTask;

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

std::uint64_t now_ns() noexcept {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The thread: what it does with one order.
class Work {
 public:
  Work(ProbeControl& control, std::uint8_t number) noexcept
      : control_(control), number_(number), outcome_(control.outcome) {}

  void run() noexcept {
    outcome_ = {};
    outcome_.objects = outcome_.frozen_objects = kProbeUnknown;
    outcome_.gpu_before_bytes = outcome_.gpu_after_bytes = kProbeUnknown;
    if (control_.order.task == ProbeTask::kGc || control_.order.task == ProbeTask::kCuda) {
      run_in_python();
    } else if (begin()) {
      const std::uint64_t begun_ns = now_ns();
      call_allocator();
      outcome_.took_ns = now_ns() - begun_ns;
    }
  }

 private:
  // What is withdrawn is not begun: either the tool sees that it runs, or this that it must not.
  bool begin() noexcept {
    control_.stage.store(ProbeStage::kRunning);
    if (control_.withdrawn.load() != number_) {
      return true;
    }
    outcome_.result = ProbeResult::kWithdrawn;
    return false;
  }

  void call_allocator() noexcept {
    const std::uint64_t function = control_.order.function;
    switch (control_.order.task) {
      case ProbeTask::kTrim:
        outcome_.value = function_at<int(std::size_t)>(function)(0);
        break;
      case ProbeTask::kJemalloc:
        outcome_.value = purge_jemalloc(function);
        outcome_.result = outcome_.value == 0 ? ProbeResult::kDone : ProbeResult::kFailed;
        break;
      case ProbeTask::kTcmalloc:
        function_at<void()>(function)();
        break;
      case ProbeTask::kMimalloc:
        function_at<void(bool)>(function)(true);
        break;
      default:
        outcome_.result = ProbeResult::kFailed;
    }
  }

  // All arenas: 4096 stands for them since version 5, and their number before.
  static int purge_jemalloc(std::uint64_t function) noexcept {
    using Control = int(const char*, void*, std::size_t*, void*, std::size_t);
    Control* const control = function_at<Control>(function);
    const int purged = control("arena.4096.purge", nullptr, nullptr, nullptr, 0);
    unsigned arenas = 0;
    std::size_t bytes = sizeof(arenas);
    if (purged == 0 || control("arenas.narenas", &arenas, &bytes, nullptr, 0) != 0) {
      return purged;
    }
    // "arena.120.purge", written from its end.
    constexpr char kBefore[] = "arena.";
    constexpr char kBehind[] = ".purge";
    char name[32] = {};
    char* at = name + sizeof(name) - 1;
    const auto prepend = [&at](const char* text, std::size_t length) {
      for (; length > 0; --length) {
        *--at = text[length - 1];
      }
    };
    prepend(kBehind, sizeof(kBehind) - 1);
    do {
      *--at = static_cast<char>('0' + arenas % 10);
      arenas /= 10;
    } while (arenas > 0);
    prepend(kBefore, sizeof(kBefore) - 1);
    return control(at, nullptr, nullptr, nullptr, 0);
  }

  void run_in_python() noexcept {
    const wire::ProbePython& python = control_.order.python;
    const auto is_over = [&] {
      return function_at<int()>(python.is_initialized)() == 0 ||
             (python.is_finalizing != 0 && function_at<int()>(python.is_finalizing)() != 0);
    };
    control_.stage.store(ProbeStage::kWaiting);
    if (is_over()) {
      outcome_.result = ProbeResult::kNoPython;
      return;
    }
    const std::uint64_t begun_ns = now_ns();
    const std::uint32_t beat = control_.beat.load();
    const int state = function_at<int()>(python.ensure)();
    outcome_.waited_ns = now_ns() - begun_ns;
    // Nobody withdraws the order of a tool that was killed.
    const bool is_alone =
        outcome_.waited_ns > control_.most_idle_ns.load() / 10 && control_.beat.load() == beat;
    if (is_alone || outcome_.waited_ns > control_.order.most_wait_ns) {
      outcome_.result = ProbeResult::kWithdrawn;
    } else if (begin()) {
      const std::uint64_t ready_ns = now_ns();
      outcome_.has_more_interpreters = function_at<void*()>(python.first_interpreter)() !=
                                       function_at<void*()>(python.main_interpreter)();
      if (control_.order.task == ProbeTask::kGc) {
        collect_garbage(python, outcome_);
      } else {
        empty_cuda_caches(python, outcome_);
      }
      outcome_.took_ns = now_ns() - ready_ns;
    }
    function_at<void(int)>(python.release)(state);
  }

  ProbeControl& control_;
  const std::uint8_t number_;
  ProbeOutcome& outcome_;
};

void serve(ProbeControl& control) noexcept {
  constexpr timespec kPause = {0, 5'000'000};
  std::uint32_t beat = control.beat.load();
  std::uint64_t heard_ns = now_ns();
  while (control.is_to_end.load() == 0) {
    const std::uint8_t asked = control.asked.load();
    if (asked != control.answered.load()) {
      Work(control, asked).run();
      control.answered.store(asked);  // in this order: who sees an idle one sees its answer
      control.stage.store(ProbeStage::kIdle);
      heard_ns = now_ns();
      continue;
    }
    if (const std::uint32_t now = control.beat.load(); now != beat) {
      beat = now;
      heard_ns = now_ns();
    } else if (now_ns() - heard_ns > control.most_idle_ns.load()) {
      return;
    }
    nanosleep(&kPause, nullptr);
  }
}

// However the thread ends: an interpreter that exits ends threads that wait for it.
void on_thread_end(void* control) {
  static_cast<ProbeControl*>(control)->stage.store(ProbeStage::kNoThread);
}

constinit pthread_key_t g_end_key = 0;
constinit bool g_has_end_key = false;

void* run_thread(void* argument) {
  auto* const control = static_cast<ProbeControl*>(argument);
  prctl(PR_SET_NAME, wire::kProbeThread, 0, 0, 0);
  if (pthread_setspecific(g_end_key, control) != 0) {
    on_thread_end(control);
    return nullptr;
  }
  serve(*control);
  return nullptr;
}

// All but those that a thread raises by what it does: the job may have handlers for them.
sigset_t blocked_signals() noexcept {
  sigset_t signals = {};
  sigfillset(&signals);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&signals, signal);
  }
  return signals;
}

// With a stack as other threads have it: the collector runs code of the job.
int start_thread(ProbeControl& control) noexcept {
  if (!g_has_end_key) {
    if (const int failed = pthread_key_create(&g_end_key, on_thread_end); failed != 0) {
      return failed;
    }
    g_has_end_key = true;
  }
  pthread_attr_t attributes = {};
  if (const int failed = pthread_attr_init(&attributes); failed != 0) {
    return failed;
  }
  const sigset_t blocked = blocked_signals();
  pthread_t thread = {};
  int failed = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  failed = failed != 0 ? failed : pthread_attr_setsigmask_np(&attributes, &blocked);
  failed = failed != 0 ? failed : pthread_create(&thread, &attributes, run_thread, &control);
  pthread_attr_destroy(&attributes);
  return failed;
}

}  // namespace

int start(ProbeControl& control) noexcept {
  const int saved_errno = errno;
  const std::int32_t pid = getpid();
  int failed = 0;
  if (control.pid != pid || control.stage.load() == ProbeStage::kNoThread) {
    control.asked.store(0);
    control.answered.store(0);
    control.withdrawn.store(0);
    control.is_to_end.store(0);
    control.pid = pid;
    control.stage.store(ProbeStage::kIdle);
    failed = start_thread(control);
    if (failed != 0) {
      control.stage.store(ProbeStage::kNoThread);
    }
  } else {
    control.is_to_end.store(0);  // an earlier tool may have asked for it, and it waits yet
  }
  errno = saved_errno;
  return failed;
}

}  // namespace tidemark::probe
