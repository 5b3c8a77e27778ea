// SPDX-License-Identifier: Apache-2.0
#include "report/track_json.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/json_writer.h"

namespace tidemark::report {
namespace {

using tracker::Pattern;
using tracker::PatternKind;
using tracker::SeriesVerdict;
using tracker::TrackVerdict;

// Sizes are whole bytes.
std::optional<std::int64_t> whole(const std::optional<double>& bytes) {
  return bytes && std::isfinite(*bytes) ? std::optional<std::int64_t>(std::llround(*bytes))
                                        : std::nullopt;
}

void add_who(JsonWriter& json, const tracker::Track& track) {
  using tracker::TrackKind;
  const bool is_process = track.kind == TrackKind::kProcess;
  json.field("kind", track_kind_name(track.kind)).key("pid");
  if (is_process && track.key.pid > 0) {
    json.value(track.key.pid);
  } else {
    json.value(nullptr);
  }
  json.key("role");
  if (is_process || track.kind == TrackKind::kRole) {
    json.value(role_name(track.role));
  } else {
    json.value(nullptr);
  }
  if (track.rank) {
    json.field("rank", *track.rank);
  }
  if (is_process) {
    json.field("comm", track.comm);
  }
}

void add_span(JsonWriter& json, const Pattern& pattern) {
  json.field("from_s", pattern.from.t_s)
      .field("to_s", pattern.to.t_s)
      .field("from_step", pattern.from.step)
      .field("to_step", pattern.to.step);
}

void add_rate(JsonWriter& json, const tracker::GrowthRate& rate) {
  json.field("rate_bytes_per_s", rate.bytes_per_s)
      .field("rate_low_bytes_per_s", rate.low_bytes_per_s)
      .field("rate_high_bytes_per_s", rate.high_bytes_per_s)
      .field("rate_bytes_per_step", rate.bytes_per_step)
      .field("rate_low_bytes_per_step", rate.low_bytes_per_step)
      .field("rate_high_bytes_per_step", rate.high_bytes_per_step);
}

void add_pattern(JsonWriter& json, const Pattern& pattern) {
  json.begin_object().field("kind", pattern_name(pattern.kind));
  switch (pattern.kind) {
    case PatternKind::kStep:
      json.field("at_s", pattern.from.t_s)
          .field("at_step", pattern.from.step)
          .field("height_bytes", whole(pattern.height_bytes));
      break;
    case PatternKind::kSpikes:
      add_span(json, pattern);
      json.field("count", pattern.count)
          .field("height_bytes", whole(pattern.height_bytes))
          .field("period_s", pattern.period_s)
          .field("period_steps", pattern.period_steps);
      break;
    case PatternKind::kLeak:
      json.field("shape", shape_name(pattern.shape))
          .field("since_s", pattern.from.t_s)
          .field("since_step", pattern.from.step)
          .field("growth_bytes", whole(pattern.growth_bytes));
      add_rate(json, pattern.rate);
      break;
    case PatternKind::kWarmup:
    case PatternKind::kDrift:
    case PatternKind::kGrowth:
      add_span(json, pattern);
      json.field("growth_bytes", whole(pattern.growth_bytes));
      add_rate(json, pattern.rate);
      break;
    case PatternKind::kRelease:
    case PatternKind::kTeardown:
      add_span(json, pattern);
      json.field("growth_bytes", whole(pattern.growth_bytes));
      break;
  }
  json.end_object();
}

void add_numbers(JsonWriter& json, const SeriesVerdict& reading) {
  json.key("floor_bytes")
      .begin_object()
      .field("first", whole(reading.first_floor_bytes))
      .field("last", whole(reading.last_floor_bytes))
      .field("min", whole(reading.min_bytes))
      .end_object();
  json.key("ceiling_bytes").begin_object().field("max", whole(reading.max_bytes)).end_object();
  json.field("mean_bytes", whole(reading.mean_bytes)).field("samples", reading.samples);
}

void add_patterns(JsonWriter& json, const SeriesVerdict& reading) {
  json.key("patterns").begin_array();
  for (const Pattern& pattern : reading.patterns) {
    add_pattern(json, pattern);
  }
  json.end_array();
}

void add_forecast(JsonWriter& json, const tracker::JudgedRun& result,
                  const SeriesVerdict& reading) {
  const tracker::Forecast& forecast = reading.forecast;
  json.key("forecast")
      .begin_object()
      .field("limit_bytes", whole(forecast.limit_bytes))
      .key("limit_source");
  if (forecast.limit_bytes) {
    json.value(result.run.limit_source);
  } else {
    json.value(nullptr);
  }
  json.field("in_s_low", forecast.in_s_low)
      .field("in_s_high", forecast.in_s_high)
      .field("in_steps_low", forecast.in_steps_low)
      .field("in_steps_high", forecast.in_steps_high)
      .field("asymptote_bytes", whole(forecast.asymptote_bytes))
      .end_object();
}

void add_judgement(JsonWriter& json, const SeriesVerdict& reading) {
  json.field("smallest_detectable_bytes_per_s", reading.smallest_detectable_per_s)
      .field("smallest_detectable_bytes_per_step", reading.smallest_detectable_per_step)
      .key("needs");
  if (reading.needs) {
    json.value(needs_text(*reading.needs));
  } else {
    json.value(nullptr);
  }
  json.key("allowance_end");
  if (reading.allowance_end) {
    json.begin_object()
        .field("t_s", reading.allowance_end->t_s)
        .field("step", reading.allowance_end->step)
        .end_object();
  } else {
    json.value(nullptr);
  }
  json.key("ignored_options").begin_array();
  if (reading.warmup_ignored) {
    json.value("warmup");
  }
  if (reading.min_leak_ignored) {
    json.value("min_leak");
  }
  json.end_array().key("evidence").begin_array();
  for (const tracker::Evidence& evidence : reading.evidence) {
    json.begin_object()
        .field("kind", evidence_name(evidence.kind))
        .field("value", evidence.value)
        .field("bar", evidence.bar)
        .end_object();
  }
  json.end_array();
}

void add_series(JsonWriter& json, const tracker::JudgedRun& result) {
  json.key("series").begin_array();
  for (const TrackVerdict& each : result.verdict->tracks) {
    json.begin_object();
    add_who(json, result.run.tracks[each.track]);
    json.field("metric", metric_name(each.metric))
        .field("verdict", verdict_name(each.series.verdict))
        .field("undetermined", each.series.undetermined)
        .field("confidence", each.series.confidence)
        .field("births_taken_out", each.churn_removed)
        .field("copy_on_write", each.copy_on_write);
    add_numbers(json, each.series);
    add_patterns(json, each.series);
    json.end_object();
  }
  json.end_array();
}

void add_overhead_and_advice(JsonWriter& json, const tracker::RunVerdict& verdict) {
  json.key("overhead").begin_array();
  for (const tracker::Overhead& overhead : verdict.overheads) {
    json.begin_object()
        .field("role", role_name(overhead.role))
        .field("processes", overhead.processes)
        .field("rss_bytes", whole(overhead.rss_bytes))
        .field("footprint_bytes", whole(overhead.footprint_bytes))
        .field("pss_bytes", whole(overhead.pss_bytes))
        .end_object();
  }
  json.end_array().key("advice").begin_array();
  for (const tracker::Advice& advice : verdict.advice) {
    json.begin_object()
        .field("id", advice.id)
        .field("seen", advice.seen)
        .field("cause", advice.cause)
        .field("remedy", advice.remedy)
        .end_object();
  }
  json.end_array();
}

void add_gpu_growth(JsonWriter& json, const std::optional<tracker::GpuGrowth>& growth) {
  json.key("gpu_growth");
  if (!growth) {
    json.value(nullptr);
    return;
  }
  json.begin_object()
      .field("since_s", growth->since.t_s)
      .field("since_step", growth->since.step)
      .field("counts_all_users", growth->counts_all_users)
      .field("driver_bytes", whole(growth->driver_bytes))
      .field("torch_reserved_bytes", whole(growth->torch_reserved_bytes))
      .field("torch_allocated_bytes", whole(growth->torch_allocated_bytes))
      .field("explained_share", growth->explained_share())
      .end_object();
}

void add_carrier(JsonWriter& json, const tracker::JudgedRun& result) {
  const tracker::RunVerdict& verdict = *result.verdict;
  json.key("held_as");
  if (verdict.held_as) {
    json.value(held_as_name(*verdict.held_as));
  } else {
    json.value(nullptr);
  }
  json.key("carrier");
  if (!verdict.carrier) {
    json.value(nullptr);
    return;
  }
  json.begin_object();
  add_who(json, result.run.tracks[verdict.tracks[*verdict.carrier].track]);
  json.field("share", verdict.carrier_share).end_object();
}

}  // namespace

std::string track_json(const tracker::JudgedRun& result) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  if (result.verdict) {
    const TrackVerdict& answer = result.verdict->answer();
    const SeriesVerdict& reading = answer.series;
    json.field("verdict", verdict_name(result.verdict->verdict))
        .field("undetermined", reading.undetermined)
        .field("confidence", reading.confidence)
        .field("metric", metric_name(answer.metric))
        .field("axis", reading.axis == tracker::Axis::kSteps ? "steps" : "time");
    json.key("where").begin_object();
    add_who(json, result.run.tracks[answer.track]);
    json.end_object();
    add_carrier(json, result);
    add_numbers(json, reading);
    add_patterns(json, reading);
    add_forecast(json, result, reading);
    add_judgement(json, reading);
    add_series(json, result);
    add_gpu_growth(json, result.verdict->gpu_growth);
    add_overhead_and_advice(json, *result.verdict);
  } else {
    json.field("verdict", nullptr).field("undetermined", true);
  }
  json.key("losses").begin_object();
  for (const auto& [what, count] : result.run.losses) {
    json.field(what, count);
  }
  return json.end_object().end_object().take();
}

}  // namespace tidemark::report
