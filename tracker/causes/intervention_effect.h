// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/intervention_records.h"

// What an intervention did to the memory of a process, beside what that does by itself. Pure.
namespace tidemark::tracker {

struct FootprintPoint {
  double t_s = 0.0;
  std::uint64_t bytes = 0;
};

struct InterventionEffect {
  std::uint64_t before_bytes = 0;  // medians
  std::uint64_t after_bytes = 0;
  std::int64_t effect_bytes = 0;  // what it gave back; below 0: it has grown more than by itself
  std::uint64_t noise_bytes = 0;  // how far that may be off
  InterventionOutcome outcome = InterventionOutcome::kCannotTell;
};

// A suspect that makes up less of the memory than this is none: 2 % of it, and at least 4 MiB.
std::uint64_t least_effect_bytes(std::uint64_t footprint_bytes);

// `control`: samples of a time in which nothing was done, about as long as from its end to the last
// sample `after` the intervention. nullopt: there are too few.
std::optional<InterventionEffect> judge_effect(std::span<const FootprintPoint> control,
                                               std::span<const FootprintPoint> after);

// Whether a part that the kernel may drop is much of a size: a fifth of it.
InterventionOutcome judge_share(std::uint64_t part_bytes, std::uint64_t whole_bytes);

}  // namespace tidemark::tracker
