// SPDX-License-Identifier: Apache-2.0
// Looks at a real Python that runs all the time and is never held or copied.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/heap_watch.h"
#include "tests/support/subprocess.h"

namespace tidemark::heap {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
// Keeps 16 KiB for each line of its input, and makes objects that only refer to each other, which
// nobody frees, as fast as it can.
constexpr const char* kBusy = R"(
import gc, select, sys
gc.disable()
kept = {}
others = [bytearray(1000) for _ in range(20000)]
print("ready", flush=True)
number = 0
while True:
    cycle = []
    cycle.append(cycle)
    number += 1
    if number % 1000 == 0 and select.select([0], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        for _ in range(2000):
            kept[len(kept)] = bytearray(16 << 10)
        print("kept", len(kept), flush=True)
)";

TEST(OnlyReads, FindsTheOwnerOfABusyProcessWithoutTouchingIt) {
  if (::access(kPython, X_OK) != 0) {
    GTEST_SKIP() << "there is no Python";
  }
  tests::Subprocess job({kPython, "-c", kBusy});
  job.read_until("ready");
  HeapOptions options;
  options.only_reads = true;
  options.most_seconds = 60.0;
  HeapWatch watch({job.pid(), 0}, options);

  std::vector<OwnerRecord> owners;
  HeapFacts::OfProcess last;
  for (int look = 0; look < 3; ++look) {
    if (look > 0) {
      job.send("more\n");
      job.read_until("kept " + std::to_string(2000 * look));
    }
    auto facts = watch.look(look);
    ASSERT_TRUE(facts) << facts.error().what;
    owners.insert(owners.end(), facts->owners.begin(), facts->owners.end());
    last = facts->looks.front();
    EXPECT_EQ(last.look.problem, "");
    EXPECT_EQ(last.look.reading, HeapReading::kRunning);
    EXPECT_EQ(last.look.detour, "it ran while it was read");
    EXPECT_EQ(last.look.paused_s, 0.0);
  }

  const auto first =
      std::max_element(last.owners.begin(), last.owners.end(),
                       [](const auto& a, const auto& b) { return a.grown_bytes < b.grown_bytes; });
  ASSERT_NE(first, last.owners.end());
  EXPECT_EQ(owners.at(first->owner - 1).path, "__main__.kept");
  EXPECT_NEAR(static_cast<double>(first->grown_bytes), 4000.0 * 16 * 1024, 4e6);
  // What was allocated while it was read is no garbage, and what is was not looked for.
  EXPECT_TRUE(std::none_of(owners.begin(), owners.end(), [](const OwnerRecord& owner) {
    return owner.kind == OwnerKind::kGarbage || owner.kind == OwnerKind::kNativeHold;
  }));
}

}  // namespace
}  // namespace tidemark::heap
