// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/gpu_growth.h"

#include <cmath>

#include "tracker/curve/curve_levels.h"
#include "tracker/run/judged_tracks.h"

namespace tidemark::tracker {
namespace {

Moment moment_of(const Cell& cell) {
  const auto known = [](double value) {
    return std::isnan(value) ? std::nullopt : std::optional(value);
  };
  return {known(cell.t_s), known(cell.step)};
}

}  // namespace

std::optional<GpuGrowth> find_gpu_growth(const RunTracks& run, const JudgedTracks& judged) {
  const JudgedTrack* const whole = judged.tree(run);
  if (whole == nullptr) {
    return std::nullopt;
  }
  const Track& tree = run.tracks[whole->reading.track];
  GpuGrowth growth;
  growth.counts_all_users = tree.of(Metric::kGpu).empty();
  const Series& driver = tree.of(growth.counts_all_users ? Metric::kGpuDevice : Metric::kGpu);
  const Series& reserved = tree.of(Metric::kTorchReserved);
  if (driver.empty() || reserved.empty()) {
    return std::nullopt;
  }
  // Since the growth began that was found on this curve; else since both are known.
  const Cell& first_both = place_of(driver.cells().front()) > place_of(reserved.cells().front())
                               ? driver.cells().front()
                               : reserved.cells().front();
  Window window{place_of(first_both), place_of(driver.cells().back())};
  growth.since = moment_of(first_both);
  const bool is_judged = is_gpu(whole->curve.metric);
  const Reading& reading = whole->reading.reading;
  for (const PatternKind kind : {PatternKind::kLeak, PatternKind::kGrowth}) {
    const Pattern* const pattern = is_judged ? reading.find(kind) : nullptr;
    const double from = pattern == nullptr
                            ? window.from
                            : pattern->from.t_s.value_or(pattern->from.step.value_or(window.from));
    if (from > window.from) {
      window.from = from;
      growth.since = pattern->from;
      break;
    }
  }
  const auto by_driver = growth_in(driver, window);
  const auto by_torch = growth_in(reserved, window);
  if (!by_driver || !by_torch) {
    return std::nullopt;
  }
  growth.driver_bytes = *by_driver;
  growth.torch_reserved_bytes = *by_torch;
  growth.torch_allocated_bytes = growth_in(tree.of(Metric::kTorchAllocated), window);
  return growth;
}

}  // namespace tidemark::tracker
