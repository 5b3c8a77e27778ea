// SPDX-License-Identifier: Apache-2.0
#include "common/time_format.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark {

// Of an imported run the interval is unknown; mprof, for one, samples ten times a second.
TimeFormat TimeFormat::of(const RunInfo& info) {
  return TimeFormat(info.interval_s.value_or(0.0) < 1.0 ? Seconds::kWithDecimals : Seconds::kWhole,
                    info.time_is_steps);
}

std::string TimeFormat::at(double t_s) const {
  if (is_steps_) {
    return fmt::format("step {:.15g}", t_s);
  }
  if (seconds_ == Seconds::kWhole) {
    return format_clock(t_s);
  }
  const auto hundredths =
      static_cast<std::uint64_t>(std::llround(std::clamp(t_s, 0.0, 1e12) * 100.0));
  return fmt::format("{}.{:02}", format_clock(static_cast<double>(hundredths / 100)),
                     hundredths % 100);
}

std::string TimeFormat::length(double t_s) const {
  return is_steps_ ? fmt::format("{:.15g} steps", t_s) : format_duration(t_s);
}

}  // namespace tidemark
