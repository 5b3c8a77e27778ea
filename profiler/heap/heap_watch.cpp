// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/heap_watch.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "profiler/heap/cpp_classes.h"
#include "profiler/heap/frozen_copy.h"
#include "profiler/heap/heap_analysis.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::heap {
namespace {

constexpr std::int64_t kStopTimeoutNs = 2 * kNsPerSecond;
// A process that has not run for so long may not run while it is read, either.
constexpr auto kIdle = std::chrono::milliseconds(20);

std::int64_t now_ns() { return SystemClock().monotonic_ns(); }

// What all threads of a process have run so far; nullopt: not known, or one of them runs now. It
// stays the same as long as none of them runs.
std::optional<std::uint64_t> run_ns(pid_t pid) {
  std::uint64_t sum = 0;
  for (const pid_t tid : inject::threads_of(pid)) {
    const auto text = read_file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid), 256);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    const std::string_view word = monitor::take_word(rest);
    // A processor without a tick counts what a thread runs only now and then.
    if (!inject::waits_in_system_call(pid, tid)) {
      return std::nullopt;
    }
    std::uint64_t ran = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), ran).ec != std::errc()) {
      return std::nullopt;
    }
    sum += ran;
  }
  return sum;
}

HeapFacts empty_facts(ProcessKey key, double t_s, HeapReading reading) {
  HeapFacts facts;
  HeapLook look;
  look.key = key;
  look.t_s = t_s;
  look.reading = reading;
  facts.looks.push_back({std::move(look), {}, {}, {}});
  return facts;
}

}  // namespace

struct HeapWatch::State {
  State(ProcessKey process, const HeapOptions& heap_options, IsCancelled cancelled)
      : key(process),
        options(heap_options),
        is_cancelled(std::move(cancelled)),
        analysis(process, heap_options) {}

  // Reads the memory of `pid`: of the process, or of a copy of it. False: it has changed meanwhile.
  Result<bool> read(pid_t pid, const std::function<bool()>& is_sound, const HeapExports& exports,
                    HeapFacts& facts);
  // As long as none of its threads runs. False: one of them does.
  Result<bool> read_idle(double t_s, std::int64_t called_ns, const HeapExports& exports,
                         HeapFacts& facts);
  Status read_copy(const FrozenCopy& copy, const HeapExports& exports, HeapFacts& facts);
  // While it runs.
  Status read_running(double t_s, std::int64_t called_ns, const HeapExports& exports,
                      HeapFacts& facts);
  Result<double> read_stopped(std::int64_t called_ns, const HeapExports& exports, HeapFacts& facts);
  // When the process runs again.
  void add_sites(HeapFacts& facts);

  ProcessKey key;
  HeapOptions options;
  IsCancelled is_cancelled;
  HeapAnalysis analysis;
};

Result<bool> HeapWatch::State::read(pid_t pid, const std::function<bool()>& is_sound,
                                    const HeapExports& exports, HeapFacts& facts) {
  const std::int64_t begin_ns = now_ns();
  constexpr std::uint64_t kBytesOfObject = 85;  // here: with those of the first look
  const std::uint64_t image_bytes = options.most_memory_bytes / 8;
  GraphLimits limits;
  limits.most_objects =
      std::min(options.most_objects, (options.most_memory_bytes - image_bytes) / kBytesOfObject);
  limits.is_over = [this, begin_ns] {
    return to_seconds(now_ns() - begin_ns) > options.most_seconds ||
           (is_cancelled && is_cancelled());
  };
  limits.is_cancelled = [this] { return is_cancelled && is_cancelled(); };
  TIDEMARK_TRY_ASSIGN(auto image, MemoryImage::open(pid, image_bytes));
  TIDEMARK_TRY_ASSIGN(const auto memory, inject::RemoteMemory::open(pid));
  auto runtime = find_python(image, memory);
  if (!runtime) {
    if (runtime.error().code == Errc::kNotFound && CppClasses(image).has_torch()) {
      return analysis.run_native(image, limits, is_sound, facts);
    }
    facts.looks.front().look.problem = runtime.error().what;
    return true;
  }
  ProcessObjects objects(image, *std::move(runtime));
  return analysis.run(image, objects, limits, is_sound, exports, facts);
}

Result<bool> HeapWatch::State::read_idle(double t_s, std::int64_t called_ns,
                                         const HeapExports& exports, HeapFacts& facts) {
  const auto ran_before = run_ns(key.pid);
  std::this_thread::sleep_for(kIdle);
  const auto is_idle = [&] { return ran_before && run_ns(key.pid) == ran_before; };
  if (!is_idle()) {
    return false;
  }
  facts = empty_facts(key, t_s + to_seconds(now_ns() - called_ns), HeapReading::kRunning);
  return read(key.pid, is_idle, exports, facts);
}

Status HeapWatch::State::read_copy(const FrozenCopy& copy, const HeapExports& exports,
                                   HeapFacts& facts) {
  const auto is_read = read(
      copy.pid(), [&] { return copy.check().has_value(); }, exports, facts);
  if (Status is_there = copy.check(); !is_there) {
    // What was written last came from nowhere.
    for (const auto& fd : {exports.heapsnapshot, exports.dot}) {
      if (fd) {
        exports.on_error(*fd, is_there.error());
      }
    }
    return is_there;
  }
  return is_read ? ok() : Status(is_read.error());
}

Status HeapWatch::State::read_running(double t_s, std::int64_t called_ns,
                                      const HeapExports& exports, HeapFacts& facts) {
  facts = empty_facts(key, t_s + to_seconds(now_ns() - called_ns), HeapReading::kRunning);
  analysis.set_only_reached(true);
  const auto is_read = read(
      key.pid, [] { return true; }, exports, facts);
  analysis.set_only_reached(false);
  return is_read ? ok() : Status(is_read.error());
}

Result<double> HeapWatch::State::read_stopped(std::int64_t called_ns, const HeapExports& exports,
                                              HeapFacts& facts) {
  Result<double> paused_s = 0.0;
  inject::in_tracing_thread(key.pid, [&] {
    const std::int64_t stop_ns = now_ns();
    auto stopped = inject::StoppedProcess::stop(key.pid, inject::Deadline::in(kStopTimeoutNs));
    if (!stopped) {
      paused_s = stopped.error();
      return;
    }
    facts.looks.front().look.t_s += to_seconds(now_ns() - called_ns);
    const auto is_read = read(
        key.pid, [] { return true; }, exports, facts);
    paused_s = is_read ? Result<double>(to_seconds(now_ns() - stop_ns)) : is_read.error();
  });
  return paused_s;
}

void HeapWatch::State::add_sites(HeapFacts& facts) {
  const std::vector<OwnerBlocks> owners = analysis.take_blocks();
  if (owners.empty() || (is_cancelled && is_cancelled())) {
    return;
  }
  std::vector<std::vector<std::uint64_t>> groups;
  groups.reserve(owners.size());
  for (const OwnerBlocks& owner : owners) {
    groups.push_back(owner.addresses);
  }
  const auto found = options.sites->find(key, groups);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    OwnerSample& sample = facts.looks.front().owners[owners[i].place];
    for (const OwnerSite& site : found[i]) {
      const double bytes = owners[i].share * static_cast<double>(site.bytes);
      sample.sites.push_back(
          {site.site, std::min(static_cast<std::uint64_t>(bytes), sample.grown_bytes)});
    }
  }
}

HeapWatch::HeapWatch(ProcessKey key, const HeapOptions& options, IsCancelled is_cancelled)
    : state_(std::make_unique<State>(key, options, std::move(is_cancelled))) {}
HeapWatch::~HeapWatch() = default;
HeapWatch::HeapWatch(HeapWatch&&) noexcept = default;
HeapWatch& HeapWatch::operator=(HeapWatch&&) noexcept = default;

Result<HeapFacts> HeapWatch::look(double t_s, const HeapExports& exports) {
  State& state = *state_;
  const std::int64_t begin_ns = now_ns();
  state.analysis.set_with_blocks(state.options.sites && state.options.sites->is_traced(state.key));
  HeapFacts facts = empty_facts(state.key, t_s, HeapReading::kFrozen);
  const auto finish = [&](double paused_s, std::string detour, std::string problem) {
    state.add_sites(facts);
    HeapLook& look = facts.looks.front().look;
    look.paused_s = paused_s;
    look.took_s = to_seconds(now_ns() - begin_ns);
    look.detour = std::move(detour);
    if (!problem.empty()) {
      look.problem = std::move(problem);
    }
    return facts;
  };
  // Names are read again when all objects are written: for longer than a process is idle.
  if (state.options.frozen != FrozenUse::kAlways && !exports.heapsnapshot) {
    TIDEMARK_TRY_ASSIGN(const bool was_idle, state.read_idle(t_s, begin_ns, exports, facts));
    if (was_idle) {
      return finish(0.0, "", "");
    }
  }
  if (state.options.only_reads) {
    TIDEMARK_TRY(state.read_running(t_s, begin_ns, exports, facts));
    return finish(0.0, "it ran while it was read", "");
  }
  std::string detour;
  if (state.options.frozen != FrozenUse::kNever) {
    facts = empty_facts(state.key, t_s, HeapReading::kFrozen);
    auto copy = FrozenCopy::take(state.key.pid);
    if (copy) {
      facts.looks.front().look.t_s = t_s + to_seconds(copy->taken_ns() - begin_ns);
      const Status is_read = state.read_copy(*copy, exports, facts);
      facts.looks.front().look.copied_bytes = copy->cost().copied_bytes;
      const Status is_released = copy->release();
      return finish(copy->paused_s(), "",
                    !is_read       ? is_read.error().what
                    : !is_released ? is_released.error().what
                                   : "");
    }
    if (copy.error().code == Errc::kGone || state.options.frozen == FrozenUse::kAlways) {
      return copy.error();
    }
    detour = copy.error().what;
  }
  facts = empty_facts(state.key, t_s, HeapReading::kStopped);
  TIDEMARK_TRY_ASSIGN(const double paused_s, state.read_stopped(begin_ns, exports, facts));
  return finish(paused_s, detour, "");
}

}  // namespace tidemark::heap
