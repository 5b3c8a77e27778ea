// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_watch.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/text.h"
#include "common/units.h"
#include "guard/job_group.h"
#include "monitor/procfs/launch_mark.h"

namespace tidemark::guard {
namespace {

constexpr double kLimitsEveryS = 10.0;
constexpr double kYoungS = 10.0;  // a job is moved into its control group soon after its birth
constexpr double kStatusEveryS = 10.0;
// A report may come in the middle of a tick: only the next one has seen who was reaped since.
constexpr int kTicksOfTheReaped = 2;
constexpr std::int64_t kGuardThreadStalledNs = 5 * kNsPerSecond;

std::string_view word_of(GuardAct act) {
  switch (act) {
    case GuardAct::kWarn:
      return "WARNING";
    case GuardAct::kStop:
      return "STOP";
    case GuardAct::kKill:
      return "KILL";
    case GuardAct::kStandDown:
    case GuardAct::kNothing:
      break;
  }
  return "guard";
}

live::LastLookOptions last_look_options(const GuardOptions& options) {
  live::LastLookOptions looks;
  looks.is_on = options.last_look.value_or(!options.dry_run);
  looks.named = options.track.watch.target.pids;
  looks.limit_bytes = options.track.judge.limit_bytes;
  looks.keep_free = [keep_free = options.keep_free](std::uint64_t limit_bytes) {
    return keep_free.of(limit_bytes);
  };
  looks.judge = options.track.judge;
  return looks;
}

}  // namespace

GuardWatch::GuardWatch(const GuardOptions& options, const GuardServices& surroundings,
                       live::MakeLook make_look)
    : options_(options),
      services_(surroundings),
      forecast_(options.track.judge),
      last_looks_(last_look_options(options), std::move(make_look)) {}

std::unique_ptr<live::WatchView> GuardWatch::make_view(live::LineWriter& /*lines*/) {
  return std::make_unique<live::WatchView>();  // it speaks through its log alone
}

// The command must not inherit the protection of the guard.
Status GuardWatch::on_launch(live::LaunchOptions& options) {
  services_.shield.take_down();
  options.environment.emplace_back("TIDEMARK_RESTARTS",
                                   fmt::format("{}", services_.restarts.restarts()));
  return ok();
}

void GuardWatch::on_start(const RunInfo& info, live::WatchOutput& output) {
  output_ = &output;
  start_wall_ns_ = info.start_wall_ns.value_or(0);
  GuardThreadOptions options;
  options.settings = options_.settings;
  options.signal_number = options_.signal_number;
  options.dry_run = options_.dry_run;
  if (!options_.track.watch.target.command.empty()) {
    options.killer.children_of = ::getpid();
    options.killer.launch_mark = monitor::launch_mark();
  }
  options.killer.resume = services_.resume;
  auto guard_thread = GuardThread::create(options);
  auto notes = guard_thread ? (*guard_thread)->start()
                            : Result<std::vector<std::string>>(guard_thread.error());
  if (!notes) {
    problem_ = notes.error().what;
    output_->error(problem_, "nothing is guarded");
    return;
  }
  guard_thread_ = *std::move(guard_thread);
  if (const std::string note = services_.shield.put_up(); !note.empty()) {
    notes->push_back(note);
  }
  for (const std::string& note : *notes) {
    if (services_.restarts.restarts() == 0) {
      output_->note("note: " + note);
    }
  }
  services_.service.ready();
}

void GuardWatch::add_to_tick(Tick& tick) {
  on_event();
  const std::optional<LeakRate>& leak = forecast_.leak();
  last_looks_.add_to_tick(tick, leak ? std::optional(leak->high_bytes_per_s) : std::nullopt);
  if (const auto note = last_looks_.take_note(); note && services_.restarts.restarts() == 0) {
    output_->note(*note);
  }
  for (EventRecord& event : std::exchange(events_, {})) {
    tick.events.push_back(std::move(event));
  }
}

void GuardWatch::on_tick(const Tick& tick, const monitor::Session& session) {
  step_ = tick.step ? tick.step : step_;
  saw_oom_kill_ = saw_oom_kill_ ||
                  std::any_of(tick.events.begin(), tick.events.end(), [](const EventRecord& event) {
                    return event.kind == EventKind::kOomKill;
                  });
  tell_of_command();
  const Roster roster = make_roster(session.sampler(), tick);
  auto list = std::make_unique<GuardTargets>();
  if (guard_thread_ != nullptr) {
    fill(*list, roster, tick);
    vet(*list);
  }
  if (is_refused_) {
    return;
  }
  // May take a while; what the list holds was read together with the tick.
  forecast_.update(tick, roster,
                   [&](const ProcessKey& key) { return session.sampler().find(key); });
  if (guard_thread_ != nullptr) {
    list->leak = forecast_.leak();
    guard_thread_->post(std::move(list));
    keep_service_informed(tick);
  }
}

// A trainer that was the command itself has been reaped by the tick after its end.
void GuardWatch::tell_of_command() {
  const bool is_due = tells_of_command_in_ > 0 && --tells_of_command_in_ == 0;
  if (is_due && !is_over_ && command_ended_wall_ns_ == INT64_MAX) {
    say(SystemClock().wall_ns(), "guard",
        "the command goes on; unless somebody trains again, its end counts as the stop");
  }
}

// Before the guard_thread has a list, nobody gets a signal. A command that we have started holds
// nothing yet.
void GuardWatch::vet(GuardTargets& list) {
  if (is_vetted_ || list.trainers.empty()) {
    return;
  }
  is_vetted_ = true;
  if (!options_.track.watch.target.command.empty()) {
    return;
  }
  const auto untouchable =
      std::find_if(list.trainers.begin(), list.trainers.end(),
                   [](const ProcessKey& key) { return ::kill(key.pid, 0) != 0 && errno == EPERM; });
  if (untouchable != list.trainers.end()) {
    const std::string why = refusal_text(untouchable->pid);
    if (options_.dry_run) {
      output_->note(fmt::format("note: {}: without --dry-run it would not be guarded", why));
    } else {
      is_refused_ = true;
      problem_ = why;
      output_->error(why, "run the guard as the user of the job, or as root; --dry-run watches it");
      return;
    }
  }
  const auto headroom = list.limits->read(&list.tree);
  if (headroom && headroom->to_spare_bytes() < 0) {
    is_refused_ = true;
    problem_ = refusal_text(*headroom, list.limits->limits()[headroom->limit].source);
    output_->error(problem_, "nothing is guarded; see tidemark guard --help");
  }
}

void GuardWatch::fill(GuardTargets& list, const Roster& roster, const Tick& tick) {
  if (options_.track.judge.limit_bytes) {
    list.tree =
        TreeUse("", tick.tree.footprint_bytes.value_or(tick.tree.rss_bytes), roster.largest);
  }
  // A job begins as a shell, often: it has some time to show who it is.
  if (!told_who_ && (roster.is_recognised || (!roster.trainers.empty() && tick.t_s > kYoungS))) {
    told_who_ = true;
    output_->note(fmt::format("guard: {}", roster.who));
  }
  // The last look has only what was late: steps of those that have ended.
  if (!is_over_) {
    aftermath_.see(roster.is_recognised ? roster.trainers : std::vector<ProcessKey>{}, tick.step);
  }
  members_ = roster.members;
  renew_limits(roster.trainers, tick);
  list.limits = limits_;
  list.group = open_job_group("", roster.members);
  list.trainers = roster.trainers;
  list.members = roster.members;
}

// Administrators and batch systems change limits under a running job.
void GuardWatch::renew_limits(const std::vector<ProcessKey>& trainers, const Tick& tick) {
  if (limits_ != nullptr && trainers == limits_of_ && tick.t_s < next_limits_s_) {
    return;
  }
  HeadroomReader::Options options;
  for (const ProcessKey& key : trainers) {
    options.resources_of.push_back(key.pid);
  }
  options.groups_of = trainers.empty() ? std::vector<pid_t>{::getpid()} : options.resources_of;
  options.given_bytes = options_.track.judge.limit_bytes;
  options.keep_free = options_.keep_free;
  limits_ = std::make_shared<HeadroomReader>(options);
  limits_of_ = trainers;
  next_limits_s_ = tick.t_s < kYoungS ? tick.t_s : tick.t_s + kLimitsEveryS;
  if (trainers.empty()) {
    return;
  }
  std::vector<std::string> setup =
      setup_lines({limits_->limits(), options_.keep_free, options_.settings, options_.signal_number,
                   options_.dry_run});
  // The same for every start, as a rule.
  const bool is_new =
      told_setup_.empty() ? services_.restarts.restarts() == 0 : setup != told_setup_;
  for (const std::string& line : setup) {
    if (is_new) {
      output_->note(line);
    }
  }
  told_setup_ = std::move(setup);
}

// Only a guard whose guard_thread looks is alive.
void GuardWatch::keep_service_informed(const Tick& tick) {
  const GuardThread::LastCheck last = guard_thread_->last_check();
  const std::int64_t now_ns = SystemClock().monotonic_ns();
  if (now_ns - last.at_ns < kGuardThreadStalledNs) {
    services_.service.still_alive();
  }
  if (tick.t_s < next_status_s_ || !last.free_bytes) {
    return;
  }
  next_status_s_ = tick.t_s + kStatusEveryS;
  services_.service.status(fmt::format(
      "{} free, {} {}{}, verdict {}",
      format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *last.free_bytes))),
      format_count(tick.tree.processes, "process holds", "processes hold"),
      format_bytes(tick.tree.footprint_bytes.value_or(tick.tree.rss_bytes)),
      tick.step ? fmt::format(", step {}", *tick.step) : "", forecast_.verdict()));
}

int GuardWatch::event_fd() const {
  return guard_thread_ == nullptr ? -1 : guard_thread_->news_fd();
}

void GuardWatch::on_event() {
  while (guard_thread_ != nullptr) {
    const auto report = guard_thread_->take_report();
    if (!report) {
      return;
    }
    tell(*report);
  }
}

ReportFacts GuardWatch::facts_of(const GuardDecision& decision) const {
  ReportFacts facts{"",    options_.signal_number,      options_.dry_run,
                    step_, options_.track.watch.output, ""};
  if (decision.headroom && limits_ != nullptr &&
      decision.headroom->limit < limits_->limits().size()) {
    const WatchedLimit& limit = limits_->limits()[decision.headroom->limit];
    if (limit.bytes == decision.headroom->limit_bytes) {  // not exchanged meanwhile
      facts.limit_source = limit.source;
    }
  }
  return facts;
}

void GuardWatch::say(std::int64_t wall_ns, std::string_view word, std::string_view text) {
  output_->note(log_line(wall_ns, word, text));
}

void GuardWatch::tell(const GuardReport& report) {
  ReportFacts facts = facts_of(report.decision);
  const bool acts =
      report.decision.act == GuardAct::kStop || report.decision.act == GuardAct::kKill;
  if (acts) {
    facts.held_by = last_looks_.held_by();
  }
  const std::string text = report_text(report, facts);
  if (acts && !options_.dry_run) {
    last_looks_.give_up();
    stopped_wall_ns_ = aftermath_.is_stopped() ? stopped_wall_ns_ : report.wall_ns;
    aftermath_.acted(members_);
  } else if (report.decision.act == GuardAct::kStandDown) {
    aftermath_.stood_down();
    last_looks_.begin_again();
    tells_of_command_in_ =
        options_.dry_run || options_.track.watch.target.command.empty() ? 0 : kTicksOfTheReaped;
  }
  say(report.wall_ns, word_of(report.decision.act), text);
  const double t_s = std::max(0.0, to_seconds(report.wall_ns - start_wall_ns_));
  events_.push_back(
      {t_s, EventKind::kGuard, {}, fmt::format("{}: {}", act_name(report.decision.act), text)});
  if (services_.notifier && !services_.notifier->tell(make_notice(report, facts))) {
    output_->note("note: a notification could not be handed over");
  }
  services_.service.status(text);
}

// Nothing acts from here on; what was done last may still have to be recorded.
bool GuardWatch::finish_watching() {
  if (guard_thread_ != nullptr) {
    guard_thread_->stop();
  }
  on_event();
  is_over_ = true;
  const bool has_looked = last_looks_.end();
  return has_looked || !events_.empty();
}

void GuardWatch::on_command_exit() { command_ended_wall_ns_ = SystemClock().wall_ns(); }

// Not only what it left behind.
bool GuardWatch::is_command_stopped() const {
  return aftermath_.is_stopped() && stopped_wall_ns_ <= command_ended_wall_ns_;
}

// Before the next start, what is left has to end.
bool GuardWatch::waits_for_tree() const {
  return !options_.restart || !(is_command_stopped() || saw_oom_kill_);
}

EndedBy GuardWatch::ended_by(const live::WatchEnding& ending) const {
  if (ending.was_told_to_stop) {
    return EndedBy::kUser;
  }
  if (is_command_stopped()) {
    return EndedBy::kGuard;
  }
  return saw_oom_kill_ && ending.command_status.value_or(0) != 0 ? EndedBy::kOomKiller
                                                                 : EndedBy::kItself;
}

// In lines, as the log has them.
void GuardWatch::report_last_look() {
  const std::string text = last_looks_.report();
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    output_->note(fmt::format("guard: {}", *line));
  }
}

void GuardWatch::on_end(const live::WatchEnding& ending, live::WatchOutput& output) {
  if (guard_thread_ != nullptr) {
    guard_thread_->stop();
  }
  services_.shield.take_down();
  if (saw_oom_kill_ && output_ != nullptr) {
    report_last_look();
  }
  if (ending.own_code != kExitOk || !ending.command_status) {
    return;
  }
  const EndedBy by = ended_by(ending);
  const RestartAnswer answer = services_.restarts.ended({by, step_});
  restarts_ = answer.restarts;
  if (by == EndedBy::kOomKiller) {
    output.note(log_line(SystemClock().wall_ns(), "guard",
                         fmt::format("the kernel's OOM killer was faster; the command ended with "
                                     "status {}",
                                     *ending.command_status)));
  }
  if (!answer.why.empty()) {
    output.note(log_line(SystemClock().wall_ns(), restarts_ ? "RESTART" : "GIVEN UP", answer.why));
    if (services_.notifier) {
      (void)services_.notifier->tell(
          make_notice(restarts_ ? "restart" : "give_up", answer.why, facts_of({})));
    }
  }
}

int GuardWatch::exit_code(const live::WatchEnding& ending) {
  if (ending.own_code != kExitOk) {
    return ending.own_code;
  }
  if (!problem_.empty()) {
    return kExitTarget;
  }
  return aftermath_.is_stopped() ? kExitLeak : ending.command_status.value_or(kExitOk);
}

}  // namespace tidemark::guard
