// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/hash_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {
namespace {

// As the site table makes them.
std::uint64_t hash_of(std::uint64_t i) { return wire::mix(i + 1) | 1U; }

class HashIndexTest : public testing::Test {
 protected:
  void TearDown() override { index_->clear(); }
  HashIndex& index() { return *index_; }

 private:
  std::unique_ptr<HashIndex> index_ = std::make_unique<HashIndex>();
};

TEST_F(HashIndexTest, IsEmptyAtFirst) {
  EXPECT_EQ(index().find(1), HashIndex::kNone);
  EXPECT_EQ(index().bytes(), 0U);
}

TEST_F(HashIndexTest, FindsEveryNumberWhileItGrows) {
  constexpr std::uint32_t kEntries = 200'000;

  for (std::uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_TRUE(index().add(hash_of(i), i));
    ASSERT_EQ(index().find(hash_of(i)), i);
    ASSERT_EQ(index().find(hash_of(i / 2)), i / 2);
  }

  for (std::uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_EQ(index().find(hash_of(i)), i) << i;
  }
  EXPECT_EQ(index().find(hash_of(kEntries)), HashIndex::kNone);
}

TEST_F(HashIndexTest, VisitsAllHashes) {
  std::set<std::uint64_t> added;
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    added.insert(hash_of(i));
    index().add(hash_of(i), i);
  }

  std::set<std::uint64_t> told;
  index().for_each_hash([&](std::uint64_t hash) { told.insert(hash); });

  EXPECT_EQ(told, added);
}

TEST_F(HashIndexTest, FreesOldLevels) {
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    index().add(hash_of(i), i);
  }

  // 12 bytes an entry; the newest level at most twice as large as needed, the one before it half of
  // that, filled to a half at least.
  EXPECT_LT(index().bytes(), 100'000U * 12 * 6);
}

TEST_F(HashIndexTest, RemovesAnEntry) {
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    index().add(hash_of(i), i);
  }

  index().remove(hash_of(500) & 0xffff'ffff, 500);
  index().remove(hash_of(600), 7);  // has another number

  EXPECT_EQ(index().find(hash_of(500)), HashIndex::kNone);
  EXPECT_EQ(index().find(hash_of(600)), 600U);
}

TEST_F(HashIndexTest, DoesNotGrowByEntriesThatWereRemoved) {
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(index().add(hash_of(i), i % 100));
    ASSERT_EQ(index().find(hash_of(i)), i % 100);
    if (i >= 50) {
      index().remove(hash_of(i - 50), (i - 50) % 100);
    }
  }

  EXPECT_EQ(index().bytes(), 64U * 64);  // the first level
}

TEST_F(HashIndexTest, DoesNotMoveWhatWasRemovedToANewLevel) {
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    index().add(hash_of(i), i);
    if (i % 2 == 0) {
      index().remove(hash_of(i), i);
    }
  }

  for (std::uint32_t i = 0; i < 100'000; ++i) {
    ASSERT_EQ(index().find(hash_of(i)), i % 2 == 0 ? HashIndex::kNone : i) << i;
  }
}

TEST_F(HashIndexTest, AHashHasTheNumberThatItWasGivenLast) {
  index().add(hash_of(1), 10);
  index().add(hash_of(1), 20);

  EXPECT_EQ(index().find(hash_of(1)), 20U);
}

TEST_F(HashIndexTest, IsEmptyWhenCleared) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    index().add(hash_of(i), i);
  }

  index().clear();

  EXPECT_EQ(index().find(hash_of(3)), HashIndex::kNone);
  EXPECT_EQ(index().bytes(), 0U);
  ASSERT_TRUE(index().add(hash_of(3), 4));
  EXPECT_EQ(index().find(hash_of(3)), 4U);
}

// Racing threads may lose an entry or have it twice, but never get a number of something else.
TEST_F(HashIndexTest, NeverGivesAnotherThingsNumberToRacingThreads) {
  constexpr std::uint32_t kEntries = 20'000;
  std::atomic<std::uint32_t> wrong = 0;
  std::atomic<std::uint32_t> missed = 0;

  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t n = 0; n < kEntries; ++n) {
        const std::uint32_t i = (n + t * 777) % kEntries;
        const std::uint32_t found = index().find(hash_of(i));
        if (found == HashIndex::kNone) {
          index().add(hash_of(i), i * 8 + t);
        } else if (found / 8 != i) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::uint32_t i = 0; i < kEntries; ++i) {
    const std::uint32_t found = index().find(hash_of(i));
    missed += found == HashIndex::kNone ? 1U : 0U;
    wrong += found != HashIndex::kNone && found / 8 != i ? 1U : 0U;
  }

  EXPECT_EQ(wrong, 0U);
  EXPECT_LT(missed, kEntries / 100);
}

}  // namespace
}  // namespace tidemark::tracer
