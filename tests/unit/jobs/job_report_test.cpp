// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/clock.h"

namespace tidemark::harness {
namespace {

using ::testing::HasSubstr;

ServerStatus one_failed_job() {
  ServerStatus status;
  status.server_pid = 7;
  status.state = ServerState::kDone;
  status.updated_wall_ns = 5 * kNsPerSecond;
  JobRecord& job = status.jobs.emplace_back();
  job.spec = {1, {"warmup", "--mb", "40"}};
  job.state = JobState::kFailed;
  job.pid = 8;
  job.step = 12;
  job.loss = 0.5;
  job.outcome = {JobState::kFailed, "out of\nmemory", 3, std::nullopt};
  job.memory = {4U << 20U, 18U << 20U, 4U << 20U};
  return status;
}

TEST(StatusJson, HasEveryFieldAndNullForTheUnknown) {
  EXPECT_EQ(
      status_json(one_failed_job()),
      R"({"schema":1,"server_pid":7,"isolation":"subprocess","state":"done","updated_s":5,)"
      R"("failed_updates":0,"jobs":[{"id":1,"state":"failed","arguments":["warmup","--mb","40"],)"
      R"("pid":8,"step":12,"loss":0.5,"phase":null,"error":"out of\nmemory","exit_code":3,)"
      R"("signal":null,"memory":{"before_bytes":4194304,"peak_bytes":18874368,)"
      R"("after_bytes":4194304,"returned_bytes":14680064,"returned_percent":100},)"
      R"("startup_s":null,"wall_s":null,"steps_per_s":null,"isolation_overhead_percent":null}]})"
      "\n");
}

TEST(LedgerText, ShowsTheJourneyOfTheMemoryAndTheErrorOnOneLine) {
  const std::string text = ledger_text(one_failed_job());

  EXPECT_THAT(text, HasSubstr("  4.00 MiB   18.0 MiB   4.00 MiB   14.0 MiB"));
  EXPECT_THAT(text, HasSubstr("job 1 failed: out of\\nmemory\n"));
  EXPECT_EQ(job_end_text(one_failed_job().jobs[0]),
            "job 1: failed, 4.00 MiB -> 18.0 MiB -> 4.00 MiB: out of\\nmemory");
}

TEST(LedgerText, ShowsUnreadableMemoryAsUnknown) {
  ServerStatus status = one_failed_job();
  status.jobs[0].memory = {};

  EXPECT_THAT(job_end_text(status.jobs[0]), HasSubstr("? -> ? -> ?"));
}

TEST(LedgerText, CountsTheUpdatesThatTheStatusFileMissed) {
  ServerStatus status = one_failed_job();
  status.failed_updates = 2;

  EXPECT_THAT(ledger_text(status), HasSubstr("2 updates of the status file failed"));
}

}  // namespace
}  // namespace tidemark::harness
