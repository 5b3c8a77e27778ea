// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include "tracker/run/judged_run.h"

// Answers as the tracker might give them, for the views.
namespace tidemark::tests {

inline constexpr double kMiBf = 1 << 20;
inline constexpr double kGiBf = 1 << 30;

inline tracker::Track track_of(tracker::TrackKind kind, Role role, pid_t pid = 0) {
  tracker::Track track;
  track.kind = kind;
  track.role = role;
  track.key = {pid, 1};
  track.comm = pid > 0 ? "python3" : "";
  return track;
}

// A floor that follows `bytes_at` over 100 points, a step a second.
template <typename BytesAt>
tracker::SeriesVerdict reading_of(tracker::Verdict verdict, tracker::Axis axis, BytesAt bytes_at) {
  tracker::SeriesVerdict reading;
  reading.verdict = verdict;
  reading.confidence = 0.95;
  reading.axis = axis;
  reading.samples = 1000;
  for (int i = 0; i < 100; ++i) {
    const double x = i * 10.0;
    tracker::FloorPoint point;
    point.x = x;
    point.at.t_s = x;
    if (axis == tracker::Axis::kSteps) {
      point.at.step = x;
    }
    point.floor_bytes = bytes_at(x);
    point.ceiling_bytes = point.floor_bytes + 64 * kMiBf;
    point.mean_bytes = point.floor_bytes + 10 * kMiBf;
    reading.floor.push_back(point);
  }
  reading.begin = reading.floor.front().at;
  reading.end = reading.floor.back().at;
  reading.first_floor_bytes = reading.floor.front().floor_bytes;
  reading.last_floor_bytes = reading.floor.back().floor_bytes;
  reading.min_bytes = reading.first_floor_bytes;
  reading.max_bytes = reading.floor.back().ceiling_bytes;
  reading.mean_bytes = (reading.min_bytes + reading.max_bytes) / 2;
  return reading;
}

// A trainer that warms up to step 200 and leaks from step 400 on, below a pool of workers.
inline tracker::JudgedRun leaking_run() {
  using namespace tracker;  // NOLINT(google-build-using-namespace): a fixture full of its names
  const auto bytes_at = [](double x) {
    return (1.0 + std::min(x, 200.0) / 200.0) * kGiBf + std::max(0.0, x - 400.0) * 2 * kMiBf;
  };
  SeriesVerdict reading = reading_of(Verdict::kLeak, Axis::kSteps, bytes_at);
  Pattern warmup;
  warmup.kind = PatternKind::kWarmup;
  warmup.from = {0.0, 0.0};
  warmup.to = {200.0, 200.0};
  warmup.growth_bytes = kGiBf;
  warmup.rate.bytes_per_s = kGiBf / 200;
  warmup.rate.bytes_per_step = kGiBf / 200;
  Pattern leak;
  leak.kind = PatternKind::kLeak;
  leak.from = {400.0, 400.0};
  leak.to = {990.0, 990.0};
  leak.growth_bytes = 1180 * kMiBf;
  leak.rate = {2 * kMiBf, 1.9 * kMiBf, 2.1 * kMiBf, 2 * kMiBf, 1.9 * kMiBf, 2.1 * kMiBf};
  Pattern spikes;
  spikes.kind = PatternKind::kSpikes;
  spikes.from = {50.0, 50.0};
  spikes.to = {950.0, 950.0};
  spikes.count = 9;
  spikes.height_bytes = 64 * kMiBf;
  spikes.period_steps = 100;
  spikes.period_s = 100;
  Pattern jump;
  jump.kind = PatternKind::kStep;
  jump.from = jump.to = {600.0, 600.0};
  jump.height_bytes = 30 * kMiBf;
  reading.patterns = {warmup, leak, jump, spikes};
  reading.evidence = {{EvidenceKind::kPoints, 1000, 6},
                      {EvidenceKind::kAllowanceEnd, 990, 375},
                      {EvidenceKind::kBlocksInWindow, 61, 4},
                      {EvidenceKind::kNoise, 3 * kMiBf, {}},
                      {EvidenceKind::kFloorRise, 1180 * kMiBf, 20 * kMiBf},
                      {EvidenceKind::kSlopeInSigmas, 42, 3.5},
                      {EvidenceKind::kRateAgainstGate, 2 * kMiBf, 10},
                      {EvidenceKind::kStillRising, 0.98, 0.3},
                      {EvidenceKind::kSaturationBic, -12.5, 6},
                      {EvidenceKind::kSpikeHeight, 64 * kMiBf, 9 * kMiBf}};
  reading.forecast.limit_bytes = 32 * kGiBf;
  reading.forecast.in_s_low = 14000;
  reading.forecast.in_s_high = 16000;
  reading.smallest_detectable_per_step = 20 * 1024;
  reading.smallest_detectable_per_s = 20 * 1024;
  reading.allowance_end = Moment{375.0, 375.0};

  tracker::JudgedRun result;
  result.run.tracks.push_back(track_of(TrackKind::kTree, Role::kOther));
  result.run.tracks.push_back(track_of(TrackKind::kRole, Role::kCompileWorker));
  result.run.tracks[1].most_processes = 20;
  result.run.tracks.push_back(track_of(TrackKind::kProcess, Role::kTrainer, 1240));
  result.run.tracks[2].comm = "py\x1b[2Jthon3";
  result.run.limit_bytes = 32 * kGiBf;
  result.run.limit_source = "cgroup v2 /job";
  result.run.losses = {{"pss_denied", 3}};
  RunVerdict verdict;
  verdict.verdict = Verdict::kLeak;
  verdict.where = 2;
  verdict.held_as = HeldAs::kPrivate;
  verdict.tracks.push_back({0, Metric::kFootprint,
                            reading_of(Verdict::kLeak, Axis::kSteps,
                                       [&](double x) { return bytes_at(x) + 300 * kMiBf; })});
  verdict.tracks.push_back(
      {1, Metric::kFootprint,
       reading_of(Verdict::kStable, Axis::kSteps, [](double) { return 300 * kMiBf; })});
  verdict.tracks.push_back({2, Metric::kFootprint, std::move(reading)});
  verdict.overheads = {{Role::kCompileWorker, 20, 4.6 * kGiBf, 300 * kMiBf, 320 * kMiBf}};
  verdict.advice = {{"kept_per_step", "the trainer grows at a steady rate",
                     "Something that each step makes is kept, for example a loss with its graph.",
                     "Keep loss.item() and not loss."}};
  result.verdict = std::move(verdict);
  return result;
}

// One curve of a process that nobody has a role for, on the axis of time.
inline tracker::JudgedRun one_curve(tracker::SeriesVerdict reading) {
  tracker::JudgedRun result;
  result.run.tracks.push_back(track_of(tracker::TrackKind::kProcess, Role::kTrainer, 77));
  tracker::RunVerdict verdict;
  verdict.verdict = reading.verdict;
  verdict.tracks.push_back({0, tracker::Metric::kRss, std::move(reading)});
  result.verdict = std::move(verdict);
  return result;
}

inline tracker::JudgedRun stable_run() {
  tracker::SeriesVerdict reading =
      reading_of(tracker::Verdict::kStable, tracker::Axis::kTime, [](double) { return 2 * kGiBf; });
  reading.evidence = {{tracker::EvidenceKind::kStillSince, 1.0, 0.2}};
  reading.smallest_detectable_per_s = 1000;
  return one_curve(std::move(reading));
}

inline tracker::JudgedRun growing_run() {
  tracker::SeriesVerdict reading = reading_of(tracker::Verdict::kGrowing, tracker::Axis::kTime,
                                              [](double x) { return kGiBf + x * kMiBf; });
  tracker::Pattern growth;
  growth.kind = tracker::PatternKind::kGrowth;
  growth.from.t_s = 0.0;
  growth.to.t_s = 990.0;
  growth.growth_bytes = 990 * kMiBf;
  growth.rate.bytes_per_s = kMiBf;
  reading.likelihood = tracker::LeakLikelihood{0.25, tracker::RiseForm::kSlowing, growth.from};
  reading.patterns = {growth};
  reading.undetermined = true;
  reading.needs = tracker::Needs{1500.0, {}, {}};
  reading.forecast.asymptote_bytes = 2.5 * kGiBf;
  reading.forecast.limit_bytes = 8 * kGiBf;
  reading.evidence = {{tracker::EvidenceKind::kSlowingDown, 1.0, {}}};
  return one_curve(std::move(reading));
}

}  // namespace tidemark::tests
