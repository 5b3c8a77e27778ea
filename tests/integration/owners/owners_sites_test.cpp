// SPDX-License-Identifier: Apache-2.0
// `tidemark owners` beside `tidemark profile`: which line has made what an owner holds.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/io.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;

constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kScript = TIDEMARK_SOURCE_DIR "/tests/programs/owners/made_at.py";

class OwnersSitesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
  }

  // The script below a profile of it.
  static std::vector<std::string> profiled(const std::string& kind) {
    return {tests::tool_path(), "profile", "--mode", "exact", "--", kPython, kScript, kind};
  }
  Output ask(const Subprocess& process, std::vector<std::string> options = {"--json"}) const {
    const std::vector<std::string> arguments = {
        "owners", "--pid", std::to_string(process.pid()), "--every", "2s", "--looks", "2"};
    options.insert(options.begin(), arguments.begin(), arguments.end());
    return run_tool(options);
  }

  const tests::TempTree dir_;
};

// Which line of the script makes what it keeps under a name.
std::int64_t line_that_makes(const std::string& name) {
  std::istringstream script(*read_file(kScript));
  std::string text;
  for (std::int64_t line = 1; std::getline(script, text); ++line) {
    if (text.ends_with("# makes " + name)) {
      return line;
    }
  }
  return 0;
}

nlohmann::json owner_of(const nlohmann::json& report, const std::string& name) {
  for (const nlohmann::json& owner : report["owners"]) {
    if (owner["path"] == "__main__.keep." + name) {
      return owner;
    }
  }
  return {};
}

// Its innermost frame of Python that is in the script, and how much of its growth comes from there.
void expect_made_there(const nlohmann::json& report, const std::string& name, double least,
                       double most) {
  const nlohmann::json owner = owner_of(report, name);
  ASSERT_FALSE(owner.is_null()) << name << " in " << report;
  const auto frame =
      std::find_if(owner["frames"].begin(), owner["frames"].end(),
                   [](const nlohmann::json& each) { return each["file"] == kScript; });
  ASSERT_NE(frame, owner["frames"].end()) << owner;
  EXPECT_EQ((*frame)["line"], line_that_makes(name)) << owner;
  double bytes = 0.0;
  for (const nlohmann::json& site : owner["sites"]) {
    bytes += site["bytes"].get<double>();
  }
  const double grown = owner["growth_bytes"].get<double>();
  EXPECT_GT(bytes, least * grown) << owner;
  EXPECT_LE(bytes, most * grown) << owner;
}

TEST_F(OwnersSitesTest, NamesTheLineThatMakesWhatIsHeld) {
  Subprocess profile(profiled("plain"));
  profile.read_until("ready");

  const Output output = ask(profile);

  const auto report = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(report.is_discarded()) << output.out << output.err;
  for (const char* name : {"buffers", "lists", "blobs", "doubles", "queues"}) {
    expect_made_there(report, name, 0.95, 1.01);
  }
  // The numbers that are its keys are too small to be seen one by one.
  expect_made_there(report, "dicts", 0.5, 1.01);
}

TEST_F(OwnersSitesTest, NamesTheLineThatMakesTensorsAndArrays) {
  if (Subprocess({kPython, "-c", "import torch, numpy"}).wait() != 0) {
    GTEST_SKIP() << "there is no torch";
  }
  Subprocess profile(profiled("torch"));
  profile.read_until("ready");

  const Output output = ask(profile);

  const auto report = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(report.is_discarded()) << output.out << output.err;
  expect_made_there(report, "arrays", 0.95, 1.01);
  expect_made_there(report, "tensors", 0.95, 1.01);
}

#ifdef TIDEMARK_HAS_HARNESS
// A program without Python: its tensors are found by themselves.
TEST_F(OwnersSitesTest, NamesTheLineThatMakesTensorsOfNativeCode) {
  const std::string truth = dir_.path("truth.json");
  Subprocess profile({tests::tool_path(),
                      "profile",
                      "--mode",
                      "exact",
                      "--",
                      TIDEMARK_BINARY_DIR "/bin/tidemark-harness",
                      "train",
                      "leak",
                      "--cause",
                      "collator",
                      "--mb-per-step",
                      "1",
                      "--steps",
                      "3000",
                      "--step-time",
                      "20ms",
                      "--from-step",
                      "5",
                      "--truth",
                      truth});
  profile.read_until("Step 10 ");

  const Output output = ask(profile);
  const Output text = ask(profile, {});

  const auto report = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(report.is_discarded()) << output.out << output.err;
  const nlohmann::json& owner = report["owners"][0];
  EXPECT_EQ(owner["path"], "torch tensors uint8 [524288] cpu");
  EXPECT_EQ(owner["kind"], "native");
  const auto expected = nlohmann::json::parse(*read_file(truth), nullptr, false);
  const auto line = expected["allocating_line"].get<std::string>();
  EXPECT_THAT(text.out, HasSubstr(line.substr(line.rfind('/') + 1) + "  "));
  double bytes = 0.0;
  for (const nlohmann::json& site : owner["sites"]) {
    bytes += site["bytes"].get<double>();
  }
  EXPECT_NEAR(bytes / owner["growth_bytes"].get<double>(), 1.0, 0.05) << owner;
}
#endif

// As much as the blocks stand for that the tracer has picked.
TEST_F(OwnersSitesTest, EstimatesBesideASampledProfileOfARunningJob) {
  Subprocess script({kPython, kScript, "plain"});
  script.read_until("ready");
  Subprocess profile({tests::tool_path(), "profile", "--pid", std::to_string(script.pid()),
                      "--sample-every", "64KiB"});
  std::this_thread::sleep_for(std::chrono::seconds(3));

  const Output output = ask(script);

  profile.signal(SIGINT);
  profile.wait();
  const auto report = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(report.is_discarded()) << output.out << output.err;
  for (const char* name : {"buffers", "lists", "blobs"}) {
    expect_made_there(report, name, 0.6, 1.01);
  }
}

TEST_F(OwnersSitesTest, KeepsTheLineInARecording) {
  Subprocess profile(profiled("plain"));
  profile.read_until("ready");
  const Output live = ask(profile, {"--json", "-o", dir_.path("looks.tidemark")});

  const Output again = run_tool({"owners", dir_.path("looks.tidemark"), "--json"});
  const Output text = run_tool({"owners", dir_.path("looks.tidemark")});
  const Output lines = run_tool({"profile", dir_.path("looks.tidemark")});

  const auto before = nlohmann::json::parse(live.out, nullptr, /*allow_exceptions=*/false);
  const auto after = nlohmann::json::parse(again.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(owner_of(before, "lists")["frames"], owner_of(after, "lists")["frames"]);
  expect_made_there(after, "lists", 0.95, 1.01);
  EXPECT_THAT(text.out, HasSubstr("  made at  made_at.py:" +
                                  std::to_string(line_that_makes("lists")) + " in collate"));
  // Nobody has followed them over time.
  EXPECT_EQ(lines.exit_code, 3);
  EXPECT_THAT(lines.err, HasSubstr("has no allocation sites"));
}

TEST_F(OwnersSitesTest, SaysNothingWhereNobodyTraces) {
  Subprocess script({kPython, kScript, "plain"});
  script.read_until("ready");

  const auto report = nlohmann::json::parse(ask(script).out, nullptr, /*allow_exceptions=*/false);

  const nlohmann::json owner = owner_of(report, "lists");
  ASSERT_FALSE(owner.is_null()) << report;
  EXPECT_TRUE(owner["sites"].empty()) << owner;
  EXPECT_TRUE(owner["frames"].empty()) << owner;
  EXPECT_THAT(ask(script, {}).out, Not(HasSubstr("made at")));
}

}  // namespace
}  // namespace tidemark
