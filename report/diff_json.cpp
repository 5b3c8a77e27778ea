// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.h"
#include "report/diff_view.h"

namespace tidemark::report {
namespace {

using tracker::Axis;
using tracker::DiffRow;
using tracker::DiffSide;
using tracker::DiffValue;
using tracker::DiffWhat;
using tracker::RunDiff;

constexpr int kSchema = 1;

std::string_view unit_of(DiffWhat what, const RunDiff& diff) {
  const bool steps = diff.alignment && diff.alignment->axis == Axis::kSteps;
  switch (what) {
    case DiffWhat::kGrowthRate:
      return steps ? "bytes_per_step" : "bytes_per_s";
    case DiffWhat::kSpikeEvery:
      return steps ? "steps" : "s";
    default:
      return "bytes";
  }
}

void write_side(JsonWriter& json, std::string_view name, const DiffSide& side,
                const DiffInput& input) {
  json.key(name)
      .begin_object()
      .field("file", input.file)
      .field("verdict", tracker::verdict_name(side.verdict))
      .field("undetermined", side.undetermined)
      .field("confidence", side.confidence)
      .field("settled", side.settled)
      .field("spikes", side.spikes)
      .field("samples", side.samples);
  json.key("losses").begin_object();
  for (const auto& [what, count] : input.losses) {
    json.field(what, count);
  }
  json.end_object().end_object();
}

void write_value(JsonWriter& json, std::string_view name, const DiffRow& row, std::size_t index) {
  const DiffValue& value = index == 0 ? row.a : row.b;
  json.key(name).begin_object().field("value", value.value);
  if (row.what == DiffWhat::kGrowthRate) {
    json.field("low", value.low).field("high", value.high);
  }
  if (row.what == DiffWhat::kRole) {
    json.field("processes", row.processes[index]);
  }
  json.end_object();
}

void write_row(JsonWriter& json, const DiffRow& row, const RunDiff& diff) {
  json.begin_object()
      .field("what", tracker::diff_what_name(row.what))
      .field("unit", unit_of(row.what, diff));
  if (row.what == DiffWhat::kRole) {
    json.field("role", role_name(row.role));
  }
  write_value(json, "a", row, 0);
  write_value(json, "b", row, 1);
  json.field("difference", row.difference())
      .field("noise", row.noise)
      .field("change", tracker::change_name(row.change))
      .end_object();
}

void write_alignment(JsonWriter& json, const RunDiff& diff) {
  json.key("aligned");
  if (!diff.alignment) {
    json.value(nullptr);
    return;
  }
  json.begin_object()
      .field("on", diff.alignment->axis == Axis::kSteps ? "steps" : "time")
      .field("from", diff.alignment->from)
      .field("to", diff.alignment->to)
      .field("counted_from_start", diff.alignment->from_start)
      .end_object();
}

}  // namespace

std::string diff_json(const RunDiff& diff, const DiffInput& a, const DiffInput& b) {
  JsonWriter json;
  json.begin_object()
      .field("schema", kSchema)
      .field("overall", tracker::change_name(diff.overall))
      .field("verdict_change", tracker::change_name(diff.verdict))
      .field("metric", tracker::metric_name(diff.metric));
  write_alignment(json, diff);
  write_side(json, "a", diff.a, a);
  write_side(json, "b", diff.b, b);
  json.key("rows").begin_array();
  for (const DiffRow& row : diff.rows) {
    write_row(json, row, diff);
  }
  json.end_array();
  json.key("floors").begin_array();
  for (const tracker::FloorPair& pair : diff.floors) {
    json.begin_object()
        .field("at", pair.place)
        .field("a_bytes", pair.a_bytes)
        .field("b_bytes", pair.b_bytes)
        .end_object();
  }
  json.end_array().end_object();
  return json.take() + '\n';
}

}  // namespace tidemark::report
