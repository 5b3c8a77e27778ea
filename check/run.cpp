// SPDX-License-Identifier: Apache-2.0
#include "check/run.h"

#include <utility>

#include "common/exit_code.h"
#include "common/recording_sink.h"
#include "live/watch.h"
#include "profiler/collect/preload.h"
#include "tracker/run/track_builder.h"

namespace tidemark::check {
namespace {

// Finer than `tidemark profile` has it: a check is short, and so are its samples.
constexpr std::uint64_t kSampleEveryBytes = 64U << 10U;

// What the command does until it is told to end, which is what is judged.
class JudgedPart final : public RecordingSink {
 public:
  Status begin(const RunInfo& info) override { return builder_.begin(info); }
  Status add(const Tick& tick) override { return is_over_ ? ok() : builder_.add(tick); }
  Status process_ended(const ProcessRecord& process) override {
    return builder_.process_ended(process);
  }
  Status end(double t_s) override { return builder_.end(t_s); }

  void cut() { is_over_ = true; }
  tracker::RunTracks take() { return builder_.take(); }

 private:
  tracker::TrackBuilder builder_;
  bool is_over_ = false;
};

class Checking final : public live::WatchHandler {
 public:
  Checking(CheckRun& run, LeftBehindMeter& meter) : run_(run), meter_(meter) {}

  live::WatchPolicy policy() const override {
    return {.command = "check", .output_wait_ns = live::kOutputWaitNs};
  }
  std::unique_ptr<live::WatchView> make_view(live::LineWriter& /*lines*/) override {
    return std::make_unique<live::WatchView>();  // the report comes when all runs are over
  }

  Status on_launch(live::LaunchOptions& options) override {
    return run_.tracing != nullptr ? run_.tracing->launch.prepare(options) : ok();
  }
  void on_start(const RunInfo& info, live::WatchOutput& /*output*/) override { run_.info = info; }
  std::vector<RecordingSink*> sinks() override {
    return run_.tracing != nullptr ? std::vector<RecordingSink*>{&judged_, &run_.tracing->launch}
                                   : std::vector<RecordingSink*>{&judged_};
  }
  void add_to_tick(Tick& tick) override {
    if (run_.tracing != nullptr) {
      run_.tracing->launch.complete(tick);
    }
  }
  void on_tick(const Tick& tick, const monitor::Session& session) override {
    for (const ProcessRecord& process : tick.new_processes) {
      meter_.add_process(process.key);
    }
    meter_.add_segments(session.job_segments());
    run_.seconds = tick.t_s;
  }
  void on_time_limit() override { judged_.cut(); }
  bool finish_watching() override {
    return run_.tracing != nullptr && run_.tracing->launch.finish();
  }

  void on_end(const live::WatchEnding& ending, live::WatchOutput& /*output*/) override {
    if (ending.command_status) {
      run_.left = meter_.measure();
    }
  }
  int exit_code(const live::WatchEnding& ending) override {
    run_.ending = ending;
    return kExitOk;
  }

  tracker::RunTracks take_tracks() { return judged_.take(); }

 private:
  CheckRun& run_;
  LeftBehindMeter& meter_;
  JudgedPart judged_;
};

live::WatchOptions watch_options(const CheckSpec& spec, const CheckPlace& place) {
  live::WatchOptions watch;
  watch.target.command = spec.command;
  watch.interval_ns = spec.interval_ns;
  watch.output = place.output;
  watch.force = true;
  watch.pss = spec.pss;
  watch.redact = spec.redact;
  watch.warn = false;
  watch.step_regex = spec.step_regex;
  watch.log_file = spec.log_file;
  watch.json = place.stdout_is_ours;
  watch.end_after_ns = spec.timeout_ns ? spec.timeout_ns : spec.duration_ns;
  return watch;
}

void add_tracing(const CheckSpec& spec, const live::WatchOptions& watch, CheckRun& run) {
  if (!spec.profile) {
    return;
  }
  if (const auto tracer = collect::find_tracer(); !tracer) {
    run.tracing_problem = tracer.error().what;
    return;
  }
  run.tracing = std::make_unique<CheckTracing>();
  run.tracing->options.watch = watch;
  run.tracing->options.judge.warmup = spec.warmup;
  run.tracing->options.trace.sample_every_bytes = kSampleEveryBytes;
}

}  // namespace

CheckRun run_once(const CheckSpec& spec, const CheckPlace& place) {
  CheckRun run;
  const live::WatchOptions watch = watch_options(spec, place);
  add_tracing(spec, watch, run);
  Checking checking(run, place.meter);
  (void)live::watch(watch, checking, place.system);  // run.ending has more than its exit code
  if (run.tracing != nullptr) {
    run.tracing->conclude();
  }

  tracker::JudgeOptions judging;
  judging.warmup = spec.warmup;
  run.track = tracker::judge_run(checking.take_tracks(), judging);
  if (spec.budgets.gpu.any()) {
    tracker::JudgeOptions on_gpu = judging;
    on_gpu.metric = tracker::Metric::kGpu;
    run.gpu = tracker::judge_run(run.track.run, on_gpu).verdict;
  }
  return run;
}

tracker::MeasuredRun CheckRun::measured() const {
  tracker::MeasuredRun measured;
  measured.memory = tracker::measure_run(track.run, track.verdict);
  measured.gpu = tracker::measure_run(track.run, gpu);
  measured.retained.bytes = static_cast<double>(left.bytes());
  if (left.gpu_bytes) {
    measured.retained.gpu_bytes = static_cast<double>(*left.gpu_bytes);
  }
  measured.was_interrupted = ending.was_told_to_stop;
  return measured;
}

}  // namespace tidemark::check
