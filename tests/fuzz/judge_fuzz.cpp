// SPDX-License-Identifier: Apache-2.0
// Any curve with any options: judge() must not crash, and its reading must not contradict itself.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

#include "common/check.h"
#include "tracker/curve/judge.h"

namespace {

using tidemark::Rate;
using tidemark::RateUnit;
using tidemark::tracker::Axis;
using tidemark::tracker::GrowthRate;
using tidemark::tracker::kUnknown;
using tidemark::tracker::Moment;
using tidemark::tracker::Options;
using tidemark::tracker::Pattern;
using tidemark::tracker::PatternKind;
using tidemark::tracker::Series;
using tidemark::tracker::SeriesVerdict;
using tidemark::tracker::Verdict;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }

  template <typename T>
  T take() {
    T value{};
    const std::size_t count = std::min(sizeof(T), left_.size());
    std::memcpy(&value, left_.data(), count);
    left_ = left_.subspan(count);
    return value;
  }

  // Small and large ones are equally likely.
  double take_amount() {
    const auto mantissa = take<std::uint8_t>();
    return std::ldexp(mantissa, take<std::uint8_t>() % 56);
  }

 private:
  std::span<const std::uint8_t> left_;
};

Options options_from(Bytes& bytes) {
  Options options;
  const auto which = bytes.take<std::uint8_t>();
  const auto amount_if = [&](int bit) {
    return ((which >> bit) & 1) != 0 ? std::optional(bytes.take_amount()) : std::nullopt;
  };
  options.warmup.seconds = amount_if(0);
  options.warmup.steps = amount_if(1);
  if (const auto rate = amount_if(2)) {
    options.min_leak = Rate{*rate, (which & 0x80) != 0 ? RateUnit::kStep : RateUnit::kSecond,
                            1.0 + bytes.take<std::uint8_t>()};
  }
  options.limit_bytes = amount_if(3);
  options.epoch_steps = amount_if(4);
  options.epoch_seconds = amount_if(5);
  options.age_at_start_s = amount_if(6);
  options.steps_at_start = amount_if(6);
  return options;
}

// A walk: each instruction is a stretch of samples that rise or fall alike, or one sample as it is.
Series series_from(Bytes& bytes) {
  constexpr std::size_t kMostSamples = 3000;
  const auto axes = bytes.take<std::uint8_t>();
  const bool time_known = (axes & 3) != 1;
  const bool steps_known = (axes & 3) != 0;
  Series series((axes & 4) != 0 ? 256 : Series::kDefaultCells);
  double t_s = 0.0;
  double step = 0.0;
  double level = 1e9;
  std::uint32_t noise = 1;
  for (std::size_t added = 0; !bytes.empty() && added < kMostSamples;) {
    const auto what = bytes.take<std::uint8_t>();
    if (what == 0xff) {
      const auto at_s = bytes.take<double>();
      const auto at_step = bytes.take<double>();
      series.add(at_s, at_step, bytes.take<double>());
      ++added;
      continue;
    }
    const std::size_t count = 1U << (what & 7U);
    const double slope = std::ldexp(bytes.take<std::int8_t>(), 4 * ((what >> 3) & 7) - 4);
    const double scatter = std::ldexp(bytes.take<std::uint8_t>(), (what & 64) != 0 ? 16 : 4);
    const double pace = std::ldexp(bytes.take<std::int8_t>(), -3);
    for (std::size_t i = 0; i < count; ++i) {
      t_s += pace;
      step += (what & 128) != 0 ? 1.0 : 0.0;
      level += slope;
      noise = noise * 1664525U + 1013904223U;
      series.add(time_known ? t_s : kUnknown, steps_known ? step : kUnknown,
                 level + scatter * (static_cast<double>(noise >> 8U) / 0x1p24 - 0.5));
    }
    added += count;
  }
  return series;
}

void check_finite(std::initializer_list<std::optional<double>> values) {
  for (const auto& value : values) {
    TIDEMARK_CHECK(!value || std::isfinite(*value), "not a number");
  }
}

void check_ordered(const std::optional<double>& a, const std::optional<double>& b) {
  TIDEMARK_CHECK(!a || !b || *a <= *b, "an interval that is upside down");
}

void check_rate(const GrowthRate& rate) {
  check_finite({rate.bytes_per_s, rate.low_bytes_per_s, rate.high_bytes_per_s, rate.bytes_per_step,
                rate.low_bytes_per_step, rate.high_bytes_per_step});
  check_ordered(rate.low_bytes_per_s, rate.bytes_per_s);
  check_ordered(rate.bytes_per_s, rate.high_bytes_per_s);
  check_ordered(rate.low_bytes_per_step, rate.bytes_per_step);
  check_ordered(rate.bytes_per_step, rate.high_bytes_per_step);
}

double place(const Moment& at, Axis axis) {
  const auto& on_axis = axis == Axis::kSteps ? at.step : at.t_s;
  TIDEMARK_CHECK(on_axis, "a pattern without a place");
  return *on_axis;
}

void check_patterns(const SeriesVerdict& reading) {
  double last = -std::numeric_limits<double>::infinity();
  for (const Pattern& pattern : reading.patterns) {
    check_rate(pattern.rate);
    check_finite({pattern.from.t_s, pattern.from.step, pattern.to.t_s, pattern.to.step,
                  pattern.growth_bytes, pattern.height_bytes, pattern.period_s,
                  pattern.period_steps});
    const double from = place(pattern.from, reading.axis);
    TIDEMARK_CHECK(from >= last, "patterns are not in order");
    TIDEMARK_CHECK(place(pattern.to, reading.axis) >= from, "a pattern ends before it begins");
    last = from;
  }
}

void check_verdict(const SeriesVerdict& reading) {
  const auto has = [&](PatternKind kind) { return reading.find(kind) != nullptr; };
  const Verdict verdict = reading.verdict;
  TIDEMARK_CHECK((verdict == Verdict::kLeak) == has(PatternKind::kLeak), "leak or not");
  TIDEMARK_CHECK((verdict == Verdict::kGrowing) == has(PatternKind::kGrowth), "growing or not");
  TIDEMARK_CHECK(verdict != Verdict::kWarmup || has(PatternKind::kWarmup), "no warm-up");
  TIDEMARK_CHECK(verdict != Verdict::kSpikes || has(PatternKind::kSpikes), "no spikes");
  TIDEMARK_CHECK(
      verdict != Verdict::kStable || (!has(PatternKind::kWarmup) && !has(PatternKind::kSpikes)),
      "stable, with more than that");
  TIDEMARK_CHECK(verdict != Verdict::kGrowing || reading.undetermined, "growing is undetermined");
  TIDEMARK_CHECK(verdict != Verdict::kLeak || !reading.undetermined, "a leak is determined");
  TIDEMARK_CHECK(reading.undetermined == reading.needs.has_value(), "needs, or none");
  TIDEMARK_CHECK(reading.samples >= 6 || reading.undetermined, "too few samples decide");
}

void check_numbers(const SeriesVerdict& reading) {
  TIDEMARK_CHECK(reading.confidence >= 0.0 && reading.confidence <= 1.0, "confidence");
  check_finite({reading.first_floor_bytes, reading.last_floor_bytes, reading.min_bytes,
                reading.max_bytes, reading.mean_bytes, reading.smallest_detectable_per_s,
                reading.smallest_detectable_per_step});
  const double rounding = 1e-9 * reading.max_bytes;
  TIDEMARK_CHECK(reading.min_bytes <= reading.mean_bytes + rounding &&
                     reading.mean_bytes <= reading.max_bytes + rounding,
                 "the mean is outside");
  TIDEMARK_CHECK(reading.min_bytes <= reading.first_floor_bytes &&
                     reading.min_bytes <= reading.last_floor_bytes,
                 "a floor below the lowest value");
  const auto& forecast = reading.forecast;
  check_finite({forecast.limit_bytes, forecast.in_s_low, forecast.in_s_high, forecast.in_steps_low,
                forecast.in_steps_high, forecast.asymptote_bytes});
  check_ordered(forecast.in_s_low, forecast.in_s_high);
  check_ordered(forecast.in_steps_low, forecast.in_steps_high);
  for (const auto& evidence : reading.evidence) {
    check_finite({evidence.value, evidence.bar});
  }
  for (const auto& point : reading.floor) {
    check_finite({point.x, point.floor_bytes, point.ceiling_bytes, point.mean_bytes});
    TIDEMARK_CHECK(point.floor_bytes <= point.ceiling_bytes, "floor above ceiling");
  }
  if (reading.needs) {
    check_finite({reading.needs->more_s, reading.needs->more_steps, reading.needs->more_points});
  }
  if (reading.allowance_end) {
    check_finite({reading.allowance_end->t_s, reading.allowance_end->step});
  }
}

// With an explicit allowance a leak is proven by what came after it, even if it began before.
void check_allowance(const SeriesVerdict& reading, const Options& options) {
  const Pattern* leak = reading.find(PatternKind::kLeak);
  if (leak == nullptr || options.warmup.automatic() || reading.warmup_ignored) {
    return;
  }
  TIDEMARK_CHECK(reading.allowance_end, "a leak without an allowance");
  const auto& end =
      reading.axis == Axis::kSteps ? reading.allowance_end->step : reading.allowance_end->t_s;
  TIDEMARK_CHECK(end && place(leak->to, reading.axis) > *end, "a leak inside the allowance");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const Options options = options_from(bytes);
  const Series series = series_from(bytes);

  const SeriesVerdict reading = tidemark::tracker::judge(series, options);

  check_numbers(reading);
  check_patterns(reading);
  check_verdict(reading);
  check_allowance(reading, options);
  return 0;
}
