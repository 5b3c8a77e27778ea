// SPDX-License-Identifier: Apache-2.0
// Libraries beside the tracer that hook what it hooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/wire/trace_request.h"
#include "tests/integration/preload/held_truth.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::Mode;

class MapSpy : public testing::TestWithParam<Mode> {
 protected:
  static inline const std::string kSpy = victim_path("libtraced_map_spy.so");
  static inline const std::string kVictim = victim_path("traced_mmap_only");

  static std::string seen_without_tracer() {
    Subprocess plain({"/usr/bin/env", "LD_PRELOAD=" + kSpy, kVictim});
    EXPECT_EQ(plain.wait(), 0);
    return plain.errors();
  }
};

TEST_P(MapSpy, SeesAllMappingsBehindTheTracer) {
  TraceAsk ask;
  ask.mode = GetParam();
  ask.also_preload = {kSpy};
  const std::string plain = seen_without_tracer();
  ASSERT_THAT(plain, HasSubstr("seen: "));
  ASSERT_THAT(plain, Not(HasSubstr(" 0 ")));

  const TracedRun run = run_traced({kVictim}, ask);

  ASSERT_EQ(run.status, 0);
  EXPECT_EQ(run.errors, plain);
  const auto truths = parse_truth(run.output);
  ASSERT_EQ(truths.size(), 1U);
  const TracedFile* const file = run.of_pid(truths[0].pid);
  ASSERT_NE(file, nullptr);
  if (GetParam() == Mode::kDormant) {
    return;
  }
  for (const HeldTruth& held : truths[0].held) {
    EXPECT_EQ(file->sum_of(held.function, held.kind).live_bytes, held.live_bytes) << held.function;
  }
}

INSTANTIATE_TEST_SUITE_P(, MapSpy, testing::Values(Mode::kDormant, Mode::kSampled, Mode::kExact),
                         [](const auto& named) { return wire::name_of(named.param); });

}  // namespace
}  // namespace tidemark::tests
