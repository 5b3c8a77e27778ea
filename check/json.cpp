// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "check/outputs.h"
#include "check/words.h"
#include "common/json_writer.h"
#include "report/profile_text.h"
#include "report/track_text.h"

namespace tidemark::check {
namespace {

void add_row(JsonWriter& json, const tracker::BudgetRow& row) {
  json.begin_object()
      .field("budget", budget_name(row.kind))
      .field("state", budget_state_name(row.state))
      .field("unit", budget_unit_name(row.unit))
      .field("measured", row.measured)
      .field("low", row.low)
      .field("high", row.high)
      .field("limit", row.limit)
      .field("doubt", budget_doubt_name(row.doubt))
      .field("needs", row.needs ? std::optional(needs_text(*row.needs)) : std::nullopt)
      .end_object();
}

void add_left(JsonWriter& json, const LeftBehind& left) {
  json.begin_object()
      .field("bytes", left.bytes())
      .field("process_bytes", left.stray_bytes)
      .field("segment_bytes", left.segments.grown_bytes)
      .field("gpu_bytes", left.gpu_bytes);
  json.array("processes", left.strays, [&](const Stray& stray) {
    json.begin_object()
        .field("pid", stray.key.pid)
        .field("comm", stray.comm)
        .field("bytes", stray.bytes)
        .end_object();
  });
  json.array("segments", left.segments.largest, [&](const GrowingSegment& segment) {
    json.begin_object()
        .field("path", segment.path)
        .field("bytes", segment.grown_bytes)
        .end_object();
  });
  json.end_object();
}

void add_shown_run(JsonWriter& json, const CheckRun& run) {
  json.field("command", run.info.command)
      .field("command_status", run.ending.command_status)
      .field("seconds", run.seconds)
      .key("left_behind");
  add_left(json, run.left);
  json.key("track").document(report::track_json(run.track));
  const report::ProfileReport* const report = run.profile();
  json.key("profile").document(report != nullptr ? report::profile_json(*report) : "null");
}

void add_lines(JsonWriter& json, const CheckResult& result) {
  json.array("growing_lines", growing_lines(result), [&](const CheckLine& line) {
    const tracker::ShownFrame* const shown = line.frame();
    const FrameRecord none;
    const FrameRecord& frame = shown != nullptr ? *shown->frame : none;
    json.begin_object()
        .text_field("function", frame.function)
        .text_field("file", frame.file)
        .field("line", frame.line)
        .field("growth_bytes_per_s", line.ranked->growth_bytes_per_s)
        .field("growth_bytes_per_step", line.ranked->growth_bytes_per_step)
        .field("share_of_growth", line.ranked->share_of_growth)
        .end_object();
  });
}

void add_history(JsonWriter& json, const CheckResult& result) {
  json.array("history_changes", result.changes, [&](const HistoryChange& change) {
    json.begin_object()
        .field("figure", change.what)
        .field("before", change.change.before)
        .field("after", change.change.after)
        .field("unit", change.what != "growth" ? "bytes"
                       : change.by_step        ? "bytes_per_step"
                                               : "bytes_per_s")
        .field("commit", change.commit)
        .field("time", change.time)
        .end_object();
  });
}

void add_check(JsonWriter& json, const CheckResult& result) {
  json.begin_object()
      .field("name", result.spec.name)
      .field("result", status_name(result.status))
      .field("exit_code", exit_code_of(result.status))
      .field("answer", answer_line(result))
      .field("runs", result.runs)
      .array("budgets", result.rows, [&](const tracker::BudgetRow& row) { add_row(json, row); })
      .array("left_by_job_bytes", result.left_by_job,
             [&](double bytes) { json.value(std::llround(bytes)); })
      .field("baseline_runs", result.baseline_runs);
  add_lines(json, result);
  add_history(json, result);
  json.array("suppressed", result.suppressed, [&](const Suppression& suppression) {
    json.begin_object()
        .field("site", suppression.site)
        .field("reason", suppression.reason)
        .field("expires", date_text(suppression.expires))
        .end_object();
  });
  json.array("notes", result.notes)
      .object_or_null("run", result.shown, [&](const CheckRun& run) { add_shown_run(json, run); })
      .end_object();
}

}  // namespace

std::string check_json(std::span<const CheckResult> results) {
  const CheckStatus status = status_of(results);
  JsonWriter json;
  json.begin_object()
      .field("schema", 1)
      .field("result", status_name(status))
      .field("exit_code", exit_code_of(status))
      .array("checks", results, [&](const CheckResult& result) { add_check(json, result); });
  return json.end_object().take();
}

}  // namespace tidemark::check
