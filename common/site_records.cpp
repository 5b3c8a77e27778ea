// SPDX-License-Identifier: Apache-2.0
#include "common/site_records.h"

#include <array>

#include "common/enum_names.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 7> kAllocationKinds{
    "heap",        "anonymous_map", "shared_map",     "allocator_map",
    "cuda_device", "cuda_pinned",   "cuda_registered"};
constexpr std::array<std::string_view, 2> kFrameKinds{"native", "python"};
constexpr std::array<std::string_view, 3> kTraceModes{"dormant", "sampled", "exact"};

}  // namespace

std::string_view allocation_kind_name(AllocationKind kind) {
  return kAllocationKinds[static_cast<std::size_t>(kind)];
}
std::optional<AllocationKind> allocation_kind_from_name(std::string_view name) {
  return enum_from_name<AllocationKind>(kAllocationKinds, name);
}
std::string_view frame_kind_name(FrameKind kind) {
  return kFrameKinds[static_cast<std::size_t>(kind)];
}
std::optional<FrameKind> frame_kind_from_name(std::string_view name) {
  return enum_from_name<FrameKind>(kFrameKinds, name);
}
std::string_view trace_mode_name(TraceMode mode) {
  return kTraceModes[static_cast<std::size_t>(mode)];
}
std::optional<TraceMode> trace_mode_from_name(std::string_view name) {
  return enum_from_name<TraceMode>(kTraceModes, name);
}

}  // namespace tidemark
