// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/records.h"
#include "tracker/curve/judge.h"
#include "tracker/curve/series.h"

namespace tidemark::tracker {

// What a process is, beside its key.
struct ProcessLabel {
  Role role = Role::kOther;
  std::optional<int> rank;
  std::string comm;     // raw bytes
  std::string program;  // ProcessRecord::program()
};

// A program that a process ran without the tracer in it.
struct UntracedTrack {
  static constexpr std::size_t kCells = 64;

  ProcessKey key;
  ProcessLabel label;
  UntracedReason reason = UntracedReason::kUnknown;
  Series footprint{kCells};
};

// The memory of the processes that the tracer is not in. Of those that have exited only the ones
// that grew most are kept, so that its memory depends on how many there are at one time.
class UntracedTracks {
 public:
  static constexpr std::size_t kMostEnded = 64;

  // A sample of a process that is not traced now.
  void add(const ProcessKey& key, const ProcessLabel& label, double t_s, double bytes);
  // It runs another program from now on, or has exited.
  void end(const ProcessKey& key);
  // The tracer is in it, and has been since its program began.
  void remove(const ProcessKey& key) { living_.erase(key); }

  // Whether there is a sample of the process, and nobody has said why it is not traced. After some
  // more samples it is not worth asking again.
  bool lacks_reason(const ProcessKey& key) const;
  void set_reason(const UntracedProcess& process);

  std::vector<const UntracedTrack*> all() const;

 private:
  std::unordered_map<ProcessKey, UntracedTrack> living_;
  std::vector<UntracedTrack> ended_;  // at most kMostEnded
};

// How a program that was not traced grew.
struct UntracedGrowth {
  const UntracedTrack* track = nullptr;
  double growth_bytes = 0.0;     // 0: of no account
  double footprint_bytes = 0.0;  // at its end
  double from_s = 0.0;
  double to_s = 0.0;
  bool keeps_growing = false;  // false: it has settled
};

// Those that grew first, and of these the ones that keep growing; then those that hold much. The
// small ones are left out. They refer to `tracks`.
std::vector<UntracedGrowth> untraced_growth(const UntracedTracks& tracks, const Options& options);

}  // namespace tidemark::tracker
