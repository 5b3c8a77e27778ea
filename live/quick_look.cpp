// SPDX-License-Identifier: Apache-2.0
#include "live/quick_look.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/redact.h"
#include "common/text.h"
#include "common/units.h"
#include "live/find.h"
#include "live/watch.h"
#include "report/track_words.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::live {
namespace {

constexpr std::int64_t kLengthNs = 20 * kNsPerSecond;
constexpr std::int64_t kIntervalNs = kNsPerSecond / 2;
constexpr std::size_t kArgvColumns = 60;

class QuickLook final : public WatchHandler {
 public:
  explicit QuickLook(const monitor::Candidate& job) : job_(job) {}

  WatchPolicy policy() const override { return {.command = ""}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
    return std::make_unique<View>(*this, lines);
  }
  void on_start(const RunInfo& /*info*/, WatchOutput& output) override {
    output.note(fmt::format("watching pid {} for {}; Ctrl-C answers at once", job_.key.pid,
                            format_duration(to_seconds(kLengthNs))));
  }
  std::vector<RecordingSink*> sinks() override { return {&builder_}; }
  void on_tick(const Tick& tick, const monitor::Session& session) override {
    watched_s_ = tick.t_s;
    is_over_ = session.sampler().finished();
  }
  int exit_code(const WatchEnding& ending) override {
    const int code = tracker::exit_code_of(answer());
    return ending.own_code != kExitOk ? ending.own_code
           : code == kExitOk          ? kExitUndetermined  // 20 s do not show that nothing leaks
                                      : code;
  }

 private:
  class View final : public WatchView {
   public:
    View(QuickLook& look, LineWriter& lines) : look_(look), lines_(lines) {}
    void on_end(const RunSummary& /*summary*/) override {
      lines_.submit_always(look_.job_line() + look_.verdict_line() + look_.next_line());
    }

   private:
    QuickLook& look_;
    LineWriter& lines_;
  };

  const tracker::JudgedRun& answer() {
    if (!answer_) {
      answer_ = tracker::judge_run(builder_.take(), {});
    }
    return *answer_;
  }
  std::string job_line() const {
    return fmt::format("training job: pid {} ({}), {}, footprint {}\n", job_.key.pid,
                       shorten(escape_text(redact_argv(job_.argv)), kArgvColumns),
                       workers_text(job_), format_bytes(job_.footprint_bytes));
  }
  std::string verdict_line() {
    const std::string seen = "in " + format_duration(watched_s_) + ": ";
    if (!answer().verdict) {
      return seen + "nothing to judge yet\n";
    }
    const tracker::RunVerdict& verdict = *answer().verdict;
    const tracker::SeriesVerdict& reading = verdict.answer().series;
    if (verdict.verdict < tracker::Verdict::kGrowing) {
      return seen + calm_text(reading);
    }
    const std::string forecast = report::short_forecast(reading);
    return fmt::format("{}{}, {}{}{}\n", seen, report::short_verdict(reading, verdict.verdict),
                       report::short_finding(reading, verdict.verdict),
                       forecast.empty() ? "" : "; ", forecast);
  }
  // A rise that is too small to count in so short a time may be a leak all the same: what was
  // measured, and no all-clear.
  static std::string calm_text(const tracker::SeriesVerdict& reading) {
    const std::string rise = report::late_rise_rate(reading);
    const std::string detectable = rise.empty() ? report::detectable_text(reading) : "";
    return fmt::format(
        "TOO EARLY, {} -> {} ({}){}{}{}{}\n", format_bytes(reading.first_floor_bytes),
        format_bytes(reading.last_floor_bytes),
        format_bytes_delta(reading.last_floor_bytes - reading.first_floor_bytes),
        rise.empty() ? "" : "; rising by ", rise, detectable.empty() ? "" : "; only ", detectable);
  }
  std::string next_line() {
    if (is_over_) {
      return fmt::format("pid {} has exited\n", job_.key.pid);
    }
    const std::string pids = pid_options(job_.watch);
    const tracker::SeriesVerdict reading =
        answer().verdict ? answer().verdict->answer().series : tracker::SeriesVerdict{};
    const std::string diagnose =
        fmt::format("next: tidemark diagnose {} (who holds it, which line made it)", pids);
    if (reading.verdict == tracker::Verdict::kLeak || report::fills_soon(reading)) {
      return fmt::format("{}; tidemark guard {} stops it with a checkpoint in time\n", diagnose,
                         pids);
    }
    if (reading.verdict == tracker::Verdict::kGrowing) {
      return diagnose + '\n';
    }
    return fmt::format("next: tidemark track {} --duration {}\n", pids,
                       report::duration_needed(reading));
  }

  const monitor::Candidate& job_;
  tracker::TrackBuilder builder_;
  std::optional<tracker::JudgedRun> answer_;
  double watched_s_ = 0.0;
  bool is_over_ = false;
};

std::string commands_text(const QuickLookOptions& options) {
  std::size_t width = 0;
  for (const auto& [name, help] : options.commands) {
    width = std::max(width, name.size());
  }
  std::string text = "commands (tidemark COMMAND --help shows the options of one):\n";
  for (const auto& [name, help] : options.commands) {
    text += fmt::format("  {:<{}}  {}\n", name, width, help);
  }
  return text;
}

// No job, or several: what was found, and what to type.
std::string no_job_text(const monitor::FindResult& found, const QuickLookOptions& options) {
  const monitor::NoPick no_pick = monitor::explain_no_pick(found);
  if (found.candidates.empty()) {
    return fmt::format("{}\n{}hint: {}\n", no_pick.what, commands_text(options), no_pick.hint);
  }
  return fmt::format("{}\n  {}\nhint: {}\n", no_pick.what, fmt::join(no_pick.details, "\n  "),
                     no_pick.hint);
}

int report_error(const Error& error, WatchSystem& system) {
  (void)write_all(system.stderr_fd(), error_text(error.what));
  return kExitTarget;
}

}  // namespace

int run_quick_look(const QuickLookOptions& options, WatchSystem* system) {
  const auto this_machine = system == nullptr ? make_watch_system() : nullptr;
  WatchSystem& used = system == nullptr ? *this_machine : *system;
  const auto source = used.open_processes();
  if (!source) {
    return report_error(source.error(), used);
  }
  const auto found = look_for_training(**source, used.session_options().sampler.proc_root);
  if (!found) {
    return report_error(found.error(), used);
  }
  if (!found->picked) {
    (void)write_all(used.stdout_fd(), no_job_text(*found, options));
    return kExitTarget;
  }
  const monitor::Candidate& job = found->candidates[*found->picked];
  WatchOptions watching;
  watching.target.pids = job.watch;
  watching.duration_ns = kLengthNs;
  watching.interval_ns = kIntervalNs;
  watching.warn = false;
  QuickLook look(job);
  return watch(watching, look, &used);
}

}  // namespace tidemark::live
