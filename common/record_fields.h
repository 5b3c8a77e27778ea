// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/records.h"

// The fields of each record, by the names that run files, JSON and CSV give them. From these lists
// come the tables of the run file with what writes and reads them, the JSON and CSV of a sample,
// the import of that CSV, and how tests print a record. A new figure of a process is one member of
// ProcessSample and one line here: all of them have it then.
namespace tidemark {

// The version of the run file's tables. A field that is added to a list says which version has it
// first, and this becomes that version; docs/run-file.md names both.
inline constexpr std::int32_t kRunSchemaVersion = 6;

struct FieldTraits {
  std::int32_t since_version = 1;  // of the run file; earlier files leave the default of the record
  int place = 0;                   // in JSON and CSV: lower ones first, else as the list has them
  bool in_output = true;           // false: in run files only
};

template <typename RecordType, typename ValueType>
struct Field {
  using Record = RecordType;
  using Value = ValueType;

  constexpr Field(std::string_view field_name, Value Record::*field_member,
                  FieldTraits field_traits = {})
      : name(field_name), member(field_member), traits(field_traits) {}

  std::string_view name;
  Value Record::*member;
  FieldTraits traits;
};

// The list of a record, in the order of the columns of its table. What ties a row to others (its
// tick, its process, its number) is not in it: schema.cpp has that.
template <typename Record>
inline constexpr auto kFields = nullptr;

template <>
inline constexpr auto kFields<RunInfo> = std::tuple{
    Field{"tool_version", &RunInfo::tool_version},
    Field{"host", &RunInfo::host},
    Field{"kernel", &RunInfo::kernel},
    Field{"command", &RunInfo::command},
    Field{"format", &RunInfo::format, {.in_output = false}},
    Field{"start_wall_ns", &RunInfo::start_wall_ns},
    Field{"physical_bytes", &RunInfo::physical_bytes},
    Field{"limit_bytes", &RunInfo::limit_bytes},
    Field{"limit_source", &RunInfo::limit_source},
    Field{"interval_s", &RunInfo::interval_s},
    Field{"time_is_steps", &RunInfo::time_is_steps, {.in_output = false}},
};

template <>
inline constexpr auto kFields<Tick> = std::tuple{
    Field{"t_s", &Tick::t_s},
    Field{"late_s", &Tick::late_s},
    Field{"step", &Tick::step},
    Field{"epoch", &Tick::epoch},
};

template <>
inline constexpr auto kFields<ProcessRecord> = std::tuple{
    Field{"key", &ProcessRecord::key},
    Field{"ppid", &ProcessRecord::ppid},
    Field{"role", &ProcessRecord::role},
    Field{"rank", &ProcessRecord::rank},
    Field{"comm", &ProcessRecord::comm},
    Field{"argv", &ProcessRecord::argv},
    Field{"born_s", &ProcessRecord::started_s},
    Field{"died_s", &ProcessRecord::exited_s},
    Field{"exit_status", &ProcessRecord::exit_status},
    Field{"age_s", &ProcessRecord::age_s, {.since_version = 4}},
};

// Sizes end in _bytes and times in _s: the import of CSV goes by that.
template <>
inline constexpr auto kFields<ProcessSample> = std::tuple{
    Field{"rss_bytes", &ProcessSample::rss_bytes},
    Field{"rss_anon_bytes", &ProcessSample::rss_anon_bytes},
    Field{"rss_file_bytes", &ProcessSample::rss_file_bytes},
    Field{"rss_shmem_bytes", &ProcessSample::rss_shmem_bytes},
    Field{"swap_bytes", &ProcessSample::swap_bytes},
    Field{"hwm_bytes", &ProcessSample::hwm_bytes},
    Field{"pss_bytes", &ProcessSample::pss_bytes},
    Field{"pss_footprint_bytes", &ProcessSample::pss_footprint_bytes},
    Field{"uss_bytes", &ProcessSample::uss_bytes},
    Field{"pss_age_s", &ProcessSample::pss_age_s},
    Field{"threads", &ProcessSample::threads, {.place = -1}},
    Field{"state", &ProcessSample::state, {.place = -2}},
};

template <>
inline constexpr auto kFields<GroupSample> = std::tuple{
    Field{"processes", &GroupSample::processes},
    Field{"rss_bytes", &GroupSample::rss_bytes},
    Field{"swap_bytes", &GroupSample::swap_bytes},
    Field{"footprint_bytes", &GroupSample::footprint_bytes},
    Field{"footprint_held", &GroupSample::footprint_held},
    Field{"pss_bytes", &GroupSample::pss_bytes},
    Field{"unreadable", &GroupSample::unreadable},
};

template <>
inline constexpr auto kFields<SystemSample> = std::tuple{
    Field{"total_bytes", &SystemSample::total_bytes},
    Field{"available_bytes", &SystemSample::available_bytes},
    Field{"swap_total_bytes", &SystemSample::swap_total_bytes},
    Field{"swap_free_bytes", &SystemSample::swap_free_bytes},
    Field{"shmem_bytes", &SystemSample::shmem_bytes},
    Field{"psi_some_avg10", &SystemSample::psi_some_avg10},
    Field{"psi_full_avg10", &SystemSample::psi_full_avg10},
    Field{"cgroup_used_bytes", &SystemSample::cgroup_used_bytes, {.place = 1}},
    Field{"cgroup_limit_bytes", &SystemSample::cgroup_limit_bytes, {.place = 1}},
    Field{"cgroup_psi_some_avg10", &SystemSample::cgroup_psi_some_avg10},
    Field{"cgroup_psi_full_avg10", &SystemSample::cgroup_psi_full_avg10},
    Field{"dev_shm_bytes", &SystemSample::dev_shm_bytes, {.place = 1}},
    Field{"dev_shm_unheld_bytes", &SystemSample::dev_shm_unheld_bytes, {.place = 2}},
    Field{"dev_shm_segments", &SystemSample::dev_shm_segments, {.place = 1}},
    Field{"cgroup_charged_bytes",
          &SystemSample::cgroup_charged_bytes,
          {.since_version = 6, .in_output = false}},
    Field{"cgroup_cache_bytes",
          &SystemSample::cgroup_cache_bytes,
          {.since_version = 6, .in_output = false}},
};

template <>
inline constexpr auto kFields<GpuSample> = std::tuple{
    Field{"gpu", &GpuSample::index},
    Field{"used_bytes", &GpuSample::used_bytes},
    Field{"total_bytes", &GpuSample::total_bytes},
};
// More of a GpuSample, in a table of its own that came later.
struct GpuState;
template <>
inline constexpr auto kFields<GpuState> = std::tuple{
    Field{"reserved_bytes", &GpuSample::reserved_bytes},
    Field{"busy_percent", &GpuSample::busy_percent},
    Field{"age_s", &GpuSample::age_s},
    Field{"is_lost", &GpuSample::is_lost},
};

template <>
inline constexpr auto kFields<GpuProcessUse> = std::tuple{
    Field{"pid", &GpuProcessUse::pid},
    Field{"used_bytes", &GpuProcessUse::used_bytes},
};

template <>
inline constexpr auto kFields<MarkerRecord> = std::tuple{
    Field{"t_s", &MarkerRecord::t_s},   Field{"key", &MarkerRecord::key},
    Field{"kind", &MarkerRecord::kind}, Field{"value", &MarkerRecord::value},
    Field{"name", &MarkerRecord::name},
};

template <>
inline constexpr auto kFields<EventRecord> = std::tuple{
    Field{"t_s", &EventRecord::t_s},     Field{"kind", &EventRecord::kind},
    Field{"key", &EventRecord::key},     Field{"detail", &EventRecord::detail},
    Field{"count", &EventRecord::count},
};

template <>
inline constexpr auto kFields<LossRecord> = std::tuple{
    Field{"t_s", &LossRecord::t_s},
    Field{"what", &LossRecord::what},
    Field{"count", &LossRecord::count},
};

template <>
inline constexpr auto kFields<ModuleRecord> = std::tuple{
    Field{"path", &ModuleRecord::path},
    Field{"build_id", &ModuleRecord::build_id},
};

template <>
inline constexpr auto kFields<FrameRecord> = std::tuple{
    Field{"kind", &FrameRecord::kind},
    Field{"module", &FrameRecord::module},
    Field{"module_offset", &FrameRecord::offset},
    Field{"function", &FrameRecord::function},
    Field{"file", &FrameRecord::file},
    Field{"line", &FrameRecord::line},
    Field{"is_inlined", &FrameRecord::is_inlined},
};

template <>
inline constexpr auto kFields<SiteRecord> = std::tuple{
    Field{"kind", &SiteRecord::kind},
    Field{"is_truncated", &SiteRecord::is_truncated},
};

template <>
inline constexpr auto kFields<SiteSample> = std::tuple{
    Field{"live_bytes", &SiteSample::live_bytes},
    Field{"live_blocks", &SiteSample::live_blocks},
    Field{"alloc_bytes", &SiteSample::alloc_bytes},
    Field{"alloc_blocks", &SiteSample::alloc_blocks},
    Field{"peak_bytes", &SiteSample::peak_bytes},
    Field{"temporary_blocks", &SiteSample::temporary_blocks},
    Field{"resident_bytes", &SiteSample::resident_bytes},
};

template <>
inline constexpr auto kFields<SiteAges::Interval> = std::tuple{
    Field{"in_steps", &SiteAges::Interval::in_steps},
    Field{"born", &SiteAges::Interval::from},
    Field{"live_bytes", &SiteAges::Interval::bytes},
};

template <>
inline constexpr auto kFields<TraceSample> = std::tuple{
    Field{"t_s", &TraceSample::t_s},
    Field{"mode", &TraceSample::mode},
    Field{"sample_every_bytes", &TraceSample::sample_every_bytes},
    Field{"sites", &TraceSample::sites},
    Field{"live_bytes", &TraceSample::live_bytes},
    Field{"live_blocks", &TraceSample::live_blocks},
    Field{"rest_bytes", &TraceSample::rest_bytes},
    Field{"rest_blocks", &TraceSample::rest_blocks},
    Field{"freed_blocks", &TraceSample::freed_blocks},
    Field{"unknown_frees", &TraceSample::unknown_frees},
    Field{"dropped_records", &TraceSample::dropped_records},
    Field{"truncated_stacks", &TraceSample::truncated_stacks},
    Field{"empty_stacks", &TraceSample::empty_stacks},
    Field{"file_bytes", &TraceSample::file_bytes},
    Field{"private_bytes", &TraceSample::private_bytes},
    Field{"has_ended", &TraceSample::has_ended},
    Field{"problem", &TraceSample::problem},
};

template <>
inline constexpr auto kFields<MemoryAccount> = std::tuple{
    Field{"t_s", &MemoryAccount::t_s},
    Field{"blocks_bytes", &MemoryAccount::blocks_bytes},
    Field{"slack_bytes", &MemoryAccount::slack_bytes},
    Field{"unhooked_bytes", &MemoryAccount::unhooked_bytes},
    Field{"tracer_bytes", &MemoryAccount::tracer_bytes},
};

template <>
inline constexpr auto kFields<UntracedProcess> = std::tuple{
    Field{"reason", &UntracedProcess::reason},
};

template <>
inline constexpr auto kFields<ShmGrowthReport> = std::tuple{
    Field{"growth_bytes", &ShmGrowthReport::grown_bytes},
    Field{"segments", &ShmGrowthReport::segments},
};

template <>
inline constexpr auto kFields<GrowingSegment> = std::tuple{
    Field{"path", &GrowingSegment::path},
    Field{"bytes", &GrowingSegment::bytes},
    Field{"growth_bytes", &GrowingSegment::grown_bytes},
    Field{"held", &GrowingSegment::held},
    Field{"maker_pid", &GrowingSegment::maker},
};

template <>
inline constexpr auto kFields<HeapLook> = std::tuple{
    Field{"t_s", &HeapLook::t_s},
    Field{"step", &HeapLook::step},
    Field{"reading", &HeapLook::reading},
    Field{"paused_s", &HeapLook::paused_s},
    Field{"took_s", &HeapLook::took_s},
    Field{"objects", &HeapLook::objects},
    Field{"heap_bytes", &HeapLook::heap_bytes},
    Field{"new_bytes", &HeapLook::new_bytes},
    Field{"gone_bytes", &HeapLook::gone_bytes},
    Field{"footprint_bytes", &HeapLook::footprint_bytes},
    Field{"copied_bytes", &HeapLook::copied_bytes},
    Field{"unread_bytes", &HeapLook::unread_bytes},
    Field{"is_partial", &HeapLook::is_partial},
    Field{"detour", &HeapLook::detour},
    Field{"problem", &HeapLook::problem},
};

template <>
inline constexpr auto kFields<InterpreterFacts> = std::tuple{
    Field{"python", &InterpreterFacts::python},
    Field{"is_free_threaded", &InterpreterFacts::is_free_threaded},
    Field{"gc_enabled", &InterpreterFacts::gc_enabled},
    Field{"gc_thresholds", &InterpreterFacts::gc_thresholds},
    Field{"gc_frozen_objects", &InterpreterFacts::gc_frozen_objects},
    Field{"torch", &InterpreterFacts::torch},
    Field{"numpy", &InterpreterFacts::numpy},
};

template <>
inline constexpr auto kFields<OwnerRecord> = std::tuple{
    Field{"kind", &OwnerRecord::kind},
    Field{"path", &OwnerRecord::path},
    Field{"type", &OwnerRecord::type},
    Field{"is_library", &OwnerRecord::is_library},
};

template <>
inline constexpr auto kFields<PathStep> = std::tuple{
    Field{"label", &PathStep::label},
    Field{"type", &PathStep::type},
};

template <>
inline constexpr auto kFields<OwnerSample> = std::tuple{
    Field{"entries", &OwnerSample::entries},
    Field{"first_entries", &OwnerSample::first_entries},
    Field{"growth_bytes", &OwnerSample::grown_bytes},
    Field{"growth_alone_bytes", &OwnerSample::grown_bytes_alone},
    Field{"retained_bytes", &OwnerSample::retained_bytes},
    Field{"reached_bytes", &OwnerSample::reached_bytes},
    Field{"shared_with", &OwnerSample::shared_with},
};

template <>
inline constexpr auto kFields<HeldObjects> = std::tuple{
    Field{"type", &HeldObjects::type},   Field{"dtype", &HeldObjects::dtype},
    Field{"shape", &HeldObjects::shape}, Field{"device", &HeldObjects::device},
    Field{"count", &HeldObjects::count}, Field{"bytes", &HeldObjects::bytes},
};

template <>
inline constexpr auto kFields<OwnerSite> = std::tuple{
    Field{"site", &OwnerSite::site},
    Field{"bytes", &OwnerSite::bytes},
};

template <>
inline constexpr auto kFields<InterventionRecord> = std::tuple{
    Field{"kind", &InterventionRecord::kind},
    Field{"outcome", &InterventionRecord::outcome},
    Field{"t_s", &InterventionRecord::t_s},
    Field{"before_bytes", &InterventionRecord::before_bytes},
    Field{"after_bytes", &InterventionRecord::after_bytes},
    Field{"effect_bytes", &InterventionRecord::effect_bytes},
    Field{"noise_bytes", &InterventionRecord::noise_bytes},
    Field{"took_s", &InterventionRecord::took_s},
    Field{"waited_s", &InterventionRecord::waited_s},
    Field{"objects", &InterventionRecord::objects},
    Field{"gpu_bytes", &InterventionRecord::gpu_bytes},
    Field{"problem", &InterventionRecord::problem},
};

template <>
inline constexpr auto kFields<TypeSample> = std::tuple{
    Field{"type", &TypeSample::type},
    Field{"count", &TypeSample::count},
    Field{"bytes", &TypeSample::bytes},
};

template <>
inline constexpr auto kFields<TensorSample> = std::tuple{
    Field{"device", &TensorSample::device},
    Field{"dtype", &TensorSample::dtype},
    Field{"shape", &TensorSample::shape},
    Field{"requires_grad", &TensorSample::requires_grad},
    Field{"is_graph", &TensorSample::is_graph},
    Field{"is_view", &TensorSample::is_view},
    Field{"is_pinned", &TensorSample::is_pinned},
    Field{"count", &TensorSample::count},
    Field{"bytes", &TensorSample::bytes},
};

template <>
inline constexpr auto kFields<MemoryLedger> = std::tuple{
    Field{"t_s", &MemoryLedger::t_s},
    Field{"took_s", &MemoryLedger::took_s},
    Field{"rss_bytes", &MemoryLedger::rss_bytes},
    Field{"footprint_bytes", &MemoryLedger::footprint_bytes},
    Field{"swap_bytes", &MemoryLedger::swap_bytes},
    Field{"moved_bytes", &MemoryLedger::moved_bytes},
    Field{"threads", &MemoryLedger::threads},
    Field{"malloc_heaps", &MemoryLedger::malloc_heaps},
    Field{"hugetlb_bytes", &MemoryLedger::hugetlb_bytes},
    Field{"traced_live_bytes", &MemoryLedger::traced_live_bytes},
    Field{"traced_slack_bytes", &MemoryLedger::traced_slack_bytes},
    Field{"traced_unhooked_bytes", &MemoryLedger::traced_unhooked_bytes},
    Field{"is_partial", &MemoryLedger::is_partial},
    Field{"problem", &MemoryLedger::problem},
};

template <>
inline constexpr auto kFields<LedgerRow> = std::tuple{
    Field{"kind", &LedgerRow::kind},
    Field{"name", &LedgerRow::name},
    Field{"count", &LedgerRow::count},
    Field{"rss_bytes", &LedgerRow::rss_bytes},
    Field{"pss_bytes", &LedgerRow::pss_bytes},
    Field{"footprint_bytes", &LedgerRow::footprint_bytes},
    Field{"pss_footprint_bytes", &LedgerRow::pss_footprint_bytes},
    Field{"swap_bytes", &LedgerRow::swap_bytes},
    Field{"huge_pages_bytes", &LedgerRow::huge_pages_bytes},
    Field{"maker_pid", &LedgerRow::maker_pid},
};

template <typename Record>
inline constexpr std::size_t kFieldCount = std::tuple_size_v<decltype(kFields<Record>)>;

// Calls visit(field) for each field, in the order of the list.
template <typename Record, typename Visit>
constexpr void visit_fields(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kFields<Record>);
}

// The positions in the list, in the order of JSON and CSV.
template <typename Record>
constexpr std::array<std::size_t, kFieldCount<Record>> output_order() {
  std::array<int, kFieldCount<Record>> places{};
  std::array<std::size_t, kFieldCount<Record>> order{};
  std::size_t count = 0;
  visit_fields<Record>([&](const auto& field) {
    std::size_t at = count;
    for (; at > 0 && places[at - 1] > field.traits.place; --at) {
      places[at] = places[at - 1];
      order[at] = order[at - 1];
    }
    places[at] = field.traits.place;
    order[at] = count++;
  });
  return order;
}

template <typename Record>
inline constexpr auto kOutputOrder = output_order<Record>();

// Calls visit(field) for each field that JSON and CSV show, in their order.
template <typename Record, typename Visit>
void visit_output_fields(Visit&& visit) {
  const auto visit_one = [&](const auto& field) {
    if (field.traits.in_output) {
      visit(field);
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit_one(std::get<kOutputOrder<Record>[I]>(kFields<Record>)), ...);
  }
  (std::make_index_sequence<kFieldCount<Record>>());
}

// The name of a value that is written as one, and back. The second argument only picks the
// function.
inline std::string_view name_of(Role kind) { return role_name(kind); }
inline std::string_view name_of(MarkerKind kind) { return marker_name(kind); }
inline std::string_view name_of(EventKind kind) { return event_name(kind); }
inline std::string_view name_of(AllocationKind kind) { return allocation_kind_name(kind); }
inline std::string_view name_of(FrameKind kind) { return frame_kind_name(kind); }
inline std::string_view name_of(TraceMode kind) { return trace_mode_name(kind); }
inline std::string_view name_of(UntracedReason kind) { return untraced_reason_name(kind); }
inline std::string_view name_of(HeapReading kind) { return heap_reading_name(kind); }
inline std::string_view name_of(OwnerKind kind) { return owner_kind_name(kind); }
inline std::string_view name_of(InterventionKind kind) { return intervention_kind_name(kind); }
inline std::string_view name_of(InterventionOutcome kind) {
  return intervention_outcome_name(kind);
}
inline std::string_view name_of(LedgerKind kind) { return ledger_kind_name(kind); }
inline std::optional<Role> from_name(std::string_view name, Role) { return role_from_name(name); }
inline std::optional<MarkerKind> from_name(std::string_view name, MarkerKind) {
  return marker_from_name(name);
}
inline std::optional<EventKind> from_name(std::string_view name, EventKind) {
  return event_from_name(name);
}
inline std::optional<AllocationKind> from_name(std::string_view name, AllocationKind) {
  return allocation_kind_from_name(name);
}
inline std::optional<FrameKind> from_name(std::string_view name, FrameKind) {
  return frame_kind_from_name(name);
}
inline std::optional<TraceMode> from_name(std::string_view name, TraceMode) {
  return trace_mode_from_name(name);
}
inline std::optional<UntracedReason> from_name(std::string_view name, UntracedReason) {
  return untraced_reason_from_name(name);
}
inline std::optional<HeapReading> from_name(std::string_view name, HeapReading) {
  return heap_reading_from_name(name);
}
inline std::optional<OwnerKind> from_name(std::string_view name, OwnerKind) {
  return owner_kind_from_name(name);
}
inline std::optional<InterventionKind> from_name(std::string_view name, InterventionKind) {
  return intervention_kind_from_name(name);
}
inline std::optional<InterventionOutcome> from_name(std::string_view name, InterventionOutcome) {
  return intervention_outcome_from_name(name);
}
inline std::optional<LedgerKind> from_name(std::string_view name, LedgerKind) {
  return ledger_kind_from_name(name);
}

}  // namespace tidemark
