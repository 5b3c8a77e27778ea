// SPDX-License-Identifier: Apache-2.0
#include "live/watch.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "monitor/procfs/process_handle.h"
#include "recording/open.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_watch_system.h"
#include "tests/support/memory_sink.h"

namespace tidemark::live {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using tests::FakeWatchSystem;

constexpr pid_t kTrainer = 4'000'010;
constexpr pid_t kWorker = 4'000'011;
constexpr pid_t kCommand = FakeWatchSystem::kCommandPid;

constexpr int exited(int code) { return code << 8; }

// What the loop calls, as a list of words.
class Listener final : public WatchHandler {
 public:
  class View final : public WatchView {
   public:
    explicit View(Listener& listener) : listener_(listener) {}
    void on_tick(const Tick& tick, const ProcessKey&, const ProcessLookup& lookup) override {
      listener_.shown.push_back(tick.t_s);
      for (const ProcessSample& sample : tick.processes) {
        EXPECT_NE(lookup(sample.key), nullptr);
      }
    }
    void on_end(const RunSummary&) override { listener_.calls.emplace_back("view ends"); }
    std::vector<std::string> take_marks() override {
      return std::exchange(listener_.new_marks, {});
    }

   private:
    Listener& listener_;
  };

  WatchPolicy policy() const override { return the_policy; }
  std::unique_ptr<WatchView> make_view(LineWriter&) override {
    return std::make_unique<View>(*this);
  }
  Status on_launch(LaunchOptions& options) override {
    options.environment.emplace_back("FROM", "handler");
    return ok();
  }
  std::vector<RecordingSink*> sinks() override { return {&sink}; }
  void add_to_tick(Tick& tick) override {
    tick.events.push_back({tick.t_s, EventKind::kMark, {}, "added"});
  }
  void on_tick(const Tick& tick, const monitor::Session&) override {
    if (during_tick) {
      during_tick(tick);
    }
  }
  int event_fd() const override { return event.get(); }
  void on_event() override {
    std::uint64_t count = 0;
    EXPECT_EQ(::read(event.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
    calls.emplace_back("event");
  }
  void on_command_exit() override { calls.emplace_back("command exit"); }
  void on_time_limit() override { calls.emplace_back("time limit"); }
  bool finish_watching() override { return has_more; }
  void on_end(const WatchEnding& ending, WatchOutput&) override { last = ending; }
  int exit_code(const WatchEnding& ending) override {
    last = ending;
    return ending.command_status.value_or(ending.own_code);
  }
  StopOrder stop_order() const override { return order; }
  bool waits_for_tree() const override { return wants_tree; }
  bool has_refused() const override { return refuses; }

  WatchPolicy the_policy{.command = "test"};
  StopOrder order;
  bool wants_tree = false;
  bool refuses = false;
  bool has_more = false;
  std::vector<std::string> new_marks;
  std::function<void(const Tick&)> during_tick;
  Fd event;

  tests::MemorySink sink;
  std::vector<double> shown;
  std::vector<std::string> calls;
  WatchEnding last;
};

class WatchTest : public testing::Test {
 protected:
  WatchTest() {
    system.put(kTrainer, 100);
    options.target.pids = {kTrainer};
    options.pss = monitor::PssMode::kOff;
  }
  int run() { return watch(options, listener, &system); }
  void run_command() {
    options.target = {};
    options.target.command = {"train", "--fast"};
  }
  std::vector<double> times() const {
    std::vector<double> all;
    for (const Tick& tick : listener.sink.ticks) {
      all.push_back(tick.t_s);
    }
    return all;
  }
  std::vector<std::string> details(EventKind kind) const {
    std::vector<std::string> all;
    for (const Tick& tick : listener.sink.ticks) {
      for (const EventRecord& event : tick.events) {
        if (event.kind == kind) {
          all.push_back(event.detail);
        }
      }
    }
    return all;
  }

  FakeWatchSystem system;
  WatchOptions options;
  Listener listener;
  tests::TempTree folder;
};

TEST_F(WatchTest, SamplesAtEachIntervalUntilTheDurationIsOver) {
  options.duration_ns = 3 * kNsPerSecond;

  EXPECT_EQ(run(), kExitOk);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 2.0, 3.0));
  EXPECT_THAT(listener.shown, ElementsAre(0.0, 1.0, 2.0, 3.0));
}

TEST_F(WatchTest, SkipsTheTicksThatItMissesAndKeepsToTheGrid) {
  options.duration_ns = 5 * kNsPerSecond;
  listener.during_tick = [&](const Tick& tick) {
    if (tick.t_s == 1.0) {
      system.fake_clock.advance_s(2.4);
    }
  };

  run();

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 4.0, 5.0));
}

TEST_F(WatchTest, EndsWhenTheTargetHasExited) {
  system.at(2.5, [&] { system.end(kTrainer); });

  EXPECT_EQ(run(), kExitOk);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 2.0, 3.0));
  ASSERT_EQ(listener.sink.ended.size(), 1U);
  EXPECT_EQ(listener.sink.ended[0].key.pid, kTrainer);
}

TEST_F(WatchTest, CtrlCEndsItWithOneLastTick) {
  system.at(1.5, [&] { system.deliver(SIGINT, /*from_kernel=*/true); });

  EXPECT_EQ(run(), kExitOk);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 1.5));
  EXPECT_FALSE(listener.last.was_told_to_stop);  // there was no command to tell
}

TEST_F(WatchTest, GivesTheWholeRunToEachSinkInOrder) {
  tests::MemorySink also;
  options.also = &also;
  system.at(1.5, [&] { system.end(kTrainer); });

  run();

  EXPECT_EQ(listener.sink.calls, "btttpe");
  EXPECT_EQ(also.calls, listener.sink.calls);
  EXPECT_EQ(also.info.tool_version, listener.sink.info.tool_version);
  EXPECT_THAT(details(EventKind::kMark), Contains("added").Times(3));  // before anybody sees it
  EXPECT_DOUBLE_EQ(also.end_s.value_or(0), 2.0);
}

TEST_F(WatchTest, WritesEveryTickIntoTheRunFile) {
  options.output = folder.path("run.tidemark");
  options.duration_ns = 2 * kNsPerSecond;

  EXPECT_EQ(run(), kExitOk);

  auto reader = recording::open_recording(options.output);
  ASSERT_TRUE(reader);
  tests::MemorySink recorded;
  ASSERT_TRUE((*reader)->read(recorded));
  ASSERT_EQ(recorded.ticks.size(), 3U);
  EXPECT_EQ(recorded.ticks[2].tree.rss_bytes, 100U << 20U);
  EXPECT_THAT(system.stderr_text(), HasSubstr("recorded 3 samples in " + options.output));
}

TEST_F(WatchTest, CountsOneSampleInTheSingular) {
  options.output = folder.path("run.tidemark");
  options.duration_ns = 0;

  EXPECT_EQ(run(), kExitOk);

  EXPECT_THAT(system.stderr_text(), HasSubstr("recorded 1 sample in " + options.output));
}

TEST_F(WatchTest, ARunFileThatCannotBeMadeEndsItBeforeTheCommandStarts) {
  run_command();
  options.output = folder.path("missing/run.tidemark");

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_FALSE(system.launched);
  EXPECT_THAT(system.stderr_text(), HasSubstr("tidemark: error: "));
}

TEST_F(WatchTest, AnOptionalRunFileThatCannotBeMadeIsToldOfInTheExitCode) {
  options.output = folder.path("missing/run.tidemark");
  options.output_is_optional = true;
  options.duration_ns = kNsPerSecond;

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0));
  EXPECT_THAT(system.stderr_text(), HasSubstr("watching goes on without recording"));
}

TEST_F(WatchTest, ATargetThatIsRefusedLeavesNoRunFile) {
  options.output = folder.path("run.tidemark");
  listener.during_tick = [&](const Tick&) { listener.refuses = true; };

  run();

  EXPECT_THAT(times(), ElementsAre(0.0));
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(WatchTest, APidThatDoesNotExistIsAnError) {
  options.target.pids = {4'000'099};

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(times(), IsEmpty());
  EXPECT_THAT(system.stderr_text(), HasSubstr("there is no process 4000099"));
}

TEST_F(WatchTest, AStepPatternThatIsWrongIsAUsageErrorWithAHint) {
  options.step_regex = "Step (";

  EXPECT_EQ(run(), kExitUsage);

  EXPECT_THAT(system.stderr_text(), HasSubstr("--step-regex: "));
  EXPECT_THAT(system.stderr_text(), HasSubstr("see tidemark test --help"));
}

TEST_F(WatchTest, SaysThatAStepPatternHasFoundNothing) {
  folder.write("log", "");
  options.step_regex = "Step ([0-9]+)";
  options.log_file = folder.path("log");
  options.duration_ns = 2 * kNsPerSecond;

  run();
  const std::string without = system.stderr_text();
  listener.during_tick = [&](const Tick&) { folder.write("log", "Step 1\nStep 2\n"); };
  run();

  EXPECT_THAT(without, HasSubstr("--step-regex has found no step in " + options.log_file));
  EXPECT_EQ(system.stderr_text().substr(without.size()).find("has found no step"),
            std::string::npos);
}

TEST_F(WatchTest, EndsWhenNobodyReadsItsLinesAndNothingElseIsLeftToDo) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  system.closed_stdout = Fd(ends[1]);
  ::close(ends[0]);
  options.duration_ns = 1000 * kNsPerSecond;
  // The thread that writes needs a moment of real time to see that nobody reads.
  class Speaking final : public WatchView {
   public:
    explicit Speaking(LineWriter& lines) : lines_(lines) {}
    void on_tick(const Tick&, const ProcessKey&, const ProcessLookup&) override {
      lines_.submit("a line\n");
      pollfd ended{lines_.ended_fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
    }
    LineWriter& lines_;
  };
  class Handler final : public WatchHandler {
   public:
    WatchPolicy policy() const override { return {.command = "test"}; }
    std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
      return std::make_unique<Speaking>(lines);
    }
    int exit_code(const WatchEnding& ending) override { return ending.own_code; }
  };
  Handler handler;

  EXPECT_EQ(watch(options, handler, &system), kExitOk);  // a reader that went away is no error

  EXPECT_LT(system.now_s(), 2.0);
  EXPECT_EQ(system.stderr_text(), "");
}

TEST_F(WatchTest, AnEventOfTheHandlerDoesNotDelayTheNextTick) {
  listener.event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  options.duration_ns = 2 * kNsPerSecond;
  system.at(0.5, [&] {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(listener.event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  });

  run();

  EXPECT_THAT(listener.calls, ElementsAre("event", "view ends"));
  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 2.0));
}

TEST_F(WatchTest, MarksOfTheUserBecomeEventsWithTheirWordsOrANumber) {
  options.duration_ns = 2 * kNsPerSecond;
  system.at(0.5, [&] { listener.new_marks = {""}; });
  system.at(1.5, [&] { listener.new_marks = {"sent TERM to trainer 7", ""}; });

  run();

  EXPECT_THAT(details(EventKind::kMark),
              testing::IsSupersetOf({"mark 1", "sent TERM to trainer 7", "mark 2"}));
}

// Whoever did not ask for a run file gets no failure because of one.
TEST_F(WatchTest, ARunThatCannotBeKeptIsNoFailure) {
  options.duration_ns = kNsPerSecond;
  options.output = system.machine.path("no/such/folder/run.tidemark");

  EXPECT_EQ(run(), kExitTarget);

  options.is_kept = true;
  EXPECT_EQ(run(), kExitOk);
  EXPECT_THAT(system.stderr_text(),
              HasSubstr("note: this run is not kept for tidemark track --last: "));
}

TEST_F(WatchTest, AKeptRunIsReadableAndSaysHowToJudgeItAgain) {
  const std::string path = system.machine.path("run.tidemark");
  options.duration_ns = kNsPerSecond;
  options.output = path;
  options.is_kept = true;

  EXPECT_EQ(run(), kExitOk);

  EXPECT_TRUE(recording::is_run_file(path));
  EXPECT_THAT(system.stderr_text(), HasSubstr("tidemark track --last judges it again"));
}

TEST_F(WatchTest, TakesOneMoreTickWhenTheHandlerHasMoreToAdd) {
  listener.has_more = true;
  options.duration_ns = kNsPerSecond;

  run();

  EXPECT_EQ(listener.sink.ticks.size(), 3U);
}

TEST_F(WatchTest, StartsTheCommandWithWhatTheHandlerAddsAndPassesOnItsStatus) {
  run_command();
  system.at(1.5, [&] { system.end_command(exited(7)); });

  EXPECT_EQ(run(), 7);

  ASSERT_TRUE(system.launched);
  EXPECT_THAT(system.launched->argv, ElementsAre("train", "--fast"));
  EXPECT_THAT(system.launched->environment, ElementsAre(Pair("FROM", "handler")));
  EXPECT_THAT(listener.calls, ElementsAre("command exit", "view ends"));
  EXPECT_THAT(details(EventKind::kExit), ElementsAre(HasSubstr(", exit status 7")));
  ASSERT_EQ(listener.sink.ended.size(), 1U);
  EXPECT_EQ(listener.sink.ended[0].exit_status, exited(7));
}

TEST_F(WatchTest, SaysWhichSignalKilledTheCommand) {
  run_command();
  system.at(1.5, [&] { system.end_command(SIGKILL); });

  EXPECT_EQ(run(), 128 + SIGKILL);

  EXPECT_THAT(details(EventKind::kExit), ElementsAre(HasSubstr(", killed by SIGKILL")));
}

TEST_F(WatchTest, ACommandThatCannotStartIsAnErrorAndNothingIsWatched) {
  run_command();
  system.launch_error = Error{Errc::kNotFound, "cannot start train"};

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(times(), IsEmpty());
  EXPECT_THAT(system.stderr_text(), HasSubstr("cannot start train"));
  EXPECT_FALSE(listener.last.command_status);
}

TEST_F(WatchTest, WatchesOnUntilACommandThatWasToldToStopHasExited) {
  run_command();
  system.at(1.5, [&] { system.deliver(SIGTERM); });
  system.at(3.5, [&] { system.end_command(SIGTERM); });

  EXPECT_EQ(run(), 128 + SIGTERM);

  EXPECT_THAT(system.passed_on, ElementsAre(SIGTERM));
  EXPECT_TRUE(listener.last.was_told_to_stop);
  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 2.0, 3.0, 3.5));
}

void wait_for_the_end(const tests::ChildProcess::Link& link) {
  link.signal_ready();
  link.wait_for_order();
}

// It takes its time to stop: until it is told.
void ignore_the_signal(const tests::ChildProcess::Link& link) {
  ::signal(SIGTERM, SIG_IGN);
  wait_for_the_end(link);
}

TEST_F(WatchTest, TellsTheHandlersProcessesToStopBeforeTheCommand) {
  tests::ChildProcess trainer(ignore_the_signal);
  ASSERT_TRUE(trainer.wait_ready());
  run_command();
  listener.order = {{*monitor::process_key_of("/proc", trainer.pid())}, 30 * kNsPerSecond};
  std::vector<int> before{-1};
  system.at(1.5, [&] { system.deliver(SIGTERM); });
  system.at(3.4, [&] { before = system.passed_on; });
  system.at(3.5, [&] {
    trainer.give_order();
    trainer.wait_until_zombie();
  });
  system.at(9.5, [&] { system.end_command(SIGTERM); });

  run();

  EXPECT_THAT(before, IsEmpty());
  EXPECT_THAT(system.passed_on, ElementsAre(SIGTERM));
  EXPECT_THAT(system.stderr_text(), HasSubstr("is told first, and has 30 s to end"));
  EXPECT_THAT(system.stderr_text(), Not(HasSubstr("it has not ended in that time")));
}

TEST_F(WatchTest, TellsTheCommandWhenThoseBeforeItDoNotStopInTime) {
  tests::ChildProcess deaf(ignore_the_signal);
  ASSERT_TRUE(deaf.wait_ready());
  run_command();
  listener.order = {{*monitor::process_key_of("/proc", deaf.pid())}, 3 * kNsPerSecond};
  std::vector<int> before;
  std::vector<int> after;
  system.at(1.5, [&] { system.deliver(SIGTERM); });
  system.at(4.4, [&] { before = system.passed_on; });
  system.at(5.5, [&] { after = system.passed_on; });
  system.at(6.5, [&] { system.end_command(SIGTERM); });

  run();

  EXPECT_THAT(before, IsEmpty());
  EXPECT_THAT(after, ElementsAre(SIGTERM));
  EXPECT_THAT(system.stderr_text(), HasSubstr("it has not ended in that time"));
}

TEST_F(WatchTest, EndsTheTreeWhenTheTimeOfTheCommandIsOver) {
  run_command();
  options.end_after_ns = 2 * kNsPerSecond;
  system.at(0.5, [&] { system.put(kWorker, 20, kCommand); });
  system.at(8.5, [&] {
    system.end(kWorker);
    system.end_command(SIGKILL);
  });

  run();

  EXPECT_THAT(listener.calls, ElementsAre("time limit", "command exit", "view ends"));
  EXPECT_TRUE(listener.last.ran_out_of_time);
  EXPECT_THAT(system.signals, testing::IsSupersetOf({std::pair<pid_t, int>{kCommand, SIGTERM},
                                                     std::pair<pid_t, int>{kWorker, SIGTERM},
                                                     std::pair<pid_t, int>{kCommand, SIGKILL},
                                                     std::pair<pid_t, int>{kWorker, SIGKILL}}));
  EXPECT_THAT(system.stderr_text(), HasSubstr("it did not end when told to: it is killed"));
}

TEST_F(WatchTest, LeavesTheRestOfTheTreeWhenTheCommandHasExited) {
  run_command();
  system.at(0.5, [&] { system.put(kWorker, 20, ::getpid()); });
  system.at(2.5, [&] { system.end_command(exited(0)); });

  EXPECT_EQ(run(), 0);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0, 2.0, 2.5));
}

TEST_F(WatchTest, WatchesTheRestOfTheTreeForAHandlerThatWantsIt) {
  run_command();
  listener.wants_tree = true;
  system.at(0.5, [&] { system.put(kWorker, 20, ::getpid()); });
  system.at(2.5, [&] { system.end_command(exited(0)); });
  system.at(4.2, [&] { system.end(kWorker); });

  EXPECT_EQ(run(), 0);

  EXPECT_DOUBLE_EQ(times().back(), 4.5);
  EXPECT_THAT(system.stderr_text(), HasSubstr("1 of its processes runs on, and is watched"));
}

TEST_F(WatchTest, NeitherWatchesNorEndsOtherChildrenOfOurs) {
  run_command();
  system.put_stranger(kWorker, 500);
  options.end_after_ns = 2 * kNsPerSecond;
  system.at(1.5, [&] { system.put_stranger(kWorker + 1, 500); });  // adopted, of somebody else
  system.at(8.5, [&] { system.end_command(SIGKILL); });

  run();

  for (const Tick& tick : listener.sink.ticks) {
    EXPECT_LE(tick.tree.processes, 1U);
  }
  EXPECT_THAT(system.signals, Contains(Pair(kCommand, SIGKILL)));
  EXPECT_THAT(system.signals, testing::Each(Pair(kCommand, testing::_)));
}

TEST_F(WatchTest, KeepsAnOrphanThatItHasSeenBelowTheCommand) {
  run_command();
  listener.wants_tree = true;
  system.at(0.5, [&] { system.put(kWorker, 20, kCommand); });
  system.at(2.5, [&] {
    system.end_command(exited(0));
    system.put_stranger(kWorker, 20);  // adopted, without the mark
  });
  system.at(4.2, [&] { system.end(kWorker); });

  run();

  EXPECT_GT(times().back(), 4.0);
}

TEST_F(WatchTest, WaitsForTheCommandWhenTheDurationIsOver) {
  run_command();
  options.duration_ns = kNsPerSecond;
  system.at(60.0, [&] { system.end_command(exited(3)); });

  EXPECT_EQ(run(), 3);

  EXPECT_THAT(times(), ElementsAre(0.0, 1.0));
  EXPECT_DOUBLE_EQ(system.now_s(), 60.0);
  EXPECT_THAT(system.stderr_text(), HasSubstr("watching has ended; waiting for the command"));
}

}  // namespace
}  // namespace tidemark::live
