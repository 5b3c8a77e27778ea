// SPDX-License-Identifier: Apache-2.0
#include "live/replay.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/messages.h"
#include "common/process_table.h"
#include "common/recording_sink.h"
#include "common/run_summary.h"
#include "live/launch/signal_inbox.h"
#include "live/watch_output.h"
#include "recording/open.h"
#include "report/export.h"
#include "report/output.h"

namespace tidemark::live {
namespace {

constexpr std::int64_t kLookEveryNs = kNsPerSecond / 20;

// Hands ticks to the view when their time has come.
class Player final : public RecordingSink {
 public:
  Player(double speed, WatchView& view, SignalInbox& inbox)
      : speed_(speed), view_(view), inbox_(inbox) {}

  Status begin(const RunInfo& info) override {
    view_.on_start(info);
    return ok();
  }

  Status add(const Tick& tick) override {
    table_.update(tick);
    choose_trainer(tick);
    if (!wait_for(tick.t_s)) {
      return Error{Errc::kUsage, "the replay was stopped"};
    }
    summary_.add(tick);
    view_.on_tick(tick, trainer_, [this](const ProcessKey& key) -> const ProcessRecord* {
      return table_.find(key);
    });
    return ok();
  }

  Status process_ended(const ProcessRecord& process) override {
    table_.remove(process.key);
    return ok();
  }

  Status end(double /*t_s*/) override { return ok(); }

  // Until the user has seen enough.
  void wait_for_the_user() {
    while (!is_stopped_) {
      sleep(kNsPerSecond);
    }
  }

  bool is_stopped() const { return is_stopped_; }
  const RunSummary& summary() const { return summary_; }

 private:
  // False when the user has stopped it. Also a replay that is late looks for that.
  bool wait_for(double t_s) {
    if (!last_s_) {
      last_s_ = t_s;
      due_ns_ = clock_.monotonic_ns();
    }
    due_ns_ += static_cast<std::int64_t>((t_s - *last_s_) / speed_ * 1e9);
    last_s_ = t_s;
    while (!is_stopped_) {
      const std::int64_t now = clock_.monotonic_ns();
      if (view_.is_paused()) {
        sleep(kNsPerSecond);
        due_ns_ += clock_.monotonic_ns() - now;  // the time stood still
        continue;
      }
      if (now >= due_ns_ && now < next_look_ns_) {
        break;
      }
      sleep(std::max<std::int64_t>(0, due_ns_ - now));
    }
    return !is_stopped_;
  }

  // Or until the user does something.
  void sleep(std::int64_t ns) {
    const timespec timeout{ns / kNsPerSecond, ns % kNsPerSecond};
    std::array<pollfd, 2> waiting = {{{inbox_.fd(), POLLIN, 0}, {view_.input_fd(), POLLIN, 0}}};
    (void)::ppoll(waiting.data(), waiting.size(), &timeout, nullptr);
    while (const auto signal = inbox_.next()) {
      is_stopped_ = is_stopped_ || signal->asks_to_stop();
    }
    is_stopped_ = !view_.on_input() || is_stopped_;
    next_look_ns_ = clock_.monotonic_ns() + kLookEveryNs;
  }

  // The trainer, else the lowest rank.
  void choose_trainer(const Tick& tick) {
    const ProcessRecord* best = nullptr;
    for (const ProcessSample& sample : tick.processes) {
      const ProcessRecord* record = table_.find(sample.key);
      if (record == nullptr || (record->role != Role::kTrainer && record->role != Role::kRank)) {
        continue;
      }
      const auto order = [](const ProcessRecord& r) {
        return r.role == Role::kTrainer ? -1 : r.rank.value_or(1 << 20);
      };
      if (best == nullptr || order(*record) < order(*best)) {
        best = record;
      }
    }
    trainer_ = best == nullptr ? ProcessKey{} : best->key;
  }

  const double speed_;
  WatchView& view_;
  SignalInbox& inbox_;
  const SystemClock clock_;
  ProcessTable table_;
  RunSummary summary_;
  ProcessKey trainer_;
  std::optional<double> last_s_;
  std::int64_t due_ns_ = 0;
  std::int64_t next_look_ns_ = 0;  // for what the user has done
  bool is_stopped_ = false;
};

}  // namespace

int replay(const std::string& path, double speed,
           const std::function<std::unique_ptr<WatchView>(LineWriter& lines)>& make_view) {
  auto reader = recording::open_recording(path);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  auto inbox = SignalInbox::open(SignalInbox::For::kStop);
  if (!inbox) {
    print_error(inbox.error());
    return kExitTarget;
  }
  auto output = WatchOutput::open(STDERR_FILENO, STDOUT_FILENO);
  if (!output) {
    print_error(output.error());
    return kExitTarget;
  }
  std::unique_ptr<WatchView> view = make_view(output->lines());
  output->set_listener(
      [&view](const std::string& text) { return view != nullptr && view->show_message(text); });
  Player player(speed, *view, *inbox);
  report::RedactingSink redacting(player);
  const auto read = (*reader)->read(redacting);
  const bool was_stopped = player.is_stopped();
  const bool stays = !was_stopped && view->stays_open();
  if (read) {
    for (const std::string& note : report::read_notes(*read)) {
      output->note(note);
    }
  } else if (!was_stopped) {
    output->error(read.error().what);
  }
  if (stays) {
    player.wait_for_the_user();
  }
  view->on_end(player.summary());
  view.reset();
  output->flush([](int fd) {
    pollfd ended{fd, POLLIN, 0};
    constexpr int kLongestMs = 10'000;
    return ::poll(&ended, 1, kLongestMs) > 0;
  });
  const bool has_failed = (!read && !was_stopped) || output->is_incomplete();
  return has_failed ? kExitTarget : kExitOk;
}

}  // namespace tidemark::live
