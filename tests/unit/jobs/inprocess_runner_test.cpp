// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_runners.h"

#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeardEvents final : public JobEvents {
 public:
  std::vector<std::string> heard;
  bool cancel = false;
  bool crash = false;

  void on_process(pid_t pid) override {
    heard.emplace_back(pid == ::getpid() ? "process: this one" : "process: another");
  }
  void on_message() override { heard.emplace_back("word"); }
  void on_step(std::int64_t step, std::optional<double> loss) override {
    heard.push_back(fmt::format("step {} {}", step, *loss));
  }
  void on_phase(std::string_view name) override { heard.push_back(fmt::format("phase {}", name)); }
  void on_output(std::string_view) override {}
  bool cancel_requested() override { return cancel; }
  bool crash_requested() override { return crash; }
};

JobOutcome run(const TrainFunction& train, HeardEvents& events,
               const std::vector<std::string>& arguments = {"steady"}) {
  return InprocessRunner(train).run({1, arguments}, events);
}

TEST(InprocessRunner, HearsTheTrainerInItsOwnProcess) {
  HeardEvents events;

  const JobOutcome outcome = run(
      [](const TrainerOptions&, TrainerObserver& observer) -> Result<TrainerOutcome> {
        observer.on_step(1, 0.5);
        observer.on_phase("eval", true);
        observer.on_phase("eval", false);
        return TrainerOutcome{};
      },
      events);

  EXPECT_EQ(outcome.state, JobState::kDone);
  EXPECT_THAT(events.heard, ElementsAre("process: this one", "word", "word", "step 1 0.5", "word",
                                        "phase eval", "word", "phase ", "word"));
}

TEST(InprocessRunner, HandsOnTheJobsArguments) {
  HeardEvents events;
  double mb = 0;

  run(
      [&](const TrainerOptions& options, TrainerObserver&) -> Result<TrainerOutcome> {
        mb = options.mb;
        return TrainerOutcome{};
      },
      events, {"warmup", "--mb", "40"});

  EXPECT_DOUBLE_EQ(mb, 40);
}

TEST(InprocessRunner, FailsAJobWhoseArgumentsAreWrong) {
  HeardEvents events;
  const auto train = [](const TrainerOptions&, TrainerObserver&) -> Result<TrainerOutcome> {
    ADD_FAILURE() << "must not run";
    return TrainerOutcome{};
  };

  const JobOutcome outcome = run(train, events, {"no-such-scenario"});

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_THAT(outcome.error, HasSubstr("no-such-scenario"));
}

TEST(InprocessRunner, TellsAStoppedJobFromOneThatIsDone) {
  HeardEvents events;
  events.cancel = true;

  const JobOutcome outcome = run(
      [](const TrainerOptions&, TrainerObserver& observer) -> Result<TrainerOutcome> {
        TrainerOutcome stopped;
        stopped.stopped = observer.stop_requested();
        return stopped;
      },
      events);

  EXPECT_EQ(outcome.state, JobState::kCancelled);
}

TEST(InprocessRunner, BringsTheErrorOfAJobHome) {
  HeardEvents events;

  const JobOutcome outcome = run(
      [](const TrainerOptions&, TrainerObserver&) -> Result<TrainerOutcome> {
        return Error{Errc::kIo, "no images"};
      },
      events);

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_EQ(outcome.error, "no images");
}

TEST(InprocessRunner, OutlivesAJobThatThrows) {
  HeardEvents events;

  const JobOutcome outcome =
      run([](const TrainerOptions&,
             TrainerObserver&) -> Result<TrainerOutcome> { throw std::bad_alloc(); },
          events);

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_THAT(outcome.error, HasSubstr("bad_alloc"));
}

TEST(InprocessRunnerDeathTest, DiesOfACrash) {
  HeardEvents events;
  events.crash = true;

  EXPECT_EXIT(run(
                  [](const TrainerOptions&, TrainerObserver& observer) -> Result<TrainerOutcome> {
                    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would make it an exit
                    observer.on_step(1, 0.5);
                    return TrainerOutcome{};
                  },
                  events),
              testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace tidemark::harness
