// SPDX-License-Identifier: Apache-2.0
#include "common/records.h"

#include <algorithm>
#include <string_view>

#include <array>

#include <fmt/format.h>

#include "common/enum_names.h"
#include "common/text.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, kRoleCount> kRoleNames{"other",
                                                              "trainer",
                                                              "rank",
                                                              "compile_worker",
                                                              "dataloader_worker",
                                                              "wrapper",
                                                              "launcher",
                                                              "resource_tracker",
                                                              "shm_manager",
                                                              "forkserver",
                                                              "ray",
                                                              "inference"};

constexpr std::array<std::string_view, 11> kEventNames{
    "spawn",    "exit", "exec",     "oom_kill", "gap",    "warn_growth",
    "reparent", "mark", "gpu_lost", "guard",    "refused"};
constexpr std::array<std::string_view, 5> kMarkerNames{"step", "epoch", "phase_begin", "phase_end",
                                                       "gauge"};
constexpr std::array<std::string_view, 23> kLossNames{"pss_denied",
                                                      "pss_unreadable",
                                                      "pss_too_large",
                                                      "split_unknown",
                                                      "status_unreadable",
                                                      "process_table_unreadable",
                                                      "markers_lost",
                                                      "marker_files_unreadable",
                                                      "steps_lost",
                                                      "step_lines_lost",
                                                      "lines_dropped",
                                                      "ticks_dropped",
                                                      "facts_dropped",
                                                      "bad_lines",
                                                      "gpu_unreadable",
                                                      "gpu_queries_failed",
                                                      "gpu_late",
                                                      "gpu_processes_unmapped",
                                                      "processes_untracked",
                                                      "samples_dropped",
                                                      "events_dropped",
                                                      "trace_files_unreadable",
                                                      "trace_looks_damaged"};
static_assert(kLossNames.size() == static_cast<std::size_t>(LossKind::kTraceLooksDamaged) + 1);

constexpr std::array<std::string_view, 7> kAllocationKinds{
    "heap",        "anonymous_map", "shared_map",     "allocator_map",
    "cuda_device", "cuda_pinned",   "cuda_registered"};
constexpr std::array<std::string_view, 3> kFrameKinds{"native", "python", "thread_start"};
constexpr std::array<std::string_view, 3> kTraceModes{"dormant", "sampled", "exact"};
constexpr std::array<std::string_view, 9> kUntracedReasons{
    "unknown",    "not_followed", "static",       "other_libc",  "other_architecture",
    "privileges", "other_user",   "out_of_reach", "no_variables"};
static_assert(kUntracedReasons.size() ==
              static_cast<std::size_t>(UntracedReason::kNoVariables) + 1);
constexpr std::array<std::string_view, 3> kHeapReadings{"running", "stopped", "frozen"};
static_assert(kHeapReadings.size() == static_cast<std::size_t>(HeapReading::kFrozen) + 1);
constexpr std::array<std::string_view, 6> kOwnerKinds{"container", "variable",    "name",
                                                      "garbage",   "native_hold", "native"};
static_assert(kOwnerKinds.size() == static_cast<std::size_t>(OwnerKind::kNative) + 1);
constexpr std::array<std::string_view, kInterventionKindCount> kInterventionKinds{
    "trim", "jemalloc", "tcmalloc", "mimalloc", "gc", "cuda", "mapped_files", "page_cache"};
static_assert(kInterventionKinds.size() ==
              static_cast<std::size_t>(InterventionKind::kPageCache) + 1);
constexpr std::array<std::string_view, 3> kInterventionOutcomes{"ruled_out", "confirmed",
                                                                "cannot_tell"};
static_assert(kInterventionOutcomes.size() ==
              static_cast<std::size_t>(InterventionOutcome::kCannotTell) + 1);

}  // namespace

std::string_view role_name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

std::optional<Role> role_from_name(std::string_view name) {
  if (name == "main") {
    return Role::kTrainer;
  }
  return enum_from_name<Role>(kRoleNames, name);
}

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

std::string_view loss_name(LossKind kind) { return kLossNames[static_cast<std::size_t>(kind)]; }
std::span<const std::string_view> loss_names() { return kLossNames; }

LossName::LossName(std::string_view name) : kind_(enum_from_name<LossKind>(kLossNames, name)) {
  if (!kind_) {
    other_ = name;
  }
}

std::string gpu_label(std::uint32_t index) {
  return index < kMigIndexBase
             ? fmt::format("gpu{}", index)
             : fmt::format("gpu{}.{}", index / kMigIndexBase - 1, index % kMigIndexBase);
}

namespace {

void bound(std::string& name) {
  constexpr std::string_view kMore = "...";
  if (name.size() > kMostNameBytes) {
    name.resize(kMostNameBytes - kMore.size());
    name += kMore;
    name.shrink_to_fit();
  }
}

}  // namespace

void bound_names(FrameRecord& frame) {
  bound(frame.function);
  bound(frame.file);
}
void bound_names(ModuleRecord& module) {
  bound(module.path);
  bound(module.build_id);
}

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
std::string_view untraced_reason_name(UntracedReason reason) {
  return kUntracedReasons[static_cast<std::size_t>(reason)];
}
std::optional<UntracedReason> untraced_reason_from_name(std::string_view name) {
  return enum_from_name<UntracedReason>(kUntracedReasons, name);
}
std::string_view heap_reading_name(HeapReading reading) {
  return kHeapReadings[static_cast<std::size_t>(reading)];
}
std::optional<HeapReading> heap_reading_from_name(std::string_view name) {
  return enum_from_name<HeapReading>(kHeapReadings, name);
}
std::string_view owner_kind_name(OwnerKind kind) {
  return kOwnerKinds[static_cast<std::size_t>(kind)];
}
std::optional<OwnerKind> owner_kind_from_name(std::string_view name) {
  return enum_from_name<OwnerKind>(kOwnerKinds, name);
}
std::string_view intervention_kind_name(InterventionKind kind) {
  return kInterventionKinds[static_cast<std::size_t>(kind)];
}
std::optional<InterventionKind> intervention_kind_from_name(std::string_view name) {
  return enum_from_name<InterventionKind>(kInterventionKinds, name);
}
std::string_view intervention_outcome_name(InterventionOutcome outcome) {
  return kInterventionOutcomes[static_cast<std::size_t>(outcome)];
}
std::optional<InterventionOutcome> intervention_outcome_from_name(std::string_view name) {
  return enum_from_name<InterventionOutcome>(kInterventionOutcomes, name);
}

namespace {

constexpr std::size_t kLongestComm = 15;

std::string_view take_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

// Options of the interpreter that take a value of their own.
bool takes_value(std::string_view option) { return option == "-X" || option == "-W"; }

// The script or module of a command line without its interpreter; "": it has none.
std::string_view python_program(std::string_view rest) {
  while (!rest.empty()) {
    const std::string_view word = take_word(rest);
    if (word == "-m") {
      return take_word(rest);
    }
    if (word == "-c" || word == "-") {
      return {};
    }
    if (!word.starts_with('-')) {
      return basename_of(word);
    }
    if (takes_value(word)) {
      take_word(rest);
    }
  }
  return {};
}

}  // namespace

std::string ProcessRecord::program() const {
  std::string_view rest = argv;
  const std::string_view name = basename_of(take_word(rest));
  if (name.starts_with("python")) {
    const std::string_view script = python_program(rest);
    return script.empty() ? comm : std::string(script);
  }
  const bool is_cut_off = comm.size() == kLongestComm && name.starts_with(comm);
  return is_cut_off ? std::string(name) : comm;
}

}  // namespace tidemark
