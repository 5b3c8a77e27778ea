// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/collector_thread.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <memory>

#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::collect {
namespace {

using tests::trace_sample;

constexpr ProcessKey kTrainer = {101, 5'000};
constexpr ProcessKey kWorker = {102, 6'000};

AllocationFacts look_at(const ProcessKey& key, bool has_ended) {
  AllocationFacts facts;
  facts.traces.push_back(trace_sample(key, 1.0));
  facts.traces.back().has_ended = has_ended;
  SiteRecord site;
  site.key = key;
  facts.sites.push_back(site);
  return facts;
}

TEST(MergedLooks, HaveTheLaterOneOfAProcess) {
  AllocationFacts waiting = look_at(kTrainer, false);
  AllocationFacts later = look_at(kTrainer, true);

  EXPECT_TRUE(merge_facts(waiting, later));

  ASSERT_EQ(waiting.traces.size(), 1U);
  EXPECT_TRUE(waiting.traces[0].has_ended);
  EXPECT_EQ(waiting.sites.size(), 2U);
}

TEST(MergedLooks, DoNotMixTheImagesOfAProcess) {
  AllocationFacts waiting = look_at(kTrainer, true);
  AllocationFacts after_exec = look_at(kTrainer, false);
  AllocationFacts of_another = look_at(kWorker, false);

  EXPECT_FALSE(merge_facts(waiting, after_exec));
  EXPECT_TRUE(merge_facts(waiting, of_another));

  EXPECT_EQ(waiting.traces.size(), 2U);
  EXPECT_EQ(after_exec.traces.size(), 1U);
}

// Whether a block of this size goes back to the kernel when it is freed.
bool is_mapped(std::size_t bytes) {
  const std::size_t before = ::mallinfo2().hblks;
  const std::unique_ptr<char[]> block(new char[bytes]);
  volatile char* const use = block.get();
  use[0] = 1;
  return ::mallinfo2().hblks > before;
}

TEST(ProfileWorker, GivesBackLargeBlocksHoweverOftenTheyCome) {
  if (!is_mapped(std::size_t{64} << 20U)) {
    GTEST_SKIP() << "a sanitizer has its own malloc";
  }
  constexpr std::size_t kBytes = std::size_t{8} << 20U;
  const tests::TempTree folder;
  reader::CollectorOptions collecting;
  collecting.directory = folder.path();
  ProfileWorker worker(collecting, kNsPerSecond);

  worker.start();

  EXPECT_TRUE(is_mapped(kBytes));
  EXPECT_TRUE(is_mapped(kBytes)) << "it is kept for the next one";
  worker.finish(0, /*put_to_sleep=*/false);
}

}  // namespace
}  // namespace tidemark::collect
