// SPDX-License-Identifier: Apache-2.0
#include "live/diagnose.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/attach_targets.h"
#include "live/diagnose_view.h"
#include "live/job_looks.h"
#include "live/target.h"
#include "live/traced_launch.h"
#include "live/watch.h"
#include "profiler/collect/attached.h"
#include "recording/open.h"
#include "report/diagnosis.h"
#include "report/output.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {
namespace {

constexpr double kBetweenVerdictsS = 5.0;
// Looks of a job whose verdict is clear.
constexpr LookEvery kSoon{10 * kNsPerSecond, std::nullopt};

ProfileOptions tracing_of(const DiagnoseOptions& options) {
  ProfileOptions tracing;
  tracing.watch = options.watch;
  tracing.judge = options.judge;
  return tracing;
}

// The last one ends before the time does: it takes seconds in a large job.
LookPlanOptions diagnose_plan(const DiagnoseOptions& options) {
  constexpr double kBetween = 0.4;  // of the time
  constexpr std::int64_t kLongestLoadNs = 10 * kNsPerSecond;
  LookPlanOptions plan;
  const auto ns = static_cast<std::int64_t>(
      kBetween *
      static_cast<double>(options.watch.duration_ns.value_or(DiagnoseOptions::kUsualDurationNs)));
  plan.every.ns = std::max(ns, kNsPerSecond);
  plan.load_ns = std::min(kLongestLoadNs, plan.every.ns / 4);
  plan.named = options.watch.target.pids;
  plan.was_started = !options.watch.target.command.empty();
  plan.has_log = !options.watch.log_file.empty();
  return plan;
}

class Diagnosing final : public WatchHandler, public DiagnosisSource {
 public:
  // `blocks`: what the looks ask who has allocated what; nullptr: nobody.
  Diagnosing(const DiagnoseOptions& options, MakeLook make_look,
             std::shared_ptr<reader::BlockSites> blocks)
      : options_(options),
        tracing_(tracing_of(options)),
        traced_(tracing_),
        looks_(diagnose_plan(options), std::move(make_look), std::move(blocks)) {}

  WatchPolicy policy() const override { return {.command = "diagnose"}; }
  Status on_launch(LaunchOptions& launch) override;
  // To the processes that run already; what was done, in words.
  std::vector<std::string> attach(monitor::ProcessSource& source);
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
    return make_diagnosis_view(*this, lines,
                               {.json = options_.watch.json,
                                .plain = options_.plain,
                                .wraps_command = wraps_command(),
                                .duration_ns = options_.watch.duration_ns});
  }
  std::vector<RecordingSink*> sinks() override { return {&traced_, &builder_}; }
  void add_to_tick(Tick& tick) override;
  void on_tick(const Tick& tick, const monitor::Session& session) override;
  bool is_done() const override { return is_clear_ && looks_.is_done() && has_lines_; }
  bool finish_watching() override;
  int exit_code(const WatchEnding& ending) override;

  report::Diagnosis diagnosis() const override;

 private:
  bool wraps_command() const { return !options_.watch.target.command.empty(); }
  void refuse(std::string_view depth, const std::string& why) {
    news_.push_back({0.0, EventKind::kRefused, {}, fmt::format("{}: {}", depth, why)});
  }
  void look_at_denials();
  void judge_now(double t_s);

  const DiagnoseOptions& options_;
  const ProfileOptions tracing_;
  TracedLaunch traced_;
  JobLooks looks_;
  report::DiagnosisBuilder builder_;
  std::vector<EventRecord> news_;  // for the next tick
  std::optional<pid_t> trainer_;
  double next_verdict_s_ = kBetweenVerdictsS;
  bool traces_ = false;
  bool is_clear_ = false;   // the verdict
  bool has_lines_ = false;  // or none is to be expected
  bool told_of_looks_ = false;
  bool is_over_ = false;
};

// The command is started in any case: it is the user's.
Status Diagnosing::on_launch(LaunchOptions& launch) {
  if (!options_.injects) {
    refuse(report::kLinesDepth, "--no-inject: the tracer is not loaded");
    return ok();
  }
  const Status prepared = traced_.prepare(launch);
  traces_ = prepared.has_value();
  if (!prepared) {
    refuse(report::kLinesDepth, prepared.error().what);
  }
  return ok();
}

std::vector<std::string> Diagnosing::attach(monitor::ProcessSource& source) {
  if (!options_.injects) {
    refuse(report::kLinesDepth, "--no-inject: the tracer is not loaded");
    return {};
  }
  const auto targets = attach_targets(options_.watch.target, tracing_.scope, source);
  if (!targets) {
    refuse(report::kLinesDepth, targets.error().what);
    return {};
  }
  auto done = traced_.attach(*targets);
  if (!done) {
    const pid_t pid = targets->wanted.front();
    const std::string hint = collect::attach_hint(done.error(), pid);
    refuse(report::kLinesDepth, fmt::format("cannot attach to pid {}: {}{}", pid, done.error().what,
                                            hint.empty() ? "" : "; " + hint));
    return {};
  }
  traces_ = true;
  return *std::move(done);
}

// Once it is known that there will be no look.
void Diagnosing::look_at_denials() {
  const bool ended = looks_.is_denied() || looks_.is_done();
  if (!ended || told_of_looks_) {
    return;
  }
  told_of_looks_ = true;
  if (looks_.is_denied()) {
    const LookDenial denial = denial_text(*looks_.denial());
    refuse(report::kOwnersDepth,
           denial.hint.empty() ? denial.what : denial.what + "; " + denial.hint);
  } else if (looks_.has_looked() && !looks_.has_found_objects()) {
    refuse(report::kOwnersDepth, "there is no Python in it whose objects could be read");
  }
}

void Diagnosing::add_to_tick(Tick& tick) {
  traced_.complete(tick);
  looks_.complete(tick);
  look_at_denials();
  for (EventRecord& event : news_) {
    event.t_s = tick.t_s;
    tick.events.push_back(std::move(event));
  }
  news_.clear();
}

void Diagnosing::judge_now(double t_s) {
  if (is_clear_ || t_s < next_verdict_s_) {
    return;
  }
  next_verdict_s_ = t_s + kBetweenVerdictsS;
  const auto judged = builder_.judged(options_.judge);
  is_clear_ = judged.verdict && judged.verdict->verdict == tracker::Verdict::kLeak;
  if (is_clear_) {
    looks_.set_every(kSoon);
  }
}

void Diagnosing::on_tick(const Tick& tick, const monitor::Session& session) {
  is_over_ = session.sampler().finished();
  if (const ProcessRecord* trainer = session.sampler().trainer()) {
    trainer_ = trainer->key.pid;
  }
  judge_now(tick.t_s);
  if (is_clear_ && looks_.is_done() && !has_lines_) {
    has_lines_ = !traces_ || !traced_.has_traced() ||
                 !report::growing_lines(traced_.report()).empty() ||
                 tick.t_s > next_verdict_s_ + 4 * kBetweenVerdictsS;
  }
}

bool Diagnosing::finish_watching() {
  if (looks_.finish() && !looks_.has_looked()) {
    refuse(report::kOwnersDepth, "the first look was given up");
  }
  (void)traced_.finish();
  return true;
}

report::Diagnosis Diagnosing::diagnosis() const {
  report::Diagnosis diagnosis = builder_.diagnosis(traced_.report(), options_.judge);
  for (std::string& note : looks_.notes()) {
    diagnosis.owners.notes.push_back(std::move(note));
  }
  diagnosis.target = judged_target(options_.watch.target, is_over_);
  if (!is_over_ && trainer_ && options_.watch.target.pids.empty()) {
    diagnosis.target.running = fmt::format("--pid {}", *trainer_);
  }
  return diagnosis;
}

int Diagnosing::exit_code(const WatchEnding& ending) {
  if (ending.own_code != kExitOk) {
    return ending.own_code;
  }
  const bool has_failed = ending.command_status.value_or(0) != 0 && !ending.was_told_to_stop;
  return has_failed ? kExitTarget : tracker::exit_code_of(builder_.judged(options_.judge));
}

// What a recording of another command does not have.
void add_what_is_missing(report::Diagnosis& diagnosis) {
  const auto add = [&](std::string_view depth, bool has, std::string_view why) {
    const bool is_known =
        std::any_of(diagnosis.refused.begin(), diagnosis.refused.end(),
                    [&](const report::RefusedDepth& refused) { return refused.what == depth; });
    if (!has && !is_known) {
      diagnosis.refused.push_back({std::string(depth), std::string(why)});
    }
  };
  add(report::kOwnersDepth, report::has_looks(diagnosis.owners),
      "the recording has no looks at a heap");
  add(report::kLinesDepth, !diagnosis.lines.run->empty(), "the recording has no call stacks");
}

int diagnose_recording(const DiagnoseOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  report::DiagnosisBuilder builder;
  tracker::SiteTrackBuilder sites;
  TwoSinks both(builder, sites);
  const auto summary = (*reader)->read(both);
  if (!summary) {
    print_error(summary.error());
  } else {
    report::print_read_notes(*summary);
  }
  constexpr std::size_t kTop = 10;
  report::Diagnosis diagnosis =
      builder.diagnosis(report::make_report(sites.sites(), options.judge, kTop), options.judge);
  diagnosis.lines.command = (*reader)->info().command;
  add_what_is_missing(diagnosis);
  const std::string text =
      options.watch.json
          ? report::diagnosis_json(diagnosis) + '\n'
          : report::diagnosis_text(diagnosis, report::style_for(STDOUT_FILENO, options.plain));
  if (const Status printed = write_all(STDOUT_FILENO, text); !printed) {
    print_error(printed.error());
    return kExitTarget;
  }
  return summary ? tracker::exit_code_of(diagnosis.run) : kExitTarget;
}

int diagnose_job(const DiagnoseOptions& options, WatchSystem* system, MakeLook make_look) {
  heap::HeapOptions heap = options.heap;
  if (!make_look) {
    heap.sites = std::make_shared<reader::BlockSites>();
    make_look = make_heap_looks(heap);
  }
  // Until watching takes them: at no time may Ctrl-C end us with the tracer left in a process.
  std::optional<collect::StopSignals> signals;
  Diagnosing handler(options, std::move(make_look), heap.sites);
  if (options.watch.target.command.empty()) {
    signals.emplace(collect::StopSignals::Also::kNothing);
    const auto source =
        system == nullptr ? monitor::make_procps_source() : system->open_processes();
    if (!source) {
      print_error(source.error());
      return kExitTarget;
    }
    for (const std::string& note : handler.attach(**source)) {
      print_note(note);
    }
  }
  return watch(options.watch, handler, system);
}

}  // namespace

int run_diagnose(const DiagnoseOptions& options, WatchSystem* system, MakeLook make_look) {
  if (!options.input.empty()) {
    return diagnose_recording(options);
  }
  DiagnoseOptions live = options;
  if (!live.watch.duration_ns) {
    live.watch.duration_ns = DiagnoseOptions::kUsualDurationNs;
  }
  return diagnose_job(live, system, std::move(make_look));
}

}  // namespace tidemark::live
