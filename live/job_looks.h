// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/records.h"
#include "live/heap_looks.h"
#include "live/look_plan.h"
#include "profiler/reader/block_sites.h"

namespace tidemark::live {

// Looks at the heaps of a job that somebody watches: hand it every tick and the end. Not
// thread-safe.
class JobLooks {
 public:
  // `blocks`: what the looks ask who has allocated what; nullptr: nobody.
  JobLooks(LookPlanOptions plan, MakeLook make_look, std::shared_ptr<reader::BlockSites> blocks)
      : plan_(std::move(plan)), blocks_(std::move(blocks)), looks_(std::move(make_look)) {}

  // Adds what was found since, and begins the next look where one is due.
  void complete(Tick& tick);
  // No look begins any more. True: one that was under way was given up.
  bool finish();
  // Looks that are still to come come this often.
  void set_every(const LookEvery& every) { plan_.set_every(every); }

  // Nobody lets us look: denial() says why.
  bool is_denied() const { return is_denied_; }
  // There is no look to come.
  bool is_done() const { return is_done_; }
  bool has_looked() const { return looks_taken_ > 0; }
  // Those of a process without Python find none.
  bool has_found_objects() const { return found_objects_; }
  std::uint64_t looks() const { return plan_.looks(); }
  // The number of the look that has ended since the last call.
  std::optional<std::uint64_t> take_ended_look();

  // The first process that could not be looked at, if it had not just exited.
  const std::optional<HeapLookThread::Failure>& denial() const { return denial_; }
  // Why processes were not looked at, a sentence each, raw bytes.
  std::vector<std::string> notes() const;
  // What went wrong with exports, since the last call.
  std::vector<std::string> take_export_problems();

 private:
  void take_news(Tick& tick);
  void take_failure(const HeapLookThread::Failure& failure);

  LookPlan plan_;
  const std::shared_ptr<reader::BlockSites> blocks_;
  HeapLookThread looks_;
  std::optional<HeapLookThread::Failure> denial_;
  std::vector<std::string> problems_;
  std::vector<std::string> export_problems_;
  std::uint64_t looks_taken_ = 0;
  std::uint64_t ended_ = 0;        // looks at all processes
  std::uint64_t taken_ended_ = 0;  // by take_ended_look()
  bool found_objects_ = false;
  bool is_denied_ = false;
  bool is_done_ = false;
  bool is_finishing_ = false;
};

// Why the kernel or the process refuses, with what to do: a sentence, and a hint or "".
struct LookDenial {
  std::string what;
  std::string hint;
};
LookDenial denial_text(const HeapLookThread::Failure& failure);

}  // namespace tidemark::live
