// SPDX-License-Identifier: Apache-2.0
// GPUs as a user meets them: the real program, and a stand-in for the library of their driver.
#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "common/units.h"
#include "tests/integration/gpu/fake_gpu.h"
#include "tests/support/tmux_session.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using tests::FakeGpu;
using tests::mib;
using tests::of_kind;
using tests::Output;
using tests::TmuxSession;
using tests::TrainingTree;

// Two GPUs, the second in two MIG instances; the trainer is on the first.
class GpuCommand : public testing::Test {
 protected:
  GpuCommand() : trainer_(tree_.truth().at("trainer").get<pid_t>()), gpu_(base_script()) {
    gpu_.know(trainer_);
  }

  std::string base_script() const {
    return "device 0 " + mib(16384) + " " + mib(2000) + " NVIDIA A100\nbusy 0 87\nreserved 0 " +
           mib(300) + "\n" + "device 1 " + mib(16384) + " 0 NVIDIA H100\ndevice 1.0 " + mib(8000) +
           " " + mib(10) + " NVIDIA H100 MIG 3g.40gb\ndevice 1.2 " + mib(4000) + " " + mib(20) +
           " NVIDIA H100 MIG 1g.10gb\n" +
           fmt::format("process 0 compute {} {}\n", trainer_, mib(1500));
  }
  std::vector<std::string> monitor(const std::string& format, const std::string& duration,
                                   std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{
        "monitor",    format,   "--interval", "200ms",
        "--duration", duration, "--pid",      std::to_string(tree_.root())};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // What speaks for the trainer; there may be other jobs on the machine.
  std::string reasons_of(const Output& output) const {
    const json candidates = json::parse(output.out).at("candidates");
    for (const json& candidate : candidates) {
      if (candidate.at("pid") == trainer_) {
        return candidate.at("reasons").dump();
      }
    }
    return "no candidate";
  }

  TrainingTree tree_;
  pid_t trainer_;
  FakeGpu gpu_;
};

TEST_F(GpuCommand, JsonHasDevicesInstancesAndTheProcessesOfTheTree) {
  const Output output = gpu_.run(monitor("--json", "1s"));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto ticks = of_kind(tests::json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  const json& gpus = ticks.back().at("gpus");
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].at("label"), "gpu0");
  EXPECT_EQ(gpus[0].at("name"), "NVIDIA A100");
  EXPECT_EQ(gpus[0].at("used_bytes"), 2000 * kMiB);
  EXPECT_EQ(gpus[0].at("total_bytes"), 16384 * kMiB);
  EXPECT_EQ(gpus[0].at("reserved_bytes"), 300 * kMiB);
  EXPECT_EQ(gpus[0].at("busy_percent"), 87);
  EXPECT_EQ(gpus[0].at("lost"), false);
  EXPECT_EQ(gpus[0].at("processes"),
            json::array({{{"pid", trainer_}, {"used_bytes", 1500 * kMiB}}}));
  EXPECT_EQ(gpus[1].at("label"), "gpu1.0");
  EXPECT_EQ(gpus[2].at("label"), "gpu1.2");
  EXPECT_EQ(gpus[2].at("busy_percent"), nullptr);
  EXPECT_EQ(gpus[2].at("used_bytes"), 20 * kMiB);
}

TEST_F(GpuCommand, LinesTellUseLoadAndALostDevice) {
  gpu_.set_script(base_script() + "sample 3\nfail handle 0 15\n");

  const Output output = gpu_.run(monitor("--plain", "2s"));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("  gpu0 1.95 GiB of 16.0 GiB, 87 % busy  gpu1.0 10.0 MiB"));
  EXPECT_THAT(output.out, HasSubstr("  GPU LOST  gpu0 NVIDIA A100 no longer answers its driver"));
  EXPECT_THAT(output.out, HasSubstr("  gpu0 LOST  gpu1.0 10.0 MiB"));
  EXPECT_THAT(output.out, HasSubstr("not seen: figures of a GPU that its driver refused"));
  const std::string reason = "note: figures of a GPU are missing: handle of gpu0: GPU is lost (15)";
  const std::size_t told = output.err.find(reason);
  EXPECT_NE(told, std::string::npos) << output.err;
  EXPECT_EQ(output.err.find(reason, told + 1), std::string::npos) << "told again: " << output.err;
}

TEST_F(GpuCommand, ADriverThatHangsStopsNeitherTheSamplesNorTheEnd) {
  gpu_.set_script(base_script() + "sample 4\nhang memory_v2 0\n");

  const Output output = gpu_.run(monitor("--json", "3s"));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto lines = tests::json_lines(output.out);
  const auto ticks = of_kind(lines, "tick");
  ASSERT_GE(ticks.size(), 8U);
  const json& first = ticks.front().at("gpus").at(0);
  const json& last = ticks.back().at("gpus").at(0);
  EXPECT_EQ(first.at("age_s"), 0);
  EXPECT_GT(last.at("age_s"), 1.0);
  EXPECT_EQ(last.at("used_bytes"), 2000 * kMiB) << "what was known last";
  const auto summaries = of_kind(lines, "summary");
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_GE(summaries[0].at("losses").at("gpu_late"), 3);
}

TEST_F(GpuCommand, TheAgeOfTheFiguresIsInTheLinesAndInTheRunFile) {
  gpu_.set_script(base_script() + "sample 3\nhang count -\n");
  const std::string run = gpu_.folder().path("run.tidemark");

  const Output output = gpu_.run(monitor("--plain", "3s", {"-o", run}));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr(" s old"));
  EXPECT_THAT(output.out, HasSubstr("not seen: figures of a GPU that came too late"));
  const Output exported = tests::run_tool({"export", run, "--format", "jsonl"});
  const auto ticks = of_kind(tests::json_lines(exported.out), "tick");
  ASSERT_FALSE(ticks.empty());
  EXPECT_GT(ticks.back().at("gpus").at(0).at("age_s"), 1.0);
  EXPECT_EQ(ticks.front().at("gpus").at(0).at("busy_percent"), 87);
}

TEST_F(GpuCommand, ADriverThatNeverStartsIsOneLine) {
  gpu_.set_script("hang init -\n");

  const Output output = gpu_.run(monitor("--plain", "1s"));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("note: GPU memory is unknown: the GPU driver does not answer"));
  EXPECT_THAT(output.out, HasSubstr("summary: "));
}

TEST_F(GpuCommand, ADriverThatDoesNotCloseKeepsNobody) {
  gpu_.set_script(base_script() + "hang shutdown -\n");

  const Output output = gpu_.run(monitor("--plain", "1s"));

  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("summary: ")) << "everything was written";
}

TEST_F(GpuCommand, ADriverThatCannotBeUsedIsOneQuietLine) {
  const auto notes = [&](int code) {
    gpu_.set_script("init " + std::to_string(code) + "\n");
    const Output output = gpu_.run(monitor("--plain", "200ms"));
    EXPECT_EQ(output.exit_code, 0);
    // In a sandbox there may be notes about other things.
    const auto lines = split(output.err, '\n');
    const auto is_of_gpus = [](std::string_view line) { return line.find("GPU") != line.npos; };
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_of_gpus), 1) << output.err;
    EXPECT_THAT(output.out, Not(HasSubstr("not seen: a GPU")));
    return output.err;
  };

  EXPECT_THAT(notes(9), HasSubstr("the NVIDIA driver is not loaded"));
  EXPECT_THAT(notes(18), HasSubstr("reboot"));
  EXPECT_THAT(notes(4), HasSubstr("GPU memory is unknown: may not use the NVIDIA driver"));
  EXPECT_THAT(notes(999), HasSubstr("GPU memory is unknown: the NVIDIA driver does not start"));
}

TEST_F(GpuCommand, AFailureToCountIsALossAndNotTheEnd) {
  gpu_.set_script("device 0 1 1 x\nfail count - 999\n");

  const Output output = gpu_.run(monitor("--plain", "1s"));

  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.out, HasSubstr("not seen: a GPU: its driver refused to answer"));
  EXPECT_THAT(output.err, HasSubstr("figures of a GPU are missing: cannot count the GPUs: "));
}

TEST_F(GpuCommand, TrackJudgesGpuMemoryLiveAndFromTheRunFile) {
  gpu_.set_script("device 0 " + mib(65536) + " " + mib(64) + " NVIDIA A100\n" +
                  fmt::format("process 0 compute {} {} {}\n", trainer_, mib(64), mib(200)));
  const std::string run = gpu_.folder().path("run.tidemark");

  const Output live =
      gpu_.run({"track", "--metric", "gpu", "--warmup", "2s", "--interval", "100ms", "--duration",
                "15s", "--pid", std::to_string(tree_.root()), "-o", run});
  const Output again =
      tests::run_tool({"track", run, "--metric", "gpu", "--warmup", "2s", "--json"});

  EXPECT_EQ(live.exit_code, 1) << live.out << live.err;
  EXPECT_THAT(live.out, HasSubstr("GPU memory of"));
  EXPECT_THAT(live.out, HasSubstr("(gpu0"));
  EXPECT_EQ(again.exit_code, 1);
  const json verdict = json::parse(again.out);
  EXPECT_EQ(verdict.at("metric"), "gpu");
  EXPECT_EQ(verdict.at("gpu_growth"), nullptr);
}

TEST_F(GpuCommand, FindCountsGpuMemoryAsEvidence) {
  const Output output = gpu_.run({"find", "--json", "--all"});

  EXPECT_THAT(reasons_of(output), HasSubstr("holds 1.46 GiB of GPU memory"));
}

TEST_F(GpuCommand, FindAnswersThoughTheDriverHangs) {
  gpu_.set_script(base_script() + "hang init -\n");

  const Output output = gpu_.run({"find", "--json", "--all"});

  EXPECT_THAT(reasons_of(output), Not(HasSubstr("GPU memory")));
  EXPECT_THAT(reasons_of(output), HasSubstr("compile workers"));
  EXPECT_THAT(output.err, HasSubstr("GPU memory is unknown"));
}

class GpuDashboard : public GpuCommand {
 protected:
  void SetUp() override {
    if (const std::string reason = tests::no_tmux_because(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  std::string command(const std::string& more = "") const {
    return "'" + tests::tool_path() + "' monitor --interval 200ms --pid " +
           std::to_string(tree_.root()) + " " + more;
  }
  TmuxSession::Options options(int width = 120, int height = 40) const {
    TmuxSession::Options options{width, height, gpu_.environment()};
    options.environment.insert(options.environment.end(), {"LC_ALL=C.UTF-8", "NO_COLOR="});
    return options;
  }
};

TEST_F(GpuDashboard, ShowsDevicesWhoUsesThemAndWhatWasLost) {
  const TmuxSession session(command(), options());

  EXPECT_TRUE(session.shows("── GPU ─"));
  EXPECT_TRUE(
      session.shows(fmt::format("1.95 GiB of 16.0 GiB   87 %  trainer {} 1.46 GiB", trainer_)));
  EXPECT_TRUE(session.shows("gpu1.2 H100 MIG 1g.10gb"));
  gpu_.set_script(base_script() + "fail handle 0 15\n");
  EXPECT_TRUE(session.shows("LOST"));
  session.press({"q"});
  EXPECT_EQ(session.exit_code(), 0);
}

TEST_F(GpuDashboard, SaysHowOldTheFiguresAreAndClosesThoughTheDriverHangs) {
  gpu_.set_script(base_script() + "sample 3\nhang count -\n");
  const TmuxSession session(command(), options());

  EXPECT_TRUE(session.shows("no answer, "));
  EXPECT_TRUE(session.shows("1.95 GiB of 16.0 GiB"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.is_restored());
}

TEST_F(GpuDashboard, DrawsTheMetricThatIsJudged) {
  const TmuxSession session(command("--metric gpu"), options());

  EXPECT_TRUE(session.shows("GPU memory of the tree"));
  EXPECT_TRUE(session.shows("GPU memory of the tree, the whole run"));
}

TEST_F(GpuDashboard, AGpuThatDoesNotAnswerTakesNoSpace) {
  gpu_.set_script("init 9\n");
  const TmuxSession session(command(), options());

  EXPECT_TRUE(session.shows("compile_worker x20"));
  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("GPU"))));
}

// The real library, on a machine that has it and no driver to go with it.
TEST(RealNvml, WithoutADriverIsOneQuietLine) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    GTEST_SKIP() << "NVIDIA's library is not installed";
  }
  auto* const init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
  if (init == nullptr || init() == 0) {
    GTEST_SKIP() << "there is a driver";
  }
  const TrainingTree tree;

  const Output output = tests::run_tool(
      {"monitor", "--plain", "--duration", "200ms", "--pid", std::to_string(tree.root())});

  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.err, HasSubstr("NVIDIA"));
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
}

}  // namespace
}  // namespace tidemark
