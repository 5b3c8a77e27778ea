// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/confidence.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace tidemark::tracker {
namespace {

// The share of right verdicts among generated curves of seed 1, by how far the deciding figure was
// beyond its bar. Between two entries the value is interpolated.
struct Entry {
  double margin;
  double right;
};

template <std::size_t kCount>
double look_up(const std::array<Entry, kCount>& table, double margin) {
  if (margin <= table.front().margin) {
    return table.front().right;
  }
  for (std::size_t i = 1; i < kCount; ++i) {
    if (margin <= table[i].margin) {
      const double share = (margin - table[i - 1].margin) / (table[i].margin - table[i - 1].margin);
      return table[i - 1].right + share * (table[i].right - table[i - 1].right);
    }
  }
  return table.back().right;
}

// Slope in units of its bar.
constexpr std::array<Entry, 4> kLeak{{{1.0, 0.93}, {1.5, 0.96}, {2.5, 0.98}, {4.0, 0.99}}};
// Height in units of its bar. Small excursions are often noise.
constexpr std::array<Entry, 4> kSpikes{{{1.0, 0.45}, {1.4, 0.6}, {1.8, 0.93}, {2.5, 0.98}}};
// Points.
constexpr std::array<Entry, 4> kQuiet{{{6.0, 0.85}, {30.0, 0.95}, {100.0, 0.98}, {400.0, 0.99}}};
constexpr double kManySpikes = 6;
constexpr double kRegularSpikes = 0.95;
constexpr double kUndecided = 0.5;

std::optional<Evidence> find(const Reading& reading, EvidenceKind kind) {
  const auto it = std::find_if(reading.evidence.begin(), reading.evidence.end(),
                               [&](const Evidence& evidence) { return evidence.kind == kind; });
  return it == reading.evidence.end() ? std::nullopt : std::optional(*it);
}

double of_spikes(const Reading& reading) {
  const auto height = find(reading, EvidenceKind::kSpikeHeight);
  const double margin =
      height && height->bar.value_or(0.0) > 0.0 ? height->value / *height->bar : 1.0;
  const double right = look_up(kSpikes, margin);
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  const bool regular = spikes != nullptr && (spikes->period_s || spikes->period_steps) &&
                       static_cast<double>(spikes->count) >= kManySpikes;
  return regular ? std::max(right, kRegularSpikes) : right;
}

}  // namespace

double confidence_of(const Reading& reading, const GrowthTest& growth) {
  if (reading.undetermined) {
    return kUndecided;
  }
  const double quiet = look_up(kQuiet, static_cast<double>(reading.samples));
  switch (reading.verdict) {
    case Verdict::kLeak: {
      const bool by_slope = growth.shape != LeakShape::kSteps && growth.error > 0.0;
      return look_up(kLeak, by_slope ? growth.slope / growth.error / growth.bar : 1.5);
    }
    case Verdict::kSpikes:
      return std::min(quiet, of_spikes(reading));
    case Verdict::kStable:
    case Verdict::kWarmup:
    case Verdict::kGrowing:
      return quiet;
  }
  return kUndecided;
}

}  // namespace tidemark::tracker
