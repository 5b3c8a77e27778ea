// SPDX-License-Identifier: Apache-2.0
#include "tests/support/record_text.h"

#include <optional>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::tests {
namespace {

template <typename T>
std::string show(const T& value) {
  return fmt::format("{}", value);
}
template <typename T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : "unknown";
}
std::string show(const std::string& value) { return "'" + escape_text(value) + "'"; }
std::string show(const ProcessKey& key) { return fmt::format("{}@{}", key.pid, key.start_ticks); }

// "name=value" of each pair of arguments.
template <typename... Rest>
std::string fields() {
  return "";
}
template <typename T, typename... Rest>
std::string fields(const char* name, const T& value, const Rest&... rest) {
  return fmt::format(" {}={}", name, show(value)) + fields(rest...);
}

std::string text_of(const GroupSample& sum) {
  return fields("processes", sum.processes, "rss", sum.rss_bytes, "swap", sum.swap_bytes,
                "footprint", sum.footprint_bytes, "held", sum.footprint_held, "pss", sum.pss_bytes,
                "unreadable", sum.unreadable);
}

std::string text_of(const SystemSample& s) {
  return fields("total", s.total_bytes, "available", s.available_bytes, "swap_total",
                s.swap_total_bytes, "swap_free", s.swap_free_bytes, "shmem", s.shmem_bytes,
                "psi_some", s.psi_some_avg10, "psi_full", s.psi_full_avg10, "cgroup_used",
                s.cgroup_used_bytes, "cgroup_limit", s.cgroup_limit_bytes) +
         fields("cgroup_psi_some", s.cgroup_psi_some_avg10, "cgroup_psi_full",
                s.cgroup_psi_full_avg10, "dev_shm", s.dev_shm_bytes, "dev_shm_unheld",
                s.dev_shm_unheld_bytes, "dev_shm_segments", s.dev_shm_segments);
}

std::string text_of(const GpuSample& gpu) {
  std::string text = fields("index", gpu.index, "name", gpu.name, "used", gpu.used_bytes, "total",
                            gpu.total_bytes, "reserved", gpu.reserved_bytes, "busy",
                            gpu.busy_percent, "age", gpu.age_s, "lost", gpu.is_lost);
  for (const GpuProcessUse& use : gpu.processes) {
    text += fields("pid", use.pid, "used", use.used_bytes);
  }
  return text;
}

std::string text_of(const TraceSample& t) {
  return fields("key", t.key, "t_s", t.t_s, "mode", std::string(trace_mode_name(t.mode)), "every",
                t.sample_every_bytes, "sites", t.sites, "live", t.live_bytes, "blocks",
                t.live_blocks, "rest", t.rest_bytes, "rest_blocks", t.rest_blocks) +
         fields("freed", t.freed_blocks, "unknown", t.unknown_frees, "dropped", t.dropped_records,
                "truncated", t.truncated_stacks, "empty", t.empty_stacks, "file", t.file_bytes,
                "private", t.private_bytes, "ended", t.has_ended, "problem", t.problem);
}

std::string text_of(const AllocationFacts& facts) {
  std::string text;
  for (const ModuleRecord& m : facts.modules) {
    text += "\n module" + fields("module", m.module, "path", m.path, "build_id", m.build_id);
  }
  for (const FrameRecord& f : facts.frames) {
    text += "\n frame" + fields("frame", f.frame, "kind", std::string(frame_kind_name(f.kind)),
                                "module", f.module, "offset", f.offset, "function", f.function,
                                "file", f.file, "line", f.line, "inlined", f.is_inlined);
  }
  for (const SiteRecord& s : facts.sites) {
    text +=
        "\n site" + fields("site", s.site, "key", s.key, "kind",
                           std::string(allocation_kind_name(s.kind)), "truncated", s.is_truncated);
    for (const std::uint32_t frame : s.frames) {
      text += fmt::format(" <{}>", frame);
    }
  }
  for (const SiteSample& s : facts.samples) {
    text += "\n site sample" + fields("site", s.site, "live", s.live_bytes, "blocks", s.live_blocks,
                                      "alloc", s.alloc_bytes, "allocs", s.alloc_blocks, "peak",
                                      s.peak_bytes, "temporary", s.temporary_blocks, "resident",
                                      s.resident_bytes);
  }
  for (const SiteBirths& b : facts.births) {
    text += "\n births" + fields("site", b.site);
    for (const SiteBirths::Birth& birth : b.births) {
      text += fields("in_steps", birth.in_steps, "from", birth.from, "bytes", birth.bytes);
    }
  }
  for (const TraceSample& trace : facts.traces) {
    text += "\n trace" + text_of(trace);
  }
  for (const MemoryAccount& a : facts.accounts) {
    text += "\n account" + fields("key", a.key, "t_s", a.t_s, "blocks", a.blocks_bytes, "slack",
                                  a.slack_bytes, "unhooked", a.unhooked_bytes, "tracer",
                                  a.tracer_bytes);
  }
  if (facts.shm) {
    text += "\n shm" + fields("grown", facts.shm->grown_bytes, "segments", facts.shm->segments);
    for (const GrowingSegment& s : facts.shm->largest) {
      text += "\n segment" + fields("path", s.path, "bytes", s.bytes, "grown", s.grown_bytes,
                                    "held", s.held, "maker", s.maker);
    }
  }
  return text;
}

}  // namespace

std::string text_of(const RunInfo& info) {
  return fields("tool_version", info.tool_version, "host", info.host, "kernel", info.kernel,
                "command", info.command, "format", info.format, "start_wall_ns", info.start_wall_ns,
                "physical", info.physical_bytes, "limit", info.limit_bytes) +
         fields("limit_source", info.limit_source, "interval_s", info.interval_s, "time_is_steps",
                info.time_is_steps, "ended_cleanly", info.ended_cleanly);
}

std::string text_of(const ProcessRecord& process) {
  return fields("key", process.key, "ppid", process.ppid, "role",
                std::string(role_name(process.role)), "rank", process.rank, "comm", process.comm,
                "argv", process.argv, "born_s", process.born_s, "died_s", process.died_s,
                "exit_status", process.exit_status);
}

std::string text_of(const ProcessSample& s) {
  return fields("key", s.key, "rss", s.rss_bytes, "anon", s.rss_anon_bytes, "file",
                s.rss_file_bytes, "shmem", s.rss_shmem_bytes, "swap", s.swap_bytes, "hwm",
                s.hwm_bytes, "pss", s.pss_bytes) +
         fields("pss_footprint", s.pss_footprint_bytes, "uss", s.uss_bytes, "pss_age_s",
                s.pss_age_s, "threads", s.threads, "state", s.state);
}

std::string text_of(const Tick& tick) {
  std::string text = "tick" + fields("t_s", tick.t_s, "late_s", tick.late_s, "step", tick.step,
                                     "epoch", tick.epoch);
  text += "\n tree" + text_of(tick.tree);
  for (const RoleSample& role : tick.roles) {
    text += fmt::format("\n role {}{}", role_name(role.role), text_of(role.sum));
  }
  for (const ProcessRecord& process : tick.new_processes) {
    text += "\n new" + text_of(process);
  }
  for (const ProcessSample& sample : tick.processes) {
    text += "\n sample" + text_of(sample);
  }
  if (tick.system) {
    text += "\n system" + text_of(*tick.system);
  }
  for (const GpuSample& gpu : tick.gpus) {
    text += "\n gpu" + text_of(gpu);
  }
  for (const MarkerRecord& m : tick.markers) {
    text +=
        "\n marker" + fields("t_s", m.t_s, "key", m.key, "kind", std::string(marker_name(m.kind)),
                             "value", m.value, "name", m.name);
  }
  for (const EventRecord& e : tick.events) {
    text += "\n event" + fields("t_s", e.t_s, "kind", std::string(event_name(e.kind)), "key", e.key,
                                "detail", e.detail, "count", e.count);
  }
  for (const LossRecord& loss : tick.losses) {
    text += "\n loss" + fields("t_s", loss.t_s, "what", loss.what, "count", loss.count);
  }
  return text + text_of(tick.allocations);
}

}  // namespace tidemark::tests
