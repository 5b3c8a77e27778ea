// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/process_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/process_rows.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string maps_line(const std::string& path) {
  return "7f1c00000000-7f1c00021000 r--p 00000000 fe:01 262151                     " + path + "\n";
}

// A /proc of ordinary files and the process table that goes with it.
class CollectEvidence : public testing::Test {
 protected:
  void add(pid_t pid, const std::string& cmdline, const std::string& maps = "") {
    const std::string directory = std::to_string(pid);
    proc_.write(directory + "/stat", directory +
                                         " (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 99 "
                                         "1000 10 0 1 1 140723474731328 0\n");
    proc_.write(directory + "/status",
                "Name:\tpython3\nState:\tS (sleeping)\nPPid:\t1\nUid:\t7\t7\t7\t7\nRssAnon:\t"
                "1024 kB\nRssShmem:\t512 kB\nVmSwap:\t256 kB\nThreads:\t1\n");
    proc_.write(directory + "/cmdline", cmdline);
    proc_.write(directory + "/environ",
                std::string_view(
                    "HOME=/root\0RANK=3\0WORLD_SIZE=8\0SLURM_JOB_ID=7\0SLURM_STEP_ID=0\0", 62));
    proc_.write(directory + "/maps", maps);
    proc_.make_directory(directory + "/fd");
    ProcessEntry entry = tests::row(pid, 1, 99);
    entry.uid = 7;
    source_.table.push_back(entry);
  }
  Evidence collect(EvidenceOptions options = {}) {
    options.proc_root = proc_.path();
    auto evidence = collect_evidence(source_, options);
    EXPECT_TRUE(evidence);
    return evidence ? *std::move(evidence) : Evidence{};
  }

  tests::TempTree proc_;
  tests::FakeProcessSource source_;
};

TEST_F(CollectEvidence, ReadsLibrariesDevicesEnvironmentAndFootprint) {
  add(42, std::string("python3\0train.py\0", 17),
      maps_line("/usr/lib/libc.so.6") +
          maps_line("/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so") +
          maps_line("/usr/lib/x86_64-linux-gnu/libcuda.so.535.1 (deleted)"));
  proc_.link("42/fd/0", "/dev/null");
  proc_.link("42/fd/7", "/dev/nvidia0");

  const Evidence evidence = collect();

  ASSERT_EQ(evidence.processes.size(), 1U);
  const ProcessEvidence& process = evidence.processes[0];
  EXPECT_THAT(process.facts.argv, ElementsAre("python3", "train.py"));
  EXPECT_EQ(process.facts.footprint_bytes, 1792U * 1024U);
  EXPECT_EQ(process.facts.rank, 3);
  EXPECT_EQ(process.facts.job, "slurm 7.0");
  EXPECT_EQ(process.libraries.framework, "libtorch_cpu.so");
  EXPECT_EQ(process.libraries.gpu, "libcuda.so.535.1");
  EXPECT_EQ(process.gpu_device, "/dev/nvidia0");
  EXPECT_THAT(process.job_variables,
              ElementsAre("RANK", "WORLD_SIZE", "SLURM_JOB_ID", "SLURM_STEP_ID"));
}

TEST_F(CollectEvidence, CountsProcessesOfOtherUsers) {
  add(42, "a");
  add(43, "b");
  source_.table[1].uid = 8;
  EvidenceOptions options;
  options.uid = 7;

  const Evidence evidence = collect(options);

  EXPECT_EQ(evidence.processes.size(), 1U);
  EXPECT_EQ(evidence.not_permitted, 1U);
}

TEST_F(CollectEvidence, LeavesOutItselfZombiesAndTheDead) {
  add(42, "a");
  add(43, "b");
  add(44, "c");
  source_.table[1].state = 'Z';
  proc_.remove("44");
  EvidenceOptions options;
  options.self = 42;

  const Evidence evidence = collect(options);

  EXPECT_THAT(evidence.processes, IsEmpty());
  EXPECT_EQ(evidence.not_permitted, 0U);
}

TEST_F(CollectEvidence, AddsTheGpuMemoryOfAllDevices) {
  class TwoGpus final : public GpuSource {
   public:
    Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) override {
      GpuSample gpu;
      gpu.processes = {{pids[0], 100}};
      return std::vector<GpuSample>{gpu, gpu};
    }
    const GpuLosses& losses() const override { return losses_; }

   private:
    GpuLosses losses_;
  } gpus;
  add(42, std::string("python3\0train.py\0", 17));
  EvidenceOptions options;
  options.gpu = &gpus;

  EXPECT_EQ(collect(options).processes[0].gpu_bytes, 200U);
}

TEST(LoadedLibraries, AreKnownByTheirFileName) {
  const std::vector<std::string> frameworks = {
      "/x/torch/lib/libtorch_cpu.so",
      "/x/torch/lib/libtorch_python.so",
      "/usr/lib/libtorch.so.2.6",
      "/x/tensorflow/libtensorflow_framework.so.2",
      "/x/jaxlib/libjax_common.so",
      "/x/jaxlib/xla_extension.so",
      "/x/tensorflow/python/_pywrap_tensorflow_internal.so"};
  for (const std::string& path : frameworks) {
    LoadedLibraries libraries;
    note_libraries(maps_line(path), libraries);
    EXPECT_FALSE(libraries.framework.empty()) << path;
  }
  for (const std::string path : {"/data/libtorch_notes.txt", "/home/libtorch/a.out", "[heap]"}) {
    LoadedLibraries libraries;
    note_libraries(maps_line(path), libraries);
    EXPECT_TRUE(libraries.framework.empty()) << path;
  }
}

}  // namespace
}  // namespace tidemark::monitor
