// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/profile_model.h"

#include <algorithm>
#include <cmath>

namespace tidemark::reader {

const char* site_kind_name(wire::SiteKind kind) {
  switch (kind) {
    case wire::SiteKind::kHeap:
      return "heap";
    case wire::SiteKind::kAnonymousMap:
      return "anonymous map";
    case wire::SiteKind::kSharedMap:
      return "shared map";
    case wire::SiteKind::kAllocatorMap:
      return "allocator map";
    case wire::SiteKind::kCudaDevice:
      return "CUDA device";
    case wire::SiteKind::kCudaPinned:
      return "CUDA pinned";
    case wire::SiteKind::kCudaRegistered:
      return "CUDA registered";
  }
  return "unknown";
}

std::uint64_t measure_of(const ProfileSite& site, ProfileMeasure measure) {
  double value = 0.0;
  switch (measure) {
    case ProfileMeasure::kLiveBytes:
      value = site.live_bytes;
      break;
    case ProfileMeasure::kLiveBlocks:
      value = site.live_blocks;
      break;
    case ProfileMeasure::kGrowthBytes:
      value = site.growth_bytes;
      break;
    case ProfileMeasure::kAllocBytes:
      value = site.alloc_bytes;
      break;
    case ProfileMeasure::kAllocBlocks:
      value = site.alloc_blocks;
      break;
  }
  constexpr double kMost = 9.0e18;  // fits into 63 bits, which is what the formats have
  return value > 0.0 ? static_cast<std::uint64_t>(std::llround(std::min(value, kMost))) : 0;
}

}  // namespace tidemark::reader
