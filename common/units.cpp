// SPDX-License-Identifier: Apache-2.0
#include "common/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/records.h"
#include "common/text.h"

namespace tidemark {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// In lower case: units are understood in any.
constexpr std::array<Unit, 13> kSizeUnits{{
    {"b", 1.0},
    {"k", 1024.0},
    {"kib", 1024.0},
    {"m", 1048576.0},
    {"mib", 1048576.0},
    {"g", 1073741824.0},
    {"gib", 1073741824.0},
    {"t", 1099511627776.0},
    {"tib", 1099511627776.0},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
}};

constexpr std::array<Unit, 10> kDurationUnits{{
    {"ns", 1e-9},
    {"us", 1e-6},
    {"ms", 1e-3},
    {"s", 1.0},
    {"sec", 1.0},
    {"m", 60.0},
    {"min", 60.0},
    {"h", 3600.0},
    {"hour", 3600.0},
    {"d", 86400.0},
}};

struct Quantity {
  double number;
  std::string_view unit;
};

// "1.5GiB" -> {1.5, "GiB"}. Only plain decimal numbers: no sign, exponent, hex, inf or nan.
std::optional<Quantity> split_quantity(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view digits = text.substr(0, end);
  double number = 0.0;
  const auto [parsed, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                               std::chars_format::fixed);
  if (digits.empty() || error != std::errc{} || parsed != digits.data() + digits.size()) {
    return std::nullopt;
  }
  const std::string_view unit =
      end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
  return Quantity{number, unit};
}

// In the unit of the factors. Zero needs no unit.
std::optional<double> to_base(const Quantity& quantity, std::span<const Unit> units) {
  if (quantity.unit.empty() && quantity.number == 0.0) {
    return 0.0;
  }
  const std::string name = to_lower(quantity.unit);
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return quantity.number * unit.factor;
    }
  }
  return std::nullopt;
}

bool lacks_unit(const Quantity& quantity) {
  return quantity.unit.empty() && quantity.number != 0.0;
}

Error bad_value(std::string_view what, std::string_view text, std::string_view examples) {
  return Error{Errc::kUsage, fmt::format("'{}' is not a {}; write it like {}", escape_text(text),
                                         what, examples)};
}

// With two units that the number may have been meant in.
Error no_unit(std::string_view text, std::string_view number, std::string_view one_ending,
              std::string_view other_ending) {
  return Error{Errc::kUsage, fmt::format("'{}' has no unit: say {}{} or {}{}", escape_text(text),
                                         number, one_ending, number, other_ending)};
}

std::string format_magnitude(double bytes) {
  constexpr std::array<std::string_view, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t i = 0;
  while (bytes >= 1023.5 && i + 1 < kNames.size()) {
    bytes /= 1024.0;
    ++i;
  }
  const int decimals = (i == 0 || bytes >= 99.95) ? 0 : (bytes >= 9.995 ? 1 : 2);
  return fmt::format("{:.{}f} {}", bytes, decimals, kNames[i]);
}

}  // namespace

Result<std::uint64_t> parse_size_bytes(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (quantity && lacks_unit(*quantity)) {
    return no_unit(text, trim(text), "MiB", "GiB");
  }
  const auto bytes = quantity ? to_base(*quantity, kSizeUnits) : std::nullopt;
  if (!bytes || *bytes >= 0x1p63) {
    return bad_value("size", text, "64KiB, 200MB or 1.5GiB");
  }
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (quantity && lacks_unit(*quantity)) {
    return no_unit(text, trim(text), "s", "min");
  }
  const auto seconds = quantity ? to_base(*quantity, kDurationUnits) : std::nullopt;
  if (!seconds || *seconds > 1e9) {
    return bad_value("duration", text, "500ms, 10s, 5min or 2h");
  }
  return static_cast<std::int64_t>(std::llround(*seconds * static_cast<double>(kNsPerSecond)));
}

Result<Rate> parse_rate(std::string_view text) {
  constexpr std::string_view kExamples = "1MiB/step, 20MB/min or 200MB/10s";
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return bad_value("rate", text, kExamples);
  }
  const std::string_view amount = trim(text.substr(0, slash));
  const std::string_view per = trim(text.substr(slash + 1));
  const bool has_number = !per.empty() && per.front() >= '0' && per.front() <= '9';
  const auto window = has_number ? split_quantity(per) : Quantity{1.0, per};
  const auto size = split_quantity(amount);
  if (size && lacks_unit(*size) && !per.empty()) {
    return no_unit(text, amount, fmt::format("KiB/{}", per), fmt::format("MiB/{}", per));
  }
  const auto bytes = parse_size_bytes(amount);
  if (!bytes || !window) {
    return bad_value("rate", text, kExamples);
  }
  if (lacks_unit(*window) && !per.empty()) {
    return no_unit(text, fmt::format("{}/{}", amount, per), "s", "steps");
  }
  Rate rate;
  rate.bytes = static_cast<double>(*bytes);
  if (const std::string unit = to_lower(window->unit); unit == "step" || unit == "steps") {
    rate.unit = RateUnit::kStep;
    rate.per = window->number;
  } else {
    rate.per = to_base(*window, kDurationUnits).value_or(0.0);
  }
  if (!(rate.per > 0.0)) {
    return bad_value("rate", text, kExamples);
  }
  return rate;
}

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes)) {
    return "?";
  }
  return (bytes <= -0.5 ? "-" : "") + format_magnitude(std::round(std::fabs(bytes)));
}

std::string format_bytes_delta(double bytes) {
  return (bytes <= -0.5 ? "" : "+") + format_bytes(bytes);
}

std::string format_rate(double bytes, RateUnit unit, RateFormat format) {
  constexpr double kSmallPerStep = 1024.0;
  constexpr double kSmallPerMinute = 100.0 * 1024.0;
  const bool is_step = unit == RateUnit::kStep;
  const double shown = is_step ? bytes : bytes * 60.0;
  const bool is_small =
      !format.has_fixed_unit && std::fabs(shown) < (is_step ? kSmallPerStep : kSmallPerMinute);
  const double scaled = shown * (!is_small ? 1.0 : is_step ? 1000.0 : 60.0);
  const std::string_view per =
      is_step ? (is_small ? "/1000 steps" : "/step") : (is_small ? "/h" : "/min");
  return (format.has_sign ? format_bytes_delta(scaled) : format_bytes(scaled)) + std::string(per);
}

std::string format_percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", share * 100.0, decimals);
}

std::string format_grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
  return digits;
}

std::string plural(std::uint64_t count, std::string_view one, std::string_view several) {
  return count == 1        ? std::string(one)
         : several.empty() ? std::string(one) + 's'
                           : std::string(several);
}

std::string format_count(std::uint64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, plural(count, one, several));
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0.0)) {
    return "?";
  }
  if (seconds < 9.95) {
    return fmt::format("{:.{}f} s", seconds, seconds < 0.995 ? 2 : 1);
  }
  if (seconds < 59.5) {
    return fmt::format("{:.0f} s", seconds);
  }
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, 1e15)));
  if (whole < 3600) {
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  if (whole < 86400) {
    return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  }
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

std::string format_clock(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(std::max(seconds, 0.0), 1e15));
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", whole % 86400 / 3600, whole % 3600 / 60, whole % 60);
  return whole < 86400 ? clock : fmt::format("{}d {}", whole / 86400, clock);
}

std::string format_place(double at, RateUnit unit) {
  return unit == RateUnit::kStep ? fmt::format("step {:.0f}", at) : format_clock(at);
}

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
