// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "profiler/heap/heap_watch.h"

namespace tidemark::live {

// One look at the heap of a process, `t_s` after the start of the run. The error: there is no such
// process any more, or no look at it is possible.
using LookAtHeap = std::function<Result<HeapFacts>(double t_s, const heap::HeapExports& exports)>;
// Makes what looks at one process, again and again. `is_cancelled`: see HeapWatch.
using MakeLook =
    std::function<LookAtHeap(const ProcessKey& key, std::function<bool()> is_cancelled)>;
// By profiler/heap.
MakeLook make_heap_looks(const heap::HeapOptions& options);

// A file that the last look writes its objects to.
struct HeapExportFiles {
  std::string heapsnapshot;  // path; empty: none
  std::string dot;
  std::string dot_owner;  // path of the owner; empty: the one that grows most
  bool replace = false;

  bool empty() const { return heapsnapshot.empty() && dot.empty(); }
};

// Looks at processes, one after the other, on a thread of its own: a look takes longer than a tick
// may. All calls come from one thread.
class HeapLookThread {
 public:
  explicit HeapLookThread(MakeLook make) : make_(std::move(make)) {}
  ~HeapLookThread();
  HeapLookThread(const HeapLookThread&) = delete;
  HeapLookThread& operator=(const HeapLookThread&) = delete;

  struct Target {
    ProcessKey key;
    std::optional<std::uint64_t> footprint_bytes;
  };
  // What all processes are looked at for at one time.
  struct Round {
    double t_s = 0.0;
    std::optional<std::int64_t> step;
    std::vector<Target> targets;  // the most important first
    // Of the last one: of the first process.
    std::optional<HeapExportFiles> exports;
  };
  // To be called when the round before is over.
  void begin(Round round);
  bool is_busy() const;

  // Processes that could not be looked at.
  struct Failure {
    ProcessKey key;
    Error error;
  };
  struct News {
    HeapFacts facts;  // at most one look at each process
    std::vector<Failure> failures;
    std::vector<std::string> problems;  // of exports
  };
  News take();
  // The look that is under way is given up, and no other one begins. Waits for nothing.
  void give_up();
  // The same, and the thread ends.
  void cancel();

 private:
  void run();
  void look_at(const Target& target, const Round& round, const heap::HeapExports& exports);
  void look_and_export(const Target& target, const Round& round);

  const MakeLook make_;
  const SystemClock clock_;
  std::unordered_map<ProcessKey, LookAtHeap> looks_;  // the thread's
  std::thread thread_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  bool is_cancelled_ = false;
  bool is_busy_ = false;
  std::optional<Round> round_;  // that has not begun
  std::int64_t begun_ns_ = 0;
  News news_;
  std::vector<HeapFacts> waiting_;  // a second look at a process before the first was taken
};

}  // namespace tidemark::live
