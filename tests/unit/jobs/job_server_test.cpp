// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_server.h"

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_tree.h"

namespace tidemark::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScriptedRunner final : public JobRunner {
 public:
  using Script = std::function<JobOutcome(const JobSpec&, JobEvents&)>;
  explicit ScriptedRunner(Script script) : script_(std::move(script)) {}
  JobOutcome run(const JobSpec& job, JobEvents& events) override { return script_(job, events); }

 private:
  Script script_;
};

class QuietLog final : public JobServerLog {
 public:
  std::vector<std::string> ended;
  std::vector<std::string> output;
  std::vector<std::string> problems;

  void on_job_start(const JobRecord&) override {}
  void on_job_end(const JobRecord& job) override {
    ended.push_back(fmt::format("{} {}", job.spec.id, name_of(job.state)));
  }
  void on_job_output(const JobRecord& job, std::string_view line) override {
    output.push_back(fmt::format("{} {}", job.spec.id, line));
  }
  void on_problem(std::string_view what) override { problems.emplace_back(what); }
};

JobOutcome ended(JobState state, std::string error = {}) {
  return {state, std::move(error), std::nullopt, std::nullopt};
}

class JobServerTest : public ::testing::Test {
 protected:
  JobServerTest() {
    options_.status_path = tree_.path("status.json");
    options_.proc_root = tree_.path("proc");
    set_footprint_mib(4);
  }

  void set_footprint_mib(int mib) const {
    tree_.write(
        fmt::format("proc/{}/status", ::getpid()),
        fmt::format(
            "Name:\tserver\nState:\tR (running)\nRssAnon:\t{} kB\nRssShmem:\t0 kB\nVmSwap:\t0 kB\n",
            mib * 1024));
  }

  ServerStatus run(int jobs, ScriptedRunner::Script script) {
    for (int id = 1; id <= jobs; ++id) {
      options_.jobs.push_back({id, {"warmup"}});
    }
    ScriptedRunner runner(std::move(script));
    return JobServer(options_, runner, clock_, log_).run(stop_);
  }

  std::string status_text() const { return read_file(options_.status_path).operator*(); }

  tests::TempTree tree_;
  tests::FakeClock clock_;
  QuietLog log_;
  JobServerOptions options_;
  std::atomic<bool> stop_ = false;
};

TEST_F(JobServerTest, RunsTheNextJobWhateverBecameOfTheLast) {
  const auto status = run(3, [](const JobSpec& job, JobEvents&) {
    return job.id == 2 ? ended(JobState::kFailed, "killed") : ended(JobState::kDone);
  });

  EXPECT_THAT(log_.ended, ElementsAre("1 done", "2 failed", "3 done"));
  EXPECT_EQ(status.state, ServerState::kDone);
  EXPECT_THAT(status_text(), HasSubstr(R"("error":"killed")"));
}

TEST_F(JobServerTest, ShowsARunningJobInTheStatusFile) {
  std::string seen;
  std::string seen_after;
  run(2, [&](const JobSpec& job, JobEvents& events) {
    if (job.id == 1) {
      events.on_process(321);
      clock_.advance_s(1);
      events.on_message();
      events.on_step(7, 0.25);
      events.on_phase("eval");
      seen = status_text();
      events.on_phase("");
      seen_after = status_text();
    }
    return ended(JobState::kDone);
  });

  EXPECT_THAT(seen, HasSubstr(R"("id":1,"state":"running")"));
  EXPECT_THAT(seen, HasSubstr(R"("pid":321,"step":7,"loss":0.25,"phase":"eval")"));
  EXPECT_THAT(seen, HasSubstr(R"("id":2,"state":"queued")"));
  EXPECT_THAT(seen_after, HasSubstr(R"("step":7,"loss":0.25,"phase":null)"));
}

TEST_F(JobServerTest, DoesNotWriteTheStatusAtEveryOneOfManySteps) {
  std::string seen;
  run(1, [&](const JobSpec&, JobEvents& events) {
    clock_.advance_s(1);
    events.on_step(1, 0.5);
    clock_.advance_s(0.01);
    events.on_step(2, 0.5);
    seen = status_text();
    return ended(JobState::kDone);
  });

  EXPECT_THAT(seen, HasSubstr(R"("step":1,)"));
  EXPECT_THAT(status_text(), HasSubstr(R"("step":2,)"));
}

TEST_F(JobServerTest, KeepsALedgerOfTheMemory) {
  const auto status = run(1, [&](const JobSpec&, JobEvents& events) {
    set_footprint_mib(18);
    events.on_process(::getpid());
    return ended(JobState::kDone);
  });

  EXPECT_EQ(status.jobs[0].memory.before_bytes, 4U << 20U);
  EXPECT_EQ(status.jobs[0].memory.after_bytes, 18U << 20U);
}

TEST_F(JobServerTest, TimesAJobByItsStations) {
  const auto status = run(1, [&](const JobSpec&, JobEvents& events) {
    clock_.advance_s(2);
    events.on_message();
    for (int step = 1; step <= 5; ++step) {
      clock_.advance_s(10);
      events.on_message();
      events.on_step(step, std::nullopt);
    }
    clock_.advance_s(3);
    return ended(JobState::kDone);
  });

  const JobTimes& times = status.jobs[0].times;
  EXPECT_DOUBLE_EQ(*startup_seconds(times), 12.0);
  EXPECT_DOUBLE_EQ(*steps_per_second(times), 0.1);
  EXPECT_DOUBLE_EQ(*isolation_overhead_percent(times), 10.0);
}

TEST_F(JobServerTest, AsksTheRightJobToEndAfterItsStep) {
  options_.cancel = JobIncident{2, 3};
  std::vector<std::string> asked;
  run(2, [&](const JobSpec& job, JobEvents& events) {
    for (int step = 1; step <= 3; ++step) {
      events.on_step(step, std::nullopt);
      if (events.cancel_requested()) {
        asked.push_back(fmt::format("job {} step {}", job.id, step));
      }
    }
    return ended(JobState::kDone);
  });

  EXPECT_THAT(asked, ElementsAre("job 2 step 3"));
}

TEST_F(JobServerTest, SaysThatAJobEndedBeforeItsCancellation) {
  options_.cancel = JobIncident{1, 500};
  run(2, [&](const JobSpec&, JobEvents& events) {
    events.on_step(5, std::nullopt);
    return ended(JobState::kDone);
  });

  EXPECT_THAT(log_.problems, ElementsAre("job 1 was not cancelled after step 500: it had finished "
                                         "(last step: 5)"));
}

TEST_F(JobServerTest, AsksForACrashOnce) {
  options_.crash = JobIncident{1, 2};
  std::vector<int> asked;
  run(1, [&](const JobSpec&, JobEvents& events) {
    for (int step = 1; step <= 4; ++step) {
      events.on_step(step, std::nullopt);
      if (events.crash_requested()) {
        asked.push_back(step);
      }
    }
    return ended(JobState::kFailed, "crashed");
  });

  EXPECT_THAT(asked, ElementsAre(2));
}

TEST_F(JobServerTest, CancelsTheRunningJobAndTheWaitingOnesWhenItIsStopped) {
  const auto status = run(3, [&](const JobSpec&, JobEvents& events) {
    stop_ = true;
    return ended(events.cancel_requested() ? JobState::kCancelled : JobState::kDone);
  });

  EXPECT_THAT(log_.ended, ElementsAre("1 cancelled"));
  EXPECT_EQ(status.jobs[2].state, JobState::kCancelled);
  EXPECT_EQ(status.state, ServerState::kStopped);
  EXPECT_THAT(status_text(), HasSubstr(R"("state":"stopped")"));
}

TEST_F(JobServerTest, ServesOnWithoutItsStatusFile) {
  options_.status_path = "/nonexistent/status.json";

  const auto status = run(2, [](const JobSpec&, JobEvents&) { return ended(JobState::kDone); });

  EXPECT_THAT(log_.ended, ElementsAre("1 done", "2 done"));
  ASSERT_EQ(log_.problems.size(), 1U) << "said once";
  EXPECT_GT(status.failed_updates, 1U);
}

TEST_F(JobServerTest, PassesOnWhatAJobSays) {
  run(2, [](const JobSpec&, JobEvents& events) {
    events.on_output("Step 1");
    return ended(JobState::kDone);
  });

  EXPECT_THAT(log_.output, ElementsAre("1 Step 1", "2 Step 1"));
  EXPECT_THAT(log_.problems, IsEmpty());
}

}  // namespace
}  // namespace tidemark::harness
