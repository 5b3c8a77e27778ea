// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "live/heap_looks.h"
#include "live/look_targets.h"

namespace tidemark::live {

// From one look to the next.
struct LookEvery {
  std::int64_t ns = 20 * kNsPerSecond;
  std::optional<std::int64_t> steps;  // instead, where steps are known
};

struct LookPlanOptions {
  std::uint64_t looks = 3;
  LookEvery every;
  bool all = false;          // every process of the tree
  std::vector<pid_t> named;  // by the user
  bool was_started = false;  // by us: it has to load before there is something to compare with
  std::optional<std::int64_t> load_ns;  // how long that takes; nullopt: as long as `every`
  bool has_log = false;                 // steps are read from a log, which takes a moment
  HeapExportFiles exports;              // of the last look
};

// When a job is looked at, and which of its processes. Pure but for what it remembers.
class LookPlan {
 public:
  static constexpr std::size_t kMostLooked = 4;      // processes
  static constexpr std::size_t kMostLookedAll = 64;  // with `all`

  explicit LookPlan(LookPlanOptions options)
      : options_(std::move(options)),
        targets_({options_.named, options_.all, options_.all ? kMostLookedAll : kMostLooked}) {}

  void add(const Tick& tick) { targets_.add(tick); }
  void set_failed(const ProcessKey& key) { targets_.set_failed(key); }
  // From now on.
  void set_every(const LookEvery& every) { options_.every = every; }

  bool is_due(const Tick& tick) const;
  HeapLookThread::Round make_round(const Tick& tick);

  std::uint64_t looks() const { return options_.looks; }
  bool was_started() const { return options_.was_started; }
  std::uint64_t begun() const { return begun_; }
  bool has_begun_all() const { return begun_ >= options_.looks; }
  // Processes that would have been looked at, if there were not so many.
  std::size_t left_out() const { return targets_.left_out(); }

 private:
  LookPlanOptions options_;
  LookTargets targets_;
  std::uint64_t begun_ = 0;
  double last_s_ = 0.0;
  std::optional<std::int64_t> last_step_;
};

}  // namespace tidemark::live
