// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracker/curve/series.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// What a marked phase is for, told by its name.
enum class PhaseKind { kEval, kCheckpoint, kProfile, kTokenize, kExport, kLogging, kOther };
inline constexpr std::size_t kPhaseKindCount = 7;

PhaseKind phase_kind(std::string_view name);

// One finished phase of a run.
struct Phase {
  PhaseKind kind = PhaseKind::kOther;
  double from_s = 0.0;
  double to_s = 0.0;
};
// In the order in which they began. A phase that never ended is left out.
std::vector<Phase> phases_of(const std::vector<RunEvent>& events);

// How a curve moved inside the phases of one kind, and between them.
struct PhaseGrowth {
  std::uint32_t phases = 0;
  std::uint32_t rising = 0;    // phases in which the curve rose by more than the threshold
  std::uint32_t kept = 0;      // of those: the rise was still there when the next one began
  std::uint32_t released = 0;  // falls: of those, it was not; or one inside a phase
  double inside_bytes = 0.0;   // sum of the rises inside
  double outside_bytes = 0.0;  // sum of the rises after them; the start of the run is no part of it

  double inside_share() const {
    const double all = inside_bytes + outside_bytes;
    return all > 0.0 ? inside_bytes / all : 0.0;
  }
};

PhaseGrowth growth_in_phases(const Series& series, const std::vector<Phase>& phases, PhaseKind kind,
                             double threshold_bytes);

}  // namespace tidemark::tracker
