// SPDX-License-Identifier: Apache-2.0
#include "common/records.h"

#include <array>

#include <fmt/format.h>

#include "common/enum_names.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 10> kEventNames{
    "spawn",       "exit",     "exec", "oom_kill", "gap",
    "warn_growth", "reparent", "mark", "gpu_lost", "guard"};
constexpr std::array<std::string_view, 5> kMarkerNames{"step", "epoch", "phase_begin", "phase_end",
                                                       "gauge"};

}  // namespace

std::string_view event_name(EventKind kind) { return kEventNames[static_cast<std::size_t>(kind)]; }
std::optional<EventKind> event_from_name(std::string_view name) {
  return enum_from_name<EventKind>(kEventNames, name);
}
std::string_view marker_name(MarkerKind kind) {
  return kMarkerNames[static_cast<std::size_t>(kind)];
}
std::optional<MarkerKind> marker_from_name(std::string_view name) {
  return enum_from_name<MarkerKind>(kMarkerNames, name);
}

std::string gpu_label(std::uint32_t index) {
  return index < kMigIndexBase
             ? fmt::format("gpu{}", index)
             : fmt::format("gpu{}.{}", index / kMigIndexBase - 1, index % kMigIndexBase);
}

}  // namespace tidemark
