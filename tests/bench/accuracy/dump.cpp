// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/dump.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

using tracker::SeriesVerdict;

constexpr double kMb = 1e6;

std::string optional_number(std::optional<double> value, double scale = 1.0) {
  return value ? fmt::format("{:.6g}", *value / scale) : "-";
}

std::string place(const tracker::Moment& moment) {
  return fmt::format("{} s / step {}", optional_number(moment.t_s), optional_number(moment.step));
}

void print_truth(std::string_view name, const Curve& curve) {
  const Truth& truth = curve.truth;
  const std::size_t last = curve.points.size() - 1;
  fmt::print(stderr, "truth: {}, {} points, {} {:.6g} to {:.6g}, allowance to {:.6g}\n", name,
             curve.points.size(), curve.axis == tracker::Axis::kSteps ? "steps" : "seconds",
             curve.x(0), curve.x(last), curve.allowance_end);
  fmt::print(stderr,
             "  baseline {:.1f} MB, noise sigma {:.2f} MB ({:.2f} %), correlation {:.2f}; warm-up "
             "ends at {:.6g}\n",
             curve.recipe.baseline_bytes / kMb, curve.recipe.noise.sigma_bytes / kMb,
             100.0 * curve.recipe.noise.sigma_bytes / curve.recipe.baseline_bytes,
             curve.recipe.noise.correlation, truth.warmup_end);
  fmt::print(stderr, "  wave: period {:.6g}, width {:.6g}, height {:.1f} MB\n",
             curve.recipe.wave.period, curve.recipe.wave.width,
             curve.recipe.wave.height_bytes / kMb);
  if (truth.bound.blocks > 0.0) {
    fmt::print(
        stderr,
        "  bound {:.6g} MB per unit ({} blocks of {:.6g}, floor sigma {:.2f} MB), gate {:.6g}\n",
        truth.bound.rate / kMb, truth.bound.blocks, truth.bound.block_length,
        truth.bound.sigma_bytes / kMb, truth.gate / kMb);
  }
  if (truth.leaks) {
    fmt::print(stderr, "  leaks {:.6g} MB per unit since {:.6g}: {:.1f} bounds, {:.2f} gates{}\n",
               truth.rate / kMb, truth.onset, truth.rate / truth.bound.rate,
               truth.rate / truth.gate, truth.due ? "; due" : "");
  }
  for (const Ramp& ramp : curve.recipe.ramps) {
    fmt::print(stderr, "  {} of {:.1f} MB from {:.6g} to {:.6g}\n",
               ramp.speed > 0.0 ? "saturating growth" : "growth", ramp.height_bytes / kMb,
               ramp.from, ramp.to);
  }
  for (const Jump& jump : curve.recipe.jumps) {
    fmt::print(stderr, "  jump of {:.1f} MB at {:.6g}\n", jump.height_bytes / kMb, jump.at);
  }
}

void print_reading(const SeriesVerdict& reading) {
  fmt::print(stderr, "reading: {} with {:.3f}{}; floor {:.1f} to {:.1f} MB, {} floor points\n",
             tracker::verdict_name(reading.verdict), reading.confidence,
             reading.undetermined ? ", undetermined" : "", reading.first_floor_bytes / kMb,
             reading.last_floor_bytes / kMb, reading.floor.size());
  fmt::print(stderr, "  smallest detectable: {} MB per s, {} MB per step\n",
             optional_number(reading.smallest_detectable_per_s, kMb),
             optional_number(reading.smallest_detectable_per_step, kMb));
  for (const tracker::Pattern& pattern : reading.patterns) {
    fmt::print(stderr,
               "  {} ({}) from {} to {}: growth {:.1f} MB, rate {} MB/s {} MB/step, height {:.1f} "
               "MB, count {}, period {} s {} steps\n",
               tracker::pattern_name(pattern.kind), tracker::shape_name(pattern.shape),
               place(pattern.from), place(pattern.to), pattern.growth_bytes / kMb,
               optional_number(pattern.rate.bytes_per_s, kMb),
               optional_number(pattern.rate.bytes_per_step, kMb), pattern.height_bytes / kMb,
               pattern.count, optional_number(pattern.period_s),
               optional_number(pattern.period_steps));
  }
  for (const tracker::Evidence& evidence : reading.evidence) {
    fmt::print(stderr, "  {} {:.6g} (bar {})\n", tracker::evidence_name(evidence.kind),
               evidence.value, optional_number(evidence.bar));
  }
  if (reading.needs) {
    fmt::print(stderr, "  needs {}\n", tracker::needs_text(*reading.needs));
  }
}

std::string cell(double value) { return std::isnan(value) ? "" : fmt::format("{:.6f}", value); }

}  // namespace

void dump(std::string_view name, const Curve& curve, const tracker::Options& options,
          std::size_t count) {
  count = std::min(count, curve.points.size());
  print_truth(name, curve);
  print_reading(tracker::judge(series_of(curve, count), options));
  fmt::print("t_s,step,footprint_bytes,rss_bytes,rss_file_bytes,swap_bytes\n");
  for (std::size_t i = 0; i < count; ++i) {
    const Point& point = curve.points[i];
    fmt::print("{},{},{:.0f},{:.0f},{:.0f},{:.0f}\n", cell(point.t_s), cell(point.step),
               point.footprint_bytes, point.rss_bytes, point.rss_file_bytes, point.swap_bytes);
  }
}

}  // namespace tidemark::bench
