// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/probe.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {
namespace {

using wire::ProbeControl;
using wire::ProbeOrder;
using wire::ProbeOutcome;
using wire::ProbeResult;
using wire::ProbeStage;

constexpr std::chrono::milliseconds kPause(5);

// Against another tidemark, as long as it lives.
Result<Fd> lock_process(pid_t pid) {
  auto folder = open_file(fmt::format("/proc/{}", pid), O_RDONLY | O_DIRECTORY);
  if (!folder) {
    return Error{Errc::kGone, fmt::format("process {} has exited", pid)};
  }
  if (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error{Errc::kUnsupported,
                 fmt::format("another tidemark rules out causes in process {} now", pid)};
  }
  return folder;
}

}  // namespace

Result<wire::ProbePython> find_probe_python(const AddressSpace& space, const RemoteMemory& memory) {
  constexpr std::string_view kFirst = "PyGILState_Ensure";
  for (const RemoteModule& module : space.modules) {
    if (find_exported(module, memory, kFirst) == 0) {
      continue;
    }
    std::array<std::uint64_t, wire::kProbePythonFunctions> addresses = {};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      addresses.at(i) = find_exported(module, memory, wire::kProbePythonNames[i]);
      const bool is_needed = i != offsetof(wire::ProbePython, is_finalizing) / sizeof(addresses[0]);
      if (addresses.at(i) == 0 && is_needed) {
        return Error{Errc::kUnsupported,
                     fmt::format("its interpreter does not export {}", wire::kProbePythonNames[i])};
      }
    }
    wire::ProbePython python = {};
    std::memcpy(&python, addresses.data(), sizeof(python));
    return python;
  }
  return Error{Errc::kNotFound, "it runs no Python"};
}

Result<Probe> Probe::start(pid_t pid, const ProbeOptions& options) {
  TIDEMARK_TRY_ASSIGN(auto lock, lock_process(pid));
  TIDEMARK_TRY_ASSIGN(auto memory, RemoteMemory::open(pid));
  Probe probe(pid, std::move(memory), options);
  probe.lock_ = std::move(lock);
  TIDEMARK_TRY(probe.start_thread());
  return probe;
}

Probe::Probe(Probe&& other) noexcept
    : pid_(other.pid_),
      memory_(std::move(other.memory_)),
      options_(std::move(other.options_)),
      lock_(std::move(other.lock_)),
      control_(std::exchange(other.control_, 0)),
      beat_(other.beat_),
      figures_(other.figures_) {}

Probe::~Probe() { end(); }

Status Probe::start_thread() {
  const LoadOptions load = {options_.library, wire::kProbeStart, "", options_.timeout_ns,
                            options_.is_cancelled};
  TIDEMARK_TRY_ASSIGN(const std::uint64_t answer,
                      load_and_call(pid_, memory_, kProbeLibrary, load, figures_));
  if (const int failed = static_cast<int>(answer); failed != 0) {
    return system_error("the process cannot start a thread", failed);
  }
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid_, memory_));
  const RemoteModule* const library = find_library(space, kProbeLibrary);
  const std::uint64_t control =
      library == nullptr ? 0 : find_exported(*library, memory_, wire::kProbeControl);
  const auto version = memory_.load<std::uint64_t>(control + offsetof(ProbeControl, version));
  if (control == 0 || version != wire::kProbeVersion) {
    return Error{Errc::kUnsupported,
                 fmt::format("the probe in process {} is of another version", pid_)};
  }
  control_ = control;
  return ok();
}

// What was there last may be gone: after an exec, too, nothing can be read.
template <typename T>
Result<T> Probe::load(std::size_t offset) const {
  const auto value = memory_.load<T>(control_ + offset);
  if (!value) {
    return Error{Errc::kGone, fmt::format("process {} has exited, or runs another program", pid_)};
  }
  return *value;
}

template <typename T>
Status Probe::store(std::size_t offset, T value) const {
  return memory_.write(control_ + offset, {reinterpret_cast<const char*>(&value), sizeof(value)});
}

Status Probe::beat() { return store(offsetof(ProbeControl, beat), ++beat_); }

bool Probe::wait(std::int64_t ns) {
  const Deadline until = Deadline::in(ns);
  while (beat() && !options_.is_cancelled()) {
    if (until.has_passed()) {
      return true;
    }
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

Result<Probe::Answer> Probe::run(const ProbeOrder& order, std::int64_t timeout_ns) {
  TIDEMARK_TRY(beat());
  TIDEMARK_TRY_ASSIGN(auto stage, load<ProbeStage>(offsetof(ProbeControl, stage)));
  if (stage == ProbeStage::kNoThread) {  // we stood still for so long that it took us for gone
    TIDEMARK_TRY(start_thread());
    TIDEMARK_TRY_ASSIGN(stage, load<ProbeStage>(offsetof(ProbeControl, stage)));
  }
  TIDEMARK_TRY_ASSIGN(const auto answered, load<std::uint8_t>(offsetof(ProbeControl, answered)));
  TIDEMARK_TRY_ASSIGN(const auto asked, load<std::uint8_t>(offsetof(ProbeControl, asked)));
  if (answered != asked) {
    return Error{Errc::kUnsupported,
                 stage == ProbeStage::kRunning ? "an earlier call still runs"
                                               : "an earlier call still waits for the interpreter",
                 EBUSY};
  }
  const auto number = static_cast<std::uint8_t>(asked == 0xff ? 1 : asked + 1);
  TIDEMARK_TRY(store(offsetof(ProbeControl, order), order));
  TIDEMARK_TRY(store(offsetof(ProbeControl, withdrawn), std::uint8_t{0}));
  TIDEMARK_TRY(store(offsetof(ProbeControl, asked), number));
  return wait_for_answer(number, timeout_ns);
}

// The stage is read before the number of the answer, and the probe writes them in the other order:
// one that is idle again has answered.
Result<Probe::Answer> Probe::wait_for_answer(std::uint8_t number, std::int64_t timeout_ns) {
  Deadline until = Deadline::in(timeout_ns);
  bool is_withdrawn = false;
  while (true) {
    TIDEMARK_TRY(beat());
    TIDEMARK_TRY_ASSIGN(const auto stage, load<ProbeStage>(offsetof(ProbeControl, stage)));
    TIDEMARK_TRY_ASSIGN(const auto answered, load<std::uint8_t>(offsetof(ProbeControl, answered)));
    if (answered == number) {
      TIDEMARK_TRY_ASSIGN(const auto outcome, load<ProbeOutcome>(offsetof(ProbeControl, outcome)));
      return Answer{Ending::kAnswered, outcome};
    }
    if (stage == ProbeStage::kNoThread) {
      // It ends with an interpreter that exits, or took us for gone before it saw the order.
      return Error{Errc::kGone, "its thread has ended"};
    }
    const bool is_over = until.has_passed() || options_.is_cancelled();
    if (is_withdrawn && stage != ProbeStage::kRunning) {
      Answer answer;
      answer.outcome.result = ProbeResult::kWithdrawn;
      answer.outcome.waited_ns = static_cast<std::uint64_t>(timeout_ns);
      return answer;
    }
    if (is_withdrawn && is_over) {
      return Answer{Ending::kStillRunning, {}};
    }
    if (is_over) {
      TIDEMARK_TRY(store(offsetof(ProbeControl, withdrawn), number));
      is_withdrawn = true;
      until = Deadline::in(timeout_ns);
      continue;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// The thread ends within milliseconds, unless it waits for the interpreter.
void Probe::end() {
  constexpr std::int64_t kLongestNs = kNsPerSecond;
  if (control_ == 0 || !store(offsetof(ProbeControl, is_to_end), std::uint8_t{1})) {
    return;
  }
  const Deadline until = Deadline::in(kLongestNs);
  while (!until.has_passed()) {
    const auto stage = load<ProbeStage>(offsetof(ProbeControl, stage));
    if (!stage || *stage != ProbeStage::kIdle) {
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tidemark::inject
