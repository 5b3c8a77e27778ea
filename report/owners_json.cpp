// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "common/json_writer.h"
#include "report/owners_text.h"
#include "report/track_text.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::report {
namespace {

using tracker::JudgedOwner;
using tracker::LookedProcess;
using tracker::OwnerCoverage;
using tracker::OwnerEvidence;
using tracker::RankedOwner;

constexpr std::size_t kMostProcessesInJson = 100;

std::optional<std::int64_t> whole_bytes(const std::optional<double>& bytes) {
  return bytes && std::isfinite(*bytes) ? std::optional<std::int64_t>(std::llround(*bytes))
                                        : std::nullopt;
}

void add_interpreter(JsonWriter& json, const InterpreterFacts& facts) {
  json.text_field("python", facts.python);
  json.field("free_threaded", facts.is_free_threaded)
      .field("gc_enabled", facts.gc_enabled)
      .array("gc_thresholds", facts.gc_thresholds)
      .field("gc_frozen_objects", facts.gc_frozen_objects);
  json.text_field("torch", facts.torch);
  json.text_field("numpy", facts.numpy);
}

void add_looked_process(JsonWriter& json, const LookedProcess& process) {
  json.begin_object()
      .field("pid", process.key.pid)
      .field("start_ticks", process.key.start_ticks)
      .field("role", role_name(process.role));
  if (process.rank) {
    json.field("rank", *process.rank);
  }
  json.field("comm", process.comm);
  json.object("interpreter", [&] {
    add_interpreter(json,
                    process.looks.empty() ? InterpreterFacts() : process.looks.back().interpreter);
  });
  json.end_object();
}

void add_heap_look(JsonWriter& json, const HeapLook& look) {
  json.begin_object()
      .field("pid", look.key.pid)
      .field("t_s", look.t_s)
      .field("step", look.step)
      .field("objects", look.objects)
      .field("heap_bytes", look.heap_bytes)
      .field("new_bytes", look.new_bytes)
      .field("gone_bytes", look.gone_bytes)
      .field("footprint_bytes", look.footprint_bytes)
      .field("paused_ms", 1e3 * look.paused_s)
      .field("took_s", look.took_s)
      .field("way", look.reading == HeapReading::kFrozen ? "frozen" : "read")
      .field("threads_held", look.reading == HeapReading::kStopped)
      .field("copied_bytes", look.copied_bytes)
      .field("unread_bytes", look.unread_bytes)
      .field("partial", look.is_partial);
  json.text_field("detour", look.detour);
  json.text_field("problem", look.problem);
  json.end_object();
}

void add_held_objects(JsonWriter& json, const HeldObjects& held) {
  json.begin_object().field("type", held.type);
  json.text_field("dtype", held.dtype);
  if (held.dtype.empty()) {
    json.field("shape", nullptr);
  } else {
    json.array("shape", held.shape);
  }
  json.text_field("device", held.device);
  json.field("count", held.count).field("bytes", held.bytes).end_object();
}

// The call stack that has made most of what it holds.
void add_made_at(JsonWriter& json, const OwnersReport& report, const RankedOwner& owner) {
  json.array("sites", owner.sites, [&](const OwnerSite& made) {
    json.begin_object().field("site", made.site).field("bytes", made.bytes).end_object();
  });
  json.key("frames").begin_array();
  const tracker::SiteTrack* track = nullptr;
  for (const OwnerSite& made : owner.sites) {
    for (const tracker::SiteTrack& site :
         report.sites == nullptr ? std::span<const tracker::SiteTrack>()
                                 : std::span<const tracker::SiteTrack>(report.sites->sites)) {
      track = track == nullptr && site.record.site == made.site ? &site : track;
    }
  }
  if (track != nullptr) {
    for (const tracker::ShownFrame& shown :
         tracker::frames_of(*report.sites, track->record.frames)) {
      json.begin_object()
          .field("kind", frame_kind_name(shown.frame->kind))
          .field("function", shown.frame->function);
      json.text_field("file", shown.frame->file);
      json.field("line", shown.frame->line);
      json.text_field("module", shown.module);
      json.end_object();
    }
  }
  json.end_array();
}

void add_growth(JsonWriter& json, const RankedOwner& owner) {
  const tracker::GrowthRate& rate = owner.rate;
  json.field("growth_bytes", whole_bytes(owner.growth_bytes))
      .field("growth_bytes_per_s", owner.grows() ? rate.bytes_per_s : std::optional(0.0))
      .field("growth_low_bytes_per_s", rate.low_bytes_per_s)
      .field("growth_high_bytes_per_s", rate.high_bytes_per_s)
      .field("growth_bytes_per_step", rate.bytes_per_step)
      .field("growth_low_bytes_per_step", rate.low_bytes_per_step)
      .field("growth_high_bytes_per_step", rate.high_bytes_per_step)
      .field("entries_per_s", owner.entries_per_s)
      .field("entries_per_step", owner.entries_per_step)
      .field("since_s", owner.first().since.t_s)
      .field("since_step", owner.first().since.step)
      .field("share_of_growth", owner.share_of_growth);
}

void add_owner(JsonWriter& json, const OwnersReport& report, const RankedOwner& owner,
               std::size_t rank) {
  const JudgedOwner& first = owner.first();
  const OwnerRecord& record = owner.record();
  json.begin_object()
      .field("rank", rank)
      .field("path", record.path)
      .field("type", record.type)
      .field("kind", owner_kind_name(record.kind))
      .field("library", record.is_library)
      .field("role", role_name(first.process->role));
  json.array("pids", owner.members,
             [&](const JudgedOwner& member) { json.value(member.process->key.pid); });
  json.field("entries", owner.entries)
      .field("retained_bytes", owner.retained_bytes)
      .field("reached_bytes", owner.reached_bytes)
      .field("new_bytes", owner.grown_bytes)
      .field("new_alone_bytes", owner.grown_bytes_alone);
  json.text_field("shared_with", first.track->last.shared_with);
  add_growth(json, owner);
  json.field("verdict", verdict_name(owner.verdict)).field("undetermined", owner.undetermined);
  json.text_field("needs", owner.needs ? needs_text(*owner.needs) : "");
  json.field("looks", first.looks).field("grown_looks", first.grown_looks);
  json.array("because", first.evidence, [&](const OwnerEvidence& evidence) {
    json.begin_object()
        .field("kind", owner_evidence_name(evidence.kind))
        .field("speaks_for", evidence.speaks_for_warmup() ? "warmup" : "leak")
        .field("value", evidence.value)
        .end_object();
  });
  json.array("steps", record.steps, [&](const PathStep& step) {
    json.begin_object().field("label", step.label);
    json.text_field("type", step.type);
    json.end_object();
  });
  json.array("holds", owner.holds, [&](const HeldObjects& held) { add_held_objects(json, held); });
  add_made_at(json, report, owner);
  json.end_object();
}

void add_types(JsonWriter& json, const LookedProcess& process) {
  for (const tracker::TypeGrowth& growth : tracker::type_growth(process)) {
    json.begin_object()
        .field("pid", process.key.pid)
        .field("type", growth.now.type)
        .field("count", growth.now.count)
        .field("bytes", growth.now.bytes)
        .field("growth_count", whole_bytes(growth.growth_count))
        .field("growth_bytes", whole_bytes(growth.growth_bytes))
        .end_object();
  }
}

void add_tensors(JsonWriter& json, const LookedProcess& process) {
  for (const tracker::TensorGrowth& growth : tracker::tensor_growth(process)) {
    const TensorSample& now = growth.now;
    json.begin_object()
        .field("pid", process.key.pid)
        .field("device", now.device)
        .field("dtype", now.dtype)
        .array("shape", now.shape)
        .field("requires_grad", now.requires_grad)
        .field("graph", now.is_graph)
        .field("view", now.is_view)
        .field("pinned", now.is_pinned)
        .field("count", now.count)
        .field("bytes", now.bytes)
        .field("growth_count", whole_bytes(growth.growth_count))
        .field("growth_bytes", whole_bytes(growth.growth_bytes))
        .end_object();
  }
}

void add_owner_coverage(JsonWriter& json, const OwnerCoverage& coverage) {
  const auto& growth = coverage.footprint_growth_bytes;
  json.begin_object()
      .field("pid", coverage.process->key.pid)
      .field("footprint_growth_bytes", whole_bytes(growth))
      .field("heap_growth_bytes", whole_bytes(coverage.heap_growth_bytes))
      .field("owned_bytes", whole_bytes(coverage.owned_bytes))
      .field("native_bytes", whole_bytes(coverage.native_bytes))
      .field("explained_share", coverage.explained_share)
      .field("unexplained_bytes",
             growth ? whole_bytes(std::max(0.0, *growth - coverage.owned_bytes)) : std::nullopt)
      .end_object();
}

// The lists of all processes one after the other.
template <typename Add>
void add_of_processes(JsonWriter& json, const OwnersReport& report, std::string_view name,
                      Add add) {
  json.key(name).begin_array();
  const auto& processes = report.run->processes;
  for (std::size_t i = 0; i < std::min(processes.size(), kMostProcessesInJson); ++i) {
    add(processes[i]);
  }
  json.end_array();
}

}  // namespace

std::string owners_json(const OwnersReport& report) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  json.object("target", [&] {
    json.text_field("command", report.command);
    add_of_processes(json, report, "processes",
                     [&](const LookedProcess& process) { add_looked_process(json, process); });
  });
  add_of_processes(json, report, "looks", [&](const LookedProcess& process) {
    for (const auto* looks : {&process.looks, &process.failed}) {
      for (const HeapLook& look : *looks) {
        add_heap_look(json, look);
      }
    }
  });
  json.key("owners").begin_array();
  for (std::size_t i = 0; i < report.ranking.owners.size(); ++i) {
    add_owner(json, report, report.ranking.owners[i], i + 1);
  }
  json.end_array();
  add_of_processes(json, report, "types",
                   [&](const LookedProcess& process) { add_types(json, process); });
  add_of_processes(json, report, "tensors",
                   [&](const LookedProcess& process) { add_tensors(json, process); });
  add_advice(json, report.advice);
  json.object("coverage", [&] {
    json.array("processes", report.ranking.processes,
               [&](const OwnerCoverage& coverage) { add_owner_coverage(json, coverage); });
    json.array("notes", report.notes);
  });
  json.key("losses").begin_object();
  for (const auto& [what, count] : report.run->losses) {
    json.field(what, count);
  }
  return json.end_object().end_object().take();
}

}  // namespace tidemark::report
