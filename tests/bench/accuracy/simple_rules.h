// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace tidemark::bench {

// The rules that scripts use. Each takes the places and amounts of at least 2 samples and says
// whether it would raise the alarm.

// Least-squares line through all samples: rises, and R² is above 0.5.
bool least_squares_fits(std::span<const double> xs, std::span<const double> bytes);
// The same line rises by more than 10 % of the first sample from the first place to the last.
bool least_squares_rises(std::span<const double> xs, std::span<const double> bytes);
// Mann-Kendall with correction for ties, normal approximation: rises with two-sided p < 0.01.
bool mann_kendall(std::span<const double> xs, std::span<const double> bytes);
// The same on the second half of the samples.
bool mann_kendall_second_half(std::span<const double> xs, std::span<const double> bytes);
// The smallest of the last 10 samples is more than 100 MB above the smallest of the first 10; under
// 20 samples: of the halves.
bool first_against_last_minimum(std::span<const double> xs, std::span<const double> bytes);
// The median of the slopes between any two samples of the second half, times its length, is above
// 2 % of their median. Of more than 256 samples it takes 256, evenly.
bool theil_sen_second_half(std::span<const double> xs, std::span<const double> bytes);

struct SimpleRule {
  std::string_view name;
  bool (*alarms)(std::span<const double> xs, std::span<const double> bytes);
};

inline constexpr std::array<SimpleRule, 6> kSimpleRules = {{
    {"least squares, R² > 0.5", least_squares_fits},
    {"least squares, rise > 10 %", least_squares_rises},
    {"Mann-Kendall p < 0.01, whole", mann_kendall},
    {"Mann-Kendall p < 0.01, second half", mann_kendall_second_half},
    {"minimum of last 10 against first 10, > 100 MB", first_against_last_minimum},
    {"Theil-Sen second half > 2 %", theil_sen_second_half},
}};

}  // namespace tidemark::bench
