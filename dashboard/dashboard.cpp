// SPDX-License-Identifier: Apache-2.0
#include "dashboard/dashboard.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "common/quiet_thread.h"
#include "common/text.h"
#include "dashboard/screen_loop.h"
#include "dashboard/terminal.h"
#include "report/document.h"

namespace tidemark::dashboard {

struct Dashboard::State {
  State(DashboardOptions options_in, Terminal terminal_in)
      : options(std::move(options_in)), terminal(std::move(terminal_in)) {}

  DashboardOptions options;
  Terminal terminal;
  Shared shared;
  std::thread thread;
};

Dashboard::Dashboard(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Dashboard>> Dashboard::open(DashboardOptions options) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Fd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake || !news) {
    return system_error("cannot make an event descriptor", errno);
  }
  TIDEMARK_TRY_ASSIGN(auto terminal, Terminal::open());
  auto state = std::make_unique<State>(std::move(options), std::move(terminal));
  state->shared.wake = std::move(wake);
  state->shared.news = std::move(news);
  State& kept = *state;
  kept.thread =
      start_quiet_thread([&kept] { ScreenLoop(kept.shared, kept.terminal, kept.options).run(); });
  return std::unique_ptr<Dashboard>(new Dashboard(std::move(state)));
}

Dashboard::~Dashboard() {
  state_->shared.is_stopping = true;
  state_->shared.notify(state_->shared.wake);
  state_->thread.join();
}

void Dashboard::begin(const RunInfo& info) {
  const std::lock_guard lock(state_->shared.mutex);
  state_->shared.history.begin(info);
  state_->shared.judge.begin(info);
}

void Dashboard::set_limit(std::optional<std::uint64_t> bytes, const std::string& source) {
  const std::lock_guard lock(state_->shared.mutex);
  state_->shared.history.set_limit(bytes, source);
  state_->shared.judge.set_limit(bytes, source);
}

void Dashboard::add(const Tick& tick, const ProcessKey& trainer) {
  {
    const std::lock_guard lock(state_->shared.mutex);
    state_->shared.history.add(tick, trainer);
    state_->shared.judge.add(tick);
    state_->shared.pass_on_to_sites(tick);
  }
  state_->shared.notify(state_->shared.wake);
}

void Dashboard::show_message(const std::string& text) {
  {
    const std::lock_guard lock(state_->shared.mutex);
    for (const std::string_view line : split(text, '\n')) {
      if (line.empty()) {
        continue;
      }
      state_->shared.message = std::string(line);
      state_->shared.add_note(line);
    }
  }
  state_->shared.notify(state_->shared.wake);
}

void Dashboard::set_jobs(std::vector<JobRow> jobs) {
  {
    const std::lock_guard lock(state_->shared.mutex);
    state_->shared.jobs = std::move(jobs);
  }
  state_->shared.notify(state_->shared.wake);
}

void Dashboard::forget_sites() {
  const std::lock_guard lock(state_->shared.mutex);
  state_->shared.traced_ticks.clear();
  state_->shared.is_traced = false;
  ++state_->shared.profiles_ended;
}

void Dashboard::set_ended() {
  {
    const std::lock_guard lock(state_->shared.mutex);
    state_->shared.has_ended = true;
    state_->shared.message = "the run is over; q quits";
  }
  state_->shared.notify(state_->shared.wake);
}

bool Dashboard::is_closed() const { return state_->shared.is_closed; }
bool Dashboard::is_paused() const { return state_->shared.is_paused; }
int Dashboard::news_fd() const { return state_->shared.news.get(); }
void Dashboard::take_news() { Shared::drain(state_->shared.news); }

std::vector<std::string> Dashboard::take_marks() {
  const std::lock_guard lock(state_->shared.mutex);
  return std::exchange(state_->shared.marks, {});
}

std::string Dashboard::verdict_text() const {
  tracker::RunTracks tracks;
  report::JudgedTarget target;
  {
    const std::lock_guard lock(state_->shared.mutex);
    if (state_->shared.history.is_empty()) {
      return "";
    }
    tracks = state_->shared.judge.tracks();
    ScreenInputs inputs;
    inputs.target = state_->options.target;
    inputs.replay_speed = state_->options.replay_speed;
    inputs.has_ended = state_->shared.has_ended;
    target = target_of(state_->shared.history, inputs);
  }
  const tracker::JudgedRun judged = tracker::judge_run(std::move(tracks), state_->options.judge);
  report::Document document;
  document.paragraph(report::answer_text(judged));
  if (const std::string next = report::next_text(judged, target); !next.empty()) {
    document.paragraph(next, "next: ");
  }
  return report::to_text(document);
}

}  // namespace tidemark::dashboard
