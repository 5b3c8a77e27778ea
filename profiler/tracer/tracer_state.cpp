// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/tracer_state.h"

#include <linux/mman.h>

#include <cerrno>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/glibc.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"
#include "profiler/wire/trace_request.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {

constinit Recorder g_recorder;
constinit ForkPage g_fork_page = {};

namespace {

constexpr std::size_t kRequestBytes = 4400;

constinit std::atomic<TracerState> g_state = TracerState::kNotStarted;
constinit bool g_wiped_by_kernel = false;
constinit bool g_is_told_of_forks = false;
constinit std::atomic<int> g_pid = 0;          // of the process that this memory belongs to
constinit wire::TraceRequest g_request;        // of this process
constinit wire::TraceRequest g_child_request;  // of a forked child
constinit char g_request_entry[kRequestBytes] = {};

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

bool accept_request(const char* text) noexcept {
  FixedText copy(g_request_entry);
  copy.add(wire::kRequestVariable).add('=');
  const char* const request = g_request_entry + copy.size();
  copy.add(text);
  const bool known = copy.complete() && wire::parse_request(request, g_request);
  if (!known) {
    g_request_entry[0] = '\0';
  }
  return known;
}

bool is_file_of_this_process() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 &&
         g_recorder.store().header()->pid == static_cast<std::uint32_t>(sys::getpid());
}

void set_stage(wire::Stage stage) noexcept {
  g_recorder.store().header()->stage.store(static_cast<std::uint32_t>(stage),
                                           std::memory_order_release);
}

bool open_file(bool forked) noexcept {
  const bool opened = g_recorder.open(forked ? g_child_request : g_request, forked);
  if (opened) {
    g_fork_page.on.store(1, std::memory_order_release);
  }
  g_state.store(opened ? TracerState::kOn : TracerState::kOff, std::memory_order_release);
  return opened;
}

}  // namespace

void before_fork() noexcept {
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {
    g_recorder.copy_mode_to(g_child_request);
  }
}

void after_fork_in_child() noexcept {
  TracerState state = g_state.load(std::memory_order_acquire);
  g_fork_page.on.store(0, std::memory_order_release);
  g_pid.store(sys::getpid(), std::memory_order_relaxed);
  if (state == TracerState::kStarting) {  // the thread that creates the file is in the parent only
    g_state.compare_exchange_strong(state, TracerState::kOn);
  } else if (state == TracerState::kOn &&
             t_thread.hook_frame != 0) {  // in a handler that interrupted a hook
    t_thread.orphaned = true;
    if (g_wiped_by_kernel) {
      g_recorder.store().cover_with_private_memory();
    }
  }
}

namespace {

// With a request that was accepted.
bool start() noexcept {
  const bool has_unwinder = start_unwinder();
  if (g_request.libunwind && !load_libunwind()) {
    g_request.libunwind = false;
    g_recorder.set_reason("libunwind.so.8 is not installed: stacks are walked without it");
  }
  if (!has_unwinder && !g_request.libunwind) {
    g_recorder.set_reason("glibc is older than 2.35: call stacks have one frame only");
  }
  g_child_request = g_request;
  g_recorder.modules().set_up();
  g_wiped_by_kernel = sys::madvise(&g_fork_page, sizeof(g_fork_page), MADV_WIPEONFORK) == 0;
  g_recorder.store().hide_from_children(g_wiped_by_kernel);
  if (!g_is_told_of_forks) {  // an earlier attempt found no room for its file
    __register_atfork(before_fork, nullptr, after_fork_in_child, &__dso_handle);
    g_is_told_of_forks = true;
  }
  return open_file(false);  // if there is no file the tracer is off
}

}  // namespace

void start_tracer(const char* request) noexcept {
  TracerState not_started = TracerState::kNotStarted;
  if (!g_state.compare_exchange_strong(not_started, TracerState::kStarting)) {
    return;
  }
  g_pid.store(sys::getpid(), std::memory_order_relaxed);
  if (request == nullptr || !accept_request(request)) {
    g_state.store(TracerState::kOff);
    return;
  }
  start();
}

wire::AttachResult attach_tracer(const char* request) noexcept {
  TracerState off = TracerState::kOff;
  if (!g_state.compare_exchange_strong(off, TracerState::kStarting)) {
    return wire::AttachResult::kAlreadyStarted;
  }
  g_pid.store(sys::getpid(), std::memory_order_relaxed);
  if (!accept_request(request)) {
    g_state.store(TracerState::kOff);
    return wire::AttachResult::kBadRequest;
  }
  return start() ? wire::AttachResult::kStarted : wire::AttachResult::kNoFile;
}

bool restart_after_fork() noexcept {
  const TracerState state = g_state.load(std::memory_order_acquire);
  if (state == TracerState::kOff) {
    t_thread.remaining = kNoLimit;  // no hook comes here again
    return false;
  }
  if (state != TracerState::kOn || t_thread.orphaned) {
    return false;
  }
  const SignalBlocker blocker;
  TracerState on = TracerState::kOn;
  if (!g_state.compare_exchange_strong(on, TracerState::kStarting)) {
    return false;
  }
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {  // another thread was faster
    g_state.store(TracerState::kOn);
    return true;
  }
  g_recorder.abandon(!g_wiped_by_kernel);
  return open_file(true);
}

bool is_on_and_never_forked() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 && g_recorder.sites().file() == 0;
}

bool is_child_of_vfork() noexcept { return sys::getpid() != g_pid.load(std::memory_order_relaxed); }

bool follows_children() noexcept {
  return g_state.load(std::memory_order_relaxed) != TracerState::kOff && g_request.follow &&
         !sys::calls_are_stopped();
}

const char* trace_folder() noexcept { return g_request.directory; }

char* request_entry() noexcept { return g_request_entry; }

namespace {

// The request for a program that is started now. May run in a child of vfork: writes no memory.
wire::TraceRequest request_now() noexcept {
  wire::TraceRequest now = g_child_request;
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {
    g_recorder.copy_mode_to(now);
  }
  return now;
}

}  // namespace

bool request_is_outdated() noexcept {
  const wire::TraceRequest now = request_now();
  return now.mode != g_request.mode || now.sample_every_bytes != g_request.sample_every_bytes;
}

std::size_t most_request_bytes() noexcept {
  constexpr std::size_t kLonger = 48;  // a longer mode, and numbers of 20 digits
  return __builtin_strlen(g_request_entry) + kLonger;
}

void write_request_entry(char* text) noexcept {
  const wire::TraceRequest now = request_now();
  FixedText entry(text, most_request_bytes());
  entry.add(wire::kRequestVariable).add("=1:").add(wire::name_of(now.mode)).add(':');
  entry.add_number(now.sample_every_bytes).add(':').add_number(now.most_file_bytes).add(':');
  entry.add(now.follow ? "f" : "").add(now.libunwind ? "u" : "").add(':').add(now.directory);
}

bool before_seccomp() noexcept {
  const std::uint32_t stopped = sys::g_calls_stopped.load(std::memory_order_relaxed);
  if (t_thread.is_filtered_child || (stopped & sys::kOwnFilter) != 0) {
    return false;
  }
  // Not by sys::getpid(), which fails while a filtered child of another thread is there.
  const auto pid = static_cast<std::uint32_t>(sys::call(SYS_getpid));
  if (g_fork_page.on.load(std::memory_order_acquire) != 0 &&
      g_recorder.store().header()->pid != pid) {
    t_thread.is_filtered_child = true;
    stop_system_calls_for_child();
  } else {
    g_recorder.stop_system_calls();
  }
  return true;
}

void after_failed_seccomp() noexcept {
  if (t_thread.is_filtered_child) {
    t_thread.is_filtered_child = false;
    resume_system_calls_for_child();
  } else {
    g_recorder.resume_system_calls();
  }
}

bool before_exec() noexcept {
  if (is_file_of_this_process()) {
    set_stage(wire::Stage::kReplaced);
  }
  const bool was_stopped = t_thread.is_filtered_child;
  if (was_stopped) {
    t_thread.is_filtered_child = false;
    resume_system_calls_for_child();
  }
  return was_stopped;
}

void after_failed_exec(bool was_stopped) noexcept {
  if (was_stopped) {
    t_thread.is_filtered_child = true;
    stop_system_calls_for_child();
  }
  if (is_file_of_this_process()) {
    set_stage(wire::Stage::kRecording);
  }
}

void on_process_exit() noexcept {
  if (is_file_of_this_process()) {
    set_stage(wire::Stage::kExited);
  }
}

}  // namespace tidemark::tracer
