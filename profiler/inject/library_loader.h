// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"

// A library of ours in a process that runs: by a call of dlopen in one of its threads, stopped at a
// place where it may call anything.
namespace tidemark::inject {

struct RemoteLibrary {
  std::string_view name;         // for people: "tracer"
  std::string_view file;         // how the name of its file begins
  std::string_view memory_file;  // what it is called where it is loaded from one
  // The folder of descriptors, spelled as nobody else does, and in another way for each library: a
  // library that was loaded by the same name would be taken for it.
  std::string_view descriptors;
};
inline constexpr RemoteLibrary kTracerLibrary{"tracer", "libtidemark_tracer.so", "tidemark_tracer",
                                              "/proc/self/./fd"};
inline constexpr RemoteLibrary kProbeLibrary{"probe", "libtidemark_probe.so", "tidemark_probe",
                                             "/proc/self/././fd"};

// nullptr: it is not in the process.
const RemoteModule* find_library(const AddressSpace& space, const RemoteLibrary& library);

// Whether the process can open the file by the name that it has here.
bool sees_file(pid_t pid, const std::string& path);

struct LoadOptions {
  std::string path;           // as we see it
  std::string_view function;  // that is called then: unsigned long (*)(const char*), or an int
  std::string argument;
  std::int64_t timeout_ns = 0;
  std::function<bool()> is_cancelled = [] { return false; };
};

struct LoadFigures {
  std::int64_t thread_stopped_ns = 0;  // the longest that a single thread stood still
  std::size_t attempts = 0;            // to find a thread at a place where it may call
};

// Loads the library, unless it is there, and calls a function of it, both in the same thread. What
// the function returns. The caller has asked check_target(). EAGAIN: no thread came to such a place
// in time; nothing was done.
Result<std::uint64_t> load_and_call(pid_t pid, const RemoteMemory& memory,
                                    const RemoteLibrary& library, const LoadOptions& options,
                                    LoadFigures& figures);

// Measures how long something stands still.
class StopWatch {
 public:
  explicit StopWatch(std::int64_t& longest_ns)
      : longest_ns_(longest_ns), begun_ns_(SystemClock().monotonic_ns()) {}
  ~StopWatch() { longest_ns_ = std::max(longest_ns_, SystemClock().monotonic_ns() - begun_ns_); }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  std::int64_t& longest_ns_;
  std::int64_t begun_ns_;
};

}  // namespace tidemark::inject
