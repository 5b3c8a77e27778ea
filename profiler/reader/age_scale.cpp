// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/age_scale.h"

#include <algorithm>

#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

// Where both kinds are there, the steps are what the reader wants to see.
constexpr std::size_t kSecondsBesideSteps = 8;

bool is_step(std::uint32_t epoch) { return (epoch & wire::kEpochIsStep) != 0; }
std::uint32_t number_of(std::uint32_t epoch) { return epoch & ~wire::kEpochIsStep; }

}  // namespace

void EpochRange::add(std::uint32_t epoch) {
  std::optional<Ends>& ends = is_step(epoch) ? steps_ : seconds_;
  const std::uint32_t number = number_of(epoch);
  if (!ends) {
    ends = Ends{number, number};
  }
  ends->least = std::min(ends->least, number);
  ends->most = std::max(ends->most, number);
}

AgeScale::AgeScale(const EpochRange& seen, std::uint32_t now) {
  const bool by_step = is_step(now) || seen.steps().has_value();
  const bool by_second = !is_step(now) || seen.seconds().has_value();
  if (by_second) {
    const std::uint32_t most = is_step(now) ? seen.seconds()->most : number_of(now);
    seconds_ = add_part(0, most, by_step ? kSecondsBesideSteps : kMostAgeBuckets, false);
  }
  if (by_step) {
    const std::uint32_t most = is_step(now) ? number_of(now) : seen.steps()->most;
    const std::uint32_t least = seen.steps() ? std::min(seen.steps()->least, most) : most;
    steps_ = add_part(least, most, kMostAgeBuckets - buckets_.size(), true);
  }
}

AgeScale::Part AgeScale::add_part(std::uint32_t least, std::uint32_t most, std::size_t most_buckets,
                                  bool step) {
  const std::uint64_t range = std::uint64_t{most} - least + 1;
  const std::uint64_t width = (range + most_buckets - 1) / most_buckets;
  Part part{buckets_.size(), static_cast<std::size_t>((range + width - 1) / width), least,
            static_cast<std::uint32_t>(width)};
  for (std::uint64_t first = least; first <= most; first += width) {
    const std::uint64_t last = std::min<std::uint64_t>(first + width - 1, most);
    buckets_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), step});
  }
  return part;
}

std::size_t AgeScale::bucket_of(std::uint32_t epoch) const {
  const Part& own = is_step(epoch) ? steps_ : seconds_;
  if (own.buckets == 0) {  // a block that came after the range was taken
    return buckets_.size() - 1;
  }
  const std::uint32_t number = std::max(number_of(epoch), own.least);
  const std::size_t bucket = (number - own.least) / own.width;
  return own.first_bucket + std::min(bucket, own.buckets - 1);
}

}  // namespace tidemark::reader
