// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tracker/curve/judge.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/owners/owner_tracks.h"

namespace tidemark::tracker {

// What speaks for a leak or for a warm-up, beside the curve of the bytes. The names are in JSON:
// they never change.
enum class OwnerEvidenceKind {
  // Against a warm-up.
  kEntriesPerStep,    // as many new entries each step; value: so many
  kEntriesPerSecond,  // the same where no steps are known
  kAppended,          // a list or the like: nothing is looked up in it by a key
  kPastEpoch,         // it kept its rate beyond a whole epoch; value: epochs
  // For one.
  kKeyed,             // a dict or the like: growth ends when each key has come once
  kWithinFirstEpoch,  // not every sample of the data set has come; value: share of the epoch
  kSlowing,           // ever fewer new entries or bytes; value: last rate over the first
  kStopped,           // nothing new at the last look
};

struct OwnerEvidence {
  OwnerEvidenceKind kind = OwnerEvidenceKind::kEntriesPerStep;
  double value = 0.0;

  bool speaks_for_warmup() const { return kind >= OwnerEvidenceKind::kKeyed; }
};

// One owner of one process, judged as the curve of what it holds more than at the first look. What
// it points to outlives it.
struct JudgedOwner {
  const LookedProcess* process = nullptr;
  const OwnerTrack* track = nullptr;
  SeriesVerdict series;
  Verdict verdict = Verdict::kStable;
  bool undetermined = false;
  // What it grows by; all of it 0 or unset unless it grows. After a few looks low and high are the
  // slowest and the fastest time between two of them.
  GrowthRate rate;
  double growth_bytes = 0.0;  // since `since`
  Moment since;
  std::optional<double> entries_per_step;
  std::optional<double> entries_per_s;
  std::size_t looks = 0;        // of its process
  std::size_t grown_looks = 0;  // of these, that lie at an end of a time in which it grew
  std::vector<OwnerEvidence> evidence;

  bool grows() const { return verdict >= Verdict::kGrowing; }
};

JudgedOwner judge_owner(const RunOwners& run, const LookedProcess& process, const OwnerTrack& track,
                        const Options& options);

// "entries_per_step", "appended", "keyed", ...
std::string_view owner_evidence_name(OwnerEvidenceKind kind);

}  // namespace tidemark::tracker
