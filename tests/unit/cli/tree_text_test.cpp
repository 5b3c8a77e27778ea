// SPDX-License-Identifier: Apache-2.0
#include "cli/tree_text.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/sample_tick.h"

namespace tidemark::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::sample_record;
using tests::sample_tick;

TEST(TreeText, ShowsChildrenBelowTheirParentsWithRoles) {
  const std::string text = tree_text(sample_tick(0), sample_record);

  EXPECT_THAT(text, HasSubstr("\n1240 "));
  EXPECT_THAT(text, HasSubstr("\n  1241 "));
  EXPECT_THAT(text, HasSubstr("compile_worker"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2J\\xff --x"));
}

TEST(TreeText, ShowsAZombieAndSurvivesAnUnknownProcess) {
  Tick tick = sample_tick(0);
  tick.processes[1].state = 'Z';
  tick.processes.push_back(tests::process_sample({9, 9}, 1));

  const std::string text = tree_text(tick, sample_record);

  EXPECT_THAT(text, HasSubstr("zombie"));
  EXPECT_THAT(text, HasSubstr("\n9 "));
}

TEST(TreeText, WorkersThatAreAlikeShareTwoRows) {
  Tick tick = sample_tick(0);
  std::map<ProcessKey, ProcessRecord> records;
  for (pid_t pid = 1300; pid < 1320; ++pid) {
    tick.processes.push_back(
        tests::process_sample({pid, 600}, static_cast<std::uint64_t>(pid - 1290)));
    ProcessRecord record = *sample_record(tests::kWorker);
    record.argv = "pool";
    records[{pid, 600}] = record;
  }

  const std::string text = tree_text(tick, [&](const ProcessKey& key) {
    const auto it = records.find(key);
    return it == records.end() ? sample_record(key) : &it->second;
  });

  EXPECT_THAT(text, HasSubstr("\n  1300 "));
  EXPECT_THAT(text, Not(HasSubstr("\n  1301 ")));
  EXPECT_THAT(text, HasSubstr("and 19 more like it, 11.0 MiB to 29.0 MiB each, up to pid 1319"));
}

}  // namespace
}  // namespace tidemark::cli
