// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/collector_thread.h"

#include <gtest/gtest.h>

#include "tests/support/sample_run.h"

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

}  // namespace
}  // namespace tidemark::collect
