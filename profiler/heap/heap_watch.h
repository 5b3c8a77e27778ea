// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/owner_records.h"
#include "common/process_key.h"
#include "common/result.h"
#include "profiler/reader/block_sites.h"

namespace tidemark::heap {

// Whether a look reads a copy of the process that never runs.
enum class FrozenUse {
  kAuto,    // if the process runs and the machine has room for the copy
  kAlways,  // or there is no look
  kNever,   // threads of the process are held while it is read
};

struct HeapOptions {
  FrozenUse frozen = FrozenUse::kAuto;
  // Instead: a process that runs is read while it does, and nothing is done to it. What it changes
  // meanwhile may be seen in part: only what Python's names lead to counts, neither garbage nor
  // what native code holds.
  bool only_reads = false;
  // A look that reaches one of these is given as it is then, and says so.
  double most_seconds = 10.0;
  std::uint64_t most_memory_bytes = 1U << 30U;
  std::uint64_t most_objects = 20'000'000;
  // So many with the most bytes are given.
  std::size_t most_owners = 50;
  std::size_t most_types = 100;
  std::size_t most_tensors = 100;
  // Asked for the call stacks of what owners hold, where the tracer is at work too; nullptr:
  // nobody.
  std::shared_ptr<reader::BlockSites> sites = nullptr;
};

// Open files to which a look writes its whole graph.
struct HeapExports {
  std::optional<int> heapsnapshot;  // as Chrome DevTools reads it
  std::optional<int> dot;           // the ways to one owner, for Graphviz
  std::string dot_path;             // of that owner; empty: that which grows most
  // Called with the file that is not complete, and why. The look is.
  std::function<void(int fd, const Error& error)> on_error = [](int /*fd*/,
                                                                const Error& /*error*/) {};
};

// Looks at the heap of one process, from outside, and what has grown between them. Each look takes
// up to seconds of this thread; the process stands still for milliseconds. To be used by one
// thread.
class HeapWatch {
 public:
  // Asked now and then during a look; true: give up.
  using IsCancelled = std::function<bool()>;

  HeapWatch(ProcessKey key, const HeapOptions& options, IsCancelled is_cancelled = {});
  ~HeapWatch();
  HeapWatch(HeapWatch&&) noexcept;
  HeapWatch& operator=(HeapWatch&&) noexcept;

  // One look, at `t_s` by the clock of the run: `step` and `footprint_bytes` of the
  // result are left to the caller. What went wrong is in HeapLook::problem, and the error only
  // where there is no process any more.
  Result<HeapFacts> look(double t_s, const HeapExports& exports = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark::heap
