// SPDX-License-Identifier: Apache-2.0
// Hooks that a signal interrupts, and that are left or doubled there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/preload/held_truth.h"
#include "tests/support/paths.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using wire::Mode;

class Interrupted : public testing::TestWithParam<Mode> {
 protected:
  static TracedRun run(const std::string& victim, const std::vector<std::string>& what = {}) {
    TraceAsk ask;
    ask.mode = GetParam();
    ask.names = what.empty();
    std::vector<std::string> argv = {victim_path("traced_" + victim)};
    argv.insert(argv.end(), what.begin(), what.end());
    return run_traced(argv, ask);
  }
};

TEST_P(Interrupted, AChildForkedInsideAHookGoesOn) {
  for (const char* const what : {"malloc", "realloc", "mremap"}) {
    const TracedRun run = Interrupted::run("handler_forks", {what});

    EXPECT_EQ(run.status, 0) << what << ": " << run.output;
    EXPECT_EQ(run.errors, "");
  }
}

// No handler of pthread_atfork runs for any of these.
TEST_P(Interrupted, AChildForkedInsideAHookByTheKernelAloneGoesOn) {
  for (const char* const how : {"_Fork", "syscall", "clone", "clone3"}) {
    const TracedRun run = Interrupted::run("handler_forks", {"mmap", how});

    EXPECT_EQ(run.status, 0) << how << ": " << run.output;
    EXPECT_EQ(run.errors, "");
  }
}

TEST_P(Interrupted, AChildForkedOnAStackFurtherOutGoesOn) {
  for (const char* const how : {"stack_further_out", "stack_above"}) {
    const TracedRun run = Interrupted::run("handler_forks", {"mmap", how});

    EXPECT_EQ(run.status, 0) << how << ": " << run.output;
    EXPECT_EQ(run.errors, "");
  }
}

TEST_P(Interrupted, AHandlerOnASmallStackMayExec) {
  EXPECT_EQ(Interrupted::run("handler_execs").status, 7);
}

TEST_P(Interrupted, MappingsAreSeenAfterAHookWasLeftByALongJump) {
  const TracedRun run = Interrupted::run("handler_jumps");

  ASSERT_EQ(run.status, 0) << run.output << run.errors;
  const auto truths = parse_truth(run.output);
  ASSERT_EQ(truths.size(), 1U);
  const TracedFile* const file = run.of_pid(truths[0].pid);
  ASSERT_NE(file, nullptr);
  const HeldTruth& held = truths[0].held.at(0);
  EXPECT_EQ(file->sum_of(held.function, held.kind).live_bytes, held.live_bytes);
  EXPECT_EQ(file->snapshot.losses.ranges_full, 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, Interrupted, testing::Values(Mode::kSampled, Mode::kExact));

}  // namespace
}  // namespace tidemark::tests
