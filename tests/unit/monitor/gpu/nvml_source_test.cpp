// SPDX-License-Identifier: Apache-2.0
// NVML through a stand-in library with scripted answers: tests/support/fake_nvml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "common/io.h"
#include "monitor/gpu/gpu_source.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFakeNvml = TIDEMARK_BINARY_DIR "/tests/libfake_nvml.so";
const std::string kV2FakeNvml = TIDEMARK_BINARY_DIR "/tests/libfake_nvml_v2.so";
const std::string kOldFakeNvml = TIDEMARK_BINARY_DIR "/tests/libfake_nvml_old.so";

class NvmlSourceTest : public testing::Test {
 protected:
  NvmlSourceTest() {
    ::setenv("TIDEMARK_FAKE_NVML", root_.path("script").c_str(), 1);
    options_.library = kFakeNvml;
    options_.proc_root = root_.path("proc");
    options_.host_proc_root = root_.path("host/proc");
    root_.link("proc/self/ns/pid", "pid:[4026531836]");
  }
  ~NvmlSourceTest() override { ::unsetenv("TIDEMARK_FAKE_NVML"); }

  void script(const std::string& text) { root_.write("script", text); }
  void enter_container() {
    root_.remove("proc/self/ns/pid");
    root_.link("proc/self/ns/pid", "pid:[4026532999]");
  }

  std::vector<GpuSample> sampled(const std::vector<pid_t>& pids) {
    auto source = open_nvml(options_);
    if (!source) {
      ADD_FAILURE() << source.error().what;
      return {};
    }
    auto samples = (*source)->sample(pids);
    EXPECT_TRUE(samples);
    losses_ = (*source)->losses();
    return samples ? std::move(*samples) : std::vector<GpuSample>{};
  }

  Error init_error(int code) {
    script("init " + std::to_string(code) + "\n");
    const auto source = open_nvml(options_);
    return source ? Error{} : source.error();
  }

  tests::TempTree root_;
  NvmlOptions options_;
  GpuLosses losses_;
};

auto process(pid_t pid, std::optional<std::uint64_t> bytes) {
  return testing::AllOf(Field(&GpuProcessUse::pid, pid), Field(&GpuProcessUse::used_bytes, bytes));
}

TEST_F(NvmlSourceTest, GivesDevicesAndTheWatchedProcesses) {
  script(
      "device 0 1000 400 NVIDIA A100\ndevice 1 2000 5 NVIDIA H100\n"
      "process 0 compute 42 300\nprocess 0 compute 43 50\nprocess 1 compute 42 5\n");

  const auto gpus = sampled({42, 44});

  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].index, 0U);
  EXPECT_EQ(gpus[0].name, "NVIDIA A100");
  EXPECT_EQ(gpus[0].total_bytes, 1000U);
  EXPECT_EQ(gpus[0].used_bytes, 400U);
  EXPECT_THAT(gpus[0].processes, ElementsAre(process(42, 300)));
  EXPECT_THAT(gpus[1].processes, ElementsAre(process(42, 5)));
  EXPECT_EQ(losses_.unmapped_processes, 0U);
  EXPECT_EQ(losses_.failed_queries, 0U);
}

TEST_F(NvmlSourceTest, UnderstandsEveryLayoutOfProcessEntries) {
  for (const char* bytes : {"16", "24", "32"}) {
    script(std::string("entry_bytes ") + bytes +
           "\ndevice 0 1000 400 x\nprocess 0 compute 1 10\nprocess 0 compute 2 20\n"
           "process 0 compute 3 30\n");

    EXPECT_THAT(sampled({1, 2, 3}).at(0).processes,
                ElementsAre(process(1, 10), process(2, 20), process(3, 30)))
        << bytes;
  }
}

TEST_F(NvmlSourceTest, AsksAgainWhenThereAreMoreProcessesThanExpected) {
  std::string text = "device 0 1000 400 x\n";
  std::vector<pid_t> pids;
  for (pid_t pid = 1000; pid < 1700; ++pid) {
    text += "process 0 compute " + std::to_string(pid) + " 7\n";
    pids.push_back(pid);
  }
  script(text);

  EXPECT_EQ(sampled(pids).at(0).processes.size(), 700U);
}

TEST_F(NvmlSourceTest, CountsAProcessThatComputesAndDrawsOnce) {
  script(
      "device 0 1000 400 x\nprocess 0 compute 42 300\nprocess 0 graphics 42 300\n"
      "process 0 graphics 43 20\n");

  EXPECT_THAT(sampled({42, 43}).at(0).processes, ElementsAre(process(42, 300), process(43, 20)));
}

TEST_F(NvmlSourceTest, LeavesUnknownWhatTheDriverDoesNotTell) {
  script("device 0 1000 400 x\nprocess 0 compute 42 18446744073709551615\nfail graphics 0 3\n");

  EXPECT_THAT(sampled({42}).at(0).processes, ElementsAre(process(42, std::nullopt)));
  EXPECT_EQ(losses_.failed_queries, 0U);
}

TEST_F(NvmlSourceTest, ReplacesAPartitionedGpuByItsInstances) {
  script(
      "device 0 8000 0 NVIDIA A100\ndevice 0.1 1000 400 NVIDIA A100 MIG 1g.5gb\n"
      "device 0.4 3000 30 NVIDIA A100 MIG 3g.20gb\ndevice 1 2000 5 NVIDIA H100\n"
      "process 0.4 compute 42 25\n");

  const auto gpus = sampled({42});

  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].index, 101U);
  EXPECT_EQ(gpu_label(gpus[0].index), "gpu0.1");
  EXPECT_EQ(gpus[0].name, "NVIDIA A100 MIG 1g.5gb");
  EXPECT_EQ(gpus[1].index, 104U);
  EXPECT_EQ(gpus[1].used_bytes, 30U);
  EXPECT_THAT(gpus[1].processes, ElementsAre(process(42, 25)));
  EXPECT_EQ(gpus[2].index, 1U);
}

TEST_F(NvmlSourceTest, SurvivesANameWithoutEndAndOfAnyBytes) {
  script("device 0 1 1 a\\x1b[31m\\xff" + std::string(200, 'n') + "\n");

  const std::string name = sampled({}).at(0).name;

  EXPECT_EQ(name.size(), 96U);
  EXPECT_TRUE(name.starts_with("a\x1b[31m\xff"));
}

TEST_F(NvmlSourceTest, KeepsTheOtherDevicesWhenOneIsLost) {
  script(
      "device 0 1000 400 NVIDIA A100\ndevice 1 2000 5 NVIDIA H100\nfail handle 0 15\n"
      "process 1 compute 42 5\n");

  const auto gpus = sampled({42});

  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_TRUE(gpus[0].is_lost);
  EXPECT_EQ(gpus[0].used_bytes, std::nullopt);
  EXPECT_FALSE(gpus[1].is_lost);
  EXPECT_EQ(gpus[1].used_bytes, 5U);
  EXPECT_EQ(losses_.failed_queries, 1U);
  EXPECT_EQ(losses_.last_failure, "handle of gpu0: GPU is lost (15)");
}

// After an uncorrectable error the handle is still there, and every question is refused.
TEST_F(NvmlSourceTest, ShowsADeviceThatNeedsAResetAsLostAndRemembersItsName) {
  script(
      "device 0 1000 400 NVIDIA A100\nbusy 0 50\nsample 2\nfail name 0 16\nfail memory 0 16\n"
      "fail memory_v2 0 16\nfail utilization 0 16\nfail compute 0 16\n");
  auto source = open_nvml(options_);
  ASSERT_TRUE(source);

  const auto before = (*source)->sample({});
  const auto after = (*source)->sample({});

  ASSERT_TRUE(before && after);
  EXPECT_FALSE(before->at(0).is_lost);
  EXPECT_TRUE(after->at(0).is_lost);
  EXPECT_EQ(after->at(0).name, "NVIDIA A100");
  EXPECT_EQ(after->at(0).used_bytes, std::nullopt);
}

TEST_F(NvmlSourceTest, DoesNotCallAFailureOfAnotherKindALoss) {
  script("device 0 1000 400 x\nfail memory_v2 0 999\nfail memory 0 999\n");

  EXPECT_FALSE(sampled({}).at(0).is_lost);
  EXPECT_EQ(losses_.failed_queries, 1U);
}

TEST_F(NvmlSourceTest, TellsHowBusyADeviceIsAndWhatTheDriverReserves) {
  script("device 0 1000 400 x\nbusy 0 87\nreserved 0 30\ndevice 1 1000 5 x\nbusy 1 4000\n");

  const auto gpus = sampled({});

  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].busy_percent, 87U);
  EXPECT_EQ(gpus[0].reserved_bytes, 30U);
  EXPECT_EQ(gpus[1].busy_percent, 100U);
}

TEST_F(NvmlSourceTest, LeavesUtilizationUnknownWhereItIsNotSupported) {
  script("device 0 1000 400 x\n");

  EXPECT_EQ(sampled({}).at(0).busy_percent, std::nullopt);
  EXPECT_EQ(losses_.failed_queries, 0U);
}

TEST_F(NvmlSourceTest, FindsProcessesThatComputeThroughAServer) {
  script("device 0 1000 400 x\nprocess 0 mps 42 300\n");

  EXPECT_THAT(sampled({42}).at(0).processes, ElementsAre(process(42, 300)));
}

TEST_F(NvmlSourceTest, FollowsProcessesThatComeAndGo) {
  script(
      "device 0 1000 400 x\nsample 2\nprocess 0 compute 42 300\nsample 3\n"
      "process 0 compute 43 10\n");
  auto source = open_nvml(options_);
  ASSERT_TRUE(source);

  const auto first = (*source)->sample(std::vector<pid_t>{42, 43});
  const auto second = (*source)->sample(std::vector<pid_t>{42, 43});
  const auto third = (*source)->sample(std::vector<pid_t>{42, 43});

  ASSERT_TRUE(first && second && third);
  EXPECT_THAT(first->at(0).processes, IsEmpty());
  EXPECT_THAT(second->at(0).processes, ElementsAre(process(42, 300)));
  EXPECT_THAT(third->at(0).processes, ElementsAre(process(43, 10)));
}

TEST_F(NvmlSourceTest, WorksWithALibraryOfTheSecondVersion) {
  options_.library = kV2FakeNvml;
  script("device 0 1000 400 x\nprocess 0 compute 42 300\nprocess 0 compute 43 5\n");

  EXPECT_THAT(sampled({42, 43}).at(0).processes, ElementsAre(process(42, 300), process(43, 5)));
}

// The library has the function, the driver below it does not know it.
TEST_F(NvmlSourceTest, AsksAnOlderVersionWhenTheDriverRefusesTheNewest) {
  for (const char* code : {"13", "25"}) {
    script(std::string("device 0 1000 400 x\nprocess 0 compute 42 300\nfail compute_v3 0 ") + code +
           "\n");

    EXPECT_THAT(sampled({42}).at(0).processes, ElementsAre(process(42, 300))) << code;
    EXPECT_EQ(losses_.failed_queries, 0U);
  }
}

TEST_F(NvmlSourceTest, CountsEveryQueryThatFails) {
  script(
      "device 0 1000 400 x\nfail name 0 15\nfail memory 0 15\nfail memory_v2 0 15\n"
      "fail compute 0 15\n");

  const auto gpus = sampled({42});

  EXPECT_EQ(gpus.at(0).name, "");
  EXPECT_EQ(gpus[0].total_bytes, std::nullopt);
  EXPECT_THAT(gpus[0].processes, IsEmpty());
  EXPECT_EQ(losses_.failed_queries, 3U);
}

TEST_F(NvmlSourceTest, FallsBackToTheFirstMemoryQuery) {
  script("device 0 1000 400 x\nfail memory_v2 0 13\n");

  EXPECT_EQ(sampled({}).at(0).used_bytes, 401U);
  EXPECT_EQ(losses_.failed_queries, 0U);
}

TEST_F(NvmlSourceTest, WorksWithALibraryOfTheFirstVersion) {
  options_.library = kOldFakeNvml;
  script("device 0 1000 400 NVIDIA K80\nprocess 0 compute 42 300\nprocess 0 compute 43 5\n");

  const auto gpus = sampled({42, 43});

  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].used_bytes, 401U);
  EXPECT_THAT(gpus[0].processes, ElementsAre(process(42, 300), process(43, 5)));
}

TEST_F(NvmlSourceTest, ReportsWhenTheDevicesCannotBeCounted) {
  script("fail count - 999\n");
  auto source = open_nvml(options_);
  ASSERT_TRUE(source);

  const auto samples = (*source)->sample({});

  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code, Errc::kIo);
  EXPECT_THAT(samples.error().what, HasSubstr("999"));
}

TEST_F(NvmlSourceTest, IsUnsupportedWithoutLibraryOrDriver) {
  EXPECT_EQ(init_error(9).code, Errc::kUnsupported);
  EXPECT_EQ(init_error(4).code, Errc::kPermission);
  EXPECT_EQ(init_error(999).code, Errc::kIo);

  options_.library = "libthere-is-no-such-thing.so.1";
  EXPECT_EQ(init_error(0).code, Errc::kUnsupported);
  options_.library = "libc.so.6";
  EXPECT_EQ(init_error(0).code, Errc::kUnsupported);
}

TEST_F(NvmlSourceTest, ExplainsADriverThatDoesNotFitItsLibrary) {
  const Error error = init_error(18);

  EXPECT_EQ(error.code, Errc::kUnsupported);
  EXPECT_THAT(error.what, HasSubstr("reboot"));
}

TEST_F(NvmlSourceTest, ShutsTheLibraryDownOnceForEachStart) {
  script("shutdowns " + root_.path("shutdowns") + "\n");

  { const auto source = open_nvml(options_); }

  const auto log = read_file(root_.path("shutdowns"));
  ASSERT_TRUE(log);
  EXPECT_EQ(*log, "shutdown\n");
}

TEST_F(NvmlSourceTest, GivesOnlyTotalsForPidsThatMeanNothingInAContainer) {
  enter_container();
  script("device 0 1000 400 x\nprocess 0 compute 42 300\n");
  root_.write("proc/42/status", "Name:\tother\nState:\tS\n");  // a coincidence: opens no GPU
  root_.make_directory("proc/42/fd");

  const auto gpus = sampled({42});

  EXPECT_EQ(gpus.at(0).used_bytes, 400U);
  EXPECT_THAT(gpus[0].processes, IsEmpty());
  EXPECT_EQ(losses_.unmapped_processes, 1U);
}

TEST_F(NvmlSourceTest, BelievesADriverThatTranslatesPidsItself) {
  enter_container();
  script("device 0 1000 400 x\nprocess 0 compute 42 300\n");
  root_.link("proc/42/fd/7", "/dev/nvidia0");

  EXPECT_THAT(sampled({42}).at(0).processes, ElementsAre(process(42, 300)));
  EXPECT_EQ(losses_.unmapped_processes, 0U);
}

TEST_F(NvmlSourceTest, TranslatesPidsThroughTheHostsProcfs) {
  enter_container();
  script("device 0 1000 400 x\nprocess 0 compute 9001 300\nprocess 0 compute 9002 20\n");
  root_.link("host/proc/9001/ns/pid", "pid:[4026532999]");
  root_.write("host/proc/9001/status", "Name:\tpython3\nState:\tS\nNSpid:\t9001\t42\n");
  root_.link("host/proc/9002/ns/pid", "pid:[4026533111]");  // another container's 43
  root_.write("host/proc/9002/status", "Name:\tpython3\nState:\tS\nNSpid:\t9002\t43\n");

  EXPECT_THAT(sampled({42, 43}).at(0).processes, ElementsAre(process(42, 300)));
  EXPECT_EQ(losses_.unmapped_processes, 1U);
}

}  // namespace
}  // namespace tidemark::monitor
