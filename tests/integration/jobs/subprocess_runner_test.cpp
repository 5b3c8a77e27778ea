// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_runners.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text.h"
#include "tests/support/child_process.h"
#include "tests/support/paths.h"
#include "trainer_harness/jobs/job_server.h"

namespace tidemark::harness {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeardEvents final : public JobEvents {
 public:
  pid_t pid = 0;
  std::vector<std::int64_t> steps;
  std::vector<std::string> output;
  std::function<bool()> cancel = [] { return false; };
  std::function<bool()> crash = [] { return false; };
  std::function<void()> at_step = [] {};

  void on_process(pid_t of_job) override { pid = of_job; }
  void on_message() override {}
  void on_step(std::int64_t step, std::optional<double>) override {
    steps.push_back(step);
    at_step();
  }
  void on_phase(std::string_view) override {}
  void on_output(std::string_view line) override { output.emplace_back(line); }
  bool cancel_requested() override { return cancel(); }
  bool crash_requested() override { return crash(); }
};

class NoLog final : public JobServerLog {
 public:
  void on_job_start(const JobRecord&) override {}
  void on_job_end(const JobRecord&) override {}
  void on_job_output(const JobRecord&, std::string_view) override {}
  void on_problem(std::string_view) override {}
};

SubprocessOptions fake_trainer(std::int64_t grace_ns = 20 * kNsPerSecond) {
  return {{tests::victim_path("fake_trainer")}, grace_ns};
}

JobOutcome run(const std::string& behaviour, HeardEvents& events,
               const SubprocessOptions& options = fake_trainer()) {
  return SubprocessRunner(options).run({1, {behaviour}}, events);
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

TEST(SubprocessRunner, HearsEveryStepAndEveryLine) {
  HeardEvents events;

  const JobOutcome outcome = run("steps", events);

  EXPECT_EQ(outcome.state, JobState::kDone);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events.steps, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(events.output, ElementsAre("Step 1", "Step 2", "Step 3", "Step 4", "Step 5"));
  EXPECT_FALSE(exists(events.pid));
}

TEST(SubprocessRunner, BringsTheErrorOfAJobHome) {
  HeardEvents events;

  const JobOutcome outcome = run("error", events);

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.error, "the job ended with exit code 3: error: no images");
}

TEST(SubprocessRunner, SaysWhyATrainerDoesNotStart) {
  HeardEvents events;

  const JobOutcome outcome = run("steps", events, {{"/nonexistent/trainer"}, 0});

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_EQ(outcome.error, "cannot start /nonexistent/trainer: No such file or directory");
  EXPECT_EQ(events.pid, 0);
}

TEST(SubprocessRunner, CancelsInOrder) {
  HeardEvents events;
  events.cancel = [&] { return events.steps.size() >= 3; };

  const JobOutcome outcome = run("forever", events);

  EXPECT_EQ(outcome.state, JobState::kCancelled);
  EXPECT_EQ(outcome.exit_code, 0) << "it could save its work";
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(events.output, Contains("saved a checkpoint"));
  EXPECT_FALSE(exists(events.pid));
}

TEST(SubprocessRunner, CallsAJobDoneThatDidAllItsSteps) {
  HeardEvents events;
  events.cancel = [&] { return events.steps.size() == 5; };

  const JobOutcome outcome = run("unstopped", events);

  EXPECT_EQ(outcome.state, JobState::kDone);
}

TEST(SubprocessRunner, KillsAJobThatDoesNotHearItsCancellation) {
  HeardEvents events;
  events.cancel = [&] { return !events.steps.empty(); };

  const JobOutcome outcome = run("stubborn", events, fake_trainer(kNsPerSecond / 10));

  EXPECT_EQ(outcome.state, JobState::kCancelled);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_FALSE(exists(events.pid));
}

TEST(SubprocessRunner, OutlivesAJobThatCrashes) {
  HeardEvents events;
  events.crash = [&] { return events.steps.size() == 2; };

  const JobOutcome outcome = run("forever", events);

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_EQ(outcome.error, "the job was killed by SIGSEGV");
}

TEST(SubprocessRunner, DoesNotTakeAKillByOthersForACancellation) {
  HeardEvents events;
  events.at_step = [&] { ::kill(events.pid, SIGKILL); };

  const JobOutcome outcome = run("forever", events);

  EXPECT_EQ(outcome.state, JobState::kFailed);
  EXPECT_THAT(outcome.error, HasSubstr("SIGKILL"));
}

TEST(SubprocessRunner, EndsWhatAJobLeavesBehind) {
  HeardEvents events;

  const JobOutcome outcome = run("orphan", events);

  EXPECT_EQ(outcome.state, JobState::kDone);
  ASSERT_FALSE(events.output.empty());
  ASSERT_TRUE(events.output.front().starts_with("orphan "));
  const auto orphan = parse_number<pid_t>(std::string_view(events.output.front()).substr(7));
  ASSERT_TRUE(orphan);
  EXPECT_FALSE(exists(*orphan));
}

TEST(SubprocessRunner, LeavesNoJobBehindWhenTheServerIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd from_server(ends[0]);
  Fd to_test(ends[1]);
  tests::ChildProcess server([&](const tests::ChildProcess::Link& link) {
    HeardEvents events;
    events.at_step = [&] {
      if (events.steps.size() == 1) {
        [[maybe_unused]] const auto told = ::write(to_test.get(), &events.pid, sizeof(pid_t));
        link.signal_ready();
      }
    };
    run("stubborn", events);
  });
  ASSERT_TRUE(server.wait_ready());
  pid_t job = 0;
  ASSERT_EQ(::read(from_server.get(), &job, sizeof job), static_cast<ssize_t>(sizeof job));
  ASSERT_TRUE(exists(job));

  server.kill();
  server.wait();

  while (exists(job)) {
    ::waitpid(job, nullptr, WNOHANG);  // an earlier test may have made us its new parent
    ::usleep(1000);
  }
}

TEST(JobServer, SeesTheMemoryOfAProcessComeAndGo) {
  JobServerOptions options;
  options.jobs = {{1, {"memory"}}, {2, {"memory"}}};
  SubprocessRunner runner(fake_trainer());
  const SystemClock clock;
  NoLog log;
  const std::atomic<bool> stop = false;

  const ServerStatus status = JobServer(options, runner, clock, log).run(stop);

  for (const JobRecord& job : status.jobs) {
    EXPECT_EQ(job.state, JobState::kDone);
    EXPECT_GT(*job.memory.peak_bytes, *job.memory.before_bytes + (64U << 20U));
    EXPECT_LT(*job.memory.after_bytes, *job.memory.before_bytes + (4U << 20U));
    EXPECT_GT(*returned_percent(job.memory), 95.0);
    EXPECT_GT(*isolation_overhead_percent(job.times), 0.0);
  }
}

}  // namespace
}  // namespace tidemark::harness
