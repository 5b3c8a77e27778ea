// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/python_script.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {
namespace {

// The words of _Py_DebugOffsets, with which _PyRuntime begins, as 3.14 has them.
constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy" in little endian
enum Word : std::size_t {
  kCookieWord = 0,
  kVersion = 1,
  kFreeThreaded = 2,
  kFirstInterpreter = 5,
  kNextInterpreter = 8,
  kFirstThread = 9,
  kNextThread = 24,
  kNativeId = 28,
  kEvalBreaker = 89,
  kSupport = 90,  // of what follows but the next one, in a thread state
  kIsEnabled = 91,
  kIsPending = 92,
  kPath = 93,
  kPathBytes = 94,
  kWords = 95,
};
constexpr std::uint64_t kVersionOf314 = 0x030e;
constexpr std::uint64_t kLookAtRequests = 1U << 5U;  // a bit of the eval breaker

struct PythonThread {
  std::uint64_t state = 0;  // address
  pid_t tid = 0;
};

class Interpreter {
 public:
  static Result<Interpreter> find(const RemoteMemory& memory, const AddressSpace& space) {
    for (const RemoteModule& module : space.modules) {
      const std::uint64_t runtime = find_exported(module, memory, "_PyRuntime");
      if (const auto words = runtime == 0
                                 ? std::nullopt
                                 : memory.load<std::array<std::uint64_t, kWords>>(runtime)) {
        return checked(Interpreter(memory, runtime, *words));
      }
    }
    return Error{Errc::kUnsupported, "it has no Python interpreter that could load it"};
  }

  // Of the main interpreter.
  std::vector<PythonThread> threads() const {
    constexpr std::size_t kMostThreads = 4096;
    std::vector<PythonThread> found;
    for (std::uint64_t state = at(main_ + words_[kFirstThread]);
         state != 0 && found.size() < kMostThreads; state = at(state + words_[kNextThread])) {
      found.push_back({state, static_cast<pid_t>(at(state + words_[kNativeId]))});
    }
    return found;
  }

  // While the process is stopped. False: the thread has ended.
  Result<bool> ask(const PythonThread& thread, const std::string& path) const {
    if (!is_there(thread)) {
      return false;
    }
    const std::uint64_t support = thread.state + words_[kSupport];
    TIDEMARK_TRY(memory_->write(support + words_[kPath], {path.c_str(), path.size() + 1}));
    TIDEMARK_TRY(set_pending(thread, 1));
    const std::uint64_t breaker = at(thread.state + words_[kEvalBreaker]) | kLookAtRequests;
    TIDEMARK_TRY(write_word(thread.state + words_[kEvalBreaker], breaker));
    return true;
  }
  Status withdraw(const PythonThread& thread) const {
    const auto pending = memory_->load<std::int32_t>(pending_of(thread));
    return is_there(thread) && pending == 1 ? set_pending(thread, 0) : ok();
  }
  bool has_room_for(const std::string& path) const { return path.size() < words_[kPathBytes]; }

 private:
  using Words = std::array<std::uint64_t, kWords>;

  Interpreter(const RemoteMemory& memory, std::uint64_t runtime, const Words& words)
      : memory_(&memory), runtime_(runtime), words_(words) {}

  static Result<Interpreter> checked(Interpreter found) {
    constexpr std::uint64_t kLargestOffset = 1U << 20U;
    const Words& words = found.words_;
    if (words[kCookieWord] != kCookie || words[kVersion] >> 16U != kVersionOf314) {
      return Error{Errc::kUnsupported, "only Python 3.14 can be asked to load it"};
    }
    const bool is_sane = words[kFreeThreaded] == 0 && words[kPathBytes] <= kLargestOffset &&
                         std::all_of(words.begin() + kFirstInterpreter, words.end(),
                                     [](std::uint64_t offset) { return offset < kLargestOffset; });
    found.find_main();
    const auto is_enabled = found.memory_->load<std::int32_t>(found.main_ + words[kIsEnabled]);
    if (!is_sane || found.main_ == 0 || is_enabled != 1) {
      return Error{Errc::kUnsupported,
                   "its Python does not run scripts of others (-X disable_remote_debug)"};
    }
    return found;
  }

  // The last one: new ones come first.
  void find_main() {
    constexpr int kMostInterpreters = 1024;
    std::uint64_t next = at(runtime_ + words_[kFirstInterpreter]);
    for (int i = 0; i < kMostInterpreters && next != 0; ++i) {
      main_ = next;
      next = at(main_ + words_[kNextInterpreter]);
    }
  }

  std::uint64_t at(std::uint64_t address) const {
    return memory_->load<std::uint64_t>(address).value_or(0);
  }
  Status write_word(std::uint64_t address, std::uint64_t word) const {
    return memory_->write(address, {reinterpret_cast<const char*>(&word), sizeof(word)});
  }
  std::uint64_t pending_of(const PythonThread& thread) const {
    return thread.state + words_[kSupport] + words_[kIsPending];
  }
  Status set_pending(const PythonThread& thread, std::int32_t value) const {
    return memory_->write(pending_of(thread),
                          {reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  bool is_there(const PythonThread& thread) const {
    const std::vector<PythonThread> now = threads();
    return std::any_of(now.begin(), now.end(), [&](const PythonThread& each) {
      return each.state == thread.state && each.tid == thread.tid;
    });
  }

  const RemoteMemory* memory_;
  std::uint64_t runtime_;
  std::uint64_t main_ = 0;
  Words words_;
};

// Calls work() while the process stands still.
template <typename Work>
Status in_stopped_process(pid_t pid, Work work) {
  constexpr std::int64_t kLongestNs = kNsPerSecond / 20;
  Status done = ok();
  in_tracing_thread(pid, [&] {
    const auto stopped = StoppedProcess::stop(pid, Deadline::in(kLongestNs));
    done = stopped ? work() : Status(stopped.error());
  });
  return done;
}

}  // namespace

Status run_python_script(pid_t pid, const RemoteMemory& memory, const AddressSpace& space,
                         const std::string& path, std::int64_t timeout_ns,
                         const std::function<bool()>& has_run) {
  constexpr std::int64_t kForOneThreadNs = kNsPerSecond / 4;
  TIDEMARK_TRY_ASSIGN(const Interpreter python, Interpreter::find(memory, space));
  if (!python.has_room_for(path)) {
    return Error{Errc::kUnsupported, "the name of the script is too long"};
  }
  const Deadline deadline = Deadline::in(timeout_ns);
  while (!deadline.has_passed()) {
    std::vector<PythonThread> threads = python.threads();
    if (threads.empty()) {
      return Error{Errc::kGone, fmt::format("process {} has no thread that runs Python", pid)};
    }
    // Those that are in the middle of something first.
    std::stable_partition(threads.begin(), threads.end(), [&](const PythonThread& thread) {
      return !waits_in_system_call(pid, thread.tid);
    });
    for (const PythonThread& thread : threads) {
      bool is_asked = false;
      TIDEMARK_TRY(in_stopped_process(pid, [&]() -> Status {
        TIDEMARK_TRY_ASSIGN(is_asked, python.ask(thread, path));
        return ok();
      }));
      const Deadline patience = deadline.or_in(kForOneThreadNs);
      while (is_asked && !patience.has_passed()) {
        if (has_run()) {
          return ok();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      TIDEMARK_TRY(in_stopped_process(pid, [&] { return python.withdraw(thread); }));
      if (has_run()) {
        return ok();
      }
    }
  }
  return Error{Errc::kUnsupported, "no thread of its Python came to run a script in time",
               ETIMEDOUT};
}

}  // namespace tidemark::inject
