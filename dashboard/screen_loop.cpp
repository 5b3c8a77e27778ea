// SPDX-License-Identifier: Apache-2.0
#include "dashboard/screen_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/io.h"
#include "common/units.h"
#include "dashboard/layout.h"
#include "monitor/procfs/process_signal.h"
#include "recording/run_reader.h"

namespace tidemark::dashboard {
namespace {

constexpr double kBetweenDrawsS = 0.1;
constexpr double kMessageS = 8.0;
constexpr int kIdleMs = 250;   // between two checks of the size of the terminal
constexpr int kEscapeMs = 40;  // for the rest of a sequence to come

std::string export_name(int attempt) {
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> stamp{};
  (void)::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
  return attempt == 0 ? fmt::format("tidemark-screen-{}.txt", stamp.data())
                      : fmt::format("tidemark-screen-{}-{}.txt", stamp.data(), attempt);
}

}  // namespace

// Call stacks are judged where nobody waits for it. Who was there before them is introduced first.
void Shared::pass_on_to_sites(const Tick& tick) {
  constexpr std::size_t kMostWaiting = 4096;
  if (tick.allocations.empty() && !is_traced) {
    return;
  }
  if (traced_ticks.size() >= kMostWaiting) {  // nobody takes them: the terminal stalls
    return;
  }
  Tick passed = tick;
  if (!std::exchange(is_traced, true)) {
    passed.new_processes.clear();
    for (const auto& [key, process] : history.processes()) {
      passed.new_processes.push_back(process.record);
    }
  }
  traced_ticks.push_back(std::move(passed));
}

void Shared::add_note(std::string_view line) {
  constexpr std::size_t kMostNotes = 20;
  notes.emplace_back(line);
  if (notes.size() > kMostNotes) {
    notes.erase(notes.begin());
  }
}

void Shared::notify(const Fd& event) const {
  const std::uint64_t one = 1;
  const ssize_t written = ::write(event.get(), &one, sizeof one);
  (void)written;  // full: whoever waits is awake already
}

void Shared::drain(const Fd& event) {
  std::uint64_t count = 0;
  const ssize_t got = ::read(event.get(), &count, sizeof count);
  (void)got;  // nothing there
}

ScreenLoop::ScreenLoop(Shared& shared, Terminal& terminal, const DashboardOptions& options)
    : shared_(shared),
      terminal_(terminal),
      options_(options),
      theme_{terminal_knows_utf8(), terminal_wants_color()},
      tail_(options.output_path),
      size_(terminal.size()) {}

void ScreenLoop::run() {
  while (!shared_.is_stopping && !shared_.is_closed) {
    follow_attached();
    check_for_changes();
    judge();
    judge_sites();
    if (!is_away_ && is_dirty_ && now_s() - last_drawn_s_ >= kBetweenDrawsS) {
      draw();
    }
    const double before_s = now_s();
    wait();
    constexpr double kLongestWaitS = 1.0;
    if (has_the_terminal(/*may_have_been_stopped=*/now_s() - before_s > kLongestWaitS)) {
      read_keys();
    }
  }
  end_attached();
}

// Whoever stops us, and lets a shell write on the terminal, gets the screen back when we go on.
bool ScreenLoop::has_the_terminal(bool may_have_been_stopped) {
  const bool was_stopped = terminal_.stop_if_told();
  const Terminal::Ownership ownership =
      terminal_.check_ownership(was_stopped || may_have_been_stopped);
  if (ownership == Terminal::Ownership::kRegained) {
    painter_.forget();
    is_dirty_ = true;
  }
  is_away_ = ownership == Terminal::Ownership::kAway;
  return !is_away_;
}

void ScreenLoop::wait() {
  int timeout = kIdleMs;
  if (is_dirty_ && !is_away_) {
    const double left = kBetweenDrawsS - (now_s() - last_drawn_s_);
    timeout = std::clamp(static_cast<int>(left * 1000.0) + 1, 1, 100);
  } else if (decoder_.is_waiting()) {
    timeout = kEscapeMs;
  }
  std::array<pollfd, 2> waiting = {
      {{is_away_ ? -1 : terminal_.fd(), POLLIN, 0}, {shared_.wake.get(), POLLIN, 0}}};
  const int ready = ::poll(waiting.data(), waiting.size(), timeout);
  if (ready > 0 && (waiting[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    shared_.is_closed = true;  // the terminal is gone
    shared_.notify(shared_.news);
  }
  Shared::drain(shared_.wake);
}

void ScreenLoop::read_keys() {
  std::array<char, 512> buffer{};
  std::vector<Key> keys;
  const ssize_t count = ::read(terminal_.fd(), buffer.data(), buffer.size());
  if (count > 0) {
    decoder_.feed({buffer.data(), static_cast<std::size_t>(count)}, keys);
    last_bytes_s_ = now_s();
  } else if (decoder_.is_waiting() && now_s() - last_bytes_s_ >= kEscapeMs / 1000.0) {
    decoder_.flush(keys);
  }
  for (const Key& key : keys) {
    take_key(key);
  }
}

void ScreenLoop::take_key(const Key& key) {
  scene_.is_attached = attached_ != nullptr;  // the profile may have ended since the last draw
  const Outcome outcome = apply_key(state_, key, scene_);
  const bool rows_change =
      outcome.state.flipped != state_.flipped || outcome.state.filter != state_.filter ||
      outcome.state.sort != state_.sort || outcome.state.zoom != state_.zoom ||
      outcome.state.overlay != state_.overlay || outcome.state.cursor_s != state_.cursor_s;
  is_dirty_ = is_dirty_ || outcome.state != state_ || outcome.command != Command::kNone;
  const bool pause_changes = outcome.state.is_paused != state_.is_paused;
  state_ = outcome.state;
  if (pause_changes) {
    if (state_.is_paused && !options_.replay_speed) {
      const std::lock_guard lock(shared_.mutex);
      frozen_ = {shared_.history, shared_.jobs};
    } else {
      frozen_.reset();
    }
    shared_.is_paused = state_.is_paused;
    shared_.notify(shared_.news);
  }
  run_command(outcome);
  if (rows_change) {
    refresh_scene(make_model());  // the next key may come before the next draw
  }
}

void ScreenLoop::run_command(const Outcome& outcome) {
  switch (outcome.command) {
    case Command::kQuit:
      shared_.is_closed = true;
      shared_.notify(shared_.news);
      break;
    case Command::kExport:
      export_screen();
      break;
    case Command::kMark:
      mark("");
      show_message("marked");
      break;
    case Command::kSignal:
      send_signal(outcome.signal);
      break;
    case Command::kAttach:
      attach_to(outcome.attach_to);
      break;
    case Command::kDetach:
      detach();
      break;
    case Command::kNeedDetach:
      show_message(attached_->name() + " is attached to: D detaches");
      break;
    case Command::kNeedProcess:
      show_message("this is for one process: enter opens the role, then select one");
      break;
    case Command::kRedraw:
      painter_.forget();
      break;
    case Command::kNone:
      break;
  }
}

void ScreenLoop::mark(std::string text) {
  if (!options_.can_mark) {
    return;
  }
  {
    const std::lock_guard lock(shared_.mutex);
    shared_.marks.push_back(std::move(text));
  }
  shared_.notify(shared_.news);
}

std::string ScreenLoop::words_for(const ProcessKey& key) {
  const std::lock_guard lock(shared_.mutex);
  const auto process = history().processes().find(key);
  return process == history().processes().end() ? fmt::format("process {}", key.pid)
                                                : name_of(process->second.record.role, key.pid);
}

// What was done to the job belongs into its run.
void ScreenLoop::send_signal(const SignalRequest& request) {
  const std::string name = words_for(request.key);
  if (request.key.pid == ::getpid()) {
    show_message(name + " is this screen: q quits");
    return;
  }
  const auto proc = open_file("/proc", O_RDONLY | O_DIRECTORY);
  const int error = proc ? monitor::signal_process(proc->get(), request.key, request.number)
                         : proc.error().sys_errno;
  std::string words = signal_outcome(request.number, name, error);
  if (error == 0) {
    mark(words);
  }
  show_message(std::move(words));
}

void ScreenLoop::attach_to(const ProcessKey& key) {
  auto started = AttachedProfile::start(key, words_for(key));
  if (!started) {
    show_message(started.error().what);
    return;
  }
  attached_ = *std::move(started);
  std::string words = "attaching to " + attached_->name();
  mark(words);
  show_message(std::move(words));
}

void ScreenLoop::detach() {
  if (attached_ != nullptr) {
    attached_->stop();
    show_message("detaching from " + attached_->name());
  }
}

// What it prints is shown, and kept for the help screen.
void ScreenLoop::follow_attached() {
  if (attached_ == nullptr) {
    return;
  }
  const bool has_ended = attached_->has_ended();
  for (std::string& line : attached_->take_lines()) {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.add_note(line);
    }
    if (!line.starts_with(AttachedProfile::kHint)) {
      show_message(std::move(line));
    }
  }
  if (!has_ended) {
    return;
  }
  if (std::string words = attached_->ending(); !words.empty()) {
    mark(words);
    show_message(std::move(words));
  }
  attached_.reset();
  is_dirty_ = true;
}

// The screen says what it waits for.
void ScreenLoop::end_attached() {
  if (attached_ == nullptr) {
    return;
  }
  detach();
  if (!is_away_) {
    draw();
  }
  attached_.reset();
}

void ScreenLoop::show_message(std::string message) {
  own_message_ = std::move(message);
  message_until_s_ = now_s() + kMessageS;
  is_dirty_ = true;
}

void ScreenLoop::check_for_changes() {
  const TerminalSize size = terminal_.size();
  if (size != size_) {
    size_ = size;
    is_dirty_ = true;
  }
  if (!frozen_ && tail_.refresh()) {
    is_dirty_ = true;
  }
  if (!own_message_.empty() && now_s() > message_until_s_) {
    own_message_.clear();
    is_dirty_ = true;
  }
  const std::lock_guard lock(shared_.mutex);
  if (shared_.history.ticks() != ticks_seen_) {
    ticks_seen_ = shared_.history.ticks();
    is_dirty_ = is_dirty_ || !frozen_;
  }
  if (!frozen_) {
    if (state_.back_s > 0.0) {  // the window stays where it is
      state_.back_s += shared_.history.now_s() - run_now_s_;
    }
    run_now_s_ = shared_.history.now_s();
  }
  if (shared_.message != message_seen_) {
    message_seen_ = shared_.message;
    own_message_ = shared_.message;
    message_until_s_ = now_s() + kMessageS;
    is_dirty_ = true;
  }
}

// At most a hundredth of the time goes into verdicts. What a paused screen would not show waits:
// there may be no sample after it that asks for a verdict again.
void ScreenLoop::judge() {
  if (frozen_ || ticks_seen_ == ticks_judged_ || now_s() < next_judgement_s_) {
    return;
  }
  const std::int64_t begin_ns = thread_cpu_ns();
  tracker::RunTracks tracks;
  {
    const std::lock_guard lock(shared_.mutex);
    tracks = shared_.judge.tracks();
  }
  ticks_judged_ = ticks_seen_;
  judged_ = tracker::judge_run(std::move(tracks), options_.judge);
  is_dirty_ = true;
  next_judgement_s_ = next_judgement_s(now_s(), to_seconds(thread_cpu_ns() - begin_ns));
}

void ScreenLoop::judge_sites() {
  constexpr std::size_t kMostRows = 6;
  std::deque<Tick> ticks;
  {
    const std::lock_guard lock(shared_.mutex);
    if (now_s() < next_sites_s_) {
      return;
    }
    ticks.swap(shared_.traced_ticks);
    if (shared_.profiles_ended != profiles_ended_) {
      profiles_ended_ = shared_.profiles_ended;
      site_judge_ = {};
      has_new_sites_ = true;  // none
    }
  }
  const std::int64_t begin_ns = thread_cpu_ns();
  for (const Tick& tick : ticks) {
    site_judge_.add(tick);
  }
  has_new_sites_ = has_new_sites_ || !ticks.empty();
  if (frozen_ || !has_new_sites_) {
    return;
  }
  sites_ = site_judge_.rows(options_.judge, kMostRows);
  has_new_sites_ = false;
  is_dirty_ = true;
  next_sites_s_ = next_judgement_s(now_s(), to_seconds(thread_cpu_ns() - begin_ns));
}

DashboardModel ScreenLoop::make_model() {
  ScreenInputs inputs;
  inputs.can_mark = options_.can_mark;
  inputs.can_signal = options_.can_signal;
  inputs.is_attached = attached_ != nullptr;
  inputs.target = options_.target;
  inputs.plot_columns = static_cast<std::size_t>(std::max(1, size_.width - kPlotX));
  inputs.replay_speed = options_.replay_speed;
  inputs.output_path = options_.output_path;
  inputs.output = tail_.lines();
  inputs.message = own_message_;
  inputs.recorded = recorded_;
  inputs.cpu = cpu_.shares();
  inputs.sites = sites_;
  const std::lock_guard lock(shared_.mutex);
  inputs.notes = shared_.notes;
  inputs.jobs = frozen_ ? frozen_->jobs : shared_.jobs;
  inputs.has_ended = shared_.has_ended;
  return build_model(history(), judged_, state_, inputs);
}

void ScreenLoop::refresh_scene(const DashboardModel& model) {
  scene_ = scene_of(model, plan_layout(model, size_.width, size_.height));
  scene_.can_mark = options_.can_mark;
  scene_.can_signal = options_.can_signal;
  state_.first_row = scene_.first_row;
  const std::lock_guard lock(shared_.mutex);
  const Window window = window_of(history(), state_);
  scene_.span_s = history().now_s();
  scene_.window_from_s = window.from_s;
  scene_.window_s = window.to_s - window.from_s;
}

// A window on times of which the history has merged the samples.
void ScreenLoop::read_recorded_window() {
  constexpr std::size_t kMostPoints = 1200;
  Window window;
  bool is_wanted = false;
  {
    const std::lock_guard lock(shared_.mutex);
    window = window_of(history(), state_);
    is_wanted = !options_.run_file.empty() && state_.zoom != Zoom::kAll && state_.back_s > 0.0 &&
                window.from_s < history().recent_from_s();
  }
  if (!is_wanted) {
    recorded_.clear();
    recorded_window_ = {};
    return;
  }
  const double moved = std::fabs(window.from_s - recorded_window_.from_s) +
                       std::fabs(window.to_s - recorded_window_.to_s);
  if (moved < 1e-3 * (window.to_s - window.from_s)) {
    return;
  }
  recorded_window_ = window;
  recorded_.clear();
  const auto points =
      recording::read_tree_window(options_.run_file, window.from_s, window.to_s, kMostPoints);
  if (!points) {
    show_message(points.error().what);
    return;
  }
  for (const recording::WindowPoint& point : *points) {
    recorded_.push_back({point.t_s, point.min_bytes, point.max_bytes});
  }
}

// Of all processes of a tree of usual size, else of those on the screen.
void ScreenLoop::measure_cpu() {
  constexpr std::size_t kUsualSize = 128;
  if (options_.replay_speed || frozen_ || now_s() < next_cpu_s_) {
    return;
  }
  std::vector<ProcessKey> keys;
  {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.history.processes().size() <= kUsualSize) {
      for (const auto& [key, process] : shared_.history.processes()) {
        keys.push_back(key);
      }
    }
  }
  if (keys.empty()) {
    const std::size_t end = std::min(scene_.rows.size(), scene_.first_row + scene_.rows_shown);
    for (std::size_t i = scene_.first_row; i < end; ++i) {
      if (!scene_.rows[i].is_role()) {
        keys.push_back(scene_.rows[i].key);
      }
    }
  }
  cpu_.sample(keys, now_s());
  next_cpu_s_ = now_s() + 1.0;
}

void ScreenLoop::draw() {
  read_recorded_window();
  measure_cpu();
  const DashboardModel model = make_model();
  std::string bytes = painter_.paint(screen_lines(model, size_.width, size_.height, theme_), size_);
  if (!terminal_.write(bytes, shared_.is_stopping)) {
    shared_.is_closed = true;
    shared_.notify(shared_.news);
  }
  refresh_scene(model);
  last_drawn_s_ = now_s();
  is_dirty_ = false;
}

// Beside the user's other files: that is where one looks for it.
void ScreenLoop::export_screen() {
  const std::string text = fmt::format(
      "{}\n", fmt::join(screen_text(make_model(), size_.width, size_.height, theme_), "\n"));
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = export_name(attempt);
    const auto file = open_file(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file && file.error().sys_errno == EEXIST) {
      continue;
    }
    const Status written = file ? write_all(file->get(), text) : Status(file.error());
    show_message(written ? "this screen is in " + name : written.error().what);
    return;
  }
}

}  // namespace tidemark::dashboard
