// SPDX-License-Identifier: Apache-2.0
#include "cli/tick_json.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tidemark::cli {
namespace {

void append_group(JsonWriter& json, std::string_view count_name, const GroupSample& sum,
                  bool footprint_is_known) {
  json.begin_object();
  json.field(count_name, sum.processes);
  json.field("rss_bytes", sum.rss_bytes);
  json.field("footprint_bytes",
             footprint_is_known ? std::optional(sum.footprint_bytes) : std::nullopt);
  json.field("footprint_held", sum.footprint_held);
  json.field("pss_bytes", sum.pss_bytes);
  json.field("swap_bytes", sum.swap_bytes);
  json.field("unreadable", sum.unreadable);
  json.end_object();
}

void append_process(JsonWriter& json, const ProcessSample& sample, const ProcessRecord* record) {
  json.begin_object();
  json.field("pid", sample.key.pid);
  json.field("start_ticks", sample.key.start_ticks);
  if (record != nullptr) {
    json.field("ppid", record->ppid);
    json.field("role", role_name(record->role));
    json.field("rank", record->rank);
    json.field("comm", record->comm);
  } else {
    json.field("ppid", nullptr).field("role", nullptr).field("rank", nullptr);
    json.field("comm", nullptr);
  }
  json.field("rss_bytes", sample.rss_bytes);
  json.field("rss_anon_bytes", sample.rss_anon_bytes);
  json.field("rss_file_bytes", sample.rss_file_bytes);
  json.field("rss_shmem_bytes", sample.rss_shmem_bytes);
  json.field("swap_bytes", sample.swap_bytes);
  json.field("footprint_bytes", sample.footprint_bytes());
  json.field("hwm_bytes", sample.hwm_bytes);
  json.field("pss_bytes", sample.pss_bytes);
  json.field("pss_footprint_bytes", sample.pss_footprint_bytes);
  json.field("uss_bytes", sample.uss_bytes);
  json.field("pss_age_s", sample.pss_age_s);
  json.field("threads", sample.threads);
  json.field("state", std::string_view(&sample.state, 1));
  json.end_object();
}

void append_system(JsonWriter& json, const std::optional<SystemSample>& system) {
  json.key("system");
  if (!system) {
    json.value(nullptr);
    return;
  }
  json.begin_object();
  json.field("total_bytes", system->total_bytes);
  json.field("available_bytes", system->available_bytes);
  json.field("swap_total_bytes", system->swap_total_bytes);
  json.field("swap_free_bytes", system->swap_free_bytes);
  json.field("shmem_bytes", system->shmem_bytes);
  json.field("psi_some_avg10", system->psi_some_avg10);
  json.field("psi_full_avg10", system->psi_full_avg10);
  json.field("cgroup_used_bytes", system->cgroup_used_bytes);
  json.field("cgroup_limit_bytes", system->cgroup_limit_bytes);
  json.field("cgroup_psi_some_avg10", system->cgroup_psi_some_avg10);
  json.field("cgroup_psi_full_avg10", system->cgroup_psi_full_avg10);
  json.field("dev_shm_bytes", system->dev_shm_bytes);
  json.field("dev_shm_unheld_bytes", system->dev_shm_unheld_bytes);
  json.field("dev_shm_segments", system->dev_shm_segments);
  json.end_object();
}

void append_gpus(JsonWriter& json, const std::vector<GpuSample>& gpus) {
  json.key("gpus").begin_array();
  for (const GpuSample& gpu : gpus) {
    json.begin_object();
    json.field("index", gpu.index);
    json.field("name", gpu.name);
    json.field("used_bytes", gpu.used_bytes);
    json.field("total_bytes", gpu.total_bytes);
    json.key("processes").begin_array();
    for (const GpuProcessUse& use : gpu.processes) {
      json.begin_object();
      json.field("pid", use.pid);
      json.field("used_bytes", use.used_bytes);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void append_markers(JsonWriter& json, const std::vector<MarkerRecord>& markers) {
  json.key("markers").begin_array();
  for (const MarkerRecord& marker : markers) {
    const bool is_phase =
        marker.kind == MarkerKind::kPhaseBegin || marker.kind == MarkerKind::kPhaseEnd;
    json.begin_object();
    json.field("t_s", marker.t_s);
    json.field("marker", marker_name(marker.kind));
    json.field("pid", marker.key.pid);
    if (is_phase) {
      json.field("name", marker.name);
    } else {
      json.field("value", marker.value);
    }
    json.end_object();
  }
  json.end_array();
}

void append_losses(JsonWriter& json, const std::vector<LossRecord>& losses) {
  json.key("losses").begin_array();
  for (const LossRecord& loss : losses) {
    json.begin_object().field("what", loss.what).field("count", loss.count).end_object();
  }
  json.end_array();
}

}  // namespace

bool has_footprint(const Tick& tick) {
  return tick.processes.empty() ||
         std::any_of(tick.processes.begin(), tick.processes.end(),
                     [](const auto& sample) { return sample.footprint_bytes().has_value(); });
}

void append_tick_json(JsonWriter& json, const Tick& tick, const ProcessLookup& lookup,
                      bool time_is_steps) {
  const bool footprint_is_known = has_footprint(tick);
  json.begin_object();
  json.field("schema", kJsonSchema);
  json.field("kind", "tick");
  json.field("t_s", time_is_steps ? std::nullopt : std::optional(tick.t_s));
  json.field("late_s", tick.late_s);
  json.field("step", tick.step);
  json.field("epoch", tick.epoch);
  json.key("tree");
  append_group(json, "processes", tick.tree, footprint_is_known);
  json.key("roles").begin_object();
  for (const RoleSample& role : tick.roles) {
    json.key(role_name(role.role));
    append_group(json, "count", role.sum, footprint_is_known);
  }
  json.end_object();
  json.key("processes").begin_array();
  for (const ProcessSample& sample : tick.processes) {
    append_process(json, sample, lookup(sample.key));
  }
  json.end_array();
  append_system(json, tick.system);
  append_gpus(json, tick.gpus);
  append_markers(json, tick.markers);
  append_losses(json, tick.losses);
  json.end_object();
}

void append_event_json(JsonWriter& json, const EventRecord& event) {
  json.begin_object();
  json.field("schema", kJsonSchema);
  json.field("kind", "event");
  json.field("t_s", event.t_s);
  json.field("event", event_name(event.kind));
  json.field("pid", event.key.pid == 0 ? std::nullopt : std::optional(event.key.pid));
  json.field("start_ticks",
             event.key.pid == 0 ? std::nullopt : std::optional(event.key.start_ticks));
  json.field("detail", event.detail);
  json.end_object();
}

}  // namespace tidemark::cli
