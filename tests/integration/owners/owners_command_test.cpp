// SPDX-License-Identifier: Apache-2.0
// `tidemark owners` with scripts of Python that keep a known object.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/io.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;

constexpr double kKiB = 1024.0;
constexpr const char* kPython = "/usr/bin/python3";

// Keeps 100 KiB at each step in an attribute; `data` is large and does not grow.
constexpr const char* kLeak = R"(
import time
class Collator:
    def __init__(self):
        self.cache = {}
    def collate(self, step):
        self.cache[step] = bytearray(100 << 10)
data = [bytearray(1 << 10) for _ in range(4000)]
collator = Collator()
step = 0
print("ready", flush=True)
while step < 4000:
    collator.collate(step)
    step += 1
    with open("steps", "a") as log:
        log.write(f"Step {step}\n")
    time.sleep(0.02)
)";

class OwnersCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
    dir_.write("leak.py", kLeak);
    dir_.write("steps", "");
  }

  std::vector<std::string> leak() const {
    return {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", dir_.path(), kPython, "leak.py"};
  }
  // The answer about a running script.
  Output ask(const Subprocess& script, std::vector<std::string> options) const {
    const std::vector<std::string> arguments = {
        "owners",     "--pid",           std::to_string(script.pid()), "--every", "1s", "--json",
        "--log-file", dir_.path("steps")};
    options.insert(options.begin(), arguments.begin(), arguments.end());
    return run_tool(options);
  }
  static nlohmann::json parsed(const Output& output) {
    auto json = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << output.out << output.err;
    return json;
  }

  const tests::TempTree dir_;
};

void expect_the_cache(const nlohmann::json& json) {
  ASSERT_FALSE(json["owners"].empty()) << json;
  const nlohmann::json& owner = json["owners"][0];
  EXPECT_EQ(owner["path"], "__main__.collator.cache");
  EXPECT_EQ(owner["type"], "dict");
  EXPECT_EQ(owner["verdict"], "growing");
  EXPECT_GT(owner["share_of_growth"].get<double>(), 0.8) << owner;
  EXPECT_EQ(owner["holds"][0]["type"], "bytearray");
}

TEST_F(OwnersCommandTest, NamesWhatKeepsTheMemoryWithItsRate) {
  Subprocess script(leak());
  script.read_until("ready");

  const Output output = ask(script, {"--looks", "3"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  const nlohmann::json json = parsed(output);
  expect_the_cache(json);
  const nlohmann::json& owner = json["owners"][0];
  EXPECT_NEAR(owner["growth_bytes_per_step"].get<double>(), 100 * kKiB, 8 * kKiB) << owner;
  EXPECT_NEAR(owner["entries_per_step"].get<double>(), 1.0, 0.08);
  EXPECT_EQ(json["looks"].size(), 3U);
  for (const nlohmann::json& look : json["looks"]) {
    EXPECT_TRUE(look["problem"].is_null()) << look;
    EXPECT_LT(look["paused_ms"].get<double>(), 1000.0);
  }
}

TEST_F(OwnersCommandTest, ReadsAProcessThatItHolds) {
  Subprocess script(leak());
  script.read_until("ready");

  const nlohmann::json json = parsed(ask(script, {"--looks", "2", "--frozen", "never"}));

  expect_the_cache(json);
  EXPECT_EQ(json["looks"][1]["way"], "read");
}

TEST_F(OwnersCommandTest, KeepsLooksAndComparesThem) {
  Subprocess script(leak());
  script.read_until("ready");
  const nlohmann::json live = parsed(ask(script, {"--looks", "2", "-o", dir_.path("a.tidemark")}));
  ask(script, {"--looks", "2", "-o", dir_.path("b.tidemark")});

  const nlohmann::json again = parsed(run_tool({"owners", dir_.path("a.tidemark"), "--json"}));
  const Output diff = run_tool({"diff", dir_.path("a.tidemark"), dir_.path("b.tidemark")});
  const Output text = run_tool({"owners", dir_.path("a.tidemark"), "--types"});

  expect_the_cache(again);
  EXPECT_EQ(again["owners"], live["owners"]);
  EXPECT_THAT(diff.out, HasSubstr("owners that grow"));
  EXPECT_THAT(diff.out, HasSubstr("__main__.collator.cache"));
  EXPECT_THAT(text.out, HasSubstr("is held by  __main__.collator.cache"));
  EXPECT_THAT(text.out, HasSubstr("  cut here drop or bound `cache`: "));
  EXPECT_THAT(text.out, HasSubstr("types of "));
}

TEST_F(OwnersCommandTest, AnswersSoFarWhenItIsInterrupted) {
  Subprocess script(leak());
  script.read_until("ready");
  Subprocess tool({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1", tests::tool_path(), "owners",
                   "--pid", std::to_string(script.pid()), "--every", "1s", "--looks", "1000",
                   "--json"});
  tool.read_until("look 3 of 1000");

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0);
  const std::string& output = tool.output();
  expect_the_cache(nlohmann::json::parse(output.substr(output.rfind("\n{") + 1), nullptr, false));
  EXPECT_EQ(::kill(script.pid(), 0), 0);
}

// The process that is looked at is our own child, and its stops are seen by the loop too.
TEST_F(OwnersCommandTest, LooksAtACommandAndPassesOnItsStatus) {
  std::vector<std::string> arguments = {"owners", "--every", "1s", "--looks", "3", "--json", "--"};
  dir_.write("short.py", std::string(kLeak) + "raise SystemExit(7)\n");
  std::string script = *read_file(dir_.path("short.py"));
  script.replace(script.find("4000:"), 5, "300:");
  dir_.write("short.py", script);
  std::vector<std::string> command = leak();
  command.back() = "short.py";
  arguments.insert(arguments.end(), command.begin(), command.end());

  const Output output = run_tool(arguments);

  EXPECT_EQ(output.exit_code, 7) << output.err;
  const nlohmann::json json = parsed(output);
  EXPECT_EQ(json["looks"].size(), 3U) << output.err;
  expect_the_cache(json);
}

TEST_F(OwnersCommandTest, ExportsObjectsAndPaths) {
  Subprocess script(leak());
  script.read_until("ready");

  const Output output =
      ask(script, {"--looks", "2", "--heapsnapshot", dir_.path("a.heapsnapshot"), "--dot",
                   dir_.path("a.dot"), "--owner", "__main__.collator.cache"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  const auto snapshot = nlohmann::json::parse(*read_file(dir_.path("a.heapsnapshot"), 1U << 28U),
                                              nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(snapshot.is_discarded());
  EXPECT_TRUE(snapshot.contains("nodes"));
  EXPECT_THAT(*read_file(dir_.path("a.dot")), HasSubstr("__main__.collator.cache"));
}

#ifdef TIDEMARK_HAS_HARNESS
TEST_F(OwnersCommandTest, NamesTensorsOfAProgramWithoutPython) {
  Subprocess trainer({TIDEMARK_BINARY_DIR "/bin/tidemark-harness", "train", "leak", "--cause",
                      "collator", "--mb-per-step", "1", "--steps", "3000", "--step-time", "20ms",
                      "--from-step", "5"});
  trainer.read_until("Step 10 ");

  const Output output = run_tool({"owners", "--pid", std::to_string(trainer.pid()), "--every", "1s",
                                  "--tensors", "-o", dir_.path("a.tidemark")});
  const nlohmann::json json = parsed(run_tool({"owners", dir_.path("a.tidemark"), "--json"}));

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("is held by  torch tensors uint8 [524288] cpu"));
  EXPECT_THAT(output.out, HasSubstr("tidemark profile names the line"));
  EXPECT_THAT(output.out, HasSubstr("  cpu uint8 [524288]\n"));
  const nlohmann::json& owner = json["owners"][0];
  EXPECT_EQ(owner["kind"], "native");
  EXPECT_EQ(owner["holds"][0]["shape"], nlohmann::json::array({524288}));
  EXPECT_NEAR(owner["share_of_growth"].get<double>(), 1.0, 0.1) << json["coverage"];
  EXPECT_NEAR(owner["entries_per_step"].get<double>(), 2.0, 0.3) << owner;
}
#endif

TEST_F(OwnersCommandTest, SaysThatAProgramHasNoPython) {
  Subprocess program({"/bin/sleep", "100"});

  const Output output =
      run_tool({"owners", "--pid", std::to_string(program.pid()), "--every", "1s"});

  EXPECT_EQ(output.exit_code, 3) << output.out << output.err;
  EXPECT_THAT(output.out + output.err, HasSubstr("ython"));
}

TEST(OwnersUsage, SaysWhatIsWrong) {
  for (const auto& [arguments, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"owners"}, "say whose heap to look at"},
           {{"owners", "--pid", "1", "--find-training"}, "exclude each other"},
           {{"owners", "--pid", "1", "--every", "x"}, "--every"},
           {{"owners", "--pid", "1", "--budget", "fast"}, "--budget is a time"},
           {{"owners", "--pid", "1", "--frozen", "often"}, "--frozen is auto"},
           {{"owners", "--pid", "1", "--owner", "x"}, "--owner is for --dot"},
           {{"owners", "none.tidemark", "--dot", "x"}, "need a process"},
       }) {
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << message;
    EXPECT_THAT(output.err, HasSubstr(message));
  }
  EXPECT_EQ(run_tool({"owners", "none.tidemark"}).exit_code, 3);
}

}  // namespace
}  // namespace tidemark
