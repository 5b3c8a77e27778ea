// SPDX-License-Identifier: Apache-2.0
// Looks at a real Python that runs all the time, while its threads are held.
#include <unistd.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "profiler/heap/heap_watch.h"
#include "tests/support/subprocess.h"

namespace tidemark::heap {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kBusy = R"(
kept = []
print("ready", flush=True)
while True:
    if len(kept) < 20000:
        kept.append([len(kept)] * 50)
)";

class HeldLookTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
    job_.emplace(std::vector<std::string>{kPython, "-c", kBusy});
    job_->read_until("ready");
  }
  HeapFacts look(const HeapOptions& options) const {
    HeapWatch watch({job_->pid(), 0}, options);
    auto facts = watch.look(1.0);
    EXPECT_TRUE(facts) << facts.error().what;
    return facts ? *facts : HeapFacts{{}, {HeapFacts::OfProcess{}}};
  }

  std::optional<tests::Subprocess> job_;
};

TEST_F(HeldLookTest, HoldsAProcessWhoseObjectsAreReadInTime) {
  HeapOptions options;
  options.frozen = FrozenUse::kNever;
  options.most_seconds = 60.0;
  options.most_held_seconds = 60.0;

  const HeapFacts facts = look(options);

  const HeapLook& found = facts.looks.front().look;
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.reading, HeapReading::kStopped);
  EXPECT_GT(found.objects, 1000U);
  EXPECT_GT(found.paused_s, 0.0);
}

TEST_F(HeldLookTest, DoesNotHoldAProcessForLongerThanItMay) {
  HeapOptions options;
  options.frozen = FrozenUse::kNever;
  options.most_held_seconds = 1e-6;

  const HeapFacts facts = look(options);

  const HeapLook& found = facts.looks.front().look;
  EXPECT_EQ(found.problem, "its threads would have to be held for more than 0 ms");
  EXPECT_EQ(found.objects, 0U);
  EXPECT_EQ(found.paused_s, 0.0);
}

}  // namespace
}  // namespace tidemark::heap
