// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/records.h"

namespace tidemark {

// How a run names its moments: by the clock, or by its steps where it has no time.
class TimeFormat {
 public:
  enum class Seconds { kWhole, kWithDecimals };

  // By the clock, in whole seconds.
  TimeFormat() = default;
  explicit TimeFormat(Seconds seconds, bool time_is_steps = false)
      : seconds_(seconds), is_steps_(time_is_steps) {}
  // With decimals where samples may be less than a second apart.
  static TimeFormat of(const RunInfo& info);

  // False: there are no rates per minute either.
  bool has_time() const { return !is_steps_; }
  // "00:03:20"; "00:03:20.25"; "step 12".
  std::string at(double t_s) const;
  // Of a run that has come so far: "3 min 20 s"; "12 steps".
  std::string length(double t_s) const;

 private:
  Seconds seconds_ = Seconds::kWhole;
  bool is_steps_ = false;
};

}  // namespace tidemark
