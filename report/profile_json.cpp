// SPDX-License-Identifier: Apache-2.0
#include "report/profile_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "common/json_writer.h"
#include "common/text.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::report {
namespace {

using tracker::HeldMemory;
using tracker::MemoryParts;
using tracker::ProcessGrowth;
using tracker::RankedLine;
using tracker::RankedSite;
using tracker::TracedProcess;
using tracker::UntracedGrowth;

std::optional<std::int64_t> whole(const std::optional<double>& bytes) {
  return bytes && std::isfinite(*bytes) ? std::optional<std::int64_t>(std::llround(*bytes))
                                        : std::nullopt;
}

void add_parts(JsonWriter& json, const MemoryParts& parts) {
  json.field("footprint_bytes", whole(parts.footprint))
      .field("sites_bytes", whole(parts.sites))
      .field("slack_bytes", whole(parts.slack))
      .field("unhooked_bytes", whole(parts.unhooked))
      .field("shared_bytes", whole(parts.shared))
      .field("file_bytes", whole(parts.file));
}

void add_process(JsonWriter& json, const TracedProcess& process, const ProcessGrowth& growth) {
  const TraceSample& last = process.last;
  json.begin_object()
      .field("pid", process.key.pid)
      .field("start_ticks", process.key.start_ticks)
      .field("role", role_name(process.role));
  if (process.rank) {
    json.field("rank", *process.rank);
  }
  json.field("comm", process.comm)
      .field("mode", trace_mode_name(last.mode))
      .field("sample_every_bytes", last.sample_every_bytes)
      .field("from_s", process.first_sample_s)
      .field("to_s", process.last_sample_s)
      .field("sites", last.sites)
      .field("live_bytes", last.live_bytes)
      .field("rest_bytes", last.rest_bytes);
  json.key("growth").begin_object().field("from_s", growth.from_s).field("to_s", growth.to_s);
  add_parts(json, growth.growth);
  json.end_object();
  json.key("now").begin_object();
  add_parts(json, growth.now);
  json.field("account_age_s", growth.account_age_s).end_object();
  json.text_field("problem", last.problem);
  json.end_object();
}

void add_untraced(JsonWriter& json, const UntracedGrowth& growth) {
  const tracker::UntracedTrack& track = *growth.track;
  json.begin_object()
      .field("pid", track.key.pid)
      .field("start_ticks", track.key.start_ticks)
      .field("role", role_name(track.label.role));
  if (track.label.rank) {
    json.field("rank", *track.label.rank);
  }
  json.field("comm", track.label.comm)
      .field("reason", untraced_reason_name(track.reason))
      .field("from_s", growth.from_s)
      .field("to_s", growth.to_s)
      .field("growth_bytes", whole(growth.growth_bytes))
      .field("keeps_growing", growth.keeps_growing)
      .field("footprint_bytes", whole(growth.footprint_bytes))
      .end_object();
}

void add_target(JsonWriter& json, const ProfileReport& report) {
  json.key("target").begin_object();
  json.text_field("command", report.command);
  // Those that grew most come first; compilers by the thousand are only counted.
  constexpr std::size_t kMostProcesses = 100;
  json.field("traced", report.run->traced_processes()).key("processes").begin_array();
  const std::size_t most = std::min(kMostProcesses, report.ranking.processes.size());
  for (std::size_t i = 0; i < most; ++i) {
    const ProcessGrowth& growth = report.ranking.processes[i];
    add_process(json, report.run->processes[growth.process], growth);
  }
  json.end_array();
  json.array("untraced",
             std::span(report.untraced).first(std::min(kMostProcesses, report.untraced.size())),
             [&](const UntracedGrowth& growth) { add_untraced(json, growth); });
  json.end_object();
}

void add_frames(JsonWriter& json, const ProfileReport& report, const RankedSite& site) {
  json.key("frames").begin_array();
  for (const tracker::ShownFrame& shown : tracker::frames_of(*report.run, site.frames)) {
    const FrameRecord& frame = *shown.frame;
    json.begin_object()
        .field("kind", frame_kind_name(frame.kind))
        .field("function", frame.function);
    json.text_field("file", frame.file);
    json.field("line", frame.line);
    json.text_field("module", shown.module);
    json.field("offset", frame.offset).field("inlined", frame.is_inlined).end_object();
  }
  json.end_array();
}

void add_ages(JsonWriter& json, const HeldMemory& held) {
  json.array("births", held.ages, [&](const SiteAges::Interval& interval) {
    json.begin_object()
        .field(interval.in_steps ? "from_step" : "from_s", interval.from)
        .field("live_bytes", interval.bytes)
        .end_object();
  });
}

// What a line and a site have in common.
void add_held(JsonWriter& json, const HeldMemory& held) {
  json.field("verdict", verdict_name(held.verdict)).field("undetermined", held.undetermined);
  json.text_field("needs", held.needs ? needs_text(*held.needs) : "");
  json.field("growth_bytes_per_s", held.growth_bytes_per_s)
      .field("growth_bytes_per_step", held.growth_bytes_per_step)
      .field("growth_bytes", whole(held.growth_bytes))
      .field("since_s", held.since.t_s)
      .field("since_step", held.since.step)
      .field("share_of_growth", held.share_of_growth)
      .field("live_bytes", held.live_bytes)
      .field("live_blocks", held.live_blocks)
      .field("resident_bytes", held.resident_bytes)
      .field("peak_bytes", held.peak_bytes)
      .field("alloc_bytes", held.alloc_bytes)
      .field("alloc_blocks", held.alloc_blocks)
      .field("temporary_blocks", held.temporary_blocks)
      .field("kind", allocation_kind_name(held.kind))
      .field("role", role_name(held.role));
  json.array("pids", held.processes, [&](const ProcessKey& key) { json.value(key.pid); });
  add_ages(json, held);
}

void add_line(JsonWriter& json, const ProfileReport& report, const RankedLine& line,
              std::size_t rank, bool has_one_line) {
  json.begin_object().field("rank", rank);
  const tracker::ShownStack stack =
      tracker::shown_stack(*report.run, report.ranking.sites[line.sites.front()]);
  const auto place = tracker::find_line(stack, line.name);
  const tracker::ShownFrame* own = place ? &stack.frames[*place] : nullptr;
  json.text_field("function", own != nullptr ? own->frame->function : "");
  json.text_field("file", own != nullptr ? own->frame->file : "");
  json.field("line", own != nullptr && has_one_line ? own->frame->line : std::nullopt);
  json.text_field("module", own != nullptr ? own->module : "");
  json.field("language", frame_kind_name(own != nullptr ? own->frame->kind : FrameKind::kNative))
      .field("own", own != nullptr && stack.own_line.has_value() &&
                        (own->is_own || place == stack.own_line));
  json.text_field("call", place ? tracker::call_text(stack, *place) : "")
      .field("python_arena", stack.is_python_arena);
  add_held(json, line);
  json.array("sites", line.sites, [&](std::size_t site) { json.value(site + 1); }).end_object();
}

void add_site(JsonWriter& json, const ProfileReport& report, const RankedSite& site,
              std::size_t rank) {
  json.begin_object().field("rank", rank);
  add_held(json, site);
  json.field("truncated", site.is_truncated);
  add_frames(json, report, site);
  json.end_object();
}

// The first lines, functions and native functions, and all call stacks through them; beside those
// the first stacks.
void add_lines_and_sites(JsonWriter& json, const ProfileReport& report) {
  const tracker::SiteRanking& ranking = report.ranking;
  std::vector<bool> is_shown(ranking.sites.size());
  std::fill_n(is_shown.begin(), std::min(report.top, is_shown.size()), true);
  const auto add_group = [&](const char* name, const std::vector<RankedLine>& lines) {
    json.key(name).begin_array();
    for (std::size_t i = 0; i < std::min(report.top, lines.size()); ++i) {
      add_line(json, report, lines[i], i + 1, &lines != &ranking.functions);
      for (const std::size_t site : lines[i].sites) {
        is_shown[site] = true;
      }
    }
    json.end_array();
  };
  add_group("lines", ranking.lines);
  add_group("functions", ranking.functions);
  add_group("natives", ranking.natives);
  json.key("sites").begin_array();
  for (std::size_t i = 0; i < ranking.sites.size(); ++i) {
    if (is_shown[i]) {
      add_site(json, report, ranking.sites[i], i + 1);
    }
  }
  json.end_array();
}

void add_shm(JsonWriter& json, const ShmGrowthReport& shm) {
  json.key("shm")
      .begin_object()
      .field("growth_bytes", shm.grown_bytes)
      .field("segments", shm.segments)
      .array("largest", shm.largest,
             [&](const GrowingSegment& segment) {
               json.begin_object()
                   .field("path", segment.path)
                   .field("bytes", segment.bytes)
                   .field("growth_bytes", segment.grown_bytes)
                   .field("held", segment.held)
                   .end_object();
             })
      .end_object();
}

void add_coverage(JsonWriter& json, const ProfileReport& report) {
  const ProfileCoverage& coverage = report.coverage;
  const auto lost = lost_records(report);
  json.key("coverage")
      .begin_object()
      .field("frees_known_share", coverage.frees_known_share)
      .field("rss_explained_share", coverage.rss_explained_share)
      .field("growth_explained_share", coverage.growth_explained_share)
      .field("dropped_records", coverage.dropped_records)
      .field("lost_share", lost ? std::optional(lost->share) : std::nullopt)
      .field("truncated_stacks", coverage.truncated_stacks)
      .field("empty_stacks", coverage.empty_stacks)
      .field("sites", coverage.sites)
      .field("rest_bytes", coverage.rest_bytes)
      .field("tracer_bytes", coverage.tracer_bytes)
      .field("tracer_sum_bytes", coverage.tracer_sum_bytes)
      .array("problems", coverage.problems)
      .end_object();
}

}  // namespace

std::string profile_json(const ProfileReport& report) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  add_target(json, report);
  json.field("duration_s", report.run->end_s).field("step", report.run->last_step);
  json.array("ignored_options", report.ignored,
             [&](const IgnoredOption& ignored) { json.value(ignored.name); });
  add_lines_and_sites(json, report);
  add_shm(json, report.shm);
  add_coverage(json, report);
  json.key("losses").begin_object();
  for (const auto& [what, count] : report.losses) {
    json.field(what, count);
  }
  return json.end_object().end_object().take();
}

}  // namespace tidemark::report
