// SPDX-License-Identifier: Apache-2.0
// Programs of known behaviour under the tracer: the file must say what they say of themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "profiler/wire/sampling.h"
#include "profiler/wire/trace_request.h"
#include "tests/integration/preload/held_truth.h"
#include "tests/support/paths.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using testing::Contains;
using testing::HasSubstr;
using wire::Mode;
using wire::Stage;

std::string victim(const std::string& name) { return victim_path("traced_" + name); }

TracedRun run_victim(const std::string& name, const TraceAsk& ask,
                     const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> argv = {victim(name)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_traced(argv, ask);
}

void expect_exactly(const TracedFile& file, const ProcessTruth& truth) {
  for (const HeldTruth& held : truth.held) {
    const TracedSite found = file.sum_of(held.function, held.kind);
    EXPECT_EQ(found.live_bytes, held.live_bytes) << held.function;
    EXPECT_EQ(found.live_blocks, held.live_blocks) << held.function;
  }
  const auto& losses = file.snapshot.losses;
  EXPECT_EQ(losses.live_full + losses.sites_full + losses.ranges_full + losses.extend_failures, 0U);
  EXPECT_EQ(losses.empty_stacks, 0U);
  // Counters and tables tell the same.
  double by_counters = 0.0;
  for (const TracedSite& site : file.sites) {
    by_counters += site.live_bytes;
  }
  EXPECT_EQ(by_counters, file.listed_bytes);
}

void expect_truth_of_all(const TracedRun& run, int status) {
  ASSERT_EQ(run.status, status) << run.output << run.errors;
  EXPECT_EQ(run.errors, "");
  EXPECT_EQ(run.unreadable, 0U);
  const auto truths = parse_truth(run.output);
  ASSERT_FALSE(truths.empty());
  for (const ProcessTruth& truth : truths) {
    SCOPED_TRACE("pid " + std::to_string(truth.pid));
    const TracedFile* const file = run.of_pid(truth.pid);
    ASSERT_NE(file, nullptr);
    expect_exactly(*file, truth);
  }
}

class ExactVictim : public testing::TestWithParam<const char*> {};

TEST_P(ExactVictim, HoldsWhatItSays) { expect_truth_of_all(run_victim(GetParam(), {}), 0); }

TEST_P(ExactVictim, HoldsWhatItSaysByLibunwind) {
  TraceAsk ask;
  ask.libunwind = true;
  const std::vector<std::string> few = {"20000"};  // exceptions, where the victim throws them

  expect_truth_of_all(run_victim(GetParam(), ask, few), 0);
}

INSTANTIATE_TEST_SUITE_P(, ExactVictim,
                         testing::Values("cache_with_cap", "cross_thread_free", "dlopen_close",
                                         "exit_paths", "fixed_place", "fork_tree", "fragmentation",
                                         "freed_but_resident", "hostile_name", "leak_burst",
                                         "leak_linear", "leak_step", "longjmp_out", "many_stacks",
                                         "mmap_only", "mremap_race", "orphan_reparented",
                                         "other_allocator", "plateau_after_warmup", "realloc_fails",
                                         "realloc_moves", "sawtooth", "signal_storm",
                                         "thread_churn", "throw_through", "tls_destructor_alloc",
                                         "vfork_exec"),
                         [](const auto& named) { return std::string(named.param); });

TEST(ManyStacks, GiveWayToOthersOnceTheyHaveFreedAll) {
  const TracedRun run = run_victim("many_stacks", {});

  const auto truths = parse_truth(run.output);
  ASSERT_EQ(truths.size(), 1U) << run.errors;
  const TracedFile* const file = run.of_pid(truths[0].pid);
  ASSERT_NE(file, nullptr);
  const reader::TraceSnapshot& snapshot = file->snapshot;
  EXPECT_GE(snapshot.ready_sites, 32'768U);    // that came
  EXPECT_LT(snapshot.sites.size(), 12'000U);   // that are there
  EXPECT_GE(snapshot.freed_blocks, 31'000.0);  // none of them is lost
  EXPECT_LT(snapshot.file_bytes, std::uint64_t{6} << 20U);
}

// The estimate of one run has a standard error that the theory knows; so has the mean of many.
class SampledVictim : public testing::TestWithParam<const char*> {};

TEST_P(SampledVictim, IsEstimatedWithinItsInterval) {
  constexpr int kRuns = 20;
  constexpr double kSigmas = 5.0;
  TraceAsk ask;
  ask.mode = Mode::kSampled;
  ask.sample_every_bytes = 4096;
  std::map<std::string, double> sum_of_errors;  // in standard errors

  for (int i = 0; i < kRuns; ++i) {
    const TracedRun run = run_victim(GetParam(), ask, {"20000"});
    ASSERT_EQ(run.status, 0) << run.errors;
    const auto truths = parse_truth(run.output);
    const TracedFile* const file = run.of_pid(truths.at(0).pid);
    ASSERT_NE(file, nullptr);
    for (const HeldTruth& held : truths.at(0).held) {
      const TracedSite found = file->sum_of(held.function, held.kind);
      if (held.live_blocks == 0) {
        EXPECT_EQ(found.live_bytes, 0.0) << held.function;
        continue;
      }
      const double size = held.live_bytes / held.live_blocks;
      const double weight = wire::sample_weight(static_cast<std::uint64_t>(size), 4096);
      const double deviation = size * std::sqrt(held.live_blocks * (weight - 1.0));
      const double error = (found.live_bytes - held.live_bytes) / deviation;
      // Where nearly every block is a sample, the one that is not is many deviations by itself.
      const double one_block = size * weight / deviation;
      EXPECT_LT(std::abs(error), kSigmas + one_block) << held.function << ' ' << found.live_bytes;
      sum_of_errors[held.function] += error;
    }
  }

  for (const auto& [function, sum] : sum_of_errors) {
    EXPECT_LT(std::abs(sum) / std::sqrt(kRuns), kSigmas) << function;
  }
}

INSTANTIATE_TEST_SUITE_P(, SampledVictim,
                         testing::Values("cache_with_cap", "cross_thread_free", "leak_burst",
                                         "leak_linear", "leak_step", "plateau_after_warmup",
                                         "realloc_fails", "realloc_moves", "sawtooth",
                                         "thread_churn"),
                         [](const auto& named) { return std::string(named.param); });

TEST(Victims, ALeakIsTheTopSite) {
  const TracedRun run = run_victim("leak_step", {});

  ASSERT_EQ(run.files.size(), 1U);
  const TracedSite& top = run.files[0].top();
  ASSERT_FALSE(top.functions.empty());
  EXPECT_EQ(top.functions[0], "leak_a_table");
  EXPECT_THAT(top.functions, Contains("main"));
}

TEST(Victims, BlocksFreedAtOnceAreTemporary) {
  const TracedRun run = run_victim("leak_linear", {});

  const TracedFile& file = run.files.at(0);
  EXPECT_EQ(file.sum_of("use_and_drop", AllocationKind::kHeap).temporary_blocks, 3000);
  EXPECT_EQ(file.sum_of("leak_a_little", AllocationKind::kHeap).temporary_blocks, 0);
}

TEST(Victims, ForkedProcessesHaveFilesOfTheirOwn) {
  const TracedRun run = run_victim("fork_tree", {});

  EXPECT_EQ(run.files.size(), 10U);  // 1 + 3 + 6
  int forked = 0;
  for (const TracedFile& file : run.files) {
    forked += file.snapshot.identity.forked ? 1 : 0;
  }
  EXPECT_EQ(forked, 9);
}

TEST(Victims, EveryWayToStartAProgramIsFollowed) {
  const TracedRun run = run_victim("vfork_exec", {});

  EXPECT_EQ(run.files.size(), 12U);
  EXPECT_EQ(parse_truth(run.output).size(), 12U);
}

TEST(Victims, ShellsOfTheCLibraryAreFollowedByTheEnvironment) {
  const TracedRun run = run_victim("vfork_exec", {}, {"shells"});

  EXPECT_EQ(parse_truth(run.output).size(), 14U);
  expect_truth_of_all(run, 0);
}

TEST(Victims, NobodyIsFollowedWhoIsNotToBe) {
  TraceAsk ask;
  ask.follow = false;

  const TracedRun run = run_victim("vfork_exec", ask);

  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.files.size(), 1U);
  EXPECT_EQ(parse_truth(run.output).size(), 12U);
}

struct Ending {
  const char* way;
  int status;
  Stage stage;
};
class ExitPath : public testing::TestWithParam<Ending> {};

TEST_P(ExitPath, LeavesACompleteFile) {
  const TracedRun run = run_victim("exit_paths", {}, {GetParam().way});

  ASSERT_EQ(run.status, GetParam().status) << run.errors;
  ASSERT_FALSE(run.files.empty());
  const TracedFile& first = run.files[0];
  EXPECT_EQ(first.snapshot.stage, GetParam().stage);
  EXPECT_GE(first.sum_of("before_the_end", AllocationKind::kHeap).live_blocks, 40);
}

INSTANTIATE_TEST_SUITE_P(, ExitPath,
                         testing::Values(Ending{"return", 0, Stage::kExited},
                                         Ending{"exit", 5, Stage::kExited},
                                         Ending{"_exit", 6, Stage::kRecording},
                                         Ending{"quick_exit", 7, Stage::kRecording},
                                         Ending{"abort", 128 + 6, Stage::kRecording},
                                         Ending{"kill", 128 + 9, Stage::kRecording},
                                         Ending{"failed_exec", 8, Stage::kExited},
                                         Ending{"exec", 5, Stage::kReplaced}),
                         [](const auto& named) { return std::string(named.param.way); });

TEST(Victims, AnExecOfTheSameProcessHasTwoFiles) {
  const TracedRun run = run_victim("exit_paths", {}, {"exec"});

  ASSERT_EQ(run.files.size(), 2U);
  EXPECT_EQ(run.files[0].snapshot.identity.pid, run.files[1].snapshot.identity.pid);
  EXPECT_EQ(run.files[0].snapshot.stage, Stage::kReplaced);
  EXPECT_EQ(run.files[1].snapshot.stage, Stage::kExited);
}

TEST(Victims, ADormantTracerRecordsNothing) {
  TraceAsk ask;
  ask.mode = Mode::kDormant;

  const TracedRun run = run_victim("leak_linear", ask);

  ASSERT_EQ(run.files.size(), 1U);
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(run.files[0].sites.empty());
}

TEST(Victims, ARequestThatNobodyKnowsIsRefused) {
  TraceAsk ask;
  ask.environment = {"TIDEMARK_TRACE=2:exact:0:0::/tmp"};

  const TracedRun run = run_victim("leak_linear", ask);

  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(run.files.empty());
  EXPECT_EQ(run.errors, "");
}

struct Allocator {
  const char* name;
  const char* path;
};
class OtherAllocator : public testing::TestWithParam<Allocator> {};

TEST_P(OtherAllocator, IsTracedThroughMallocAndNew) {
  if (::access(GetParam().path, R_OK) != 0) {
    GTEST_SKIP() << GetParam().path << " is not installed";
  }
  TraceAsk ask;
  ask.also_preload = {operators_path(), GetParam().path};

  expect_truth_of_all(run_victim("other_allocator", ask), 0);
  expect_truth_of_all(run_victim("realloc_moves", ask), 0);
  expect_truth_of_all(run_victim("thread_churn", ask), 0);
  expect_truth_of_all(run_victim("fork_tree", ask), 0);
}

TEST_P(OtherAllocator, IsTracedWhereAScriptPreloadsIt) {
  if (::access(GetParam().path, R_OK) != 0) {
    GTEST_SKIP() << GetParam().path << " is not installed";
  }
  for (const char* const value : {"$LD_PRELOAD:$1", "$1:$LD_PRELOAD", "$1"}) {
    SCOPED_TRACE(value);
    const std::string script = "LD_PRELOAD=\"" + std::string(value) + "\" exec \"$0\"";

    expect_truth_of_all(
        run_traced({"/bin/sh", "-c", script, victim("other_allocator"), GetParam().path}), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , OtherAllocator,
    testing::Values(Allocator{"jemalloc", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"},
                    Allocator{"mimalloc", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2"},
                    Allocator{"tcmalloc", "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"}),
    [](const auto& named) { return std::string(named.param.name); });

class OwnAllocator : public testing::TestWithParam<Mode> {};

TEST_P(OwnAllocator, ServesTheProgramAndTheFileSaysThatItsHeapIsNotThere) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.sample_every_bytes = 4096;

  const TracedRun run = run_victim("own_allocator", ask);

  ASSERT_EQ(run.status, 0) << run.errors;
  ASSERT_EQ(run.files.size(), 1U);
  const TracedFile& file = run.files[0];
  EXPECT_THAT(file.snapshot.reason, HasSubstr("the program has its own allocator"));
  for (const TracedSite& site : file.sites) {
    EXPECT_NE(site.kind, AllocationKind::kHeap);
  }
  const HeldTruth held = parse_truth(run.output).at(0).held.at(0);
  EXPECT_EQ(file.sum_of(held.function, held.kind).live_bytes,
            GetParam() == Mode::kDormant ? 0 : held.live_bytes);
}

INSTANTIATE_TEST_SUITE_P(, OwnAllocator,
                         testing::Values(Mode::kDormant, Mode::kSampled, Mode::kExact),
                         [](const auto& named) { return std::string(wire::name_of(named.param)); });

TEST(Victims, OnlyAnAllocatorOfItsOwnIsSaidToBeOne) {
  for (const char* const name : {"leak_linear", "fixed_place"}) {
    EXPECT_EQ(run_victim(name, {}).files.at(0).snapshot.reason, "") << name;
  }
}

// However often, and in whatever order: only frames of the libraries themselves are told apart.
TEST(Victims, LibrariesThatComeAndGoDoNotMakeTheFileGrow) {
  constexpr int kLibraries = 10;
  const TempTree folder;
  std::vector<std::string> few = {"20"};
  std::vector<std::string> many = {"3000"};
  for (int i = 0; i < kLibraries; ++i) {
    const std::string copy = folder.path("plugin" + std::to_string(i) + ".so");
    std::filesystem::copy_file(victim_path("libtraced_plugin_a.so"), copy);
    few.push_back(copy);
    many.push_back(copy);
  }
  TraceAsk ask;
  ask.names = false;
  const TracedRun short_run = run_victim("plugin_shuffle", ask, few);
  const TracedRun long_run = run_victim("plugin_shuffle", ask, many);

  ASSERT_EQ(short_run.status, 0) << short_run.errors;
  ASSERT_EQ(long_run.status, 0) << long_run.errors;
  // A few stacks for each library at each place that it was at.
  constexpr std::uint64_t kPairs = kLibraries * kLibraries;
  EXPECT_LT(long_run.files.at(0).sites.size(), short_run.files.at(0).sites.size() + 30 * kPairs);
  EXPECT_LT(long_run.files[0].snapshot.file_bytes,
            short_run.files[0].snapshot.file_bytes + (1U << 20U));
}

TEST(Victims, TheFolderMayHaveAnyName) {
  const TempTree folder;
  folder.make_directory("a b:c\n\"d'");
  TraceAsk ask;
  ask.directory = folder.path("a b:c\n\"d'");

  expect_truth_of_all(run_victim("vfork_exec", ask), 0);
}

}  // namespace
}  // namespace tidemark::tests
