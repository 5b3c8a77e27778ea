// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark::tracker {

// Who holds the segments of /dev/shm is looked up now and then, and what was found is repeated in
// every tick until the next look. While /dev/shm changes, a repeated figure is no sample of now: a
// straight rise would look like a staircase.
class ShmFreshness {
 public:
  static constexpr double kLongestRepeatSeconds = 10.0;

  // Of each tick in turn. `used_bytes`: of /dev/shm as a whole, which is always of now.
  bool is_fresh(double t_s, std::uint64_t unheld_bytes, std::optional<std::uint64_t> used_bytes);

 private:
  std::optional<double> fresh_s_;
  std::uint64_t unheld_bytes_ = 0;
  std::optional<std::uint64_t> used_bytes_;  // of the tick before
};

}  // namespace tidemark::tracker
