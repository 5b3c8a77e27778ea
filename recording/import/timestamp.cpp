// SPDX-License-Identifier: Apache-2.0
#include "recording/import/timestamp.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <system_error>

#include "common/clock.h"
#include "common/text.h"

namespace tidemark::recording {
namespace {

// Takes exactly `digits` decimal digits off the front.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) {
    return std::nullopt;
  }
  const auto value = parse_number<unsigned>(text.substr(0, digits));
  if (!value) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return static_cast<int>(*value);
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

// ".25" or ",25" -> 0.25; no fraction: 0.
std::optional<double> take_fraction(std::string_view& text) {
  if (!take(text, ".,")) {
    return 0.0;
  }
  double value = 0.0;
  double weight = 0.1;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    value += (text[digits] - '0') * weight;
    weight /= 10.0;
    ++digits;
  }
  text.remove_prefix(digits);
  return digits > 0 ? std::optional(value) : std::nullopt;
}

// "Z", "+02:00", "-0530", "+02" or nothing; seconds east of UTC.
std::optional<int> take_zone(std::string_view& text) {
  if (text.empty() || take(text, "Zz")) {
    return 0;
  }
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) {
    return std::nullopt;
  }
  const auto hours = take_digits(text, 2);
  take(text, ":");
  const auto minutes = text.empty() ? std::optional(0) : take_digits(text, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) {
    return std::nullopt;
  }
  return sign * (*hours * 3600 + *minutes * 60);
}

// Dates as numbers: seconds since 1970 lie above this from 1973 on, in finer units accordingly. No
// run lasts three years.
constexpr double kSmallestDateSeconds = 1e8;

// How many units of `value` make a second: 1, or 1e3, 1e6, 1e9 for what can only be a date.
double units_per_second(double value) {
  constexpr double kStep = 1e3;
  constexpr double kNanoseconds = 1e9;
  double units = 1.0;
  while (units < kNanoseconds && value / units >= kSmallestDateSeconds * kStep) {
    units *= kStep;
  }
  return units;
}

// Beyond this a double no longer tells neighbouring seconds or steps apart.
bool is_possible(double seconds) {
  constexpr double kMaxSeconds = 0x1p53;
  return std::fabs(seconds) <= kMaxSeconds;
}

}  // namespace

std::optional<double> parse_iso_time(std::string_view text) {
  text = trim(text);
  const auto year = take_digits(text, 4);
  const bool first_dash = take(text, "-");
  const auto month = take_digits(text, 2);
  const bool second_dash = take(text, "-");
  const auto day = take_digits(text, 2);
  const bool separator = take(text, "Tt ");
  const auto hour = take_digits(text, 2);
  const bool colon = take(text, ":");
  const auto minute = take_digits(text, 2);
  if (!year || !month || !day || !hour || !minute || !first_dash || !second_dash || !separator ||
      !colon) {
    return std::nullopt;
  }
  const auto second = take(text, ":") ? take_digits(text, 2) : std::optional(0);
  const auto fraction = take_fraction(text);
  take(text, " ");
  const auto zone = take_zone(text);
  if (!second || !fraction || !zone || !text.empty()) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  const long whole = long{days} * 86400 + *hour * 3600L + *minute * 60L + *second - *zone;
  return static_cast<double>(whole) + *fraction;
}

TimeAxis TimeAxis::of_steps() {
  TimeAxis axis(1.0);
  axis.may_be_date_ = false;
  return axis;
}

std::optional<double> TimeAxis::number(std::string_view text) const {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> TimeAxis::seconds_of(double value) {
  const bool is_first = kind_ == Kind::kUndecided;
  const double units = is_first && !unit_s_ ? units_per_second(value) : units_per_second_;
  const double time_s = value * unit_s_.value_or(1.0) / units;
  if (!is_possible(time_s)) {
    return std::nullopt;
  }
  if (is_first) {
    kind_ = Kind::kNumber;
    units_per_second_ = units;
    if (may_be_date_ && time_s >= kSmallestDateSeconds) {
      start_s_ = time_s;
    }
  }
  return time_s - start_s_.value_or(0.0);
}

std::optional<double> TimeAxis::seconds(std::string_view text) {
  if (kind_ != Kind::kIso) {
    if (const auto value = number(text)) {
      return seconds_of(*value);
    }
  }
  if (kind_ == Kind::kNumber || !may_be_date_) {
    return std::nullopt;
  }
  const auto date = parse_iso_time(text);
  if (!date) {
    return std::nullopt;
  }
  kind_ = Kind::kIso;
  start_s_ = start_s_.value_or(*date);
  return *date - *start_s_;
}

std::optional<std::int64_t> TimeAxis::start_wall_ns() const {
  // Beyond this (the year 2262) nanoseconds do not fit.
  if (!start_s_ || *start_s_ < 0.0 || *start_s_ > 9.2e9) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*start_s_ * static_cast<double>(kNsPerSecond));
}

}  // namespace tidemark::recording
