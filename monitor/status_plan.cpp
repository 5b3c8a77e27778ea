// SPDX-License-Identifier: Apache-2.0
#include "monitor/status_plan.h"

namespace tidemark::monitor {

void StatusPlan::begin_tick(std::size_t processes) {
  processes_ = processes;
  first_ = next_ < processes ? next_ : 0;
  next_ = takes_turns() ? (first_ + per_tick_) % processes : 0;
}

StatusRead StatusPlan::of(std::size_t position) const {
  const std::size_t behind =
      position >= first_ ? position - first_ : position + processes_ - first_;
  return takes_turns() && behind < per_tick_ ? StatusRead::kInTurn : again();
}

StatusRead StatusPlan::again() const {
  return takes_turns() ? StatusRead::kIfChanged : StatusRead::kAlways;
}

void StatusPlan::removed(std::size_t position) {
  if (position < next_) {
    --next_;
  }
}

}  // namespace tidemark::monitor
