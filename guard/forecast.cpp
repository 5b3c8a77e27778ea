// SPDX-License-Identifier: Apache-2.0
#include "guard/forecast.h"

#include <algorithm>

#include "common/clock.h"
#include "tracker/run/judged_run.h"

namespace tidemark::guard {
namespace {

constexpr double kSoonestJudgementS = 1.0;
constexpr double kJudgingShare = 0.02;  // of the time

bool holds(const std::vector<ProcessKey>& keys, const ProcessKey& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// The one process that grows, as far as it is one.
std::optional<ProcessKey> grower(const tracker::JudgedRun& result) {
  const tracker::RunVerdict& verdict = *result.verdict;
  const auto key_of = [&](const tracker::TrackVerdict& reading) -> std::optional<ProcessKey> {
    const tracker::Track& track = result.run.tracks[reading.track];
    return track.kind == tracker::TrackKind::kProcess ? std::optional(track.key) : std::nullopt;
  };
  const auto key = key_of(verdict.answer());
  return key || !verdict.carrier ? key : key_of(verdict.tracks[*verdict.carrier]);
}

}  // namespace

Status GuardForecast::begin(const RunInfo& info) {
  info_ = info;
  return builder_.begin(info);
}

// Of those that trained last nobody is left, and others train.
bool GuardForecast::is_another_job(const Roster& roster) const {
  return roster.is_recognised && !trainers_.empty() &&
         std::none_of(trainers_.begin(), trainers_.end(),
                      [&](const ProcessKey& key) { return holds(roster.members, key); });
}

void GuardForecast::update(const Tick& tick, const Roster& roster, const ProcessLookup& lookup) {
  if (is_another_job(roster)) {
    builder_ = {};
    (void)builder_.begin(info_);
    Tick first = tick;  // that has everybody in it
    first.new_processes.clear();
    for (const ProcessSample& sample : tick.processes) {
      if (const ProcessRecord* record = lookup(sample.key)) {
        first.new_processes.push_back(*record);
      }
    }
    (void)builder_.add(first);
    leak_.reset();
    next_judgement_s_ = tick.t_s;
  }
  if (roster.is_recognised) {
    trainers_ = roster.trainers;
  }
  judge(tick);
  if (leaks_ && !holds(roster.members, *leaks_)) {
    leak_.reset();
  }
}

void GuardForecast::judge(const Tick& tick) {
  if (tick.t_s < next_judgement_s_) {
    return;
  }
  const std::int64_t begin_ns = thread_cpu_ns();
  const tracker::JudgedRun result = tracker::judge_run(builder_.tracks(), options_);
  leak_.reset();
  leaks_.reset();
  if (result.verdict) {
    verdict_ = verdict_name(result.verdict->verdict);
    const tracker::Pattern* leak =
        result.verdict->answer().series.find(tracker::PatternKind::kLeak);
    if (result.verdict->verdict == tracker::Verdict::kLeak && leak != nullptr &&
        leak->rate.low_bytes_per_s && leak->rate.high_bytes_per_s) {
      leak_ = {*leak->rate.low_bytes_per_s, *leak->rate.high_bytes_per_s};
      leaks_ = grower(result);
    }
  }
  const double cost_s = to_seconds(thread_cpu_ns() - begin_ns);
  next_judgement_s_ = tick.t_s + std::max(kSoonestJudgementS, cost_s / kJudgingShare);
}

}  // namespace tidemark::guard
