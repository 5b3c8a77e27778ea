// SPDX-License-Identifier: Apache-2.0
#include "report/profile_model.h"

#include <algorithm>
#include <cmath>

namespace tidemark::report {

std::string_view allocation_kind_label(AllocationKind kind) {
  switch (kind) {
    case AllocationKind::kHeap:
      return "heap";
    case AllocationKind::kAnonymousMap:
      return "anonymous map";
    case AllocationKind::kSharedMap:
      return "shared map";
    case AllocationKind::kAllocatorMap:
      return "allocator map";
    case AllocationKind::kCudaDevice:
      return "CUDA device";
    case AllocationKind::kCudaPinned:
      return "CUDA pinned";
    case AllocationKind::kCudaRegistered:
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

}  // namespace tidemark::report
