// SPDX-License-Identifier: Apache-2.0
// `tidemark-harness serve-jobs` as a user runs it, with real training jobs at a small scale.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "common/text.h"
#include "tests/integration/harness/harness_run.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Not;
using tests::Subprocess;
using tests::TempTree;
using Words = std::vector<std::string>;

constexpr double kMib = 1 << 20;
constexpr double kJobMib = 80;  // what each job's cache takes

const std::string kHarness = TIDEMARK_BINARY_DIR "/bin/tidemark-harness";

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Steps in which the cache of `warmup` is filled, and some more.
Words small_job(int steps = 15) {
  return {"--",          "warmup", "--mb",    "80", "--steps", std::to_string(steps),
          "--step-time", "5ms",    "--batch", "1"};
}

struct Served {
  int exit_code = 0;
  json status;
  std::string errors;
};

Served serve(const Words& words) {
  Subprocess server(Words{kHarness, "serve-jobs", "--json"} + words);
  Served served;
  served.exit_code = server.wait();
  served.status = json::parse(server.output(), nullptr, false);
  served.errors = server.errors();
  return served;
}

double mib(const json& job, const char* which) { return job["memory"][which].get<double>() / kMib; }

std::vector<std::string> states(const json& status) {
  std::vector<std::string> result;
  for (const json& job : status["jobs"]) {
    result.push_back(job["state"]);
  }
  return result;
}

json read_status(const std::string& path) {
  const auto text = read_file(path);
  return text ? json::parse(*text, nullptr, false) : json();
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// The status file as soon as it is as wanted; the test's own timeout bounds the wait.
json wait_for_status(const std::string& path, const std::function<bool(const json&)>& wanted) {
  while (true) {
    json status = read_status(path);
    if (status.is_discarded()) {
      ADD_FAILURE() << path << " is there in part";
      return status;
    }
    if (status.is_object() && wanted(status)) {
      return status;
    }
    ::usleep(2000);
  }
}

std::vector<pid_t> zombies_of(pid_t pid) {
  const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::vector<pid_t> zombies;
  for (const std::string_view word : split(children ? *children : "", ' ')) {
    const auto child = parse_number<pid_t>(word);
    if (child && !tests::is_running(*child)) {
      zombies.push_back(*child);
    }
  }
  return zombies;
}

bool first_job_trains(const json& status) { return status["jobs"][0]["step"].is_number(); }

class ServeJobs : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kHarness.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "tidemark-harness is not built: no libtorch";
    }
  }
  std::string status_path() const { return tree_.path("status.json"); }

  TempTree tree_;
};

using ServeJobsBaseline = ServeJobs;
using ServeJobsStress = ServeJobs;
using ServeJobsCancellation = ServeJobs;
using ServeJobsCrash = ServeJobs;

// 4 -> 18 -> 4.
TEST_F(ServeJobsBaseline, SubprocessesGiveTheirMemoryBack) {
  const Served served = serve(Words{"--isolation", "subprocess", "--jobs", "3"} + small_job());

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  ASSERT_THAT(states(served.status), ElementsAre("done", "done", "done"));
  for (const json& job : served.status["jobs"]) {
    EXPECT_GT(mib(job, "peak_bytes"), mib(job, "before_bytes") + kJobMib);
    EXPECT_LT(mib(job, "after_bytes"), mib(job, "before_bytes") + 0.05 * kJobMib);
    EXPECT_GT(job["memory"]["returned_percent"], 95.0);
    EXPECT_GT(job["startup_s"], 0.0);
    EXPECT_GT(job["steps_per_s"], 0.0);
    EXPECT_GT(job["isolation_overhead_percent"], 0.0);
    EXPECT_NE(job["pid"], served.status["server_pid"]);
  }
}

// 4 -> 18 -> 18.
TEST_F(ServeJobsBaseline, JobsInTheServerLeaveTheirMemoryThere) {
  const Served served = serve(Words{"--isolation", "inprocess", "--jobs", "3"} + small_job());

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  ASSERT_THAT(states(served.status), ElementsAre("done", "done", "done"));
  const json& jobs = served.status["jobs"];
  EXPECT_GT(mib(jobs[0], "peak_bytes"), mib(jobs[0], "before_bytes") + kJobMib);
  for (const json& job : jobs) {
    EXPECT_GT(mib(job, "after_bytes"), mib(jobs[0], "before_bytes") + 0.9 * kJobMib);
    EXPECT_EQ(job["pid"], served.status["server_pid"]);
    EXPECT_LT(job["isolation_overhead_percent"], 1.0);
  }
  EXPECT_LT(jobs[0]["memory"]["returned_percent"], 20.0);
  EXPECT_LT(mib(jobs[2], "peak_bytes"), mib(jobs[0], "peak_bytes") + 0.25 * kJobMib)
      << "the next job finds the cache filled";
}

// Nothing of the job lives on, and yet: the allocator cannot give the pages back.
TEST_F(ServeJobsBaseline, FreedMemoryOfAJobMayStayInTheServerToo) {
  const Served served = serve({"--isolation", "inprocess", "--job",
                               "fragmentation --mb 80 --steps 15 --step-time 5ms --batch 1"});

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  const json& job = served.status["jobs"][0];
  EXPECT_GT(mib(job, "after_bytes"), mib(job, "before_bytes") + 0.8 * kJobMib);
}

TEST_F(ServeJobsBaseline, JobsInTheServerDoNotMeetTheSegmentsOfEarlierOnes) {
  const Served served = serve({"--isolation", "inprocess", "--jobs", "2", "--", "leak", "--cause",
                               "shm", "--keep-shm", "--from-step", "0", "--mb-per-step", "0.1",
                               "--steps", "5", "--step-time", "1ms"});

  EXPECT_THAT(states(served.status), ElementsAre("done", "done")) << served.errors;
  const auto segments = tests::segments_of(served.status["server_pid"]);
  EXPECT_EQ(segments.size(), 10U);
  for (const std::string& segment : segments) {
    ::unlink(segment.c_str());
  }
}

TEST_F(ServeJobsBaseline, FollowsTheEnvironment) {
  ::setenv("TRAINING_USE_SUBPROCESS", "false", 1);
  const Served served = serve(Words{"--jobs", "1"} + small_job(3));
  ::unsetenv("TRAINING_USE_SUBPROCESS");

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  EXPECT_EQ(served.status["isolation"], "inprocess");
}

TEST_F(ServeJobsBaseline, PrintsTheLedgerAndTheJobsOutputApart) {
  for (const char* isolation : {"inprocess", "subprocess"}) {
    Subprocess server(Words{kHarness, "serve-jobs", "--jobs", "1", "--isolation", isolation} +
                      small_job(10));

    ASSERT_EQ(server.wait(), 0) << server.errors();

    EXPECT_THAT(server.output(), HasSubstr("returned  start-up  steps/s  isolation\n"));
    EXPECT_THAT(server.output(), Not(HasSubstr("Step 10")));
    EXPECT_THAT(server.errors(), HasSubstr("Step 10 loss="));
  }
}

TEST_F(ServeJobsBaseline, FailsWhenNobodyTakesTheLedger) {
  Subprocess server(Words{kHarness, "serve-jobs", "--quiet", "--jobs", "1"} + small_job(3));
  server.close_output();

  EXPECT_EQ(server.wait(), 3);
  EXPECT_THAT(server.errors(), HasSubstr("job 1: done"));
}

// The server must end as small as it began, however many jobs it served.
TEST_F(ServeJobsStress, TenJobsLeaveNothingBehind) {
  const Served served = serve(
      Words{"--isolation", "subprocess", "--jobs", "10", "--status", status_path(), "--quiet"} +
      small_job(15));

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  const json& jobs = served.status["jobs"];
  ASSERT_EQ(jobs.size(), 10U);
  for (const json& job : jobs) {
    EXPECT_EQ(job["state"], "done");
    EXPECT_EQ(job["step"], 15);
    EXPECT_FALSE(exists(job["pid"].get<pid_t>()));
  }
  EXPECT_LT(mib(jobs[9], "after_bytes"), mib(jobs[0], "before_bytes") + 2);
  EXPECT_EQ(read_status(status_path())["state"], "done");
}

// A reader at any moment finds a whole document.
TEST_F(ServeJobsStress, ItsStatusFileIsNeverHalfWritten) {
  Subprocess server(
      Words{kHarness, "serve-jobs", "--quiet", "--jobs", "2", "--status", status_path()} +
      small_job(15));
  int documents = 0;

  wait_for_status(status_path(), [&](const json& status) {
    EXPECT_EQ(status["jobs"].size(), 2U);
    ++documents;
    return status["state"] == "done";
  });

  EXPECT_EQ(server.wait(), 0);
  EXPECT_GT(documents, 10);
}

TEST_F(ServeJobsStress, ItsStatusFileShowsTheEvaluationsOfAJob) {
  for (const char* isolation : {"inprocess", "subprocess"}) {
    const std::string path = tree_.path(isolation);
    Subprocess server({kHarness, "serve-jobs", "--quiet", "--isolation", isolation, "--status",
                       path, "--job",
                       "spikes --mb 8 --steps 100000 --eval-every 5 --step-time 20ms --batch 1"});

    const json status =
        wait_for_status(path, [](const json& now) { return now["jobs"][0]["phase"] == "eval"; });

    EXPECT_EQ(status["jobs"][0]["state"], "running");
    EXPECT_EQ(status["jobs"][0]["step"].get<int>() % 5, 0) << isolation;
    wait_for_status(path, [](const json& now) { return now["jobs"][0]["phase"].is_null(); });
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
  }
}

TEST_F(ServeJobsCancellation, EndsTheJobAndFreesItsMemory) {
  const std::string job = "steady --mb 80 --step-time 5ms --batch 1 --steps ";

  const Served served = serve({"--isolation", "subprocess", "--cancel-job", "2", "--after", "20",
                               "--job", job + "10", "--job", job + "100000", "--job", job + "10"});

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  const json& jobs = served.status["jobs"];
  EXPECT_THAT(states(served.status), ElementsAre("done", "cancelled", "done"));
  EXPECT_THAT(jobs[1]["step"].get<int>(), AllOf(Gt(19), Lt(1000)));
  EXPECT_EQ(jobs[1]["exit_code"], 0) << "in order, not killed";
  EXPECT_TRUE(jobs[1]["error"].is_null());
  EXPECT_FALSE(exists(jobs[1]["pid"].get<pid_t>()));
  EXPECT_GT(jobs[1]["memory"]["returned_percent"], 95.0);
}

TEST_F(ServeJobsCancellation, WorksInTheServerAsWell) {
  const Served served = serve(Words{"--isolation", "inprocess", "--cancel-job", "1", "--after", "5",
                                    "--job", "steady --steps 100000 --step-time 5ms --batch 1",
                                    "--job", "steady --steps 5 --step-time 5ms --batch 1"});

  ASSERT_EQ(served.exit_code, 0) << served.errors;
  EXPECT_THAT(states(served.status), ElementsAre("cancelled", "done"));
}

TEST_F(ServeJobsCancellation, ThatComesTooLateLeavesAJobDone) {
  for (const char* isolation : {"inprocess", "subprocess"}) {
    const Served served = serve({"--isolation", isolation, "--cancel-job", "1", "--after", "5",
                                 "--job", "steady --mb 1 --steps 5 --step-time 1ms --batch 1"});

    EXPECT_EQ(served.exit_code, 0);
    EXPECT_THAT(states(served.status), ElementsAre("done")) << isolation;
    EXPECT_THAT(served.errors, HasSubstr("job 1 was not cancelled after step 5: it had finished"));
  }
}

TEST_F(ServeJobsCancellation, OfTheServerEndsItsJobFirst) {
  Subprocess server(Words{kHarness, "serve-jobs", "--quiet", "--status", status_path()} +
                    small_job(100'000));
  const json running = wait_for_status(status_path(), first_job_trains);

  server.signal(SIGTERM);

  EXPECT_EQ(server.wait(), 0);
  const json status = read_status(status_path());
  EXPECT_EQ(status["state"], "stopped");
  EXPECT_THAT(states(status), ElementsAre("cancelled", "cancelled", "cancelled"));
  EXPECT_FALSE(exists(running["jobs"][0]["pid"].get<pid_t>()));
}

TEST_F(ServeJobsCrash, OfAJobLeavesTheServerStanding) {
  const Served served = serve(Words{"--isolation", "subprocess", "--jobs", "3", "--crash-job", "2",
                                    "--after", "4", "--status", status_path()} +
                              small_job());

  EXPECT_EQ(served.exit_code, 3);
  const json status = read_status(status_path());
  ASSERT_THAT(states(status), ElementsAre("done", "failed", "done"));
  EXPECT_EQ(status["jobs"][1]["signal"], SIGSEGV);
  EXPECT_THAT(status["jobs"][1]["error"].get<std::string>(), HasSubstr("SIGSEGV"));
  EXPECT_GT(status["jobs"][1]["memory"]["returned_percent"], 95.0);
}

TEST_F(ServeJobsCrash, OfAJobLeavesNoSegmentsBehind) {
  const std::string job =
      "leak --cause shm --from-step 0 --mb-per-step 0.1 --step-time 5ms --steps ";
  Subprocess server({kHarness, "serve-jobs", "--quiet", "--status", status_path(), "--crash-job",
                     "1", "--after", "5", "--job", job + "100000", "--job", job + "100000"});

  const json status = wait_for_status(
      status_path(), [](const json& now) { return now["jobs"][1]["step"].is_number(); });

  EXPECT_EQ(status["jobs"][0]["signal"], SIGSEGV);
  EXPECT_THAT(tests::segments_of(status["jobs"][0]["pid"]), IsEmpty());
  EXPECT_THAT(zombies_of(server.pid()), IsEmpty());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 3) << "one has failed";
  EXPECT_THAT(tests::segments_of(status["jobs"][1]["pid"]), IsEmpty());
}

TEST_F(ServeJobsCrash, ErrorsReachTheStatusFileInBothIsolations) {
  for (const char* isolation : {"inprocess", "subprocess"}) {
    const Served served = serve(
        {"--isolation", isolation, "--job", "steady --steps 3 --resume /nonexistent/checkpoint",
         "--job", "no-such-scenario", "--job", "steady --steps 3 --step-time 5ms --batch 1"});

    EXPECT_EQ(served.exit_code, 3);
    ASSERT_THAT(states(served.status), ElementsAre("failed", "failed", "done")) << isolation;
    EXPECT_THAT(served.status["jobs"][0]["error"].get<std::string>(),
                HasSubstr("/nonexistent/checkpoint"));
    EXPECT_THAT(served.status["jobs"][1]["error"].get<std::string>(),
                HasSubstr("no-such-scenario"));
  }
}

TEST_F(ServeJobsCrash, DoesNotComeOfACheckpointThatFindsNoRoom) {
  const std::string job = "steady --mb 1 --steps 3 --step-time 1ms --batch 1";
  Subprocess server({"sh", "-c", "ulimit -f 64; exec \"$0\" serve-jobs --json \"$@\"", kHarness,
                     "--isolation", "inprocess", "--job",
                     job + " --checkpoint " + tree_.path("model.pt"), "--job", job});

  EXPECT_EQ(server.wait(), 3);

  const json status = json::parse(server.output(), nullptr, false);
  ASSERT_THAT(states(status), ElementsAre("failed", "done"));
  EXPECT_THAT(status["jobs"][0]["error"].get<std::string>(), HasSubstr("File too large"));
}

// What isolation is for: without it the status file is all that is left.
TEST_F(ServeJobsCrash, InTheServerEndsTheServer) {
  const Served served = serve(Words{"--isolation", "inprocess", "--jobs", "2", "--crash-job", "1",
                                    "--status", status_path()} +
                              small_job());

  EXPECT_EQ(served.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(states(read_status(status_path())), ElementsAre("running", "queued"));
}

TEST_F(ServeJobsCrash, OfTheServerTakesItsJobAlong) {
  Subprocess server(Words{kHarness, "serve-jobs", "--quiet", "--status", status_path()} +
                    small_job(100'000));
  const json running = wait_for_status(status_path(), first_job_trains);
  const auto job = running["jobs"][0]["pid"].get<pid_t>();
  ASSERT_TRUE(exists(job));

  server.signal(SIGKILL);

  EXPECT_EQ(server.wait(), 128 + SIGKILL);
  while (exists(job)) {
    ::usleep(1000);
  }
}

}  // namespace
}  // namespace tidemark
