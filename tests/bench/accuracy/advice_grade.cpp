// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/advice_grade.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tracker/run/run_verdict.h"

namespace tidemark::bench {
namespace {

using tracker::Metric;

// What is true of a curve by how it was made, or by the cause that somebody found.
bool is_true_of(const Curve& curve, std::string_view advice) {
  const WaveKind wave = curve.recipe.wave.kind;
  if (advice == "kept_per_step") {
    return curve.truth.leaks;
  }
  if (advice == "collector_sawtooth") {
    return wave == WaveKind::kSawtooth;
  }
  if (advice == "swapped_out") {
    return curve.family == Family::kSwapOut && curve.truth.leaks;
  }
  return advice == "file_mapping" && curve.family == Family::kPageCache;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTrueOfReal{{
    {"mg_prod_run2", "first_epoch_cache"},
    {"mg_prod_run1", "first_epoch_cache"},
    {"mg_test300", "first_epoch_cache"},
    {"mg_iso_job1", "first_epoch_cache"},
    {"mg_iso_job2", "first_epoch_cache"},
    {"mg_collator_nocleanup", "kept_per_step"},
    {"onednn_489_on", "primitive_cache"},
    {"torch_27971_v13", "primitive_cache"},
    {"torch_13957_inverse", "math_library_buffers"},
    {"torch_149834", "compiled_frames_kept"},
}};

bool is_true_of(const RealCurve& curve, std::string_view advice) {
  return std::find(kTrueOfReal.begin(), kTrueOfReal.end(),
                   std::pair(std::string_view(curve.id), advice)) != kTrueOfReal.end();
}

tracker::RunTracks trainer_alone() {
  tracker::RunTracks run;
  run.tracks.resize(2);
  run.tracks[0].kind = tracker::TrackKind::kTree;
  run.tracks[1].kind = tracker::TrackKind::kProcess;
  run.tracks[1].role = Role::kTrainer;
  run.tracks[1].key = {100, 1};
  return run;
}

struct Grade {
  std::uint64_t given = 0;
  std::uint64_t right = 0;
};

class Grades {
 public:
  template <typename AnyCurve>
  void add(const tracker::RunTracks& run, const tracker::Options& options, const AnyCurve& curve) {
    ++runs_;
    const auto verdict = tracker::judge_run(run, options, std::nullopt);
    if (!verdict) {
      return;
    }
    for (const tracker::Advice& advice : verdict->advice) {
      Grade& grade = by_advice_[std::string(advice.id)];
      ++grade.given;
      grade.right += is_true_of(curve, advice.id) ? 1U : 0U;
    }
  }

  void print(Bars& bars) const {
    fmt::print("\n| advice | given | right | precision, % |\n| --- | ---: | ---: | ---: |\n");
    Grade all;
    for (const auto& [id, grade] : by_advice_) {
      fmt::print("| {} | {} | {} | {:.1f} |\n", id, grade.given, grade.right, precision(grade));
      all.given += grade.given;
      all.right += grade.right;
    }
    bars.at_least("advice that fits, %", precision(all), 95.0,
                  fmt::format("{} of {} given on {} runs", all.right, all.given, runs_));
  }

 private:
  static double precision(const Grade& grade) {
    return grade.given == 0
               ? 100.0
               : 100.0 * static_cast<double>(grade.right) / static_cast<double>(grade.given);
  }

  std::map<std::string, Grade> by_advice_;
  std::uint64_t runs_ = 0;
};

}  // namespace

tracker::RunTracks run_of(const Curve& curve) {
  tracker::RunTracks run = trainer_alone();
  for (tracker::Track& track : run.tracks) {
    for (const Point& point : curve.points) {
      track.of(Metric::kFootprint).add(point.t_s, point.step, point.footprint_bytes);
      track.of(Metric::kRss).add(point.t_s, point.step, point.rss_bytes);
      track.of(Metric::kRssFile).add(point.t_s, point.step, point.rss_file_bytes);
      track.of(Metric::kSwap).add(point.t_s, point.step, point.swap_bytes);
    }
  }
  return run;
}

void grade_advice(std::uint64_t seed, std::uint64_t count, const std::vector<RealCurve>& real,
                  Bars& bars) {
  Grades grades;
  for (std::uint64_t index = 0; index < count; ++index) {
    const Curve curve = generate(seed, index);
    grades.add(run_of(curve), options_of(curve), curve);
  }
  for (const RealCurve& curve : real) {
    tracker::RunTracks run = trainer_alone();
    for (tracker::Track& track : run.tracks) {
      track.of(Metric::kRss) = series_of(curve, curve.xs.size());
    }
    grades.add(run, {}, curve);
  }
  grades.print(bars);
}

}  // namespace tidemark::bench
