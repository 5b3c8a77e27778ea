// SPDX-License-Identifier: Apache-2.0
// Device and pinned memory, by stand-ins for the CUDA runtime: each counts the calls that reach it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/integration/preload/held_truth.h"
#include "tests/support/paths.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

class Cuda : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Cuda, MemoryIsRecordedAndTheRuntimeOfTheCallerIsCalled) {
  std::vector<std::string> argv = {victim_path("traced_cuda_user")};
  argv.insert(argv.end(), GetParam().begin(), GetParam().end());

  const TracedRun run = run_traced(argv);

  ASSERT_EQ(run.status, 0) << run.output << run.errors;
  const auto truths = parse_truth(run.output);
  const auto names = static_cast<std::size_t>(
      std::ranges::count_if(GetParam(), [](const auto& each) { return each != "close"; }));
  ASSERT_EQ(truths.size(), names);  // all of one process
  const TracedFile* const file = run.of_pid(truths[0].pid);
  ASSERT_NE(file, nullptr);
  const auto times = static_cast<double>(truths.size());
  for (const HeldTruth& held : truths[0].held) {
    const TracedSite found = file->sum_of(held.function, held.kind);
    EXPECT_EQ(found.live_bytes, times * held.live_bytes) << held.function;
    EXPECT_EQ(found.live_blocks, times * held.live_blocks) << held.function;
  }
}

// Once for each place that calls one of them, and not again until a library is unloaded.
TEST_P(Cuda, RealFunctionsAreLookedForOnce) {
  constexpr int kPlaces = 10;
  for (const wire::Mode mode : {wire::Mode::kDormant, wire::Mode::kExact}) {
    std::vector<std::string> argv = {victim_path("traced_cuda_user")};
    argv.insert(argv.end(), GetParam().begin(), GetParam().end());
    TraceAsk ask;
    ask.mode = mode;
    ask.names = false;

    const TracedRun run = run_traced(argv, ask);

    ASSERT_EQ(run.status, 0) << run.output << run.errors;
    const auto names =
        std::ranges::count_if(GetParam(), [](const auto& n) { return n != "close"; });
    EXPECT_EQ(run.errors, std::to_string(kPlaces * names) + " questions\n");
  }
}

INSTANTIATE_TEST_SUITE_P(, Cuda,
                         testing::Values(std::vector<std::string>{"installed"},
                                         std::vector<std::string>{"hashed"},
                                         std::vector<std::string>{"installed", "hashed"},
                                         std::vector<std::string>{"installed", "close", "hashed"}),
                         [](const auto& named) {
                           std::string name;
                           for (const std::string& each : named.param) {
                             name += each;
                           }
                           return name;
                         });

}  // namespace
}  // namespace tidemark::tests
