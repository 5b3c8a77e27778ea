// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/life.h"

#include <linux/mman.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "profiler/tracer/raw_text.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/turn.h"
#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"
#include "profiler/wire/trace_request.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {

constinit Recorder g_recorder;
constinit ForkPage g_fork_page = {};

namespace {

constexpr std::size_t kRequestBytes = 4400;

constinit std::atomic<Life> g_life = Life::kCold;
constinit bool g_wiped_by_kernel = false;
constinit wire::TraceRequest g_request;        // as it was asked
constinit wire::TraceRequest g_child_request;  // as it is asked of a forked child
constinit char g_request_entry[kRequestBytes] = {};

constexpr std::uint64_t kForEver = ~std::uint64_t{0};

bool request_is(const char* text) noexcept {
  RawText copy(g_request_entry);
  copy.add(wire::kRequestVariable).add('=');
  const char* const request = g_request_entry + copy.size();
  copy.add(text);
  const bool known = copy.complete() && wire::parse_request(request, g_request);
  if (!known) {
    g_request_entry[0] = '\0';
  }
  return known;
}

bool is_pending(std::uint64_t signals) noexcept {
  std::uint64_t pending = 0;
  return sys::own(SYS_rt_sigpending, sys::word(&pending), sizeof(pending)) == 0 &&
         (pending & signals) != 0;
}

// To stderr, unless that would block or nobody reads it. Nor does the program hear of a reader that
// goes away meanwhile.
void say(const char* line, std::size_t bytes) noexcept {
  constexpr std::uint64_t kPipe = std::uint64_t{1} << (SIGPIPE - 1);
  constexpr timespec kNow = {};
  const NoSignals quiet;
  pollfd out = {2, POLLOUT, 0};
  if (sys::own(SYS_poll, sys::word(&out), 1, 0) != 1 || out.revents != POLLOUT) {
    return;
  }
  const bool was_pending = is_pending(kPipe);
  if (sys::write(2, line, bytes) == -EPIPE && !was_pending) {
    sys::own(SYS_rt_sigtimedwait, sys::word(&kPipe), 0, sys::word(&kNow), sizeof(kPipe));
  }
}

void say_why_not(const char* what, int error) noexcept {
  char line[512];
  RawText text(line);
  text.add("tidemark: pid ").add_number(static_cast<std::uint64_t>(sys::getpid()));
  text.add(" is not traced: ").add(what);
  if (error != 0) {
    text.add(" (errno ").add_number(static_cast<std::uint64_t>(error)).add(')');
  }
  text.add('\n');
  say(line, text.size());
}

// A child of vfork runs in our memory: what it does is not done by the process of the file.
bool is_our_file() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 &&
         g_recorder.store().header()->pid == static_cast<std::uint32_t>(sys::getpid());
}

bool open_file(bool forked) noexcept {
  const bool opened = g_recorder.open(forked ? g_child_request : g_request, forked);
  if (opened) {
    g_fork_page.on.store(1, std::memory_order_release);
  }
  g_life.store(opened ? Life::kOn : Life::kOff, std::memory_order_release);
  return opened;
}

}  // namespace

void fork_begins() noexcept {
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {
    g_recorder.tell_mode(g_child_request);
  }
}

void forked() noexcept {
  Life life = g_life.load(std::memory_order_acquire);
  g_fork_page.on.store(0, std::memory_order_release);
  if (life == Life::kStarting) {  // the thread that was making the file is not here to finish
    g_life.compare_exchange_strong(life, Life::kOn);
  } else if (life == Life::kOn && t_thread.hook_frame != 0) {  // a handler that interrupted a hook
    t_thread.orphaned = true;
    if (g_wiped_by_kernel) {
      g_recorder.store().cover();
    }
  }
}

void begin(const char* request) noexcept {
  Life cold = Life::kCold;
  if (!g_life.compare_exchange_strong(cold, Life::kStarting)) {
    return;
  }
  if (request == nullptr) {
    g_life.store(Life::kOff);
    return;
  }
  if (!request_is(request)) {
    say_why_not("TIDEMARK_TRACE is not a request that this tracer knows", 0);
    g_life.store(Life::kOff);
    return;
  }
  if (!start_unwinder() && !g_request.libunwind) {
    g_recorder.leave_callers_out();
  }
  if (g_request.libunwind && !load_libunwind()) {
    say_why_not("libunwind.so.8 is not installed", 0);
    g_life.store(Life::kOff);
    return;
  }
  g_child_request = g_request;
  g_recorder.modules().set_up();
  g_wiped_by_kernel = sys::advise(&g_fork_page, sizeof(g_fork_page), MADV_WIPEONFORK) == 0;
  g_recorder.store().hide_from_children(g_wiped_by_kernel);
  pthread_atfork(fork_begins, nullptr, forked);
  // A folder that is gone: whoever asked for the trace has seen enough.
  if (!open_file(false) && g_recorder.store().error() != ENOENT) {
    say_why_not("its file cannot be made", g_recorder.store().error());
  }
}

bool begin_after_fork() noexcept {
  const Life life = g_life.load(std::memory_order_acquire);
  if (life == Life::kOff) {
    t_thread.remaining = kForEver;  // nobody asks again
    return false;
  }
  if (life != Life::kOn || t_thread.orphaned) {
    return false;
  }
  const NoSignals quiet;
  Life on = Life::kOn;
  if (!g_life.compare_exchange_strong(on, Life::kStarting)) {
    return false;
  }
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {  // another thread was faster
    g_life.store(Life::kOn);
    return true;
  }
  g_recorder.abandon(!g_wiped_by_kernel);
  return open_file(true);
}

bool is_on_since_its_start() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 && g_recorder.is_first_file();
}

bool follows_children() noexcept {
  return g_life.load(std::memory_order_relaxed) != Life::kOff && g_request.follow &&
         !sys::is_silent();
}

char* request_entry() noexcept { return g_request_entry; }

namespace {

// What is asked of a program that this process starts now. It may be a child of vfork: nothing is
// written.
wire::TraceRequest request_now() noexcept {
  wire::TraceRequest now = g_child_request;
  if (g_fork_page.on.load(std::memory_order_acquire) != 0) {
    g_recorder.tell_mode(now);
  }
  return now;
}

}  // namespace

bool request_is_outdated() noexcept {
  const wire::TraceRequest now = request_now();
  return now.mode != g_request.mode || now.sample_every_bytes != g_request.sample_every_bytes;
}

std::size_t most_request_bytes() noexcept {
  constexpr std::size_t kLonger = 48;  // another word, and numbers of 20 digits
  return __builtin_strlen(g_request_entry) + kLonger;
}

void write_request_entry(char* text) noexcept {
  const wire::TraceRequest now = request_now();
  RawText entry(text, most_request_bytes());
  entry.add(wire::kRequestVariable).add("=1:").add(wire::name_of(now.mode)).add(':');
  entry.add_number(now.sample_every_bytes).add(':').add_number(now.most_file_bytes).add(':');
  entry.add(now.follow ? "f" : "").add(now.libunwind ? "u" : "").add(':').add(now.directory);
}

bool filter_begins() noexcept {
  const std::uint32_t silent = sys::g_silent.load(std::memory_order_relaxed);
  if (t_thread.is_filtered_child || (silent & sys::kOwnFilter) != 0) {
    return false;
  }
  // Not by sys::getpid(): a child of another thread may be silent, this process is not yet.
  const auto pid = static_cast<std::uint32_t>(sys::call(SYS_getpid));
  if (g_fork_page.on.load(std::memory_order_acquire) != 0 &&
      g_recorder.store().header()->pid != pid) {
    t_thread.is_filtered_child = true;
    Recorder::fall_silent_for_child();
  } else {
    g_recorder.fall_silent();
  }
  return true;
}

void filter_failed() noexcept {
  if (t_thread.is_filtered_child) {
    t_thread.is_filtered_child = false;
    Recorder::speak_again_for_child();
  } else {
    g_recorder.speak_again();
  }
}

bool exec_begins() noexcept {
  if (is_our_file()) {
    g_recorder.set_stage(wire::Stage::kReplaced);
  }
  const bool was_silent = t_thread.is_filtered_child;
  if (was_silent) {
    t_thread.is_filtered_child = false;
    Recorder::speak_again_for_child();
  }
  return was_silent;
}

void exec_failed(bool was_silent) noexcept {
  if (was_silent) {
    t_thread.is_filtered_child = true;
    Recorder::fall_silent_for_child();
  }
  if (is_our_file()) {
    g_recorder.set_stage(wire::Stage::kRecording);
  }
}

void end() noexcept {
  if (is_our_file()) {
    g_recorder.set_stage(wire::Stage::kExited);
  }
}

}  // namespace tidemark::tracer
