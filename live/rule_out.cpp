// SPDX-License-Identifier: Apache-2.0
#include "live/rule_out.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "live/attach_targets.h"
#include "live/watch.h"
#include "monitor/procfs/process_handle.h"
#include "profiler/collect/attached.h"
#include "recording/open.h"
#include "report/intervention_run.h"
#include "report/output.h"
#include "report/rule_out_text.h"

namespace tidemark::live {
namespace {

int exit_code_of(const report::RuleOutReport& report) {
  return report::is_decided(report) ? kExitOk : kExitUndetermined;
}

std::string text_of(const report::RuleOutReport& report, const RuleOutOptions& options) {
  return options.watch.json ? report::rule_out_json(report) + '\n'
                            : report::rule_out_text(
                                  report, report::style_for(STDOUT_FILENO, options.plain).columns);
}

class RuleOutWatch final : public WatchHandler {
 public:
  RuleOutWatch(const RuleOutOptions& options, std::vector<ProcessKey> targets)
      : options_(options), targets_(std::move(targets)), thread_(options.interventions) {}

  WatchPolicy policy() const override { return {.command = "rule-out"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;
  void on_start(const RunInfo& /*info*/, WatchOutput& output) override { output_ = &output; }
  std::vector<RecordingSink*> sinks() override { return {&run_}; }
  void add_to_tick(Tick& tick) override;
  bool is_done() const override { return is_done_; }
  bool finish_watching() override {
    if (thread_.is_busy()) {
      note("what was not done yet is left undone");
    }
    thread_.cancel();
    return true;
  }
  void on_end(const WatchEnding& /*ending*/, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override {
    return ending.own_code != kExitOk ? ending.own_code
           : failure_                 ? kExitTarget
                                      : exit_code_of(report());
  }

  report::RuleOutReport report() const {
    report::RuleOutReport report = run_.report();
    report.notes = problems_;
    return report;
  }

 private:
  void note(const std::string& text) {
    if (output_ != nullptr) {
      output_->note(text);
    }
  }

  const RuleOutOptions& options_;
  const std::vector<ProcessKey> targets_;
  InterventionThread thread_;
  report::InterventionRun run_;
  WatchOutput* output_ = nullptr;
  std::vector<std::string> problems_;
  std::optional<InterventionThread::Failure> failure_;  // the first one
  bool has_begun_ = false;
  bool is_done_ = false;
};

void RuleOutWatch::add_to_tick(Tick& tick) {
  if (!std::exchange(has_begun_, true)) {
    thread_.begin(targets_, tick.t_s);
    return;
  }
  const bool was_busy = thread_.is_busy();  // what it has done by now is taken below
  InterventionThread::News news = thread_.take();
  tick.interventions = std::move(news.records);
  for (const std::string& text : news.notes) {
    note(text);
  }
  for (const InterventionThread::Failure& failure : news.failures) {
    if (failure.error.sys_errno == EINTR) {
      continue;
    }
    problems_.push_back(fmt::format("pid {}: {}", failure.key.pid, failure.error.what));
    failure_ = failure_ ? failure_ : failure;
  }
  is_done_ = !was_busy;
}

void RuleOutWatch::on_end(const WatchEnding& /*ending*/, WatchOutput& output) {
  output_ = nullptr;
  if (failure_) {
    output.error(
        fmt::format("cannot intervene in pid {}: {}", failure_->key.pid, failure_->error.what),
        failure_->error.code == Errc::kPermission
            ? collect::attach_hint(failure_->error, failure_->key.pid)
            : "");
  }
}

// The report at the end.
class RuleOutView final : public WatchView {
 public:
  RuleOutView(const RuleOutWatch& watch, const RuleOutOptions& options, LineWriter& lines)
      : watch_(watch), options_(options), lines_(lines) {}

  void on_end(const RunSummary& /*summary*/) override {
    lines_.submit_always((options_.watch.json ? "" : "\n") + text_of(watch_.report(), options_));
  }

 private:
  const RuleOutWatch& watch_;
  const RuleOutOptions& options_;
  LineWriter& lines_;
};

std::unique_ptr<WatchView> RuleOutWatch::make_view(LineWriter& lines) {
  return std::make_unique<RuleOutView>(*this, options_, lines);
}

int rule_out_of_recording(const RuleOutOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  report::InterventionRun run;
  const auto summary = (*reader)->read(run);
  if (!summary) {
    print_error(summary.error());
    return kExitTarget;
  }
  report::print_read_notes(*summary);
  const report::RuleOutReport report = run.report();
  if (report.processes.empty()) {
    print_error(fmt::format("{} has no interventions", escape_text(options.input)),
                "tidemark rule-out --pid PID -o FILE records them");
    return kExitTarget;
  }
  if (const Status written = write_all(STDOUT_FILENO, text_of(report, options)); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return exit_code_of(report);
}

// What would be done, and whether it could be: by reading only.
int rule_out_dry(const std::vector<ProcessKey>& targets, const RuleOutOptions& options) {
  report::RuleOutPlan plans;
  bool is_possible = false;
  for (const ProcessKey& key : targets) {
    const auto plan = collect::plan_interventions(key.pid, options.interventions.choice);
    if (!plan) {
      print_error(plan.error());
      return kExitTarget;
    }
    report::RuleOutPlan::Process& process = plans.processes.emplace_back();
    process.key = key;
    for (const collect::PlannedIntervention& step : plan->steps) {
      const bool is_refused = step.problem.empty() && !step.is_reading() && !plan->allowed;
      process.steps.push_back(
          {step.kind, step.how, is_refused ? plan->allowed.error().what : step.problem});
      is_possible = is_possible || process.steps.back().problem.empty();
    }
  }
  const std::string text =
      options.watch.json
          ? report::plan_json(plans) + '\n'
          : report::plan_text(plans, report::style_for(STDOUT_FILENO, options.plain).columns);
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return is_possible ? kExitOk : kExitTarget;
}

// The processes that do the work.
Result<std::vector<ProcessKey>> find_targets(const RuleOutOptions& options, WatchSystem* system) {
  const auto source = system == nullptr ? monitor::make_procps_source() : system->open_processes();
  if (!source) {
    return source.error();
  }
  TIDEMARK_TRY_ASSIGN(const auto found, attach_targets(options.watch.target, {}, **source));
  std::vector<ProcessKey> keys;
  for (const pid_t pid : found.wanted) {
    TIDEMARK_TRY_ASSIGN(const ProcessKey key, monitor::process_key_of("/proc", pid));
    keys.push_back(key);
  }
  return keys;
}

}  // namespace

Result<collect::InterventionChoice> parse_interventions(std::string_view text) {
  collect::InterventionChoice choice{false, false, false, false};
  const std::array<std::pair<std::string_view, bool*>, 4> names{
      {{"trim", &choice.trim},
       {"gc", &choice.gc},
       {"cuda", &choice.cuda},
       {"page-cache", &choice.page_cache}}};
  for (const std::string_view word : split(text, ',')) {
    const auto name = std::find_if(names.begin(), names.end(),
                                   [&](const auto& each) { return each.first == word; });
    if (name == names.end()) {
      return Error{Errc::kUsage, fmt::format("--only is a list of trim, gc, cuda and page-cache, "
                                             "not '{}'",
                                             escape_text(word))};
    }
    *name->second = true;
  }
  return choice;
}

int run_rule_out(const RuleOutOptions& options, WatchSystem* system) {
  if (!options.input.empty()) {
    return rule_out_of_recording(options);
  }
  auto targets = find_targets(options, system);
  if (!targets) {
    print_error(targets.error(), targets.error().code == Errc::kUsage
                                     ? "give the process id of one of them"
                                     : "tidemark find lists the jobs that run");
    return kExitTarget;
  }
  if (options.dry_run) {
    return rule_out_dry(*targets, options);
  }
  RuleOutWatch handler(options, *std::move(targets));
  return watch(options.watch, handler, system);
}

}  // namespace tidemark::live
