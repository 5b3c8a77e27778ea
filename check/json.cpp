// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "check/outputs.h"
#include "check/words.h"
#include "common/json_writer.h"
#include "report/profile_json.h"
#include "report/track_json.h"

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
      .key("needs");
  if (row.needs) {
    json.value(needs_text(*row.needs));
  } else {
    json.value(nullptr);
  }
  json.end_object();
}

void add_left(JsonWriter& json, const LeftBehind& left) {
  json.begin_object()
      .field("bytes", left.bytes())
      .field("process_bytes", left.stray_bytes)
      .field("segment_bytes", left.segments.grown_bytes)
      .field("gpu_bytes", left.gpu_bytes)
      .key("processes")
      .begin_array();
  for (const Stray& stray : left.strays) {
    json.begin_object()
        .field("pid", stray.key.pid)
        .field("comm", stray.comm)
        .field("bytes", stray.bytes)
        .end_object();
  }
  json.end_array().key("segments").begin_array();
  for (const GrowingSegment& segment : left.segments.largest) {
    json.begin_object()
        .field("path", segment.path)
        .field("bytes", segment.grown_bytes)
        .end_object();
  }
  json.end_array().end_object();
}

void add_run(JsonWriter& json, const CheckRun& run) {
  json.field("command", run.info.command)
      .field("command_status", run.ending.command_status)
      .field("seconds", run.seconds)
      .key("left_behind");
  add_left(json, run.left);
  json.key("track").document(report::track_json(run.track));
  json.key("profile");
  if (const report::ProfileReport* const report = run.profile(); report != nullptr) {
    json.document(report::profile_json(*report));
  } else {
    json.value(nullptr);
  }
}

// Unknown text is null.
std::optional<std::string_view> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

void add_lines(JsonWriter& json, const CheckResult& result) {
  json.key("growing_lines").begin_array();
  for (const CheckLine& line : growing_lines(result)) {
    const tracker::ShownFrame* const shown = line.frame();
    const FrameRecord none;
    const FrameRecord& frame = shown != nullptr ? *shown->frame : none;
    json.begin_object()
        .field("function", known(frame.function))
        .field("file", known(frame.file))
        .field("line", frame.line)
        .field("growth_bytes_per_s", line.ranked->growth_bytes_per_s)
        .field("growth_bytes_per_step", line.ranked->growth_bytes_per_step)
        .field("share_of_growth", line.ranked->share_of_growth)
        .end_object();
  }
  json.end_array();
}

void add_history(JsonWriter& json, const CheckResult& result) {
  json.key("history_changes").begin_array();
  for (const HistoryChange& change : result.changes) {
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
  }
  json.end_array();
}

void add_check(JsonWriter& json, const CheckResult& result) {
  json.begin_object()
      .field("name", result.spec.name)
      .field("result", status_name(result.status))
      .field("exit_code", exit_code_of(result.status))
      .field("answer", answer_line(result))
      .field("runs", result.runs)
      .key("budgets")
      .begin_array();
  for (const tracker::BudgetRow& row : result.rows) {
    add_row(json, row);
  }
  json.end_array();
  json.key("left_by_job_bytes").begin_array();
  for (const double bytes : result.left_by_job) {
    json.value(std::llround(bytes));
  }
  json.end_array().key("baseline_runs");
  if (result.baseline_runs) {
    json.value(*result.baseline_runs);
  } else {
    json.value(nullptr);
  }
  add_lines(json, result);
  add_history(json, result);
  json.key("suppressed").begin_array();
  for (const Suppression& suppression : result.suppressed) {
    json.begin_object()
        .field("site", suppression.site)
        .field("reason", suppression.reason)
        .field("expires", date_text(suppression.expires))
        .end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : result.notes) {
    json.value(note);
  }
  json.end_array().key("run");
  if (result.shown) {
    json.begin_object();
    add_run(json, *result.shown);
    json.end_object();
  } else {
    json.value(nullptr);
  }
  json.end_object();
}

}  // namespace

std::string check_json(std::span<const CheckResult> results) {
  const CheckStatus status = status_of(results);
  JsonWriter json;
  json.begin_object()
      .field("schema", 1)
      .field("result", status_name(status))
      .field("exit_code", exit_code_of(status))
      .key("checks")
      .begin_array();
  for (const CheckResult& result : results) {
    add_check(json, result);
  }
  return json.end_array().end_object().take();
}

}  // namespace tidemark::check
