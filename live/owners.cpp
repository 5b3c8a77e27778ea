// SPDX-License-Identifier: Apache-2.0
#include "live/owners.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/look_targets.h"
#include "live/watch.h"
#include "monitor/session.h"
#include "profiler/collect/attached.h"
#include "profiler/reader/block_sites.h"
#include "recording/open.h"
#include "report/output.h"
#include "report/owners_text.h"
#include "tracker/owners/owner_tracks.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {
namespace {

constexpr std::size_t kMostLooked = 4;      // processes
constexpr std::size_t kMostLookedAll = 64;  // with --all
constexpr double kWaitForStepS = 2.0;
constexpr double kWaitForLogS = 10.0;  // where the user has named a log

// Which processes are looked at, and when. Pure but for what it remembers.
class LookPlan {
 public:
  explicit LookPlan(const OwnersOptions& options)
      : options_(options),
        targets_(
            {options.watch.target.pids, options.all, options.all ? kMostLookedAll : kMostLooked}) {}

  void add(const Tick& tick) { targets_.add(tick); }
  void set_failed(const ProcessKey& key) { targets_.set_failed(key); }

  bool is_due(const Tick& tick) const {
    if (begun_ >= options_.looks) {
      return false;
    }
    // A job that runs already has something to compare with; one that was started has to load
    // first. Where its steps are known, they are counted from the first look on: its log or its
    // markers are read by then.
    if (begun_ == 0 && options_.watch.target.command.empty()) {
      return tick.step.has_value() ||
             tick.t_s >= (options_.watch.log_file.empty() ? kWaitForStepS : kWaitForLogS);
    }
    if (options_.every.steps && tick.step && (last_step_ || begun_ == 0)) {
      return *tick.step - last_step_.value_or(0) >= *options_.every.steps;
    }
    return tick.t_s - last_s_ >= to_seconds(options_.every.ns);
  }

  HeapLookThread::Round make_round(const Tick& tick) {
    HeapLookThread::Round round;
    round.t_s = tick.t_s;
    round.step = tick.step;
    round.targets = targets_.of(tick);
    if (round.targets.empty()) {
      return round;
    }
    ++begun_;
    last_s_ = tick.t_s;
    last_step_ = tick.step;
    if (begun_ == options_.looks && !options_.exports.empty()) {
      round.exports = options_.exports;
    }
    return round;
  }
  std::uint64_t begun() const { return begun_; }
  std::size_t left_out() const { return targets_.left_out(); }

 private:
  const OwnersOptions& options_;
  LookTargets targets_;
  std::uint64_t begun_ = 0;
  double last_s_ = 0.0;
  std::optional<std::int64_t> last_step_;
};

// Why the kernel or the process refuses, with what to do.
std::string failure_text(const HeapLookThread::Failure& failure) {
  return fmt::format("pid {}: {}", failure.key.pid, failure.error.what);
}

report::OwnersReport make_report(const OwnersOptions& options,
                                 const tracker::OwnerTrackBuilder& owners,
                                 const tracker::SiteTrackBuilder& sites) {
  report::OwnersReport report =
      report::make_owners_report(owners.owners(), &sites.sites(), options.judge);
  report.top = options.top;
  report.with_all = options.all;
  report.with_types = options.types;
  report.with_tensors = options.tensors;
  return report;
}

class OwnersWatch final : public WatchHandler {
 public:
  // `blocks`: what the looks ask who has allocated what; nullptr: nobody.
  OwnersWatch(const OwnersOptions& options, MakeLook make_look,
              std::shared_ptr<reader::BlockSites> blocks)
      : options_(options),
        plan_(options),
        blocks_(std::move(blocks)),
        looks_(std::move(make_look)) {}

  WatchPolicy policy() const override { return {.command = "owners"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;
  void on_start(const RunInfo& info, WatchOutput& output) override {
    command_ = info.command;
    output_ = &output;
  }
  std::vector<RecordingSink*> sinks() override { return {&owners_, &sites_}; }
  void add_to_tick(Tick& tick) override;
  bool has_refused() const override { return is_denied_; }
  bool is_done() const override { return is_done_; }
  bool finish_watching() override {
    const bool was_busy = looks_.is_busy();
    is_finishing_ = true;
    looks_.cancel();
    if (was_busy) {
      note("the last look was given up");
    }
    return true;  // what is known by now
  }
  void on_end(const WatchEnding& ending, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override;

  report::OwnersReport report() const;

 private:
  void take_news(Tick& tick);
  void take_failure(const HeapLookThread::Failure& failure);
  void note(const std::string& text) {
    if (output_ != nullptr) {
      output_->note(text);
    }
  }

  const OwnersOptions& options_;
  LookPlan plan_;
  const std::shared_ptr<reader::BlockSites> blocks_;
  HeapLookThread looks_;
  tracker::OwnerTrackBuilder owners_;
  tracker::SiteTrackBuilder sites_;
  WatchOutput* output_ = nullptr;  // while it runs
  std::string command_;
  std::vector<std::string> problems_;
  std::optional<HeapLookThread::Failure> denial_;  // the first one
  std::uint64_t looks_taken_ = 0;
  std::uint64_t told_ = 0;
  bool found_objects_ = false;
  bool has_export_problem_ = false;
  bool is_denied_ = false;
  bool is_done_ = false;
  bool is_finishing_ = false;
};

void OwnersWatch::take_failure(const HeapLookThread::Failure& failure) {
  plan_.set_failed(failure.key);
  if (failure.error.code == Errc::kGone) {
    return;  // it has exited: that is what it is here for
  }
  if (!denial_) {
    denial_ = failure;
  }
  problems_.push_back(failure_text(failure));
}

void OwnersWatch::take_news(Tick& tick) {
  HeapLookThread::News news = looks_.take();
  looks_taken_ += news.facts.looks.size();
  for (const HeapFacts::OfProcess& of : news.facts.looks) {
    found_objects_ = found_objects_ || of.look.objects > 0 || of.look.problem.empty();
  }
  tick.heap = std::move(news.facts);
  if (blocks_) {
    tick.allocations = blocks_->take_facts();
  }
  for (const HeapLookThread::Failure& failure : news.failures) {
    take_failure(failure);
  }
  for (const std::string& problem : news.problems) {
    has_export_problem_ = true;
    problems_.push_back(problem);
    note("error: " + escape_text(problem));
  }
}

void OwnersWatch::add_to_tick(Tick& tick) {
  plan_.add(tick);
  const bool was_busy = looks_.is_busy();  // what it has found by now is taken below
  take_news(tick);
  if (was_busy || is_finishing_) {
    return;
  }
  if (plan_.begun() > told_) {
    told_ = plan_.begun();
    const bool is_last = told_ >= options_.looks;
    note(fmt::format("look {} of {} at {}{}", told_, options_.looks, format_clock(tick.t_s),
                     is_last ? "" : "; Ctrl-C gives the answer so far"));
  }
  if (looks_taken_ == 0 && denial_ && plan_.begun() > 0) {
    is_denied_ = true;  // nobody lets us look
    return;
  }
  // What is no Python now will be none at the next look; a command may still be about to start it.
  const bool is_hopeless =
      looks_taken_ > 0 && !found_objects_ && options_.watch.target.command.empty();
  if (plan_.begun() >= options_.looks || is_hopeless) {
    is_done_ = true;
    return;
  }
  if (plan_.is_due(tick)) {
    HeapLookThread::Round round = plan_.make_round(tick);
    if (!round.targets.empty()) {
      looks_.begin(std::move(round));
    }
  }
}

report::OwnersReport OwnersWatch::report() const {
  report::OwnersReport report = make_report(options_, owners_, sites_);
  report.command = command_;
  report.notes = problems_;
  if (plan_.left_out() > 0) {
    report.notes.push_back(
        fmt::format("{} not looked at; --all looks at up to {}",
                    format_count(plan_.left_out(), "smaller process was", "smaller processes were"),
                    kMostLookedAll));
  }
  return report;
}

// What the kernel says is "permission denied"; why is in the files of /proc.
void OwnersWatch::on_end(const WatchEnding& /*ending*/, WatchOutput& output) {
  output_ = nullptr;
  if (looks_taken_ > 0 || !denial_) {
    return;
  }
  std::string hint;
  if (denial_->error.code == Errc::kPermission) {
    hint = collect::attach_hint(denial_->error, denial_->key.pid);
  }
  output.error(
      fmt::format("cannot look at the heap of pid {}: {}", denial_->key.pid, denial_->error.what),
      hint);
}

int OwnersWatch::exit_code(const WatchEnding& ending) {
  if (ending.command_status && ending.own_code != kExitUsage) {
    return *ending.command_status;
  }
  if (ending.own_code != kExitOk) {
    return ending.own_code;
  }
  const report::OwnersReport result = report();
  if (!report::has_looks(result) || has_export_problem_) {
    return kExitTarget;
  }
  return report::has_unexplained_growth(result) ? kExitUndetermined : kExitOk;
}

// The report at the end.
class OwnersView final : public WatchView {
 public:
  OwnersView(const OwnersWatch& watch, const OwnersOptions& options, LineWriter& writer)
      : watch_(watch), options_(options), writer_(writer) {}

  void on_end(const RunSummary& /*summary*/) override {
    if (watch_.has_refused()) {
      return;
    }
    const report::OwnersReport report = watch_.report();
    if (options_.watch.json) {
      writer_.submit_always(report::owners_json(report) + '\n');
      return;
    }
    const int fd = options_.watch.target.command.empty() ? STDOUT_FILENO : STDERR_FILENO;
    writer_.submit_always('\n' +
                          report::owners_text(report, report::style_for(fd, options_.plain)));
  }

 private:
  const OwnersWatch& watch_;
  const OwnersOptions& options_;
  LineWriter& writer_;
};

std::unique_ptr<WatchView> OwnersWatch::make_view(LineWriter& lines) {
  return std::make_unique<OwnersView>(*this, options_, lines);
}

int owners_of_recording(const OwnersOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::OwnerTrackBuilder owners;
  tracker::SiteTrackBuilder sites;
  TwoSinks both(owners, sites);
  const auto summary = (*reader)->read(both);
  if (!summary) {
    print_error(summary.error());
  } else {
    report::print_read_notes(*summary);
  }
  if (owners.owners().empty()) {
    print_error(fmt::format("{} has no looks at a heap", escape_text(options.input)),
                "tidemark owners --pid PID -o FILE records them; tidemark profile FILE shows call "
                "stacks, tidemark track FILE judges it");
    return kExitTarget;
  }
  report::OwnersReport report = make_report(options, owners, sites);
  report.command = (*reader)->info().command;
  const std::string text =
      options.watch.json
          ? report::owners_json(report) + '\n'
          : report::owners_text(report, report::style_for(STDOUT_FILENO, options.plain));
  if (const Status printed = report::write_report_file("-", text); !printed) {
    print_error(printed.error());
    return kExitTarget;
  }
  return !summary                                 ? kExitTarget
         : report::has_unexplained_growth(report) ? kExitUndetermined
                                                  : kExitOk;
}

}  // namespace

Result<LookEvery> parse_look_every(std::string_view text) {
  constexpr std::string_view kSteps = "steps";
  LookEvery every;
  if (text.ends_with(kSteps) || text.ends_with("step")) {
    const std::size_t unit = text.ends_with(kSteps) ? kSteps.size() : kSteps.size() - 1;
    const auto steps = parse_number<std::int64_t>(text.substr(0, text.size() - unit));
    if (!steps || *steps <= 0) {
      return Error{Errc::kUsage, "--every is a time or a number of steps: 20s, 50steps"};
    }
    every.steps = *steps;
    return every;
  }
  TIDEMARK_TRY_ASSIGN(every.ns, parse_duration_ns(text));
  if (every.ns < kNsPerSecond) {
    return Error{Errc::kUsage, "--every: the shortest is 1s"};
  }
  return every;
}

Status parse_look_budget(std::string_view text, heap::HeapOptions& options) {
  for (const std::string_view part : split(text, ',')) {
    if (const auto duration = parse_duration_ns(part); duration && *duration > 0) {
      options.most_seconds = to_seconds(*duration);
    } else if (const auto size = parse_size_bytes(part); size && *size >= 16 * kMiB) {
      options.most_memory_bytes = *size;
    } else {
      return Error{Errc::kUsage, "--budget is a time, a size of 16MiB or more, or both: 10s,1GiB"};
    }
  }
  return ok();
}

Result<heap::FrozenUse> parse_frozen_use(std::string_view text) {
  if (text == "auto") {
    return heap::FrozenUse::kAuto;
  }
  if (text == "always") {
    return heap::FrozenUse::kAlways;
  }
  if (text == "never") {
    return heap::FrozenUse::kNever;
  }
  return Error{Errc::kUsage, "--frozen is auto, always or never"};
}

int run_owners(const OwnersOptions& options, WatchSystem* system, MakeLook make_look) {
  if (!options.input.empty()) {
    return owners_of_recording(options);
  }
  heap::HeapOptions heap = options.heap;
  if (!make_look) {
    heap.sites = std::make_shared<reader::BlockSites>();
    make_look = make_heap_looks(heap);
  }
  OwnersWatch handler(options, std::move(make_look), heap.sites);
  return watch(options.watch, handler, system);
}

}  // namespace tidemark::live
