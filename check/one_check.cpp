// SPDX-License-Identifier: Apache-2.0
#include "check/one_check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/baseline.h"
#include "check/words.h"
#include "common/clock.h"
#include "common/messages.h"
#include "common/redact.h"
#include "common/text.h"
#include "common/units.h"
#include "live/job_output.h"
#include "report/loss_text.h"
#include "report/track_words.h"

namespace tidemark::check {
namespace {

using tracker::BudgetRow;
using tracker::BudgetRows;
using tracker::BudgetState;

constexpr double kDefaultJobGrowthBytes = 1 << 20;

class Check {
 public:
  Check(const CheckSpec& spec, const CheckSurroundings& surroundings)
      : spec_(spec), services_(surroundings), today_(today_utc()), machine_(this_machine()) {
    result_.spec = spec;
    spec_.budgets.has_baseline = !spec.baseline.empty() && !spec.update_baseline;
    active_ = suppressions_of(surroundings.suppressions, spec.name, today_, /*expired=*/false);
  }

  CheckResult run();

 private:
  Status read_files();
  void run_all();
  void tell_start(std::uint32_t number) const;
  bool run_another(std::uint32_t number);
  BudgetRows judge(const CheckRun& run);
  bool is_decided() const;
  void conclude();
  void note_baseline();
  void note_suppressions();
  void note_unused_settings();
  bool is_blind_at_the_limit() const;
  std::optional<double> growth_without_steps() const;
  void note_run();
  void fail(const Error& error);
  void store_baseline(const std::string& now, const std::string& commit);
  void store_history(const std::string& now, const std::string& commit);
  void store();

  CheckSpec spec_;
  const CheckSurroundings& services_;
  const std::chrono::sys_days today_;
  const MachineFacts machine_;
  Baseline baseline_;
  const BaselineEntry* entry_ = nullptr;  // into `baseline_`
  std::vector<HistoryRow> history_;
  std::vector<Suppression> active_;
  std::vector<tracker::BaselineRun> figures_;  // of each run
  std::vector<BudgetRows> rows_;               // of each run
  // Apart from that of the run, whose signals wake the loop and not the meter.
  const std::unique_ptr<live::WatchSystem> system_ = live::make_watch_system();
  std::optional<LeftBehindMeter> meter_ = LeftBehindMeter(*system_);
  CheckResult result_;
};

// Before anything is run: a gate with a broken baseline is no gate.
Status Check::read_files() {
  if (!spec_.baseline.empty()) {
    auto baseline = read_baseline(spec_.baseline);
    const bool is_new = !baseline && baseline.error().code == Errc::kNotFound;
    if (!baseline && !(is_new && spec_.update_baseline)) {
      return is_new ? Error{Errc::kNotFound,
                            fmt::format("there is no baseline {} yet; --update-baseline makes it",
                                        spec_.baseline)}
                    : baseline.error();
    }
    if (baseline) {
      baseline_ = *std::move(baseline);
    }
  }
  if (spec_.budgets.has_baseline) {
    entry_ = find_entry(baseline_, spec_.name, machine_);
    if (entry_ == nullptr) {
      return Error{Errc::kNotFound,
                   fmt::format("{} has no runs of '{}' yet; --update-baseline adds them",
                               spec_.baseline, escape_text(spec_.name))};
    }
    result_.baseline_runs = entry_->runs.size();
  }
  if (!spec_.history.empty()) {
    TIDEMARK_TRY_ASSIGN(history_, read_history(spec_.history));
  }
  return ok();
}

BudgetRows Check::judge(const CheckRun& run) {
  const tracker::MeasuredRun measured = run.measured();
  BudgetRows rows = tracker::judge_budgets(spec_.budgets, measured);
  if (measured.memory) {
    figures_.push_back(tracker::baseline_run(*measured.memory));
    if (entry_ != nullptr) {
      std::vector<tracker::BaselineRun> earlier;
      for (const StoredRun& stored : entry_->runs) {
        earlier.push_back(stored.figures);
      }
      const BudgetRows compared =
          tracker::judge_against_baseline(earlier, *measured.memory, spec_.tolerance);
      rows.insert(rows.end(), compared.begin(), compared.end());
    }
  }
  const report::ProfileReport* const report = run.profile();
  if (report != nullptr && !active_.empty()) {
    const SuppressedGrowth growth = suppressed_growth(*report, active_);
    suppress(rows, growth);
    result_.suppressed.clear();
    for (const std::size_t used : growth.used) {
      result_.suppressed.push_back(active_[used]);
    }
  }
  return rows;
}

// Further repeats could not change the answer: everything was within its budget once.
bool Check::is_decided() const {
  return spec_.jobs < 2 && tracker::state_of(tracker::best_of(rows_)) <= BudgetState::kSuppressed;
}

void Check::tell_start(std::uint32_t number) const {
  constexpr std::size_t kMostBytes = 200;
  const std::uint32_t planned = std::max(spec_.repeat, spec_.jobs);
  const std::string which =
      planned > 1 ? fmt::format(", {} {} of {}", spec_.jobs > 1 ? "job" : "run", number, planned)
                  : "";
  std::string command =
      spec_.redact ? redact_argv(spec_.command) : fmt::format("{}", fmt::join(spec_.command, " "));
  if (command.size() > kMostBytes) {
    command = command.substr(0, kMostBytes) + "...";
  }
  print_note(fmt::format("check {}{}: {}", spec_.name, which, command));
}

// False: no further run makes sense.
bool Check::run_another(std::uint32_t number) {
  tell_start(number);
  if (spec_.jobs < 2) {
    meter_.emplace(*system_);  // a repeat answers for itself, a job also for those before it
  }
  CheckRun run =
      run_once(spec_, {*meter_, numbered_output(spec_.output, number), services_.stdout_is_ours});
  result_.runs = number;
  result_.problem = problem_with(spec_, run);
  rows_.push_back(judge(run));
  result_.left_by_job.push_back(static_cast<double>(run.left.bytes()));
  const bool goes_on = result_.problem.empty() && !run.ending.was_told_to_stop;
  // Of jobs the worst is shown, of repeats the last.
  const bool is_worse =
      rows_.size() < 2 || spec_.jobs < 2 ||
      tracker::state_of(rows_.back()) >=
          tracker::state_of(tracker::worst_of(std::span(rows_).first(rows_.size() - 1)));
  if (is_worse || !goes_on) {
    result_.shown = std::move(run);
  }
  return goes_on;
}

void Check::run_all() {
  const std::uint32_t planned = std::max(spec_.repeat, spec_.jobs);
  for (std::uint32_t number = 1; number <= planned; ++number) {
    if (!run_another(number) || is_decided()) {
      return;
    }
    if (spec_.jobs < 2 && number < planned) {
      meter_->end_strays();  // the next repeat begins alone
    }
  }
}

void Check::conclude() {
  result_.rows = spec_.jobs > 1 ? tracker::worst_of(rows_) : tracker::best_of(rows_);
  if (spec_.jobs > 1) {
    const BudgetRow jobs = tracker::judge_jobs(
        result_.left_by_job, spec_.budgets.job_growth_bytes.value_or(kDefaultJobGrowthBytes));
    const auto place = std::find_if(result_.rows.begin(), result_.rows.end(),
                                    [&](const BudgetRow& row) { return row.kind > jobs.kind; });
    result_.rows.insert(place, jobs);
  }
  const bool was_interrupted = result_.shown && result_.shown->ending.was_told_to_stop;
  result_.status = status_of(result_.rows, !result_.problem.empty(), was_interrupted);
}

void Check::note_baseline() {
  if (entry_ == nullptr) {
    return;
  }
  const auto differences = class_differences(machine_, entry_->machine);
  if (!differences.empty()) {
    result_.notes.push_back(fmt::format(
        "the baseline is of another class of machine: {}. Figures may differ for that reason; "
        "--update-baseline adds runs of this one",
        fmt::join(differences, "; ")));
  }
  if (entry_->runs.size() < 3) {
    result_.notes.push_back(
        fmt::format("the baseline has {}: how much runs differ by themselves is hardly known",
                    format_count(entry_->runs.size(), "run")));
  }
}

void Check::note_suppressions() {
  for (const Suppression& expired :
       suppressions_of(services_.suppressions, spec_.name, today_, /*expired=*/true)) {
    result_.notes.push_back("this suppression has expired: " + suppression_text(expired));
  }
  if (!active_.empty() && !spec_.profile) {
    result_.notes.emplace_back("suppressions need --profile: without it no call stack is known");
  }
}

void Check::note_unused_settings() {
  const CheckSpec usual;
  if (spec_.baseline.empty() && spec_.tolerance != usual.tolerance) {
    result_.notes.emplace_back("--tolerance is for --baseline: nothing was compared");
  }
  if (spec_.history.empty() && !spec_.commit.empty()) {
    result_.notes.emplace_back("--commit is for --history: no row was written");
  }
}

// Whether growth at its limit could have hidden in the noise of the run.
bool Check::is_blind_at_the_limit() const {
  const auto is_unseen_growth = [](const BudgetRow& each) {
    return each.kind == tracker::BudgetKind::kGrowth && each.state == BudgetState::kWithin &&
           !each.measured && each.limit.value_or(0.0) > 0.0;
  };
  const auto row = std::find_if(result_.rows.begin(), result_.rows.end(), is_unseen_growth);
  if (row == result_.rows.end() || !result_.shown->track.verdict) {
    return false;
  }
  const tracker::SeriesVerdict& reading = result_.shown->track.verdict->answer().series;
  const auto smallest = row->unit == tracker::BudgetUnit::kBytesPerStep
                            ? reading.smallest_detectable_per_step
                            : reading.smallest_detectable_per_s;
  return smallest && *smallest > *row->limit;
}

// Of a run whose growth is within its budget per step only because it is so little; nullopt: it is
// judged by its steps.
std::optional<double> Check::growth_without_steps() const {
  const auto row =
      std::find_if(result_.rows.begin(), result_.rows.end(),
                   [](const BudgetRow& each) { return each.kind == tracker::BudgetKind::kGrowth; });
  const auto measured = result_.shown->measured().memory;
  const bool is_such = row != result_.rows.end() && row->state == BudgetState::kWithin &&
                       row->unit == tracker::BudgetUnit::kBytesPerStep && measured &&
                       measured->growth.kind && !measured->growth.knows_steps;
  return is_such ? measured->growth.late_bytes : std::nullopt;
}

void Check::note_run() {
  if (!result_.shown) {
    return;
  }
  std::vector<std::string>& notes = result_.notes;
  if (!result_.shown->tracing_problem.empty()) {
    notes.push_back("nobody traced allocations: " + escape_text(result_.shown->tracing_problem));
  }
  if (const std::string& lines = result_.shown->ending.step_lines; !lines.empty()) {
    notes.push_back(live::recognized_steps_text(lines));
  }
  const std::vector<std::string> ignored = report::ignored_options(result_.shown->track);
  notes.insert(notes.end(), ignored.begin(), ignored.end());
  if (const auto bytes = growth_without_steps()) {
    notes.push_back(fmt::format(
        "no steps are known: it grew by {} in the last two thirds of the run, which one step may",
        format_bytes(std::max(*bytes, 0.0))));
  }
  if (is_blind_at_the_limit()) {
    notes.emplace_back(
        "the run was too short or too noisy to show growth at the limit itself; a longer one shows "
        "smaller leaks");
  }
  for (const auto& [what, count] : result_.shown->track.run.losses) {
    notes.push_back("not seen: " + report::loss_text(what, count));
  }
}

void Check::fail(const Error& error) {
  result_.problem = escape_text(error.what);
  result_.status = CheckStatus::kError;
}

void Check::store_baseline(const std::string& now, const std::string& commit) {
  for (const tracker::BaselineRun& figures : figures_) {
    add_run(baseline_, spec_.name, machine_, {figures, now, commit});
  }
  if (const Status written = write_baseline(spec_.baseline, baseline_); !written) {
    fail(written.error());
    return;
  }
  const BaselineEntry* const entry = find_entry(baseline_, spec_.name, machine_);
  result_.notes.push_back(fmt::format("the baseline {} has {} now", escape_text(spec_.baseline),
                                      format_count(entry->runs.size(), "run")));
}

void Check::store_history(const std::string& now, const std::string& commit) {
  HistoryRow row;
  row.time = now;
  row.commit = commit;
  row.check = spec_.name;
  row.machine = machine_text(machine_);
  row.result = status_name(result_.status);
  row.figures = figures_.back();
  row.seconds = result_.shown->seconds;
  if (const Status appended = append_history(spec_.history, row); !appended) {
    fail(appended.error());
  }
  history_.push_back(row);
  result_.changes = history_changes(history_, spec_.name, row.machine);
}

// What later checks compare with.
void Check::store() {
  const bool is_wanted = spec_.update_baseline || !spec_.history.empty();
  const bool is_sound = result_.problem.empty() && result_.shown &&
                        !result_.shown->ending.was_told_to_stop && !figures_.empty();
  if (is_wanted && !is_sound) {
    result_.notes.emplace_back("neither baseline nor history got a row: the run is no measure");
  }
  if (!is_wanted || !is_sound) {
    return;
  }
  const std::string now = utc_time_text(SystemClock().wall_ns());
  const std::string commit = spec_.commit.empty() ? current_commit() : spec_.commit;
  if (spec_.update_baseline) {
    store_baseline(now, commit);
  }
  if (!spec_.history.empty()) {
    store_history(now, commit);
  }
}

CheckResult Check::run() {
  if (const Status read = read_files(); !read) {
    result_.problem = escape_text(read.error().what);
    result_.status = CheckStatus::kError;
    return std::move(result_);
  }
  run_all();
  conclude();
  note_baseline();
  note_suppressions();
  note_unused_settings();
  note_run();
  store();
  return std::move(result_);
}

}  // namespace

CheckResult check_one(const CheckSpec& spec, const CheckSurroundings& surroundings) {
  return Check(spec, surroundings).run();
}

std::string numbered_output(const std::string& path, std::uint32_t run) {
  return path.empty() || run < 2 ? path : tagged_output(path, fmt::format("{}", run));
}

std::string tagged_output(const std::string& path, std::string_view tag) {
  const std::size_t dot = path.rfind('.');
  const bool has_end = dot != std::string::npos && path.find('/', dot) == std::string::npos &&
                       dot > 0 && path[dot - 1] != '/';
  const std::size_t end = has_end ? dot : path.size();
  return fmt::format("{}-{}{}", path.substr(0, end), tag, path.substr(end));
}

}  // namespace tidemark::check
