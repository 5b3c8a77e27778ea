// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/exit_code.h"
#include "common/json_writer.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "recording/open.h"
#include "report/document.h"
#include "report/output.h"
#include "report/owners_text.h"
#include "tracker/run/track_builder.h"

namespace tidemark::report {
namespace {

using tracker::Alignment;
using tracker::Axis;
using tracker::Change;
using tracker::DiffRow;
using tracker::DiffSide;
using tracker::DiffValue;
using tracker::DiffWhat;
using tracker::OwnerDiff;
using tracker::OwnerDiffSide;
using tracker::RunDiff;
using tracker::RunTracks;
using tracker::Verdict;

constexpr RateFormat kFixedUnit{.has_fixed_unit = true};

bool on_steps(const RunDiff& diff) {
  return diff.alignment && diff.alignment->axis == Axis::kSteps;
}

std::string rate_of(double bytes_per_unit, bool steps, RateFormat format = kFixedUnit) {
  return format_rate(bytes_per_unit, steps ? RateUnit::kStep : RateUnit::kSecond, format);
}

std::string place_text(double place, Axis axis) {
  return axis == Axis::kSteps ? fmt::format("{:.0f}", place) : format_clock(place);
}

std::string distance_text(double distance, bool steps) {
  return steps ? fmt::format("{:.0f} steps", distance) : format_duration(distance);
}

std::string label_of(const DiffRow& row) {
  switch (row.what) {
    case DiffWhat::kSettledFloor:
      return "settled floor";
    case DiffWhat::kGrowthRate:
      return "growth";
    case DiffWhat::kPeak:
      return "peak";
    case DiffWhat::kSpikeHeight:
      return "spike height";
    case DiffWhat::kSpikeEvery:
      return "spike every";
    case DiffWhat::kRole:
      break;
  }
  return std::string(role_name(row.role));
}

std::string growth_text(const DiffValue& growth, bool steps) {
  if (!growth.value) {
    return "?";
  }
  if (*growth.value == 0.0 && growth.high) {
    return "< " + rate_of(*growth.high, steps);
  }
  return rate_of(*growth.value, steps);
}

// Of a rate that is not zero; "" where the interval is not known.
std::string interval_text(const DiffValue& growth, bool steps) {
  if (!growth.value || *growth.value == 0.0 || !growth.low || !growth.high) {
    return "";
  }
  return "+-" + rate_of((*growth.high - *growth.low) / 2, steps);
}

std::string value_text(const RunDiff& diff, const DiffRow& row, std::size_t index) {
  const DiffValue& value = index == 0 ? row.a : row.b;
  const DiffSide& side = index == 0 ? diff.a : diff.b;
  switch (row.what) {
    case DiffWhat::kGrowthRate:
      return growth_text(value, on_steps(diff));
    case DiffWhat::kSettledFloor:
      return value.value ? format_bytes(*value.value) : "not settled";
    case DiffWhat::kSpikeHeight:
    case DiffWhat::kSpikeEvery:
      if (!value.value) {
        return side.spikes == 0 ? "none" : "?";
      }
      return row.what == DiffWhat::kSpikeHeight ? format_bytes(*value.value)
                                                : distance_text(*value.value, on_steps(diff));
    case DiffWhat::kRole:
      if (row.processes[index] == 0) {
        return "none";
      }
      return fmt::format("x{} {}", row.processes[index], format_bytes(value.value));
    case DiffWhat::kPeak:
      break;
  }
  return format_bytes(value.value);
}

std::string difference_text(const RunDiff& diff, const DiffRow& row) {
  const auto difference = row.difference();
  if (!difference) {
    return "";
  }
  if (row.what == DiffWhat::kGrowthRate) {
    return rate_of(*difference, on_steps(diff), {.has_sign = true, .has_fixed_unit = true});
  }
  if (row.what == DiffWhat::kSpikeEvery) {
    return fmt::format("{}{}", *difference < 0 ? "-" : "+",
                       distance_text(std::abs(*difference), on_steps(diff)));
  }
  return format_bytes_delta(*difference);
}

std::string change_text(Change change) {
  switch (change) {
    case Change::kSame:
      return "within noise";
    case Change::kUnclear:
      return "cannot tell";
    default:
      return std::string(change_name(change));
  }
}

std::string verdict_text(const DiffSide& side) {
  const std::string name(tracker::verdict_name(side.verdict));
  return side.undetermined && side.verdict != Verdict::kGrowing ? name + "?" : name;
}

std::string verdict_change_text(const RunDiff& diff) {
  if (diff.verdict != Change::kSame) {
    return change_text(diff.verdict);
  }
  return diff.a.verdict == Verdict::kLeak ? "both leak" : "neither leaks";
}

Table diff_table(const RunDiff& diff) {
  Table table{{{""}, {"A", true}, {"B", true}, {"B - A", true}, {""}}, {}};
  const auto add = [&](std::string label, std::string a, std::string b, std::string difference,
                       std::string change) {
    table.rows.push_back({{std::move(label)},
                          {std::move(a)},
                          {std::move(b)},
                          {std::move(difference)},
                          {std::move(change)}});
  };
  add("verdict", verdict_text(diff.a), verdict_text(diff.b), "", verdict_change_text(diff));
  for (const DiffRow& row : diff.rows) {
    const bool one_is_unsettled = row.what == DiffWhat::kSettledFloor && !row.difference();
    add(label_of(row), value_text(diff, row, 0), value_text(diff, row, 1),
        difference_text(diff, row), one_is_unsettled ? std::string() : change_text(row.change));
    const bool is_rate = row.what == DiffWhat::kGrowthRate;
    const std::string interval_a = is_rate ? interval_text(row.a, on_steps(diff)) : "";
    const std::string interval_b = is_rate ? interval_text(row.b, on_steps(diff)) : "";
    if (!interval_a.empty() || !interval_b.empty()) {
      add("  95 % interval", interval_a, interval_b, "", "");
    }
  }
  for (const tracker::FloorPair& pair : diff.floors) {
    const Axis axis = diff.alignment->axis;
    add(fmt::format("floor at {}{}", axis == Axis::kSteps ? "step " : "",
                    place_text(pair.place, axis)),
        format_bytes(pair.a_bytes), format_bytes(pair.b_bytes),
        pair.a_bytes && pair.b_bytes ? format_bytes_delta(*pair.b_bytes - *pair.a_bytes) : "", "");
  }
  return table;
}

// "peak -1.20 GiB, growth -2.0 MiB/step" of all rows that changed this way.
std::string changed_text(const RunDiff& diff, Change change) {
  std::vector<std::string> parts;
  for (const DiffRow& row : diff.rows) {
    if (row.change == change && row.what != DiffWhat::kRole) {
      const std::string difference = difference_text(diff, row);
      parts.push_back(difference.empty()
                          ? fmt::format("{} {} instead of {}", label_of(row),
                                        value_text(diff, row, 1), value_text(diff, row, 0))
                          : fmt::format("{} {}", label_of(row), difference));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Of the run that leaks; "" when its tree as a whole does not grow measurably.
std::string leak_rate_text(const RunDiff& diff, std::size_t index) {
  const DiffRow* const row = diff.find(DiffWhat::kGrowthRate);
  const DiffValue* const rate = row == nullptr ? nullptr : index == 0 ? &row->a : &row->b;
  return rate != nullptr && rate->value && *rate->value > 0
             ? " " + rate_of(*rate->value, on_steps(diff))
             : "";
}

std::string leaks_text(const RunDiff& diff) {
  const std::string rates =
      fmt::format("A{}, B{}", leak_rate_text(diff, 0), leak_rate_text(diff, 1));
  const DiffRow* const rate = diff.find(DiffWhat::kGrowthRate);
  if (rate == nullptr) {
    return "Both leak; their rates cannot be compared.";
  }
  switch (rate->change) {
    case Change::kBetter:
      return fmt::format("Both leak, B more slowly: {}.", rates);
    case Change::kWorse:
      return fmt::format("Both leak, B faster: {}.", rates);
    case Change::kSame:
      return fmt::format("Both leak, at the same rate within noise: {}.", rates);
    default:
      return fmt::format("Both leak: {}.", rates);
  }
}

std::string undetermined_text(const RunDiff& diff) {
  const std::string who = diff.a.undetermined && diff.b.undetermined ? "both runs are"
                          : diff.a.undetermined                      ? "A is"
                                                                     : "B is";
  return fmt::format("Cannot tell whether B leaks less: {} too short to judge.", who);
}

std::string answer_text(const RunDiff& diff) {
  if (diff.verdict == Change::kBetter) {
    return fmt::format("B is better: A leaks{}, B does not leak.", leak_rate_text(diff, 0));
  }
  if (diff.verdict == Change::kWorse) {
    return fmt::format("B is worse: it leaks{}, A does not leak.", leak_rate_text(diff, 1));
  }
  if (diff.verdict == Change::kUnclear) {
    return undetermined_text(diff);
  }
  if (diff.a.verdict == Verdict::kLeak) {
    return leaks_text(diff);
  }
  switch (diff.overall) {
    case Change::kBetter:
    case Change::kWorse:
      return fmt::format("B is {}: {}.", change_name(diff.overall),
                         changed_text(diff, diff.overall));
    case Change::kMixed:
      return fmt::format("B is better in some and worse in others: {}; {}.",
                         changed_text(diff, Change::kBetter), changed_text(diff, Change::kWorse));
    default:
      return "No difference beyond noise.";
  }
}

std::string alignment_text(const RunDiff& diff) {
  const std::string what = fmt::format("{} of the whole tree", tracker::metric_name(diff.metric));
  if (!diff.alignment) {
    return what + "; one run knows only time, the other only steps: nothing to align them on";
  }
  const Alignment& alignment = *diff.alignment;
  const bool steps = alignment.axis == Axis::kSteps;
  return fmt::format("{}, aligned on {} {} to {}{}", what, steps ? "steps" : "time",
                     place_text(alignment.from, alignment.axis),
                     place_text(alignment.to, alignment.axis),
                     alignment.from_start ? ", counted from each run's first" : "");
}

std::string owner_side_text(const OwnerDiff& owner, const std::optional<OwnerDiffSide>& side) {
  if (!side) {
    return "none";
  }
  if (!side->grows()) {
    return format_bytes(side->held_bytes);
  }
  return rate_of((owner.on_steps ? side->rate.bytes_per_step : side->rate.bytes_per_s).value_or(0),
                 owner.on_steps, {.has_sign = true, .has_fixed_unit = true});
}

// "" without owners.
std::string owners_table(const std::vector<OwnerDiff>& owners) {
  constexpr std::size_t kPathColumns = 60;
  if (owners.empty()) {
    return "";
  }
  Table table{{{"owners that grow"}, {"A", true}, {"B", true}, {""}}, {}};
  for (const OwnerDiff& owner : owners) {
    table.rows.push_back({{shorten(escape_text(owner.path), kPathColumns)},
                          {owner_side_text(owner, owner.a)},
                          {owner_side_text(owner, owner.b)},
                          {change_text(owner.change)}});
  }
  return "\n" + to_text(table);
}

void write_owner_side(JsonWriter& json, std::string_view name,
                      const std::optional<OwnerDiffSide>& side) {
  json.object_or_null(name, side, [&](const OwnerDiffSide& known) {
    json.field("verdict", tracker::verdict_name(known.verdict))
        .field("growth_bytes", known.growth_bytes)
        .field("growth_bytes_per_s", known.rate.bytes_per_s)
        .field("growth_bytes_per_step", known.rate.bytes_per_step)
        .field("held_bytes", known.held_bytes);
  });
}

std::string losses_text(std::string_view name, const DiffInput& input) {
  std::string text;
  for (const auto& [what, count] : input.losses) {
    text += fmt::format("not seen in {}: {} {}\n", name, escape_text(what), count);
  }
  return text;
}

std::string_view unit_name(DiffWhat what, const RunDiff& diff) {
  const bool steps = on_steps(diff);
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
      .field("unit", unit_name(row.what, diff));
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
  json.object_or_null("aligned", diff.alignment, [&](const Alignment& alignment) {
    json.field("on", alignment.axis == Axis::kSteps ? "steps" : "time")
        .field("from", alignment.from)
        .field("to", alignment.to)
        .field("counted_from_start", alignment.from_start);
  });
}

// A recording as `track` and as `owners` see it.
struct ReadRun {
  RunTracks tracks;
  std::unique_ptr<tracker::OwnerTrackBuilder> owners =
      std::make_unique<tracker::OwnerTrackBuilder>();
};

Result<ReadRun> read_run(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(auto reader, recording::open_recording(path));
  tracker::TrackBuilder builder;
  ReadRun run;
  TwoSinks both(builder, *run.owners);
  TIDEMARK_TRY_ASSIGN(const auto summary, reader->read(both));
  RunTracks& tracks = run.tracks = builder.take();
  if (summary.bad_lines > 0) {
    tracks.losses.emplace_back(loss_name(LossKind::kBadLines), summary.bad_lines);
  }
  return run;
}

// Empty unless both have looks at the heap.
std::vector<OwnerDiff> owners_of_both(const ReadRun& a, const ReadRun& b,
                                      const DiffOptions& options) {
  if (a.owners->owners().empty() || b.owners->owners().empty()) {
    return {};
  }
  return tracker::compare_owners(
      make_owners_report(a.owners->owners(), nullptr, options.judge).ranking,
      make_owners_report(b.owners->owners(), nullptr, options.judge).ranking);
}

Result<RunDiff> compare_tracks(const RunTracks& a, const RunTracks& b, const DiffOptions& options) {
  tracker::JudgeOptions judging = options.judge;
  judging.metric = judging.metric ? judging.metric : common_metric(a, b);
  if (!judging.metric) {
    return Error{Errc::kMalformed,
                 "the recordings have no measure of memory in common, or one of them is empty"};
  }
  const tracker::JudgedRun judged_a = tracker::judge_run(a, judging);
  const tracker::JudgedRun judged_b = tracker::judge_run(b, judging);
  if (auto diff = compare_runs(judged_a, judged_b, *judging.metric)) {
    return *std::move(diff);
  }
  return Error{Errc::kMalformed,
               fmt::format("{} is not in both recordings", metric_name(*judging.metric))};
}

Status print_diff(const DiffOptions& options) {
  TIDEMARK_TRY_ASSIGN(const auto a, read_run(options.a));
  TIDEMARK_TRY_ASSIGN(const auto b, read_run(options.b));
  TIDEMARK_TRY_ASSIGN(const auto diff, compare_tracks(a.tracks, b.tracks, options));
  const std::vector<OwnerDiff> owners = owners_of_both(a, b, options);
  const DiffInput input_a{options.a, a.tracks.losses};
  const DiffInput input_b{options.b, b.tracks.losses};
  ExportOutput output = ExportOutput::to_stdout();
  output.buffer() = options.json ? diff_json(diff, input_a, input_b, owners)
                                 : diff_text(diff, input_a, input_b, owners);
  return output.finish();
}

}  // namespace

std::string diff_text(const RunDiff& diff, const DiffInput& a, const DiffInput& b,
                      const std::vector<OwnerDiff>& owners) {
  return answer_text(diff) + "\n\n" + fmt::format("A  {}\n", escape_text(a.file)) +
         fmt::format("B  {}\n", escape_text(b.file)) + alignment_text(diff) + "\n\n" +
         to_text(diff_table(diff)) + owners_table(owners) + losses_text("A", a) +
         losses_text("B", b);
}

std::string diff_json(const RunDiff& diff, const DiffInput& a, const DiffInput& b,
                      const std::vector<OwnerDiff>& owners) {
  JsonWriter json;
  json.begin_object()
      .field("schema", 1)
      .field("overall", tracker::change_name(diff.overall))
      .field("verdict_change", tracker::change_name(diff.verdict))
      .field("metric", tracker::metric_name(diff.metric));
  write_alignment(json, diff);
  write_side(json, "a", diff.a, a);
  write_side(json, "b", diff.b, b);
  json.array("rows", diff.rows, [&](const DiffRow& row) { write_row(json, row, diff); });
  json.array("floors", diff.floors, [&](const tracker::FloorPair& pair) {
    json.begin_object()
        .field("at", pair.place)
        .field("a_bytes", pair.a_bytes)
        .field("b_bytes", pair.b_bytes)
        .end_object();
  });
  if (!owners.empty()) {
    json.array("owners", owners, [&](const OwnerDiff& owner) {
      json.begin_object()
          .field("path", owner.path)
          .field("type", owner.type)
          .field("role", role_name(owner.role));
      write_owner_side(json, "a", owner.a);
      write_owner_side(json, "b", owner.b);
      json.field("change", tracker::change_name(owner.change)).end_object();
    });
  }
  return json.end_object().take() + '\n';
}

int run_diff(const DiffOptions& options) {
  const Status printed = print_diff(options);
  if (!printed) {
    print_error(printed.error());
  }
  return printed ? kExitOk : kExitTarget;
}

}  // namespace tidemark::report
