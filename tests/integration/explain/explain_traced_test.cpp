// SPDX-License-Identifier: Apache-2.0
// `tidemark explain` beside `tidemark profile`: what the allocation tracer knows of the anonymous
// rows.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

TEST(ExplainTraced, TellsLiveBlocksFromSlack) {
  const tests::TempTree dir;
  const std::string segment = "explain_traced_" + std::to_string(::getpid());
  tests::Subprocess profile({tests::tool_path(), "profile", "--mode", "exact", "--",
                             tests::victim_path("memory_rows"), "/" + segment, dir.path("file"),
                             "2"});
  profile.read_until("ready");

  const tests::Output output =
      tests::run_tool({"explain", "--pid", std::to_string(profile.pid()), "--json"});

  profile.close_input();
  profile.wait();
  ::unlink(("/dev/shm/" + segment).c_str());
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const nlohmann::json json = nlohmann::json::parse(output.out);
  for (const nlohmann::json& process : json["processes"]) {
    if (process["program"] != "memory_rows") {
      EXPECT_TRUE(process["traced_live_bytes"].is_null()) << process;
      continue;
    }
    ASSERT_TRUE(process["traced_live_bytes"].is_number()) << process;
    // A block of 64 MiB, and a quarter of 8 + 2 * 4 MiB; the rest of these was freed.
    EXPECT_NEAR(process["traced_live_bytes"].get<double>(), 68 * kMiB, 4 * kMiB) << process;
    EXPECT_NEAR(process["traced_slack_bytes"].get<double>(), 12 * kMiB, 4 * kMiB) << process;
    double of_tracer = 0.0;
    for (const nlohmann::json& row : process["rows"]) {
      of_tracer += row["kind"] == "tracer" ? row["rss_bytes"].get<double>() : 0.0;
    }
    EXPECT_GT(of_tracer, 0.0) << process;
    return;
  }
  ADD_FAILURE() << json;
}

}  // namespace
}  // namespace tidemark
