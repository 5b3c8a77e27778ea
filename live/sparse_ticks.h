// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/records.h"

namespace tidemark::live {

// Leaves out ticks of large trees: what nobody has asked to be recorded must cost little. What
// happened in them (processes that started, markers, events, losses) moves into the next one.
// Not thread-safe.
class SparseTicks {
 public:
  static constexpr std::size_t kProcessesPerTick = 256;  // of a tree with more, not every tick

  // The tick to record; nullopt: it is left out.
  std::optional<Tick> add(Tick tick);
  // The last one, if it was left out: for the end of the run.
  std::optional<Tick> take_last();

 private:
  std::optional<Tick> left_out_;
  std::size_t count_ = SIZE_MAX;  // left out since the last that was not; at first: enough
};

}  // namespace tidemark::live
