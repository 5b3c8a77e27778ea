// SPDX-License-Identifier: Apache-2.0
#include "report/track_words.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/gpu_words.h"

namespace tidemark::report {
namespace {

using tracker::Axis;
using tracker::Pattern;
using tracker::PatternKind;
using tracker::SeriesVerdict;
using tracker::Verdict;

constexpr std::string_view kLeakWord = "LEAK";

// A figure too small to read is given for a larger unit.
std::string per_time_text(double bytes_per_s) {
  constexpr double kSmall = 100.0 * 1024.0;
  const double per_min = bytes_per_s * 60.0;
  return std::fabs(per_min) < kSmall ? size_text(per_min * 60.0) + "/h"
                                     : size_text(per_min) + "/min";
}

std::string per_step_text(double bytes_per_step) {
  constexpr double kSmall = 1024.0;
  return std::fabs(bytes_per_step) < kSmall ? size_text(bytes_per_step * 1000.0) + "/1000 steps"
                                            : size_text(bytes_per_step) + "/step";
}

template <typename ToText>
std::optional<std::string> with(const std::optional<double>& value, ToText to_text) {
  return value ? std::optional<std::string>(to_text(*value)) : std::nullopt;
}

std::string interval_text(double low, double high) {
  const std::string from = format_duration(low);
  const std::string to = format_duration(high);
  return from == to ? from : from + " to " + to;
}

std::string steps_interval_text(double low, double high) {
  return std::llround(low) == std::llround(high) ? fmt::format("{:.0f} steps", low)
                                                 : fmt::format("{:.0f} to {:.0f} steps", low, high);
}

// When the limit is reached, or where growth ends; "" when neither is known.
std::string forecast_text(const SeriesVerdict& reading, const std::string& limit_source) {
  const tracker::Forecast& forecast = reading.forecast;
  const std::string source =
      limit_source.empty() ? "" : fmt::format(" ({})", shorten(escape_text(limit_source), 60));
  if (forecast.asymptote_bytes) {
    std::string text =
        fmt::format("It seems to settle near {}", size_text(*forecast.asymptote_bytes));
    if (forecast.limit_bytes) {
      const bool is_safe = *forecast.asymptote_bytes < *forecast.limit_bytes;
      text += fmt::format(", {} the limit of {}{}", is_safe ? "below" : "ABOVE",
                          size_text(*forecast.limit_bytes), source);
    }
    return text + '.';
  }
  if (!forecast.limit_bytes) {
    return "";
  }
  if (forecast.in_s_low.value_or(forecast.in_steps_low.value_or(1.0)) <= 0.0) {
    return fmt::format("The limit of {}{} is exceeded already.", size_text(*forecast.limit_bytes),
                       source);
  }
  std::string when;
  if (forecast.in_s_low && forecast.in_s_high) {
    when = interval_text(*forecast.in_s_low, *forecast.in_s_high);
  } else if (forecast.in_s_low) {
    when = fmt::format("no less than {}", format_duration(*forecast.in_s_low));
  } else if (forecast.in_steps_low && forecast.in_steps_high) {
    when = steps_interval_text(*forecast.in_steps_low, *forecast.in_steps_high);
  } else if (forecast.in_steps_low) {
    when = fmt::format("no less than {:.0f} steps", *forecast.in_steps_low);
  }
  return when.empty() ? ""
                      : fmt::format("At this rate it reaches the limit of {}{} in {}.",
                                    size_text(*forecast.limit_bytes), source, when);
}

std::string drift_text(const SeriesVerdict& reading) {
  const Pattern* drift = reading.find(PatternKind::kDrift);
  return drift == nullptr
             ? ""
             : fmt::format(" It drifts by {}, too slow to be called a leak (--min-leak).",
                           rate_text(drift->rate, reading.axis));
}

// What the absence of a leak is worth.
std::string detectable_text(const SeriesVerdict& reading) {
  std::string drift = drift_text(reading);
  const auto& per_step = reading.smallest_detectable_per_step;
  const auto& per_s = reading.smallest_detectable_per_s;
  if (!per_step && !per_s) {
    return drift;
  }
  const bool by_step = per_step && (reading.axis == Axis::kSteps || !per_s);
  return fmt::format("{} A leak above {} would have been seen.", drift,
                     by_step ? per_step_text(*per_step) : per_time_text(*per_s));
}

std::string needs_sentence(const SeriesVerdict& reading) {
  const std::string needs = reading.needs ? needs_text(*reading.needs) : "";
  if (needs.empty()) {
    return "";
  }
  const std::string hint = needs_hint(*reading.needs);
  return fmt::format(" It needs {} to decide{}{}.", needs, hint.empty() ? "" : "; ", hint);
}

std::string grows_text(const SeriesVerdict& reading, PatternKind kind) {
  const Pattern* pattern = reading.find(kind);
  if (pattern == nullptr) {
    return fmt::format("grew by {}",
                       size_text(reading.last_floor_bytes - reading.first_floor_bytes));
  }
  std::string text = kind == PatternKind::kLeak ? "keeps growing" : "grows";
  if (const std::string rate = rate_text(pattern->rate, reading.axis); !rate.empty()) {
    text += " by " + rate;
  }
  return text + " since " + place_text(pattern->from, reading.axis);
}

std::string spikes_text(const SeriesVerdict& reading) {
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  if (spikes == nullptr) {
    return "";
  }
  std::string text =
      fmt::format("{} {} of about {}", spikes->count, spikes->count == 1 ? "spike" : "spikes",
                  size_text(spikes->height_bytes));
  if (spikes->period_steps) {
    text += fmt::format(", every {} steps", number_text(*spikes->period_steps));
  } else if (spikes->period_s) {
    text += ", every " + format_duration(*spikes->period_s);
  }
  return text;
}

std::string_view held_as_text(tracker::HeldAs held_as) {
  using tracker::HeldAs;
  switch (held_as) {
    case HeldAs::kPrivate:
      return "";  // what everybody expects
    case HeldAs::kCopyOnWrite:
      return " The growth is shared pages that become private (copy-on-write).";
    case HeldAs::kSharedMemory:
      return " The growth is in shared memory.";
    case HeldAs::kSharedSegment:
      return " The growth is one shared segment that several processes see.";
    case HeldAs::kSwap:
      return " The growth is in swap.";
    case HeldAs::kFileCache:
      return " The growth is file cache, which the kernel takes back when it needs it.";
    case HeldAs::kUnheldShm:
      return " Deleting them in /dev/shm gives the memory back.";
    case HeldAs::kProcesses:
      return " The growth is ever more processes.";
  }
  return "";
}

std::string count_text(double count, std::string_view what) {
  return fmt::format("{:.0f} {}{}", count, what, count == 1.0 ? "" : "s");
}

// Of a curve that shows no growth, in samples that are too few to exclude one.
std::string too_few_text(const std::string& subject, const SeriesVerdict& reading) {
  std::string samples = count_text(static_cast<double>(reading.samples), "sample");
  for (const tracker::Evidence& evidence : reading.evidence) {
    if (evidence.kind == tracker::EvidenceKind::kPoints &&
        evidence.value < static_cast<double>(reading.samples)) {
      samples += " of " + count_text(evidence.value, "moment");
    }
  }
  const std::string spikes = spikes_text(reading);
  return fmt::format("CANNOT TELL YET: {} {}shows no growth in {}, which is too few.{}", subject,
                     spikes.empty() ? "" : "has " + spikes + " and ", samples,
                     needs_sentence(reading));
}

// Where the floor is, of a curve that does not grow: "stays at 2.00 GiB".
std::string level_text(const SeriesVerdict& reading) {
  const bool drifts = reading.find(PatternKind::kDrift) != nullptr;
  const std::string floor = size_text(reading.last_floor_bytes);
  if (const Pattern* warmup = reading.find(PatternKind::kWarmup)) {
    return fmt::format("grew by {} until {} and {}", size_text(warmup->growth_bytes),
                       place_text(warmup->to, reading.axis),
                       drifts ? "is at " + floor + " now" : "stands at " + floor + " since");
  }
  return fmt::format("{} at {}", drifts ? "is" : "stays", floor);
}

// What `subject` ("footprint of trainer, pid 1240 (python3)") does, and what follows from it.
std::string reading_text(const std::string& subject, Verdict verdict, const SeriesVerdict& reading,
                         const std::string& limit_source) {
  const auto and_forecast = [&](const std::string& text) {
    const std::string forecast = forecast_text(reading, limit_source);
    return forecast.empty() ? text : text + ' ' + forecast;
  };
  switch (verdict) {
    case Verdict::kLeak:
      return and_forecast(
          fmt::format("{}: {} {}.", kLeakWord, subject, grows_text(reading, PatternKind::kLeak)));
    case Verdict::kGrowing:
      return and_forecast(
          fmt::format("CANNOT TELL YET: {} {}. Warm-up explains that as well as a "
                      "leak.{}",
                      subject, grows_text(reading, PatternKind::kGrowth), needs_sentence(reading)));
    case Verdict::kSpikes:
    case Verdict::kWarmup:
    case Verdict::kStable:
      break;
  }
  if (reading.undetermined) {
    return too_few_text(subject, reading);
  }
  const std::string level = level_text(reading);
  const std::string worth = detectable_text(reading);
  if (verdict == Verdict::kSpikes) {
    return fmt::format("No leak, spikes: {} has {}; its floor {}.{}", subject, spikes_text(reading),
                       level, worth);
  }
  return fmt::format("No leak, {}: {} {}.{}", verdict == Verdict::kWarmup ? "warm-up" : "stable",
                     subject, level, worth);
}

// What can be judged instead of what was asked for.
std::string no_sample_text(const tracker::JudgedRun& result) {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < tracker::kMetricCount; ++i) {
    const auto metric = static_cast<tracker::Metric>(i);
    const bool has =
        std::any_of(result.run.tracks.begin(), result.run.tracks.end(),
                    [&](const tracker::Track& track) { return !track.of(metric).empty(); });
    if (has && tracker::parse_metric(metric_name(metric))) {
      known.push_back(metric_name(metric));
    }
  }
  if (!result.asked_metric || known.empty()) {
    return "CANNOT TELL: there is no sample to judge.";
  }
  return fmt::format("CANNOT TELL: there is no sample of {} to judge, only of {}.",
                     metric_name(*result.asked_metric), fmt::join(known, ", "));
}

}  // namespace

std::string per_axis_text(double bytes, Axis axis) {
  return axis == Axis::kSteps ? per_step_text(bytes) : per_time_text(bytes);
}

std::string number_text(double value) {
  return fmt::format("{:.{}f}", value, std::fabs(value) < 10.0 ? 1 : 0);
}

std::string percent_text(double share) { return fmt::format("{:.0f} %", share * 100.0); }

std::string size_text(double bytes) {
  if (!std::isfinite(bytes)) {
    return "?";
  }
  const double magnitude = std::min(std::fabs(bytes), 0x1p62);
  return (bytes <= -0.5 ? "-" : "") +
         format_bytes(static_cast<std::uint64_t>(std::llround(magnitude)));
}

std::string change_text(double bytes) { return (bytes <= -0.5 ? "" : "+") + size_text(bytes); }

std::string place_text(const tracker::Moment& at, Axis axis) {
  const bool by_step = at.step && (axis == Axis::kSteps || !at.t_s);
  if (by_step) {
    return fmt::format("step {:.0f}", *at.step);
  }
  return at.t_s ? format_clock(*at.t_s) : "?";
}

std::string rate_text(const tracker::GrowthRate& rate, Axis axis) {
  const auto by_step = with(rate.bytes_per_step, per_step_text);
  const auto by_time = with(rate.bytes_per_s, per_time_text);
  const auto& first = axis == Axis::kSteps ? by_step : by_time;
  const auto& second = axis == Axis::kSteps ? by_time : by_step;
  return first.value_or("") + (first && second ? ", " : "") + second.value_or("");
}

std::string who_text(const tracker::Track& track) {
  const std::string comm = shorten(escape_text(track.comm), 40);
  switch (track.kind) {
    case tracker::TrackKind::kTree:
      return "the whole tree";
    case tracker::TrackKind::kShm:
      return "/dev/shm segments that no process holds";
    case tracker::TrackKind::kRole:
      return fmt::format("{} x{}", role_name(track.role), track.most_processes);
    case tracker::TrackKind::kProcess:
      break;
  }
  std::string text(role_name(track.role));
  if (track.rank) {
    text += fmt::format(" {}", *track.rank);
  }
  if (track.key.pid > 0) {
    text += fmt::format(", pid {}", track.key.pid);
  }
  return comm.empty() ? text : fmt::format("{} ({})", text, comm);
}

std::string answer_text(const tracker::JudgedRun& result) {
  if (!result.verdict) {
    return no_sample_text(result);
  }
  const tracker::RunVerdict& verdict = *result.verdict;
  const tracker::TrackVerdict& answer = verdict.answer();
  const tracker::Track& track = result.run.tracks[answer.track];
  const std::string subject =
      track.kind == tracker::TrackKind::kShm ? who_text(track) : curve_text(answer.metric, track);
  std::string text = reading_text(subject, verdict.verdict, answer.series, result.run.limit_source);
  if (verdict.held_as) {
    text += held_as_text(*verdict.held_as);
  }
  if (verdict.carrier && *verdict.carrier != verdict.where) {
    const tracker::Track& carrier = result.run.tracks[verdict.tracks[*verdict.carrier].track];
    const double share = std::clamp(verdict.carrier_share, 0.0, 1.0);
    if (verdict.verdict == Verdict::kLeak && share > 0.5) {
      text.insert(kLeakWord.size(), " in " + who_text(carrier));  // who comes first
      text += fmt::format(" {} of the growth is there.", percent_text(share));
    } else {
      text += fmt::format(" {} of the growth is in {}.", percent_text(share), who_text(carrier));
    }
  }
  return text;
}

std::vector<std::string> ignored_options(const tracker::JudgedRun& result) {
  std::vector<std::string> ignored;
  if (!result.verdict) {
    return ignored;
  }
  const SeriesVerdict& reading = result.verdict->answer().series;
  const std::string_view why = reading.end.t_s ? "counts steps, and too few are known here"
                                               : "counts time, and only steps are known here";
  if (reading.warmup_ignored) {
    ignored.push_back(fmt::format("--warmup {}: the automatic allowance applies", why));
  }
  if (reading.min_leak_ignored) {
    ignored.push_back(fmt::format("--min-leak {}: the default applies", why));
  }
  return ignored;
}

std::string next_text(const tracker::JudgedRun& result) {
  if (!result.verdict) {
    return "";
  }
  const SeriesVerdict& reading = result.verdict->answer().series;
  const bool has_steps = !reading.floor.empty() && reading.floor.back().at.step.has_value();
  switch (result.verdict->verdict) {
    case Verdict::kLeak:
      return has_steps
                 ? "after a fix record a second run with -o and compare both: tidemark diff "
                   "BEFORE AFTER"
                 : "tell it about steps (--step-regex, docs/markers.md) to see the growth per "
                   "step, and phases to see where it happens";
    case Verdict::kGrowing:
      return "watch for longer; or, if you know when warm-up is over, say so: --warmup 200steps or "
             "--warmup 10min";
    case Verdict::kStable:
    case Verdict::kWarmup:
    case Verdict::kSpikes:
      break;
  }
  return reading.undetermined ? "watch for longer" : "";
}

}  // namespace tidemark::report
