// SPDX-License-Identifier: Apache-2.0
#include "common/records.h"

#include <array>

#include "common/enum_names.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 9> kEventNames{
    "spawn", "exit", "exec", "oom_kill", "gap", "warn_growth", "reparent", "mark", "guard"};
constexpr std::array<std::string_view, 4> kMarkerNames{"step", "epoch", "phase_begin", "phase_end"};

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

}  // namespace tidemark
