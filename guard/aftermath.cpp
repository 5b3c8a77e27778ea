// SPDX-License-Identifier: Apache-2.0
#include "guard/aftermath.h"

#include <algorithm>

namespace tidemark::guard {
namespace {

// The first tick may have been taken before the trainer ended, the second reads its last steps.
constexpr std::uint32_t kTicksOfTheDead = 2;

}  // namespace

void GuardAftermath::acted(std::span<const ProcessKey> members) {
  is_stopped_ = true;
  members_.assign(members.begin(), members.end());
  ticks_.reset();
}

void GuardAftermath::stood_down() {
  if (is_stopped_) {
    ticks_ = 0;
  }
}

void GuardAftermath::see(std::span<const ProcessKey> trainers, std::optional<std::int64_t> step) {
  if (!ticks_) {
    return;
  }
  const bool is_of_the_dead = ++*ticks_ <= kTicksOfTheDead;
  if (is_of_the_dead) {
    step_ = step;
  }
  const bool has_newcomer =
      std::any_of(trainers.begin(), trainers.end(), [&](const ProcessKey& key) {
        return std::find(members_.begin(), members_.end(), key) == members_.end();
      });
  if (has_newcomer || (!is_of_the_dead && step != step_)) {
    is_stopped_ = false;
    ticks_.reset();
  }
}

}  // namespace tidemark::guard
