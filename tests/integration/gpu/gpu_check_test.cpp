// SPDX-License-Identifier: Apache-2.0
// Budgets of `tidemark check` for memory on a GPU, with a stand-in for the library of its driver.
#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/units.h"
#include "tests/integration/gpu/fake_gpu.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::FakeGpu;
using tests::mib;
using tests::Output;

// A GPU of 64 GiB, and commands that say themselves which process is on it.
class GpuCheck : public testing::Test {
 protected:
  // For a shell: the process `pid` holds so much of the GPU, and more every second.
  std::string puts_on_gpu(const std::string& pid, std::uint64_t held_mib,
                          std::uint64_t more_mib_per_s = 0) const {
    const std::string host = gpu_.folder().path("host") + "/" + pid;
    const std::string script = gpu_.folder().path("script");
    return "mkdir -p " + host + "/ns; ln -s \"$(readlink /proc/self/ns/pid)\" " + host +
           "/ns/pid; printf 'Name:\\tx\\nState:\\tS\\nNSpid:\\t7\\t%d\\n' " + pid + " > " + host +
           "/status; echo '" + kDevice + "' > " + script + ".new; echo process 0 compute " + pid +
           " " + mib(held_mib) + " " + mib(more_mib_per_s) + " >> " + script + ".new; mv " +
           script + ".new " + script + "; ";
  }
  // 50 steps a second.
  std::vector<std::string> trainer(std::uint64_t held_mib, std::uint64_t more_mib_per_s,
                                   int steps) const {
    return {"/bin/sh",
            "-c",
            puts_on_gpu("$$", held_mib, more_mib_per_s) + "exec \"$@\"",
            "sh",
            tests::victim_path("leak_linear"),
            "--leak-mb",
            "0",
            "--step-ms",
            "20",
            "--count",
            std::to_string(steps),
            "--steps"};
  }
  json check(std::vector<std::string> options, const std::vector<std::string>& command) {
    options.insert(options.begin(), {"check", "--interval", "100ms", "--json", "-"});
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    output_ = gpu_.run(options);
    json answer = json::parse(output_.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << output_.out << output_.err;
    return answer;
  }
  static json budget(const json& answer, const std::string& name) {
    for (const json& row : answer.at("checks").at(0).at("budgets")) {
      if (row.at("budget") == name) {
        return row;
      }
    }
    ADD_FAILURE() << "no budget " << name << " in " << answer.dump(1);
    return json::object();
  }

  const std::string kDevice = "device 0 " + mib(65536) + " " + mib(100) + " NVIDIA A100";
  FakeGpu gpu_{kDevice + "\n"};
  Output output_{};
};

TEST_F(GpuCheck, PassesWhatKeepsToItsBudgets) {
  const json answer =
      check({"--gpu-max-peak", "2GiB", "--gpu-max-plateau", "1600MiB", "--gpu-max-growth",
             "1MiB/step", "--gpu-max-retained", "0", "--warmup", "50steps"},
            trainer(1500, 0, 200));

  EXPECT_EQ(output_.exit_code, 0) << output_.err;
  EXPECT_EQ(answer.at("result"), "pass");
  for (const char* name :
       {"gpu_max_peak", "gpu_max_plateau", "gpu_max_growth", "gpu_max_retained"}) {
    EXPECT_EQ(budget(answer, name).at("state"), "within") << name;
  }
  EXPECT_EQ(budget(answer, "gpu_max_peak").at("measured"), 1500 * kMiB);
}

TEST_F(GpuCheck, FailsAPeakAndAPlateauThatAreTooHigh) {
  const json answer = check({"--gpu-max-peak", "1GiB", "--gpu-max-plateau", "1400MiB", "--max-peak",
                             "1GiB", "--warmup", "50steps"},
                            trainer(1500, 0, 200));

  EXPECT_EQ(output_.exit_code, 1) << output_.err;
  for (const char* name : {"gpu_max_peak", "gpu_max_plateau"}) {
    EXPECT_EQ(budget(answer, name).at("state"), "exceeded") << name;
    EXPECT_EQ(budget(answer, name).at("measured"), 1500 * kMiB) << name;
  }
  EXPECT_EQ(budget(answer, "max_peak").at("state"), "within") << "the GPU has memory of its own";
  EXPECT_THAT(output_.err, HasSubstr("gpu_max_peak: 1.46 GiB, more than 1.00 GiB"));
}

// 200 MiB/s: 4 MiB/step, and more on a machine that is late. The process itself does not grow.
TEST_F(GpuCheck, FailsGrowthOnTheGpuAlone) {
  const json answer =
      check({"--gpu-max-growth", "1MiB/step", "--max-growth", "1MiB/step", "--warmup", "50steps"},
            trainer(1500, 200, 300));

  EXPECT_EQ(output_.exit_code, 1) << output_.err;
  const json growth = budget(answer, "gpu_max_growth");
  EXPECT_EQ(growth.at("state"), "exceeded");
  EXPECT_GT(growth.at("low"), 3 * kMiB) << growth;
  EXPECT_EQ(budget(answer, "max_growth").at("state"), "within");
}

TEST_F(GpuCheck, FailsGpuMemoryOfProcessesThatAreLeft) {
  const json answer =
      check({"--gpu-max-retained", "100MiB"},
            {"/bin/sh", "-c", "sleep 30 > /dev/null 2>&1 & " + puts_on_gpu("$!", 300) + "sleep 1"});

  EXPECT_EQ(output_.exit_code, 1) << output_.err;
  const json retained = budget(answer, "gpu_max_retained");
  EXPECT_EQ(retained.at("state"), "exceeded");
  EXPECT_EQ(retained.at("measured"), 300 * kMiB);
  const json left = answer.at("checks").at(0).at("run").at("left_behind").at("processes");
  ASSERT_EQ(left.size(), 1U) << left;
  ::kill(left.at(0).at("pid").get<pid_t>(), SIGKILL);
}

}  // namespace
}  // namespace tidemark
