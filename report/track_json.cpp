// SPDX-License-Identifier: Apache-2.0
#include "report/track_text.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/json_writer.h"
#include "report/last_look_text.h"

namespace tidemark::report {

void add_advice(JsonWriter& json, const std::vector<tracker::Advice>& advice) {
  json.array("advice", advice, [&](const tracker::Advice& each) {
    json.begin_object()
        .field("id", each.id)
        .field("seen", each.seen)
        .field("cause", each.cause)
        .field("remedy", each.remedy)
        .end_object();
  });
}

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

// That it leaks, where something grows: as sure as the verdict, or as likely as its curve looks.
std::optional<double> likelihood_of(const SeriesVerdict& reading) {
  if (reading.verdict == tracker::Verdict::kLeak) {
    return reading.confidence;
  }
  return reading.likelihood ? std::optional(reading.likelihood->chance) : std::nullopt;
}

void add_who(JsonWriter& json, const tracker::Track& track) {
  using tracker::TrackKind;
  const bool is_process = track.kind == TrackKind::kProcess;
  const bool has_role = is_process || track.kind == TrackKind::kRole;
  json.field("kind", track_kind_name(track.kind))
      .field("pid", is_process && track.key.pid > 0 ? std::optional(track.key.pid) : std::nullopt)
      .text_field("role", has_role ? role_name(track.role) : "");
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
          .field("highest_bytes", whole(pattern.highest_bytes))
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
    case PatternKind::kLateRise:
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
  json.array("patterns", reading.patterns,
             [&](const Pattern& pattern) { add_pattern(json, pattern); });
}

void add_forecast(JsonWriter& json, const tracker::JudgedRun& result,
                  const SeriesVerdict& reading) {
  const tracker::Forecast& forecast = reading.forecast;
  json.key("forecast")
      .begin_object()
      .field("limit_bytes", whole(forecast.limit_bytes))
      .field("limit_source",
             forecast.limit_bytes ? std::optional(result.run.limit_source) : std::nullopt)
      .field("in_s_low", forecast.in_s_low)
      .field("in_s_high", forecast.in_s_high)
      .field("in_steps_low", forecast.in_steps_low)
      .field("in_steps_high", forecast.in_steps_high)
      .field("asymptote_bytes", whole(forecast.asymptote_bytes))
      .end_object();
}

void add_judgement(JsonWriter& json, const SeriesVerdict& reading) {
  json.field("smallest_detectable_bytes_per_s", reading.smallest_detectable_per_s)
      .field("smallest_detectable_bytes_per_step", reading.smallest_detectable_per_step)
      .object("tested",
              [&] {
                json.field("from_s", reading.tested_from.t_s)
                    .field("to_s", reading.tested_to.t_s)
                    .field("from_step", reading.tested_from.step)
                    .field("to_step", reading.tested_to.step);
              })
      .field("needs", reading.needs ? std::optional(needs_text(*reading.needs)) : std::nullopt)
      .object_or_null("allowance_end", reading.allowance_end, [&](const tracker::Moment& end) {
        json.field("t_s", end.t_s).field("step", end.step);
      });
  json.key("ignored_options").begin_array();
  if (reading.warmup_ignored) {
    json.value("warmup");
  }
  if (reading.min_leak_ignored) {
    json.value("min_leak");
  }
  json.end_array().array("evidence", reading.evidence, [&](const tracker::Evidence& evidence) {
    json.begin_object()
        .field("kind", evidence_name(evidence.kind))
        .field("value", evidence.value)
        .field("bar", evidence.bar)
        .end_object();
  });
}

void add_series(JsonWriter& json, const tracker::JudgedRun& result) {
  json.array("series", result.verdict->tracks, [&](const TrackVerdict& each) {
    json.begin_object();
    add_who(json, result.run.tracks[each.track]);
    json.field("metric", metric_name(each.metric))
        .field("verdict", verdict_name(each.series.verdict))
        .field("undetermined", each.series.undetermined)
        .field("confidence", each.series.confidence)
        .field("likelihood", likelihood_of(each.series))
        .field("births_taken_out", each.churn_removed)
        .field("copy_on_write", each.copy_on_write);
    add_numbers(json, each.series);
    add_patterns(json, each.series);
    json.end_object();
  });
}

void add_overhead_and_advice(JsonWriter& json, const tracker::RunVerdict& verdict) {
  json.array("overhead", verdict.overheads, [&](const tracker::Overhead& overhead) {
    json.begin_object()
        .field("role", role_name(overhead.role))
        .field("processes", overhead.processes)
        .field("rss_bytes", whole(overhead.rss_bytes))
        .field("footprint_bytes", whole(overhead.footprint_bytes))
        .field("pss_bytes", whole(overhead.pss_bytes))
        .end_object();
  });
  add_advice(json, verdict.advice);
}

void add_gpu_growth(JsonWriter& json, const tracker::GpuGrowth& growth) {
  json.field("since_s", growth.since.t_s)
      .field("since_step", growth.since.step)
      .field("counts_all_users", growth.counts_all_users)
      .field("driver_bytes", whole(growth.driver_bytes))
      .field("torch_reserved_bytes", whole(growth.torch_reserved_bytes))
      .field("torch_allocated_bytes", whole(growth.torch_allocated_bytes))
      .field("explained_share", growth.explained_share());
}

void add_carrier(JsonWriter& json, const tracker::JudgedRun& result) {
  const tracker::RunVerdict& verdict = *result.verdict;
  json.text_field("held_as", verdict.held_as ? held_as_name(*verdict.held_as) : "")
      .object_or_null("carrier", verdict.carrier, [&](std::size_t carrier) {
        add_who(json, result.run.tracks[verdict.tracks[carrier].track]);
        json.field("share", verdict.carrier_share);
      });
}

}  // namespace

std::string track_json(const tracker::JudgedRun& result, const tracker::LastLook* last) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  if (result.verdict) {
    const TrackVerdict& answer = result.verdict->answer();
    const SeriesVerdict& reading = answer.series;
    json.field("verdict", verdict_name(result.verdict->verdict))
        .field("undetermined", reading.undetermined)
        .field("confidence", reading.confidence)
        .field("likelihood", likelihood_of(reading))
        .field("rise", reading.likelihood ? std::optional(rise_form_name(reading.likelihood->form))
                                          : std::nullopt)
        .field("metric", metric_name(answer.metric))
        .field("axis", reading.axis == tracker::Axis::kSteps ? "steps" : "time");
    json.object("where", [&] { add_who(json, result.run.tracks[answer.track]); });
    add_carrier(json, result);
    add_numbers(json, reading);
    add_patterns(json, reading);
    add_forecast(json, result, reading);
    add_judgement(json, reading);
    add_series(json, result);
    json.object_or_null("gpu_growth", result.verdict->gpu_growth,
                        [&](const tracker::GpuGrowth& growth) { add_gpu_growth(json, growth); });
    add_overhead_and_advice(json, *result.verdict);
  } else {
    json.field("verdict", nullptr).field("undetermined", true);
  }
  add_last_look(json, last);
  json.key("losses").begin_object();
  for (const auto& [what, count] : result.run.losses) {
    json.field(what, count);
  }
  return json.end_object().end_object().take();
}

}  // namespace tidemark::report
