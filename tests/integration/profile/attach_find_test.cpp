// SPDX-License-Identifier: Apache-2.0
// `tidemark profile --find-training`, on a machine of its own.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/profile/attach_support.h"

namespace tidemark {
namespace {

TEST(AttachFind, FindsTheTrainingJobAndNamesItsLine) {
  tests::TempTree folder;
  folder.write("train.py", std::string(tests::kTraining));
  tests::Subprocess shell(
      {"/bin/sh", "-c", "/usr/bin/python3 " + folder.path("train.py") + " --epochs 3; true"});
  shell.read_until("ready\n");

  const tests::Output output = tests::run_tool({"profile", "--find-training", "--interval", "100ms",
                                                "--mode", "exact", "--json", "--duration", "2s"});

  const auto report = tests::report_of(output);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("lines").at(0).at("file"), folder.path("train.py")) << output.err;
  EXPECT_EQ(report.at("lines").at(0).at("line"), tests::kTrainingLine);
}

}  // namespace
}  // namespace tidemark
