// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/epoch_length.h"

#include <algorithm>

namespace tidemark::tracker {
namespace {

void keep_distance(std::vector<double>& distances, const std::optional<double>& from,
                   const std::optional<double>& to, double epochs, std::size_t most) {
  if (from && to && *to > *from && distances.size() < most) {
    distances.push_back((*to - *from) / epochs);
  }
}

}  // namespace

void EpochLength::mark(std::int64_t epoch, const Moment& at) {
  if (last_ && epoch <= *last_) {
    return;
  }
  if (last_) {
    const double epochs = static_cast<double>(epoch) - static_cast<double>(*last_);
    keep_distance(seconds_, last_at_.t_s, at.t_s, epochs, kMost);
    keep_distance(steps_, last_at_.step, at.step, epochs, kMost);
  }
  last_ = epoch;
  last_at_ = at;
}

std::optional<double> EpochLength::median(std::vector<double> distances) {
  if (distances.empty()) {
    return std::nullopt;
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace tidemark::tracker
