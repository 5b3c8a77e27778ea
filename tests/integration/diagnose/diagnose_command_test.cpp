// SPDX-License-Identifier: Apache-2.0
// `tidemark diagnose` beside scripts of Python whose owner and line are known.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/io.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;

constexpr const char* kPython = "/usr/bin/python3";
constexpr int kLeakLine = 8;

// Keeps 200 KB at each step in an attribute, in line 8; `dataset` does not grow.
constexpr const char* kLeak = R"(import sys
import time
class Collator:
    def __init__(self):
        self.cache = {}
    def collate(self, step):
        batch = bytearray(50_000)
        self.cache[step] = bytearray(200_000)
        return batch
dataset = [bytearray(1 << 10) for _ in range(20_000)]
collator = Collator()
step = 0
print("ready", flush=True)
while step < int(sys.argv[1]):
    collator.collate(step)
    step += 1
    with open("steps", "a") as log:
        log.write(f"Step {step}\n")
    time.sleep(0.02)
)";

class DiagnoseCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
    dir_.write("leak.py", kLeak);
    dir_.write("steps", "");
  }

  // So many steps, 50 in a second.
  std::vector<std::string> leak(const std::string& steps = "100000") const {
    return {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", dir_.path(), kPython, "leak.py", steps};
  }
  // The answer about a running script.
  Output ask(const Subprocess& script, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"diagnose",        "--pid", std::to_string(script.pid()),
                                          "--duration",      "15s",   "--log-file",
                                          dir_.path("steps")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_tool(arguments);
  }

  const tests::TempTree dir_;
};

nlohmann::json parsed(const Output& output) {
  auto json = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << output.out << output.err;
  return json;
}

void expect_the_cache(const nlohmann::json& json) {
  ASSERT_FALSE(json["owners"].is_null()) << json["refused"];
  ASSERT_FALSE(json["owners"]["owners"].empty()) << json;
  const nlohmann::json& owner = json["owners"]["owners"][0];
  EXPECT_EQ(owner["path"], "__main__.collator.cache");
  EXPECT_GT(owner["share_of_growth"].get<double>(), 0.7) << owner;
}

void expect_the_line(const nlohmann::json& json) {
  ASSERT_FALSE(json["lines"].is_null()) << json["refused"];
  ASSERT_FALSE(json["lines"]["lines"].empty()) << json;
  const nlohmann::json& line = json["lines"]["lines"][0];
  EXPECT_EQ(line["line"], kLeakLine) << line;
  EXPECT_THAT(line["file"].get<std::string>(), HasSubstr("leak.py"));
}

std::string refused(const nlohmann::json& json, const std::string& what) {
  for (const nlohmann::json& each : json["refused"]) {
    if (each["what"] == what) {
      return each["why"];
    }
  }
  return "";
}

bool has_the_tracer(pid_t pid) {
  const auto maps = read_file("/proc/" + std::to_string(pid) + "/maps", 1U << 24U);
  EXPECT_TRUE(maps);
  return maps && maps->find("libtidemark_tracer") != std::string::npos;
}

TEST_F(DiagnoseCommandTest, NamesOwnerLineAndRateOnOnePage) {
  Subprocess script(leak());
  script.read_until("ready");

  const Output output = ask(script, {"-o", dir_.path("run.tidemark")});

  EXPECT_EQ(output.exit_code, 4) << output.err;
  const std::size_t page = output.out.find("\n\n");
  ASSERT_NE(page, std::string::npos) << output.out;
  const std::string text = output.out.substr(page + 2);
  // How likely it is a leak is not told of so young a process.
  EXPECT_THAT(text, AnyOf(StartsWith("LIKELY LEAK"), StartsWith("GROWING: ")));
  EXPECT_THAT(text, HasSubstr("KiB/step"));
  EXPECT_THAT(text, HasSubstr("who holds it   __main__.collator.cache: +"));
  EXPECT_THAT(text, HasSubstr("leak.py:8 in Collator.collate"));
  EXPECT_THAT(text, HasSubstr("what it is not dataset loading ("));
  EXPECT_THAT(text, HasSubstr("If `cache` stops at 20,000 entries, as many as `dataset` has"));
  EXPECT_THAT(text, HasSubstr("--pid " + std::to_string(script.pid())));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;

  const nlohmann::json again = parsed(run_tool({"diagnose", dir_.path("run.tidemark"), "--json"}));
  expect_the_cache(again);
  expect_the_line(again);
  const Output shown = run_tool({"diagnose", dir_.path("run.tidemark")});
  EXPECT_EQ(shown.exit_code, 4);
  EXPECT_EQ(shown.out.substr(0, shown.out.find("\nwhat to do")),
            text.substr(0, text.find("\nwhat to do")));
}

TEST_F(DiagnoseCommandTest, AnswersInJson) {
  Subprocess script(leak());
  script.read_until("ready");

  const nlohmann::json json = parsed(ask(script, {"--json"}));

  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["verdict"]["verdict"], "growing");
  EXPECT_TRUE(json["verdict"]["undetermined"].get<bool>());
  expect_the_cache(json);
  expect_the_line(json);
  EXPECT_TRUE(json["refused"].empty()) << json["refused"];
  EXPECT_EQ(::kill(script.pid(), 0), 0);
}

TEST_F(DiagnoseCommandTest, StaysOutsideWhenItIsToldTo) {
  Subprocess script(leak());
  script.read_until("ready");

  const nlohmann::json json = parsed(ask(script, {"--json", "--no-inject"}));

  EXPECT_FALSE(has_the_tracer(script.pid()));
  EXPECT_TRUE(json["lines"].is_null());
  EXPECT_THAT(refused(json, "lines"), HasSubstr("--no-inject"));
  expect_the_cache(json);
}

TEST_F(DiagnoseCommandTest, EndsEarlyWhenTheVerdictIsClear) {
  Subprocess script(leak());
  script.read_until("ready");
  const Output output =
      run_tool({"diagnose", "--pid", std::to_string(script.pid()), "--duration", "4min",
                "--log-file", dir_.path("steps"), "--warmup", "1steps", "--json"});

  EXPECT_EQ(output.exit_code, 1) << output.err;
  const nlohmann::json json = parsed(output);
  EXPECT_EQ(json["verdict"]["verdict"], "leak");
  EXPECT_LT(json["watched_s"].get<double>(), 150.0);
  EXPECT_THAT(json["answer"].get<std::string>(), StartsWith("LEAK: trainer, pid "));
  expect_the_cache(json);
  expect_the_line(json);
}

TEST_F(DiagnoseCommandTest, AnswersSoFarWhenItIsInterrupted) {
  Subprocess script(leak());
  script.read_until("ready");
  Subprocess tool({tests::tool_path(), "diagnose", "--pid", std::to_string(script.pid()), "--plain",
                   "--interval", "250ms", "--duration", "100s"});
  tool.read_until("00:00:1");  // the second line that it prints

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 4) << tool.errors();
  EXPECT_THAT(tool.output(), AnyOf(HasSubstr("\n\nLIKELY LEAK"), HasSubstr("\n\nGROWING: ")));
  EXPECT_THAT(tool.output(), HasSubstr("leak.py:8 in Collator.collate"));
  EXPECT_EQ(::kill(script.pid(), 0), 0);
}

TEST_F(DiagnoseCommandTest, StartsACommandAndLeavesItsOutputAlone) {
  std::vector<std::string> arguments = {"diagnose", "--duration", "12s", "--"};
  for (const std::string& word : leak("450")) {
    arguments.push_back(word);
  }

  const Output output = run_tool(arguments);

  EXPECT_EQ(output.exit_code, 4) << output.err;
  EXPECT_EQ(output.out, "ready\n");
  EXPECT_THAT(output.err, HasSubstr("who holds it   __main__.collator.cache: +"));
  EXPECT_THAT(output.err, HasSubstr("leak.py:8 in Collator.collate"));
}

TEST_F(DiagnoseCommandTest, FailsWithACommandThatFails) {
  EXPECT_EQ(run_tool({"diagnose", "--duration", "5s", "--", "/bin/sh", "-c", "exit 7"}).exit_code,
            3);
}

TEST_F(DiagnoseCommandTest, SaysThatAProgramHasNoPython) {
  const Subprocess program({"/bin/sleep", "100"});

  const nlohmann::json json = parsed(
      run_tool({"diagnose", "--pid", std::to_string(program.pid()), "--duration", "8s", "--json"}));

  EXPECT_THAT(refused(json, "owners"), HasSubstr("no Python"));
  EXPECT_FALSE(json["verdict"].is_null());
}

// What another user may see: the curve, and why not more.
TEST_F(DiagnoseCommandTest, GivesTheVerdictWhereItMayNotLook) {
  const std::vector<std::string> as_nobody = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                              "--clear-groups"};
  std::vector<std::string> attempt = as_nobody;
  attempt.insert(attempt.end(), {"/usr/bin/test", "-x", tests::tool_path()});
  if (::geteuid() != 0 || Subprocess(attempt).wait() != 0) {
    GTEST_SKIP() << "may not become another user here";
  }
  Subprocess script(leak());
  script.read_until("ready");
  std::vector<std::string> command = as_nobody;
  command.insert(command.end(), {tests::tool_path(), "diagnose", "--pid",
                                 std::to_string(script.pid()), "--duration", "8s", "--json"});

  Subprocess tool(command);

  EXPECT_EQ(tool.wait(), 4) << tool.errors();
  const nlohmann::json json = parsed({4, tool.output(), tool.errors()});
  EXPECT_THAT(refused(json, "lines"), HasSubstr("cannot attach to pid"));
  EXPECT_THAT(refused(json, "owners"), HasSubstr("cannot look at the heap of pid"));
  EXPECT_GT(json["verdict"]["samples"].get<int>(), 4);
}

TEST(DiagnoseUsage, SaysWhatIsWrong) {
  for (const auto& [arguments, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"diagnose"}, "say what to diagnose"},
           {{"diagnose", "--pid", "1", "--find-training"}, "exclude each other"},
           {{"diagnose", "none.tidemark", "--pid", "1"}, "exclude each other"},
           {{"diagnose", "none.tidemark", "--no-inject"}, "--no-inject is for a job"},
       }) {
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << message;
    EXPECT_THAT(output.err, HasSubstr(message));
  }
  EXPECT_EQ(run_tool({"diagnose", "none.tidemark"}).exit_code, 3);
  EXPECT_EQ(run_tool({"diagnose", "--pid", "4999999"}).exit_code, 3);
}

}  // namespace
}  // namespace tidemark
