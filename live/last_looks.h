// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/recording_sink.h"
#include "common/records.h"
#include "live/heap_looks.h"
#include "live/look_targets.h"
#include "tracker/owners/owner_tracks.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

// How near a job is to a limit.
struct LimitSight {
  std::uint64_t held_bytes = 0;        // by the job
  std::int64_t spare_bytes = 0;        // until it is stopped or the kernel has no more
  std::optional<double> seconds_left;  // until then, as fast as it leaks
};

// When a job is looked at: first when a limit comes in sight, as what grows takes two looks, then
// each time that half of what was left is used up. Pure.
class LastLookPlan {
 public:
  bool is_due(const LimitSight& sight) const;
  void begun(const LimitSight& sight) { last_ = sight; }
  void reset() { last_.reset(); }

 private:
  std::optional<LimitSight> last_;  // at the last look
};

struct LastLookOptions {
  bool is_on = true;
  std::vector<pid_t> named;                  // processes that the user has named
  std::optional<std::uint64_t> limit_bytes;  // beside those that a tick has
  // Of a limit: what somebody keeps free below it. Empty: nothing.
  std::function<std::uint64_t(std::uint64_t limit_bytes)> keep_free;
  tracker::JudgeOptions judge;
};

// What a look may take that nobody has asked for: nothing is done to the process, and little memory
// of ours is used.
heap::HeapOptions last_look_budget(std::uint64_t most_memory_bytes);

// Looks at which objects hold the memory of a job while a limit comes near, on the ticks of a
// watch. What is found becomes part of the ticks. Nothing ever waits for a look but end().
class LastLooks {
 public:
  // `make_look`: nullptr for this machine.
  explicit LastLooks(LastLookOptions options, MakeLook make_look = nullptr);
  LastLooks(const LastLooks&) = delete;  // what its thread calls knows it
  LastLooks& operator=(const LastLooks&) = delete;

  // Adds what was found, and begins the next look when it is due.
  void add_to_tick(Tick& tick, std::optional<double> leak_bytes_per_s = std::nullopt);
  // Gets the whole run.
  RecordingSink& sink() { return owners_; }
  // The job is being stopped: none begins, and the one that is under way ends soon.
  void give_up();
  // Another job is watched from here on.
  void begin_again();
  // Waits for the one that is given up. True: something was found that is in no tick yet.
  bool end();

  // Why no look is taken, once.
  std::optional<std::string> take_note() { return std::exchange(note_, std::nullopt); }
  // "held 4.0 s before by ..."; "" where nothing was found.
  std::string held_by() const;
  // The same at length, in lines; "" where nobody looked.
  std::string report() const;

 private:
  MakeLook looks_of_this_machine();
  void take_news(Tick& tick);
  void tell(const ProcessKey& key, const std::string& why);
  void skip(const ProcessKey& key, const std::string& why);
  bool is_job_gone(const Tick& tick) const;

  const LastLookOptions options_;
  const MakeLook make_look_;
  LookTargets targets_;
  LastLookPlan plan_;
  std::optional<std::uint64_t> look_bytes_;  // that a look may take, since the first one
  tracker::OwnerTrackBuilder owners_;
  std::vector<ProcessKey> looked_;  // in the last look
  std::optional<HeapFacts> rest_;   // that came after the last tick
  bool is_given_up_ = false;
  bool has_told_ = false;
  std::optional<std::string> note_;
  std::unique_ptr<HeapLookThread> thread_;  // goes first: it calls back
};

}  // namespace tidemark::live
