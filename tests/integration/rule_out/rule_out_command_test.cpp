// SPDX-License-Identifier: Apache-2.0
// `tidemark rule-out` beside processes whose memory is known to be one thing.
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/rule_out/rule_out_support.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::intervention;
using tests::mib_of;
using tests::outcome_of;
using tests::Output;
using tests::Python;
using tests::rule_out;
using tests::run_tool;
using tests::Script;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

std::string conclusion_of(const json& report) {
  return report.at("processes").at(0).at("conclusions").dump();
}

class RuleOutPython : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    found_ = tests::pythons();
    std::erase_if(found_, [](const Python& python) { return python.minor != GetParam(); });
    if (found_.empty()) {
      GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
    }
  }
  std::vector<Python> found_;
};
INSTANTIATE_TEST_SUITE_P(Each, RuleOutPython, testing::Range(9, 15), [](const auto& version) {
  return "Python3_" + std::to_string(version.param);
});

// The collector of the job stays switched off, and finds nothing more afterwards.
TEST_P(RuleOutPython, HasGarbageThatTheCollectorFrees) {
  for (const Python& python : found_) {
    SCOPED_TRACE(python.path);
    Script script(tests::kCycles, python.path);

    const json report = rule_out(script.pid());

    const json gc = intervention(report, "gc");
    EXPECT_EQ(gc.at("outcome"), "confirmed") << report.dump(1);
    EXPECT_NEAR(mib_of(gc.at("effect_bytes")), 120.0, 15.0);
    EXPECT_GE(gc.at("objects"), 120);
    EXPECT_EQ(outcome_of(report, "trim"), "ruled_out");
    EXPECT_EQ(outcome_of(report, "cuda"), "ruled_out");
    EXPECT_THAT(conclusion_of(report), HasSubstr("was garbage in reference cycles"));
    EXPECT_THAT(script.ask("state", "disabled 0\n"), HasSubstr("disabled 0\n"));
  }
}

TEST_P(RuleOutPython, HasALiveListThatNothingFrees) {
  for (const Python& python : found_) {
    SCOPED_TRACE(python.path);
    const Script script(tests::kLiveList, python.path);

    const json report = rule_out(script.pid());

    EXPECT_EQ(outcome_of(report, "gc"), "ruled_out") << report.dump(1);
    EXPECT_EQ(outcome_of(report, "trim"), "ruled_out");
    EXPECT_THAT(conclusion_of(report), HasSubstr("is left, and in use; tidemark owners --pid"));
  }
}

class RuleOut : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(tests::kDebianPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
  }
};

// Fills 120 MiB at once, frees it, and stands still.
std::vector<std::string> freed_but_kept() {
  return {victim_path("freed_but_resident"),
          "--count",
          "100000",
          "--step-ms",
          "1",
          "--fill-steps",
          "1",
          "--fill-mb",
          "120",
          "--reuse-mb",
          "0",
          "--base-mb",
          "16"};
}

// The pieces are freed in the second step, a millisecond after they are there.
bool has_filled(const Subprocess& victim) {
  return tests::wait_until(
      [&] { return tests::anonymous_bytes(victim.pid()) > std::uint64_t{130} << 20U; });
}

TEST_F(RuleOut, FindsFreedMemoryThatGlibcKeeps) {
  Subprocess victim(freed_but_kept());
  victim.read_until("\n");
  ASSERT_TRUE(has_filled(victim));

  const json report = rule_out(victim.pid());

  const json trim = intervention(report, "trim");
  EXPECT_EQ(trim.at("outcome"), "confirmed") << report.dump(1);
  EXPECT_NEAR(mib_of(trim.at("effect_bytes")), 120.0, 12.0);
  EXPECT_NEAR(mib_of(trim.at("before_bytes")) - mib_of(trim.at("after_bytes")), 120.0, 12.0);
  EXPECT_THAT(conclusion_of(report), HasSubstr("was freed memory that glibc keeps: set MALLOC_"));
  EXPECT_EQ(outcome_of(report, "gc"), "ruled_out");
  EXPECT_EQ(intervention(report, "gc").at("problem"), "it runs no Python");
}

struct Allocator {
  const char* kind;
  const char* library;
  bool gives_back;
};
class RuleOutAllocator : public testing::TestWithParam<Allocator> {};
INSTANTIATE_TEST_SUITE_P(
    Each, RuleOutAllocator,
    testing::Values(Allocator{"jemalloc", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", true},
                    Allocator{"tcmalloc", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
                              true},
                    Allocator{"mimalloc", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0", false}),
    [](const auto& tested) { return std::string(tested.param.kind); });

TEST_P(RuleOutAllocator, IsAskedForWhatItKeeps) {
  if (::access(GetParam().library, R_OK) != 0) {
    GTEST_SKIP() << GetParam().library << " is not installed";
  }
  std::vector<std::string> command = freed_but_kept();
  command.insert(command.begin(),
                 {"/usr/bin/env", fmt::format("LD_PRELOAD={}", GetParam().library)});
  Subprocess victim(command);
  victim.read_until("\n");
  ASSERT_TRUE(has_filled(victim));

  const json report = rule_out(victim.pid(), {"--only", "trim"}, GetParam().gives_back ? 0 : 4);

  const json own = intervention(report, GetParam().kind);
  ASSERT_FALSE(own.is_null()) << report.dump(1);
  EXPECT_EQ(own.at("outcome"), GetParam().gives_back ? "confirmed" : "cannot_tell")
      << report.dump(1);
  EXPECT_EQ(outcome_of(report, "trim"), "ruled_out");
  if (GetParam().gives_back) {
    EXPECT_GT(mib_of(own.at("effect_bytes")), 20.0);
  } else {
    EXPECT_THAT(own.at("problem"), HasSubstr("only if that thread asks for it"));
  }
}

TEST_F(RuleOut, FindsFilesThatAreMapped) {
  const TempTree folder;
  folder.write("data", std::string(std::size_t{64} << 20U, 'x'));
  const Script script(
      "import mmap, sys\n"
      "file = open('" +
      folder.path("data") +
      "', 'rb')\n"
      "data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
      "sum(data[::4096])\n"
      "print('ready', flush=True)\n"
      "sys.stdin.read()\n");

  const json report = rule_out(script.pid(), {"--only", "page-cache"});

  const json mapped = intervention(report, "mapped_files");
  EXPECT_EQ(mapped.at("outcome"), "confirmed") << report.dump(1);
  EXPECT_GT(mib_of(mapped.at("effect_bytes")), 64.0);
  EXPECT_FALSE(tests::has_probe(script.pid()));
}

// A module that stands for torch with a GPU.
constexpr const char* kTorch = R"(
import sys, types
calls = []
torch = types.ModuleType("torch")
torch.cuda = types.ModuleType("torch.cuda")
held = {0: 700, 1: 50}
def empty_cache():
    calls.append("empty_cache")
    held[0] = 100
torch.cuda.is_initialized = lambda: INITIALIZED
torch.cuda.empty_cache = empty_cache
torch.cuda.device_count = lambda: 2
torch.cuda.memory_reserved = lambda device: held[device]
torch._C = types.ModuleType("torch._C")
if PINNED:
    torch._C._host_emptyCache = lambda: calls.append("host")
sys.modules["torch"] = torch
print("ready", flush=True)
for line in sys.stdin:
    print("calls:", " ".join(calls), ";", flush=True)
)";

std::string torch_script(bool initialized, bool pinned) {
  return fmt::format("INITIALIZED = {}\nPINNED = {}\n", initialized ? "True" : "False",
                     pinned ? "True" : "False") +
         kTorch;
}

TEST_F(RuleOut, EmptiesTheCachesOfTorch) {
  Script script(torch_script(true, true));

  const json report = rule_out(script.pid(), {"--only", "cuda"});

  const json cuda = intervention(report, "cuda");
  EXPECT_EQ(cuda.at("outcome"), "ruled_out") << report.dump(1);
  EXPECT_EQ(cuda.at("gpu_bytes"), 600);
  EXPECT_EQ(cuda.at("problem"), nullptr);
  EXPECT_THAT(script.ask("calls", ";\n"), HasSubstr("calls: empty_cache host ;"));
}

TEST_F(RuleOut, SaysThatATorchHasNoCacheOfPinnedMemoryThatItCouldEmpty) {
  Script script(torch_script(true, false));

  const json report = rule_out(script.pid(), {"--only", "cuda"});

  EXPECT_THAT(intervention(report, "cuda").at("problem"), HasSubstr("pinned memory"));
  EXPECT_THAT(script.ask("calls", ";\n"), HasSubstr("calls: empty_cache ;"));
}

TEST_F(RuleOut, LeavesATorchAloneThatUsesNoGpu) {
  Script script(torch_script(false, true));

  const json report = rule_out(script.pid(), {"--only", "cuda"});

  EXPECT_EQ(outcome_of(report, "cuda"), "ruled_out");
  EXPECT_EQ(intervention(report, "cuda").at("problem"), "torch uses no GPU");
  EXPECT_THAT(script.ask("calls", ";\n"), HasSubstr("calls:  ;"));
}

TEST_F(RuleOut, ImportsNoTorch) {
  const Script script(tests::kLiveList);

  const json report = rule_out(script.pid(), {"--only", "cuda"});

  EXPECT_EQ(intervention(report, "cuda").at("problem"), "torch is not imported");
}

TEST_F(RuleOut, SaysThatItLeavesFrozenObjectsAlone) {
  const Script script(
      "import gc, sys\n"
      "gc.freeze()\n"
      "print('ready', flush=True)\n"
      "sys.stdin.read()\n");

  const json report = rule_out(script.pid(), {"--only", "gc"});

  EXPECT_THAT(intervention(report, "gc").at("problem"), HasSubstr("are frozen (gc.freeze)"));
}

TEST_F(RuleOut, DoesWhatItIsToldTo) {
  const Script script(tests::kLiveList);

  const json only = rule_out(script.pid(), {"--only", "gc"});
  const json without = rule_out(script.pid(), {"--no-gc", "--no-cuda", "--no-page-cache"});

  EXPECT_EQ(only.at("processes").at(0).at("interventions").size(), 1U) << only.dump(1);
  EXPECT_EQ(outcome_of(only, "gc"), "ruled_out");
  EXPECT_EQ(without.at("processes").at(0).at("interventions").size(), 1U) << without.dump(1);
  EXPECT_EQ(outcome_of(without, "trim"), "ruled_out");
}

TEST_F(RuleOut, SaysWhatItWouldDo) {
  const Script script(tests::kLiveList);

  const json plan = rule_out(script.pid(), {"--dry-run"});
  const Output text =
      run_tool({"rule-out", "--pid", std::to_string(script.pid()), "--dry-run", "--plain"});

  EXPECT_EQ(plan.at("dry_run"), true);
  const json& steps = plan.at("processes").at(0).at("steps");
  std::vector<std::string> kinds;
  for (const json& step : steps) {
    kinds.push_back(step.at("kind"));
    EXPECT_EQ(step.at("possible"), true) << step.dump();
  }
  EXPECT_THAT(kinds, testing::IsSupersetOf({"mapped_files", "trim", "gc", "cuda"}));
  EXPECT_THAT(steps.dump(), HasSubstr("malloc_trim(0) of libc.so.6"));
  EXPECT_THAT(text.out,
              testing::ContainsRegex("garbage in reference cycles +gc.collect\\(\\) +yes"));
  EXPECT_FALSE(tests::has_probe(script.pid()));
}

TEST_F(RuleOut, ShowsARecordingAgain) {
  const TempTree folder;
  Script script(tests::kCycles);
  const std::string file = folder.path("looked.tidemark");

  const Output live = run_tool({"rule-out", "--pid", std::to_string(script.pid()), "--only", "gc",
                                "--settle", "300ms", "-o", file});
  const Output again = run_tool({"rule-out", file});
  const Output other = run_tool({"track", file});

  EXPECT_EQ(live.exit_code, 0) << live.err;
  EXPECT_THAT(live.out, HasSubstr("confirmed"));
  EXPECT_EQ('\n' + again.out, live.out);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(other.exit_code, 3) << other.err;
}

TEST_F(RuleOut, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run_tool({"rule-out"}).exit_code, 2);
  EXPECT_EQ(run_tool({"rule-out", "--pid", "1", "--only", "coffee"}).exit_code, 2);
  EXPECT_EQ(run_tool({"rule-out", "--pid", "1", "--only", "gc", "--no-gc"}).exit_code, 2);
  EXPECT_EQ(run_tool({"rule-out", "--", "/bin/true"}).exit_code, 2);
  EXPECT_EQ(
      run_tool({"rule-out", "--pid", "1", "--no-trim", "--no-gc", "--no-cuda", "--no-page-cache"})
          .exit_code,
      2);
}

}  // namespace
}  // namespace tidemark
