// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/shm_freshness.h"

namespace tidemark::tracker {

bool ShmFreshness::is_fresh(double t_s, std::uint64_t unheld_bytes,
                            std::optional<std::uint64_t> used_bytes) {
  const bool changes = used_bytes != used_bytes_;
  used_bytes_ = used_bytes;
  const bool repeats = fresh_s_ && unheld_bytes == unheld_bytes_;
  if (changes && repeats && t_s - *fresh_s_ < kLongestRepeatSeconds) {
    return false;
  }
  fresh_s_ = t_s;
  unheld_bytes_ = unheld_bytes;
  return true;
}

}  // namespace tidemark::tracker
