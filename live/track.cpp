// SPDX-License-Identifier: Apache-2.0
#include "live/track.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "live/kept_runs.h"
#include "live/target.h"
#include "live/watch.h"
#include "recording/open.h"
#include "report/last_look_text.h"
#include "report/output.h"
#include "report/track_text.h"
#include "report/track_words.h"
#include "tracker/owners/owner_tracks.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::live {
namespace {

// When the next line is due: twenty in a run of known length, else ever more rarely.
double next_line_s(double t_s, const std::optional<std::int64_t>& duration_ns) {
  constexpr double kSoonest = 10.0;
  constexpr double kLatest = 600.0;
  constexpr double kLines = 20.0;
  if (duration_ns) {
    return t_s + std::clamp(to_seconds(*duration_ns) / kLines, 0.5, kLatest);
  }
  return t_s + std::clamp(t_s / 10.0, kSoonest, kLatest);
}

class Tracking final : public WatchHandler {
 public:
  explicit Tracking(const TrackOptions& options) : options_(options) {}

  WatchPolicy policy() const override {
    WatchPolicy policy;
    policy.command = "track";
    policy.reports_missing_gpu = options_.judge.metric == tracker::Metric::kGpu;
    return policy;
  }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;

  std::vector<RecordingSink*> sinks() override { return {&builder_}; }

  tracker::JudgedRun so_far() const {
    return tracker::judge_run(builder_.tracks(), options_.judge);
  }
  // What the answer is about.
  report::JudgedTarget target() const { return judged_target(options_.watch.target, is_over_); }
  // The answer, which is also given when nobody reads it.
  const tracker::JudgedRun& answer() {
    if (!answer_) {
      answer_ = tracker::judge_run(builder_.take(), options_.judge);
    }
    return *answer_;
  }

  void on_tick(const Tick& /*tick*/, const monitor::Session& session) override {
    is_over_ = session.sampler().finished();
  }
  void on_end(const WatchEnding& ending, WatchOutput& output) override {
    if (has_failed(ending)) {
      output.note(fmt::format("the command failed with status {}; the verdict on its memory is {}",
                              *ending.command_status, verdict_word()));
    }
  }
  int exit_code(const WatchEnding& ending) override {
    return ending.own_code != kExitOk || has_failed(ending)
               ? (ending.own_code != kExitOk ? ending.own_code : kExitTarget)
               : tracker::exit_code_of(answer());
  }

 private:
  static bool has_failed(const WatchEnding& ending) {
    return ending.command_status.value_or(0) != 0 && !ending.was_told_to_stop;
  }
  std::string_view verdict_word() {
    const std::optional<tracker::RunVerdict>& verdict = answer().verdict;
    if (!verdict) {
      return "unknown";
    }
    const bool is_open =
        verdict->answer().series.undetermined && verdict->verdict < tracker::Verdict::kGrowing;
    return is_open ? "not known yet" : verdict_name(verdict->verdict);
  }

  const TrackOptions& options_;
  tracker::TrackBuilder builder_;
  std::optional<tracker::JudgedRun> answer_;
  bool is_over_ = false;
};

class TrackLines final : public WatchView {
 public:
  TrackLines(Tracking& tracking, const TrackOptions& options, LineWriter& writer)
      : tracking_(tracking), options_(options), writer_(writer) {
    next_s_ = next_line_s(0.0, options.watch.duration_ns);
  }

  void on_tick(const Tick& tick, const ProcessKey& /*trainer*/, const ProcessLookup&) override {
    if (tick.t_s >= next_s_) {
      writer_.submit(report::track_line(tracking_.so_far(), tick.t_s));
      next_s_ = next_line_s(tick.t_s, options_.watch.duration_ns);
    }
  }
  void on_end(const RunSummary& /*summary*/) override {
    writer_.submit_always('\n' + report::track_text(tracking_.answer(), report::glyphs_of_locale(),
                                                    tracking_.target()));
  }

 private:
  Tracking& tracking_;
  const TrackOptions& options_;
  LineWriter& writer_;
  double next_s_ = 0.0;
};

class TrackJson final : public WatchView {
 public:
  TrackJson(Tracking& tracking, LineWriter& writer) : tracking_(tracking), writer_(writer) {}

  void on_end(const RunSummary& /*summary*/) override {
    writer_.submit_always(report::track_json(tracking_.answer()) + '\n');
  }

 private:
  Tracking& tracking_;
  LineWriter& writer_;
};

std::unique_ptr<WatchView> Tracking::make_view(LineWriter& lines) {
  if (options_.watch.json) {
    return std::make_unique<TrackJson>(*this, lines);
  }
  return std::make_unique<TrackLines>(*this, options_, lines);
}

int track_recording(const TrackOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::TrackBuilder builder;
  tracker::OwnerTrackBuilder owners;
  TwoSinks both(builder, owners);
  const auto summary = (*reader)->read(both);
  const tracker::JudgedRun result = tracker::judge_run(builder.take(), options.judge);
  if (!summary) {
    print_error(summary.error());
    if (!result.verdict) {
      return kExitTarget;
    }
    print_note("note: the verdict is on what came before the error");
  } else {
    report::print_read_notes(*summary);
  }
  const auto last = report::make_last_look(owners.owners(), options.judge);
  const std::string text = options.watch.json
                               ? report::track_json(result, last ? &last->last : nullptr) + '\n'
                               : report::track_text(result, report::glyphs_of_locale()) +
                                     (last ? '\n' + report::last_look_text(last->last) : "");
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return summary ? tracker::exit_code_of(result) : kExitTarget;
}

int track_last(TrackOptions options) {
  const auto cache = KeptRuns::cache_folder();
  const auto runs = cache ? KeptRuns::open(*cache) : Result<KeptRuns>(cache.error());
  auto path = runs ? runs->last() : Result<std::string>(runs.error());
  if (!path) {
    print_error(path.error(), "tidemark monitor and track keep the last runs on a terminal");
    return kExitTarget;
  }
  options.input = *std::move(path);
  print_note("the last run is " + options.input);
  return track_recording(options);
}

}  // namespace

int run_track(const TrackOptions& options, WatchSystem* system) {
  if (options.judges_last) {
    return track_last(options);
  }
  if (!options.input.empty()) {
    return track_recording(options);
  }
  TrackOptions live = options;
  const auto kept = options.keeps_run && system == nullptr ? keep_run(live.watch) : std::nullopt;
  Tracking tracking(live);
  const int code = watch(live.watch, tracking, system);
  if (kept) {
    kept->trim(live.watch.output);
  }
  return code;
}

}  // namespace tidemark::live
