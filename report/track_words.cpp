// SPDX-License-Identifier: Apache-2.0
#include "report/track_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::report {
namespace {

using tracker::Axis;
using tracker::Pattern;
using tracker::PatternKind;
using tracker::SeriesVerdict;
using tracker::Verdict;

constexpr std::string_view kLeakWord = "LEAK";

// "14 min to 19 min"; one of them where they read the same.
std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + " to " + high;
}

// How long it takes to the limit: "14 min to 19 min", "no less than 40 steps"; "" when unknown.
std::string time_to_limit(const tracker::Forecast& forecast) {
  if (forecast.in_s_low) {
    const std::string low = format_duration(*forecast.in_s_low);
    return forecast.in_s_high ? range_text(low, format_duration(*forecast.in_s_high))
                              : "no less than " + low;
  }
  if (!forecast.in_steps_low) {
    return "";
  }
  const std::string low = fmt::format("{:.0f}", *forecast.in_steps_low);
  return (forecast.in_steps_high ? range_text(low, fmt::format("{:.0f}", *forecast.in_steps_high))
                                 : "no less than " + low) +
         " steps";
}

bool is_over_the_limit(const tracker::Forecast& forecast) {
  return forecast.in_s_low.value_or(forecast.in_steps_low.value_or(1.0)) <= 0.0;
}

// Where growth ends: " near 4.00 GiB, below the limit of 8.00 GiB".
std::string settled_text(const tracker::Forecast& forecast, const std::string& source) {
  const std::string near = " near " + format_bytes(*forecast.asymptote_bytes);
  return forecast.limit_bytes
             ? fmt::format("{}, {} the limit of {}{}", near,
                           *forecast.asymptote_bytes < *forecast.limit_bytes ? "below" : "ABOVE",
                           format_bytes(*forecast.limit_bytes), source)
             : near;
}

// False for a single jump, whose rate is 0.
bool has_rate(const Pattern& pattern) {
  return pattern.rate.bytes_per_s.value_or(0.0) > 0.0 ||
         pattern.rate.bytes_per_step.value_or(0.0) > 0.0;
}

std::string drift_text(const SeriesVerdict& reading) {
  const Pattern* drift = reading.find(PatternKind::kDrift);
  return drift == nullptr
             ? ""
             : fmt::format(" It drifts by {}, too slow to be called a leak (--min-leak).",
                           rate_text(drift->rate, reading.axis));
}

std::string late_rise_text(const SeriesVerdict& reading) {
  const Pattern* rise = reading.find(PatternKind::kLateRise);
  return rise == nullptr
             ? ""
             : fmt::format(" It has been rising by {} since {}, too little yet to count.",
                           rate_text(rise->rate, reading.axis),
                           place_text(rise->from, reading.axis));
}

// What the absence of a leak is worth.
std::string drift_and_detectable_text(const SeriesVerdict& reading) {
  const std::string detectable = detectable_text(reading);
  return drift_text(reading) + late_rise_text(reading) +
         (detectable.empty() ? "" : " A" + detectable.substr(1) + '.');
}

std::string needs_sentence(const SeriesVerdict& reading) {
  const std::string needs = reading.needs ? needs_text(*reading.needs) : "";
  if (needs.empty()) {
    return "";
  }
  const std::string hint = needs_hint(*reading.needs);
  return fmt::format(" It needs {} to decide{}{}.", needs, hint.empty() ? "" : "; ", hint);
}

// ", the highest 2.00 GiB"; "" where they are about the same.
std::string highest_text(const Pattern& spikes) {
  constexpr double kMuchHigher = 1.3;
  return spikes.highest_bytes > kMuchHigher * spikes.height_bytes
             ? ", the highest " + format_bytes(spikes.highest_bytes)
             : "";
}

// "3 spikes of about 1.00 GiB"; "" where there are none.
std::string spikes_text(const SeriesVerdict& reading) {
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  return spikes == nullptr ? ""
                           : fmt::format("{} of about {}{}", format_count(spikes->count, "spike"),
                                         format_bytes(spikes->height_bytes), highest_text(*spikes));
}

// The same with how often they come.
std::string regular_spikes_text(const SeriesVerdict& reading) {
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  if (spikes != nullptr && spikes->period_steps) {
    return fmt::format("{}, every {} steps", spikes_text(reading),
                       number_text(*spikes->period_steps));
  }
  return spikes != nullptr && spikes->period_s
             ? spikes_text(reading) + ", every " + format_duration(*spikes->period_s)
             : spikes_text(reading);
}

std::string_view held_as_text(tracker::HeldAs held_as) {
  static constexpr std::array<std::string_view, 8> kTexts{
      "",  // private: what everybody expects
      " The growth is shared pages that become private (copy-on-write).",
      " The growth is in shared memory.",
      " The growth is one shared segment that several processes see.",
      " The growth is in swap.",
      " The growth is file cache, which the kernel takes back when it needs it.",
      " Deleting them in /dev/shm gives the memory back.",
      " The growth is ever more processes."};
  return kTexts[static_cast<std::size_t>(held_as)];
}

// Of a curve whose samples are too few to tell growth from none.
std::string too_few_text(const std::string& subject, const SeriesVerdict& reading) {
  std::string samples = format_count(reading.samples, "sample");
  for (const tracker::Evidence& evidence : reading.evidence) {
    if (evidence.kind == tracker::EvidenceKind::kPoints &&
        evidence.value < static_cast<double>(reading.samples)) {
      samples += " of " + format_count(static_cast<std::uint64_t>(evidence.value), "moment");
    }
  }
  const std::string spikes = regular_spikes_text(reading);
  const double change = reading.last_floor_bytes - reading.first_floor_bytes;
  const std::string floor =
      change == 0.0
          ? "is at " + format_bytes(reading.last_floor_bytes)
          : fmt::format("{} by {} to {}", change > 0.0 ? "rose" : "fell",
                        format_bytes(std::fabs(change)), format_bytes(reading.last_floor_bytes));
  return fmt::format("CANNOT TELL YET: {} {}{} in {}: too early to tell.{}", subject,
                     spikes.empty() ? "" : "has " + spikes + " and ", floor, samples,
                     needs_sentence(reading));
}

// Where the floor is, of a curve that does not grow: "stays at 2.00 GiB".
std::string level_text(const SeriesVerdict& reading) {
  const bool drifts = reading.find({PatternKind::kDrift, PatternKind::kLateRise}) != nullptr;
  const std::string floor = format_bytes(reading.last_floor_bytes);
  if (const Pattern* warmup = reading.find(PatternKind::kWarmup)) {
    return fmt::format("grew by {} until {} and {}", format_bytes(warmup->growth_bytes),
                       place_text(warmup->to, reading.axis),
                       drifts ? "is at " + floor + " now" : "stands at " + floor + " since");
  }
  return fmt::format("{} at {}", drifts ? "is" : "stays", floor);
}

constexpr double kLikely = 0.65;

bool is_likely_leak(const SeriesVerdict& reading) {
  return reading.likelihood && reading.likelihood->chance >= kLikely;
}

bool is_likely_warmup(const SeriesVerdict& reading) {
  return reading.likelihood && reading.likelihood->chance <= 1.0 - kLikely;
}

// "LIKELY LEAK (80 %)".
std::string growing_heading(const SeriesVerdict& reading) {
  if (is_likely_leak(reading)) {
    return fmt::format("LIKELY LEAK ({})", format_percent(reading.likelihood->chance));
  }
  return is_likely_warmup(reading)
             ? fmt::format("LIKELY WARM-UP ({})", format_percent(1.0 - reading.likelihood->chance))
             : "CANNOT TELL YET";
}

// How it rises: ", straight for 2 min".
std::string form_text(const SeriesVerdict& reading) {
  if (!reading.likelihood) {
    return "";
  }
  const tracker::LeakLikelihood& rise = *reading.likelihood;
  switch (rise.form) {
    case tracker::RiseForm::kStraight: {
      const bool by_step = reading.axis == Axis::kSteps;
      const auto& from = by_step ? rise.since.step : rise.since.t_s;
      const auto& to = by_step ? reading.end.step : reading.end.t_s;
      if (!from || !to) {
        return "";
      }
      return ", straight for " +
             (by_step ? format_count(static_cast<std::uint64_t>(*to - *from), "step")
                      : format_duration(*to - *from));
    }
    case tracker::RiseForm::kSlowing:
      return ", ever more slowly";
    case tracker::RiseForm::kEnded:
      return ", but hardly at the end";
    case tracker::RiseForm::kUneven:
      return ", most of it in one jump";
  }
  return "";
}

std::string_view other_explanation(const SeriesVerdict& reading) {
  return is_likely_leak(reading)     ? "Warm-up would also fit."
         : is_likely_warmup(reading) ? "A leak would also fit."
                                     : "Warm-up explains that as well as a leak.";
}

// What `subject` ("footprint of trainer, pid 1240 (train.py)") does, and what follows from it.
std::string reading_text(const std::string& subject, Verdict verdict, const SeriesVerdict& reading,
                         const std::string& limit_source) {
  const auto and_forecast = [&](const std::string& text) {
    const std::string forecast = forecast_text(reading, limit_source);
    return forecast.empty() ? text : text + ' ' + forecast;
  };
  switch (verdict) {
    case Verdict::kLeak:
      return and_forecast(
          fmt::format("{}: {} {}.", kLeakWord, subject, grows_text(reading, Verdict::kLeak)));
    case Verdict::kGrowing:
      return and_forecast(fmt::format("{}: {} {}{}. {}{}", growing_heading(reading), subject,
                                      grows_text(reading, Verdict::kGrowing), form_text(reading),
                                      other_explanation(reading), needs_sentence(reading)));
    case Verdict::kSpikes:
    case Verdict::kWarmup:
    case Verdict::kStable:
      break;
  }
  if (reading.undetermined) {
    return too_few_text(subject, reading);
  }
  const std::string level = level_text(reading);
  const std::string worth = drift_and_detectable_text(reading);
  if (verdict == Verdict::kSpikes) {
    return fmt::format("No leak, spikes: {} has {}; its floor {}.{}", subject,
                       regular_spikes_text(reading), level, worth);
  }
  const bool rises = reading.find(PatternKind::kLateRise) != nullptr;
  return fmt::format("No leak{}, {}: {} {}.{}", rises ? " so far" : "",
                     verdict == Verdict::kWarmup ? "warm-up" : "stable", subject, level, worth);
}

// Shared pages that become private: it ends when all of them are copied.
std::string bounded_text(const std::string& subject, const SeriesVerdict& reading,
                         const tracker::Track& track) {
  const tracker::Forecast& forecast = reading.forecast;
  const std::string who = track.kind == tracker::TrackKind::kRole && track.most_processes > 0
                              ? " in " + format_count(track.most_processes, "worker")
                              : "";
  const std::string limit =
      forecast.limit_bytes
          ? fmt::format(" That is {} the limit of {}.",
                        *forecast.asymptote_bytes < *forecast.limit_bytes ? "below" : "ABOVE",
                        format_bytes(*forecast.limit_bytes))
          : "";
  return fmt::format(
      "GROWING, BOUNDED near {} (copy-on-write{}): {} {}. It ends when all that "
      "they share is copied.{}{}",
      format_bytes(*forecast.asymptote_bytes), who, subject, grows_text(reading, Verdict::kGrowing),
      limit, needs_sentence(reading));
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

std::string forecast_text(const SeriesVerdict& reading, const std::string& limit_source) {
  const tracker::Forecast& forecast = reading.forecast;
  const std::string source =
      limit_source.empty() ? "" : fmt::format(" ({})", shorten(escape_text(limit_source), 60));
  if (forecast.asymptote_bytes) {
    return "It seems to settle" + settled_text(forecast, source) + '.';
  }
  if (!forecast.limit_bytes) {
    return "";
  }
  const std::string limit = format_bytes(*forecast.limit_bytes) + source;
  if (is_over_the_limit(forecast)) {
    return fmt::format("The limit of {} is exceeded already.", limit);
  }
  const Pattern* const growth = reading.find(PatternKind::kGrowth);
  const std::string when = growth != nullptr && !has_rate(*growth) ? "" : time_to_limit(forecast);
  return when.empty() ? ""
                      : fmt::format("At this rate it reaches the limit of {} in {}.", limit, when);
}

bool is_bounded_copying(const tracker::TrackVerdict& answer, Verdict verdict) {
  return verdict == Verdict::kGrowing && answer.copy_on_write &&
         answer.series.forecast.asymptote_bytes;
}

std::string grows_text(const SeriesVerdict& reading, Verdict verdict) {
  const PatternKind kind = verdict == Verdict::kLeak ? PatternKind::kLeak : PatternKind::kGrowth;
  const Pattern* pattern = reading.find(kind);
  std::string grown =
      fmt::format("grew by {}", format_bytes(reading.last_floor_bytes - reading.first_floor_bytes));
  if (pattern == nullptr) {
    return grown;
  }
  if (kind == PatternKind::kGrowth && !has_rate(*pattern)) {
    return grown + " since " + place_text(pattern->from, reading.axis);
  }
  std::string text = kind == PatternKind::kLeak ? "keeps growing" : "grows";
  if (const std::string rate = rate_text(pattern->rate, reading.axis); !rate.empty()) {
    text += " by " + rate;
  }
  return text + " since " + place_text(pattern->from, reading.axis);
}

std::string number_text(double value) {
  return fmt::format("{:.{}f}", value, std::fabs(value) < 10.0 ? 1 : 0);
}

std::string place_text(const tracker::Moment& at, Axis axis) {
  if (at.step && (axis == Axis::kSteps || !at.t_s)) {
    return format_place(*at.step, RateUnit::kStep);
  }
  return at.t_s ? format_clock(*at.t_s) : "?";
}

std::string rate_text(const tracker::GrowthRate& rate, Axis axis, RateFormat format) {
  const auto text = [&](const std::optional<double>& bytes, RateUnit unit) {
    return bytes ? format_rate(*bytes, unit, format) : "";
  };
  std::string first = text(rate.bytes_per_step, RateUnit::kStep);
  std::string second = text(rate.bytes_per_s, RateUnit::kSecond);
  if (axis == Axis::kTime) {
    std::swap(first, second);
  }
  return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

std::string process_label(Role role, const std::optional<std::uint32_t>& rank, pid_t pid,
                          std::string_view name, std::size_t columns) {
  std::string text(role_name(role));
  text += rank ? fmt::format(" {}", *rank) : "";
  text += pid > 0 ? fmt::format(", pid {}", pid) : "";
  return name.empty() ? text : fmt::format("{} ({})", text, shorten(escape_text(name), columns));
}

std::string who_text(const tracker::Track& track) {
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
  return process_label(track.role, track.rank, track.key.pid,
                       track.program.empty() ? track.comm : track.program, 40);
}

std::string curve_text(tracker::Metric metric, const tracker::Track& track) {
  if (metric == tracker::Metric::kGpuDevice) {
    return "GPU memory of all users (the driver does not tell whose it is)";
  }
  return fmt::format("{} of {}",
                     metric == tracker::Metric::kGpu ? "GPU memory" : metric_name(metric),
                     who_text(track));
}

std::string gpu_growth_text(const tracker::GpuGrowth& growth, tracker::Axis axis) {
  constexpr double kLeastBytes = 1024.0 * 1024.0;
  const std::string since = " since " + place_text(growth.since, axis);
  const auto share = growth.explained_share();
  if (!share || growth.driver_bytes < kLeastBytes) {
    return fmt::format("GPU memory {}{}, torch's allocator holds {}",
                       format_bytes_delta(growth.driver_bytes), since,
                       format_bytes_delta(growth.torch_reserved_bytes));
  }
  std::string text = fmt::format("GPU memory grew by {}{}, torch's allocator explains {} ({})",
                                 format_bytes(growth.driver_bytes), since,
                                 format_bytes(growth.torch_reserved_bytes),
                                 format_percent(std::clamp(*share, 0.0, 1.0)));
  const double cached = growth.torch_reserved_bytes -
                        growth.torch_allocated_bytes.value_or(growth.torch_reserved_bytes);
  if (*share < 0.5) {
    text += ": most of it was allocated beside torch, by another library or the driver itself";
  } else if (cached > 0.5 * growth.torch_reserved_bytes) {
    text += fmt::format("; tensors {}: the allocator keeps what is free, in pieces that do not fit",
                        format_bytes_delta(*growth.torch_allocated_bytes));
  }
  return text;
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
  const bool is_bounded = is_bounded_copying(answer, verdict.verdict);
  std::string text =
      is_bounded ? bounded_text(subject, answer.series, track)
                 : reading_text(subject, verdict.verdict, answer.series, result.run.limit_source);
  if (verdict.held_as && !is_bounded) {
    text += held_as_text(*verdict.held_as);
  }
  if (verdict.carrier && *verdict.carrier != verdict.where) {
    const tracker::Track& carrier = result.run.tracks[verdict.tracks[*verdict.carrier].track];
    const double share = std::clamp(verdict.carrier_share, 0.0, 1.0);
    if (verdict.verdict == Verdict::kLeak && share > 0.5) {
      text.insert(kLeakWord.size(), " in " + who_text(carrier));  // who comes first
      text += fmt::format(" {} of the growth is there.", format_percent(share));
    } else {
      text += fmt::format(" {} of the growth is in {}.", format_percent(share), who_text(carrier));
    }
  }
  return text;
}

std::string_view verdict_so_far(const SeriesVerdict& reading, Verdict verdict) {
  const bool is_open = reading.undetermined && verdict < Verdict::kGrowing;
  return is_open ? "too early" : verdict_name(verdict);
}

std::string short_verdict(const SeriesVerdict& reading, Verdict verdict) {
  switch (verdict) {
    case Verdict::kLeak:
      return std::string(kLeakWord);
    case Verdict::kGrowing:
      return is_likely_leak(reading) ? "LIKELY LEAK " + format_percent(reading.likelihood->chance)
             : is_likely_warmup(reading)
                 ? "LIKELY WARM-UP " + format_percent(1.0 - reading.likelihood->chance)
                 : "GROWING";
    case Verdict::kSpikes:
    case Verdict::kWarmup:
    case Verdict::kStable:
      break;
  }
  return reading.undetermined          ? "TOO EARLY"
         : verdict == Verdict::kSpikes ? "SPIKES"
         : verdict == Verdict::kWarmup ? "WARMED UP"
                                       : "STABLE";
}

std::string short_growth(const SeriesVerdict& reading, Verdict verdict) {
  const Pattern* pattern =
      reading.find(verdict == Verdict::kLeak ? PatternKind::kLeak : PatternKind::kGrowth);
  if (pattern == nullptr) {
    return format_bytes_delta(reading.last_floor_bytes - reading.first_floor_bytes) + " so far";
  }
  const std::string rate = rate_text(pattern->rate, Axis::kSteps, {.has_sign = true});
  return fmt::format("{}{}since {}", rate, rate.empty() ? "" : " ",
                     place_text(pattern->from, reading.axis));
}

std::string short_finding(const SeriesVerdict& reading, Verdict verdict) {
  const std::string needs = reading.needs ? needs_text(*reading.needs) : "";
  const std::string and_needs = needs.empty() ? "" : "; needs " + needs;
  if (verdict == Verdict::kLeak) {
    return short_growth(reading, verdict);
  }
  if (verdict == Verdict::kGrowing) {
    return short_growth(reading, verdict) + and_needs;
  }
  if (reading.undetermined) {
    return format_bytes_delta(reading.last_floor_bytes - reading.first_floor_bytes) + " so far" +
           and_needs;
  }
  std::string text = spikes_text(reading);
  text += text.empty() ? "" : ", ";
  const std::string floor = format_bytes(reading.last_floor_bytes);
  if (const Pattern* warmup = reading.find(PatternKind::kWarmup)) {
    return fmt::format("{}grew by {} until {}, stands at {}", text,
                       format_bytes(warmup->growth_bytes), place_text(warmup->to, reading.axis),
                       floor);
  }
  return text + "floor stays at " + floor;
}

std::string short_forecast(const SeriesVerdict& reading) {
  const tracker::Forecast& forecast = reading.forecast;
  if (forecast.asymptote_bytes) {
    return "settles" + settled_text(forecast, "");
  }
  if (!forecast.limit_bytes) {
    return "";
  }
  const std::string limit = "limit " + format_bytes(*forecast.limit_bytes);
  const std::string when = time_to_limit(forecast);
  return is_over_the_limit(forecast) ? limit + " exceeded"
         : when.empty()              ? limit
                                     : limit + " in " + when;
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

std::string detectable_text(const SeriesVerdict& reading) {
  const auto& per_step = reading.smallest_detectable_per_step;
  const auto& per_s = reading.smallest_detectable_per_s;
  if (!per_step && !per_s) {
    return "";
  }
  const bool by_step = per_step && (reading.axis == Axis::kSteps || !per_s);
  const std::string rate =
      by_step ? format_rate(*per_step, RateUnit::kStep) : format_rate(*per_s, RateUnit::kSecond);
  const std::string from = place_text(reading.tested_from, reading.axis);
  const Pattern* const rise = reading.find(PatternKind::kLateRise);
  const bool to_the_end = rise == nullptr;
  if (rise != nullptr &&
      place_text(reading.tested_to, reading.axis) != place_text(rise->from, reading.axis)) {
    return "";  // the rise is all that there is
  }
  return from == "?"
             ? fmt::format("a leak above {} would have been seen", rate)
             : fmt::format("a leak above {} {} {}{} would have been seen", rate,
                           to_the_end ? "since" : "from", from,
                           to_the_end ? "" : " to " + place_text(reading.tested_to, reading.axis));
}

namespace {

double minutes_needed(const SeriesVerdict& reading) {
  constexpr double kUsualMin = 30.0;
  constexpr double kShortestMin = 2.0;
  constexpr double kLongestMin = 24.0 * 60.0;
  const auto more_s = reading.needs ? reading.needs->more_s : std::nullopt;
  const double minutes = more_s ? std::ceil(*more_s / 60.0) : kUsualMin;
  return std::clamp(minutes, kShortestMin, kLongestMin);
}

std::string next_for_running(const tracker::JudgedRun& result, const std::string& target) {
  const SeriesVerdict& reading = result.verdict->answer().series;
  const bool is_leak = result.verdict->verdict == Verdict::kLeak;
  if (target == "--system") {  // no command acts on all of it
    return is_leak ? "tidemark find names the training job, and how to watch it alone"
                   : fmt::format("tidemark track --system --duration {}", duration_needed(reading));
  }
  if (is_leak) {
    // A profile is of one process and those below it.
    return fmt::format(
        "tidemark profile {} shows which lines of code leak; tidemark guard {} stops it with a "
        "checkpoint before memory is full",
        target.substr(0, target.find(" --pid")), target);
  }
  if (fills_before_verdict(reading)) {
    return fmt::format(
        "tidemark guard {}, which stops it with a checkpoint before memory is full: that may be "
        "sooner than a verdict",
        target);
  }
  if (fills_soon(reading)) {
    return fmt::format(
        "tidemark guard {} stops it with a checkpoint before memory is full; tidemark track {} "
        "--duration {} decides whether it leaks",
        target, target, duration_needed(reading));
  }
  if (result.verdict->verdict == Verdict::kGrowing || reading.undetermined) {
    return fmt::format(
        "tidemark track {} --duration {}; or, if you know when warm-up is over, add "
        "--warmup 200steps or --warmup 10min",
        target, duration_needed(reading));
  }
  return fmt::format("tidemark guard {} stops it with a checkpoint, should that change", target);
}

std::string next_for_finished(const tracker::JudgedRun& result, const std::string& command) {
  const SeriesVerdict& reading = result.verdict->answer().series;
  if (result.verdict->verdict == Verdict::kLeak) {
    return fmt::format(
        "tidemark profile -- {} shows which lines of code leak; after a fix record a second run "
        "with -o and compare both: tidemark diff BEFORE AFTER",
        command);
  }
  if (result.verdict->verdict == Verdict::kGrowing || reading.undetermined) {
    return fmt::format(
        "record a longer run: tidemark track -o run.tidemark -- {}; or, if you know when warm-up "
        "is over, judge this one again with --warmup 200steps or --warmup 10min",
        command);
  }
  return fmt::format("tidemark check -- {} fails in CI, should that change", command);
}

}  // namespace

bool fills_soon(const SeriesVerdict& reading) {
  constexpr double kSoonS = 3600.0;
  return fills_before_verdict(reading) ||
         (is_likely_leak(reading) && reading.forecast.in_s_low.value_or(kSoonS) < kSoonS);
}

bool fills_before_verdict(const SeriesVerdict& reading) {
  return reading.undetermined && reading.forecast.in_s_low && reading.forecast.in_s_high &&
         *reading.forecast.in_s_low < minutes_needed(reading) * 60.0;
}

std::string late_rise_rate(const SeriesVerdict& reading) {
  const Pattern* rise = reading.find(PatternKind::kLateRise);
  return rise == nullptr ? "" : rate_text(rise->rate, reading.axis, {.has_sign = true});
}

std::string duration_needed(const SeriesVerdict& reading) {
  return fmt::format("{:.0f}min", minutes_needed(reading));
}

std::string next_text(const tracker::JudgedRun& result, const JudgedTarget& target) {
  if (!result.verdict) {
    return "";
  }
  return target.running.empty()
             ? next_for_finished(result, target.command.empty() ? "COMMAND" : target.command)
             : next_for_running(result, target.running);
}

}  // namespace tidemark::report
