// SPDX-License-Identifier: Apache-2.0
#include "live/owners.h"

#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/job_looks.h"
#include "live/watch.h"
#include "monitor/session.h"
#include "profiler/reader/block_sites.h"
#include "recording/open.h"
#include "report/output.h"
#include "report/owners_text.h"
#include "tracker/owners/owner_tracks.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {
namespace {

LookPlanOptions look_plan(const OwnersOptions& options) {
  LookPlanOptions plan;
  plan.looks = options.looks;
  plan.every = options.every;
  plan.all = options.all;
  plan.named = options.watch.target.pids;
  plan.was_started = !options.watch.target.command.empty();
  plan.has_log = !options.watch.log_file.empty();
  plan.exports = options.exports;
  return plan;
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
      : options_(options), looks_(look_plan(options), std::move(make_look), std::move(blocks)) {}

  WatchPolicy policy() const override { return {.command = "owners"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;
  void on_start(const RunInfo& info, WatchOutput& output) override {
    command_ = info.command;
    output_ = &output;
  }
  std::vector<RecordingSink*> sinks() override { return {&owners_, &sites_}; }
  void add_to_tick(Tick& tick) override;
  bool has_refused() const override { return looks_.is_denied(); }
  bool is_done() const override { return looks_.is_done(); }
  bool finish_watching() override {
    if (looks_.finish()) {
      note("the last look was given up");
    }
    return true;  // what is known by now
  }
  void on_end(const WatchEnding& ending, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override;

  report::OwnersReport report() const;

 private:
  void note(const std::string& text) {
    if (output_ != nullptr) {
      output_->note(text);
    }
  }

  const OwnersOptions& options_;
  JobLooks looks_;
  tracker::OwnerTrackBuilder owners_;
  tracker::SiteTrackBuilder sites_;
  WatchOutput* output_ = nullptr;  // while it runs
  std::string command_;
  bool has_export_problem_ = false;
};

void OwnersWatch::add_to_tick(Tick& tick) {
  looks_.complete(tick);
  for (const std::string& problem : looks_.take_export_problems()) {
    has_export_problem_ = true;
    note("error: " + escape_text(problem));
  }
  if (const auto ended = looks_.take_ended_look()) {
    note(fmt::format("look {} of {} at {}{}", *ended, looks_.looks(), format_clock(tick.t_s),
                     *ended >= looks_.looks() ? "" : "; Ctrl-C gives the answer so far"));
  }
}

report::OwnersReport OwnersWatch::report() const {
  report::OwnersReport report = make_report(options_, owners_, sites_);
  report.command = command_;
  report.notes = looks_.notes();
  return report;
}

void OwnersWatch::on_end(const WatchEnding& /*ending*/, WatchOutput& output) {
  output_ = nullptr;
  if (!looks_.has_looked() && looks_.denial()) {
    const LookDenial denial = denial_text(*looks_.denial());
    output.error(denial.what, denial.hint);
  }
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
