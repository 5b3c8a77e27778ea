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
#include "live/explain.h"
#include "live/interventions.h"
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
  const auto ns = static_cast<std::int64_t>(kBetween * static_cast<double>(options.duration_ns()));
  plan.every.ns = std::max(ns, kNsPerSecond);
  plan.load_ns = std::min(kLongestLoadNs, plan.every.ns / 4);
  plan.named = options.watch.target.pids;
  plan.was_started = !options.watch.target.command.empty();
  plan.has_log = !options.watch.log_file.empty();
  return plan;
}

std::vector<const ProcessSample*> largest_processes(const Tick& tick, std::size_t most) {
  std::vector<const ProcessSample*> largest;
  for (const ProcessSample& sample : tick.processes) {
    if (sample.state != 'Z' && sample.state != 'X') {
      largest.push_back(&sample);
    }
  }
  const std::size_t count = std::min(largest.size(), most);
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(count),
                    largest.end(), [](const ProcessSample* a, const ProcessSample* b) {
                      return a->footprint_bytes().value_or(0) > b->footprint_bytes().value_or(0);
                    });
  largest.resize(count);
  return largest;
}

// Ledgers of the largest processes of a tick; the error of the first that refused.
std::optional<Error> read_ledgers(const ReadLedger& read, Tick& tick) {
  constexpr std::size_t kMostProcesses = 4;
  std::optional<Error> error;
  for (const ProcessSample* sample : largest_processes(tick, kMostProcesses)) {
    auto ledger = read(sample->key, tick.t_s);
    if (ledger) {
      tick.ledgers.push_back(*std::move(ledger));
    } else if (ledger.error().code != Errc::kGone && !error) {
      error = ledger.error();
    }
  }
  return error;
}

struct DiagnoseInstruments {
  MakeLook make_look;
  ReadLedger read_ledger;
  std::shared_ptr<reader::BlockSites> blocks;  // what looks ask who has allocated what
};

class Diagnosing final : public WatchHandler, public DiagnosisSource {
 public:
  Diagnosing(const DiagnoseOptions& options, DiagnoseInstruments instruments)
      : options_(options),
        tracing_(tracing_of(options)),
        read_ledger_(std::move(instruments.read_ledger)),
        traced_(tracing_),
        looks_(diagnose_plan(options), std::move(instruments.make_look),
               std::move(instruments.blocks)),
        trials_(InterventionOptions{}) {}

  WatchPolicy policy() const override { return {.command = "diagnose"}; }
  Status on_launch(LaunchOptions& launch) override;
  // To the processes that run already; what was done, in words.
  std::vector<std::string> attach(monitor::ProcessSource& source);
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
    return make_diagnosis_view(*this, lines,
                               {.json = options_.watch.json,
                                .plain = options_.plain,
                                .wraps_command = wraps_command(),
                                .duration_ns = options_.duration_ns()});
  }
  void on_start(const RunInfo& /*info*/, WatchOutput& output) override {
    output_ = &output;
    output.note(fmt::format("watching for {} at most; Ctrl-C gives the answer so far",
                            format_duration(to_seconds(options_.duration_ns()))));
  }
  std::vector<RecordingSink*> sinks() override { return {&traced_, &builder_}; }
  void add_to_tick(Tick& tick) override;
  void on_tick(const Tick& tick, const monitor::Session& session) override;
  bool is_done() const override {
    return options_.intervenes ? trial_ == Trial::kOver : has_seen_enough();
  }
  bool finish_watching() override;
  int exit_code(const WatchEnding& ending) override;

  report::Diagnosis diagnosis() const override;

 private:
  enum class Trial { kNone, kDue, kRunning, kOver };

  bool has_seen_enough() const { return is_clear_ && looks_.is_done() && has_lines_; }
  void take_ledgers(Tick& tick);
  void take_trials(Tick& tick);
  bool wraps_command() const { return !options_.watch.target.command.empty(); }
  void refuse(std::string_view depth, const std::string& why) {
    news_.push_back({0.0, EventKind::kRefused, {}, fmt::format("{}: {}", depth, why)});
  }
  void look_at_denials();
  void judge_now(double t_s);

  const DiagnoseOptions& options_;
  const ProfileOptions tracing_;
  const ReadLedger read_ledger_;
  TracedLaunch traced_;
  JobLooks looks_;
  InterventionThread trials_;
  report::DiagnosisBuilder builder_;
  std::vector<EventRecord> news_;      // for the next tick
  std::optional<ProcessKey> trainer_;  // or what is largest where there is none
  WatchOutput* output_ = nullptr;
  std::uint64_t ledgers_ = 0;  // that were asked for
  Trial trial_ = Trial::kNone;
  double next_verdict_s_ = kBetweenVerdictsS;
  bool traces_ = false;
  bool is_clear_ = false;   // the verdict
  bool has_lines_ = false;  // or none is to be expected
  bool told_of_looks_ = false;
  bool is_finishing_ = false;
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

// One when it begins, and one at the end, before anything is done in the process.
void Diagnosing::take_ledgers(Tick& tick) {
  constexpr double kFirstS = 2.0;
  const bool is_first = ledgers_ == 0 && tick.t_s >= kFirstS;
  const bool is_last = ledgers_ == 1 && (is_finishing_ || trial_ == Trial::kDue);
  if (!is_first && !is_last) {
    return;
  }
  ++ledgers_;
  const auto refusal = read_ledgers(read_ledger_, tick);
  if (refusal && tick.ledgers.empty() && is_first) {
    refuse(report::kLedgerDepth, refusal->what);
  }
}

void Diagnosing::take_trials(Tick& tick) {
  if (trial_ == Trial::kDue) {
    trial_ = Trial::kRunning;
    tick.events.push_back(
        {tick.t_s, EventKind::kMark, {}, std::string(report::kInterventionsBegin)});
    trials_.begin({*trainer_}, tick.t_s);
    return;
  }
  if (trial_ == Trial::kNone) {
    return;
  }
  const bool was_busy = trials_.is_busy();  // what it has done by now is taken below
  InterventionThread::News news = trials_.take();
  tick.interventions = std::move(news.records);
  for (const std::string& text : news.notes) {
    output_->note(text);
  }
  for (const InterventionThread::Failure& failure : news.failures) {
    refuse(report::kInterventionsDepth,
           fmt::format("pid {}: {}", failure.key.pid, failure.error.what));
  }
  trial_ = was_busy ? Trial::kRunning : Trial::kOver;
}

void Diagnosing::add_to_tick(Tick& tick) {
  traced_.complete(tick);
  looks_.complete(tick);
  take_ledgers(tick);
  take_trials(tick);
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
    trainer_ = trainer->key;
  } else if (const auto largest = largest_processes(tick, 1); !largest.empty()) {
    trainer_ = largest.front()->key;
  }
  judge_now(tick.t_s);
  if (is_clear_ && looks_.is_done() && !has_lines_) {
    has_lines_ = !traces_ || !traced_.has_traced() ||
                 !report::growing_lines(traced_.report()).empty() ||
                 tick.t_s > next_verdict_s_ + 4 * kBetweenVerdictsS;
  }
  const bool is_time = has_seen_enough() || tick.t_s >= to_seconds(options_.duration_ns());
  if (options_.intervenes && trial_ == Trial::kNone && is_time) {
    trial_ = trainer_ && !is_over_ ? Trial::kDue : Trial::kOver;
  }
}

bool Diagnosing::finish_watching() {
  if (looks_.finish() && !looks_.has_looked()) {
    refuse(report::kOwnersDepth, "the first look was given up");
  }
  trial_ = trial_ == Trial::kDue ? Trial::kOver : trial_;
  if (trials_.is_busy()) {
    refuse(report::kInterventionsDepth, "told to stop before all of them were done");
  }
  trials_.cancel();
  is_finishing_ = true;
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
    diagnosis.target.running = fmt::format("--pid {}", trainer_->pid);
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

int diagnose_job(const DiagnoseOptions& options, WatchSystem* system,
                 DiagnoseInstruments instruments) {
  // Until watching takes them: at no time may Ctrl-C end us with the tracer left in a process.
  std::optional<collect::StopSignals> signals;
  Diagnosing handler(options, std::move(instruments));
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

int run_diagnose(const DiagnoseOptions& options, WatchSystem* system, MakeLook make_look,
                 ReadLedger read_ledger) {
  if (!options.input.empty()) {
    return diagnose_recording(options);
  }
  DiagnoseInstruments instruments{std::move(make_look), std::move(read_ledger), nullptr};
  if (!instruments.make_look) {
    heap::HeapOptions heap = options.heap;
    heap.sites = std::make_shared<reader::BlockSites>();
    instruments.blocks = heap.sites;
    instruments.make_look = make_heap_looks(heap);
  }
  if (!instruments.read_ledger) {
    instruments.read_ledger = read_ledger_by_heap();
  }
  DiagnoseOptions live = options;
  live.watch.duration_ns = options.duration_ns();
  if (live.intervenes) {
    live.usual_duration_ns = *live.watch.duration_ns;
    live.watch.duration_ns.reset();  // interventions come behind it
  }
  return diagnose_job(live, system, std::move(instruments));
}

}  // namespace tidemark::live
