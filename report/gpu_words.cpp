// SPDX-License-Identifier: Apache-2.0
#include "report/gpu_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/track_words.h"

namespace tidemark::report {
namespace {

constexpr double kWorthAWord = 1024.0 * 1024.0;

}  // namespace

std::string curve_text(tracker::Metric metric, const tracker::Track& track) {
  if (metric == tracker::Metric::kGpuDevice) {
    return "GPU memory of all users (the driver does not tell whose it is)";
  }
  return fmt::format("{} of {}",
                     metric == tracker::Metric::kGpu ? "GPU memory" : metric_name(metric),
                     who_text(track));
}

std::string gpu_growth_text(const tracker::GpuGrowth& growth, tracker::Axis axis) {
  const std::string since = " since " + place_text(growth.since, axis);
  const auto share = growth.explained_share();
  if (!share || growth.driver_bytes < kWorthAWord) {
    return fmt::format("GPU memory {}{}, torch's allocator holds {}",
                       change_text(growth.driver_bytes), since,
                       change_text(growth.torch_reserved_bytes));
  }
  std::string text = fmt::format(
      "GPU memory grew by {}{}, torch's allocator explains {} ({})", size_text(growth.driver_bytes),
      since, size_text(growth.torch_reserved_bytes), percent_text(std::clamp(*share, 0.0, 1.0)));
  const double cached = growth.torch_reserved_bytes -
                        growth.torch_allocated_bytes.value_or(growth.torch_reserved_bytes);
  if (*share < 0.5) {
    text += ": most of it was allocated beside torch, by another library or the driver itself";
  } else if (cached > 0.5 * growth.torch_reserved_bytes) {
    text += fmt::format("; tensors {}: the allocator keeps what is free, in pieces that do not fit",
                        change_text(*growth.torch_allocated_bytes));
  }
  return text;
}

}  // namespace tidemark::report
