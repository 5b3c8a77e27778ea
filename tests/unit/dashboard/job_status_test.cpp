// SPDX-License-Identifier: Apache-2.0
#include "dashboard/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "tests/support/temp_tree.h"

namespace tidemark::dashboard {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// As docs/job-server.md has it.
constexpr std::string_view kStatus =
    R"({"schema":1,"server_pid":42,"isolation":"subprocess","state":"running","updated_s":1.5,
    "failed_updates":0,"jobs":[
    {"id":"1","state":"done","arguments":["warmup","--mb","100"],"pid":43,"step":60,"loss":0.5,
     "memory":{"before_bytes":100,"peak_bytes":900,"after_bytes":130,"returned_bytes":770}},
    {"id":"2","state":"queued","arguments":[],"pid":null,"step":null,
     "memory":{"before_bytes":null,"peak_bytes":null,"after_bytes":null}}]})";

ProcessRecord server_of(const std::string& argv, pid_t pid = 42) {
  ProcessRecord record;
  record.key = {pid, 1};
  record.argv = argv;
  return record;
}

TEST(JobStatus, HasTheMemoryOfEachJob) {
  const auto jobs = parse_job_status(kStatus);

  ASSERT_TRUE(jobs) << jobs.error().what;
  ASSERT_THAT(*jobs, SizeIs(2));
  const ServedJob& first = jobs->front();
  EXPECT_EQ(first.id, "1");
  EXPECT_EQ(first.arguments, "warmup --mb 100");
  EXPECT_EQ(first.state, "done");
  EXPECT_EQ(first.step, 60);
  EXPECT_EQ(first.before_bytes, 100U);
  EXPECT_EQ(first.peak_bytes, 900U);
  EXPECT_EQ(first.after_bytes, 130U);
  EXPECT_EQ(jobs->back().step, std::nullopt);
  EXPECT_EQ(jobs->back().after_bytes, std::nullopt);
}

TEST(JobStatus, RefusesWhatIsSomethingElse) {
  for (const char* text : {"", "{", "[]", "{}", R"({"schema":2,"jobs":[]})", R"({"schema":1})",
                           R"({"schema":1,"jobs":7})", "\xff\xfe"}) {
    const auto jobs = parse_job_status(text);
    ASSERT_FALSE(jobs) << text;
    EXPECT_EQ(jobs.error().code, Errc::kMalformed);
  }
}

TEST(JobStatus, SurvivesJobsOfAnyShape) {
  const auto jobs = parse_job_status(
      R"({"schema":1,"jobs":[7,null,{},{"id":3,"step":"x","memory":[],"arguments":{"a":1},
      "state":9},{"memory":{"before_bytes":-5,"peak_bytes":1e300}}]})");

  ASSERT_TRUE(jobs);
  ASSERT_THAT(*jobs, SizeIs(3));
  EXPECT_EQ(jobs->at(1).id, "3");
  EXPECT_EQ(jobs->at(1).step, std::nullopt);
  EXPECT_EQ(jobs->at(2).before_bytes, std::nullopt);
  EXPECT_EQ(jobs->at(2).peak_bytes, std::nullopt);
}

TEST(JobStatusPath, IsThatOfTheServer) {
  EXPECT_EQ(job_status_path(server_of("tidemark-harness serve-jobs --status /run/s.json -- leak")),
            "/proc/42/root/run/s.json");
  EXPECT_EQ(job_status_path(server_of("tidemark-harness serve-jobs --jobs 3 --status=s.json")),
            "/proc/42/cwd/s.json");
}

TEST(JobStatusPath, IsNoneForOtherProcesses) {
  for (const char* argv :
       {"tidemark-harness serve-jobs --jobs 3", "tidemark-harness train --status x",
        "tidemark-harness serve-jobs -- leak --status x", "serve-jobs --status", ""}) {
    EXPECT_EQ(job_status_path(server_of(argv)), std::nullopt) << argv;
  }
}

TEST(JobWatch, TellsOnlyWhatIsNew) {
  const tests::TempTree folder;
  folder.write("status", kStatus);
  JobWatch watch;
  EXPECT_EQ(watch.poll(), std::nullopt);

  watch.add_process(
      server_of(fmt::format("x serve-jobs --status {}", folder.path("status")), ::getpid()));

  const auto first = watch.poll();
  ASSERT_TRUE(first);
  EXPECT_THAT(*first, SizeIs(2));
  EXPECT_EQ(watch.poll(), std::nullopt);
  folder.write("status", R"({"schema":1,"jobs":[]})");
  const auto second = watch.poll();
  ASSERT_TRUE(second);
  EXPECT_THAT(*second, IsEmpty());
  folder.write("status", "half");
  EXPECT_EQ(watch.poll(), std::nullopt);
}

}  // namespace
}  // namespace tidemark::dashboard
