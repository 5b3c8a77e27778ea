// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/site_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "profiler/tracer/python/interpreter.h"
#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint32_t kManyStacks = 100'000;
constexpr SiteCount kOneBlock = {100, wire::kBlockUnit};

// A stack of four frames, told by a number. Its frames lie in no module.
class Stack {
 public:
  explicit Stack(std::uint64_t which)
      : value_{0x1000 + which, 0x2000 + which / 3, 0x3000 + which / 9, 0x4000} {
    std::uint64_t hash = 1;
    for (std::size_t i = value_.size(); i-- > 0;) {
      hash = wire::mix(hash ^ value_[i]);
      hash_[i] = hash;
    }
  }
  StackView view() const {
    StackView view;
    view.depth = static_cast<std::uint32_t>(value_.size());
    view.value = value_.data();
    view.hash = hash_.data();
    return view;
  }
  std::vector<std::uint64_t> values() const { return {value_.begin(), value_.end()}; }

 private:
  std::array<std::uint64_t, 4> value_;
  std::array<std::uint64_t, 4> hash_{};
};

class SiteTableTest : public testing::Test {
 protected:
  SiteTableTest() {
    modules_->bind(store(), *python_);
    codes_->bind(store(), *python_);
    sites_->bind(store(), *modules_, *codes_);
    std::uint64_t root = 0;
    store().take(Table::kNodes, 1, root);
  }
  ~SiteTableTest() override { sites_->clear(); }

  SiteRef allocate(std::uint64_t which, LastNodes& last, SiteCount count = kOneBlock) {
    bool is_new = false;
    return sites_->count_alloc(Stack(which).view(), last, {wire::SiteKind::kHeap, 0}, count,
                               is_new);
  }
  SiteRef allocate(std::uint64_t which, SiteCount count = kOneBlock) {
    return allocate(which, *last_, count);
  }
  // As SiteRecorder::count_free().
  void release(SiteRef ref, SiteCount count = kOneBlock) {
    wire::Site& counted = site(ref);
    counted.free_bytes.fetch_add(count.bytes);
    counted.free_block_units.fetch_add(count.block_units);
  }
  // So many other stacks allocate a block and free it.
  void pass_through(std::uint32_t first, std::uint32_t stacks) {
    for (std::uint32_t i = 0; i < stacks; ++i) {
      release(allocate(first + i));
    }
  }
  std::vector<std::uint64_t> path(std::uint32_t node) {
    std::vector<std::uint64_t> values;
    while (node != 0 && values.size() < 100) {
      const auto* const frame = store().item<wire::StackNode>(Table::kNodes, node);
      values.push_back(frame->value);
      node = frame->parent;
    }
    return values;
  }
  wire::Site& site(SiteRef ref) { return *sites_->site(ref.number); }
  SiteTable& sites() { return *sites_; }
  TraceStore& store() { return folder_.store(); }
  const wire::RecycledSites& recycled() { return store().header()->recycled; }

 private:
  StoreFolder folder_;
  std::unique_ptr<PythonInterpreter> python_ = std::make_unique<PythonInterpreter>();
  std::unique_ptr<ModuleTable> modules_ = std::make_unique<ModuleTable>();
  std::unique_ptr<PythonCodeTable> codes_ = std::make_unique<PythonCodeTable>();
  std::unique_ptr<SiteTable> sites_ = std::make_unique<SiteTable>();
  std::unique_ptr<LastNodes> last_ = std::make_unique<LastNodes>();
};

TEST_F(SiteTableTest, AStackHasOneSite) {
  const SiteRef first = allocate(1);
  const SiteRef other = allocate(2);
  const SiteRef again = allocate(1);

  EXPECT_EQ(again.number, first.number);
  EXPECT_NE(other.number, first.number);
  EXPECT_EQ(site(first).alloc_bytes, 200U);
  EXPECT_EQ(site(first).alloc_block_units, 2 * wire::kBlockUnit);
  EXPECT_EQ(site(first).peak_live_bytes, 200U);
  EXPECT_EQ(path(site(first).node), Stack(1).values());
}

// Of a thread that runs no Python: behind its own frames come those of the one that started it.
TEST_F(SiteTableTest, AStackGoesOnWhereItsThreadWasStarted) {
  bool is_new = false;
  LastNodes last;
  const SiteRef started = sites().count_alloc(
      Stack(7).view(), last, {wire::SiteKind::kThreadStart, 0}, {0, wire::kBlockUnit}, is_new);
  const std::uint32_t origin = site(started).node;
  StackTrace native;
  const std::uint64_t frames[] = {0x51, 0x52};
  assign_frames(native, frames, 2);
  MixedStack mixed;
  const StackView view = mixed.add_origin(native, nullptr, origin);

  const SiteRef first =
      sites().count_alloc(view, last, {wire::SiteKind::kHeap, 0}, kOneBlock, is_new);
  release(first);
  pass_through(100, kManyStacks);  // its site and nodes are used again
  const SiteRef again =
      sites().count_alloc(view, last, {wire::SiteKind::kHeap, 0}, kOneBlock, is_new);

  std::vector<std::uint64_t> expected = {0x51, 0x52, 0};
  for (const std::uint64_t value : Stack(7).values()) {
    expected.push_back(value);
  }
  EXPECT_EQ(path(site(again).node), expected);
  EXPECT_EQ(path(origin), Stack(7).values());
  const auto* const start = store().item<wire::StackNode>(
      Table::kNodes,
      store()
          .item<wire::StackNode>(
              Table::kNodes, store().item<wire::StackNode>(Table::kNodes, site(again).node)->parent)
          ->parent);
  EXPECT_EQ(start->kind, static_cast<std::uint16_t>(wire::NodeKind::kThreadStart));
}

TEST_F(SiteTableTest, ASmallProgramKeepsAllSites) {
  pass_through(0, 4'000);

  EXPECT_EQ(store().used(Table::kSites), 4'000U);
  EXPECT_EQ(recycled().sites, 0U);
}

TEST_F(SiteTableTest, SitesThatHaveFreedAllAreUsedAgain) {
  pass_through(0, kManyStacks);

  EXPECT_LE(store().used(Table::kSites), 4'100U);
  EXPECT_LE(store().used(Table::kNodes), 4'100U * 4);
}

TEST_F(SiteTableTest, WhatRecycledSitesCountedIsNotLost) {
  pass_through(0, kManyStacks);

  std::uint64_t bytes = recycled().bytes;
  std::uint64_t units = recycled().block_units;
  std::uint64_t sites = recycled().sites;
  for (std::uint32_t i = 0; i < store().used(Table::kSites); ++i) {
    bytes += this->sites().site(i)->alloc_bytes;
    units += this->sites().site(i)->alloc_block_units;
    ++sites;
  }
  EXPECT_EQ(bytes, kManyStacks * kOneBlock.bytes);
  EXPECT_EQ(units, kManyStacks * kOneBlock.block_units);
  EXPECT_EQ(sites, kManyStacks);
}

TEST_F(SiteTableTest, SitesThatHoldABlockStay) {
  std::vector<SiteRef> held;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    held.push_back(allocate(i));
    pass_through(1'000'000 + i * 10, 10);
  }

  for (std::uint32_t i = 0; i < held.size(); ++i) {
    ASSERT_EQ(site(held[i]).ready, held[i].ready) << i;
    ASSERT_EQ(site(held[i]).alloc_bytes, 100U) << i;
    ASSERT_EQ(path(site(held[i]).node), Stack(i).values()) << i;
    ASSERT_EQ(allocate(i).number, held[i].number) << i;
  }
}

TEST_F(SiteTableTest, SitesThatCameOftenOrWereLargeStay) {
  constexpr SiteCount kLarge = {64 << 10U, wire::kBlockUnit};
  const SiteRef large = allocate(1, kLarge);
  release(large, kLarge);
  SiteRef often;
  for (int i = 0; i < 8; ++i) {
    often = allocate(2);
    release(often);
  }
  const SiteRef rare = allocate(3);
  release(rare);
  bool is_new = false;
  LastNodes last;
  const SiteRef mapped = sites().count_alloc(Stack(4).view(), last,
                                             {wire::SiteKind::kAnonymousMap, 0}, kOneBlock, is_new);
  release(mapped);

  pass_through(1'000'000, kManyStacks);

  EXPECT_EQ(site(large).ready, large.ready);
  EXPECT_EQ(site(often).ready, often.ready);
  EXPECT_EQ(site(mapped).ready, mapped.ready);
  EXPECT_NE(site(rare).ready, rare.ready);
}

TEST_F(SiteTableTest, ASiteIsNotTakenForTheOneThatItWas) {
  const SiteRef old = allocate(1);
  release(old);
  ASSERT_TRUE(sites().count_alloc(old, kOneBlock));
  release(old);
  pass_through(1'000'000, kManyStacks);
  ASSERT_NE(site(old).ready, old.ready);
  const std::uint64_t before = site(old).alloc_block_units;

  EXPECT_FALSE(sites().count_alloc(old, kOneBlock));

  EXPECT_EQ(site(old).alloc_block_units, before);
  const SiteRef again = allocate(1);
  EXPECT_EQ(path(site(again).node), Stack(1).values());
  EXPECT_EQ(site(again).alloc_block_units, wire::kBlockUnit);
}

TEST_F(SiteTableTest, ASiteIsUsedAgainWhereTheFileCannotGrow) {
  pass_through(0, 5'000);
  store().header()->control.most_file_bytes = 1;  // no more

  pass_through(1'000'000, kManyStacks);

  EXPECT_EQ(allocate(3'000'000).ready == 0, false);
}

// Threads come to the same stacks while sites are recycled: no block is counted on the site of
// another stack, and none is lost.
TEST_F(SiteTableTest, RacingThreadsCountOnTheSitesOfTheirStacks) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kRounds = 60'000;
  constexpr std::uint32_t kStacks = 20'000;
  std::atomic<std::uint32_t> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto last = std::make_unique<LastNodes>();
      std::array<SiteRef, 16> held{};
      for (std::uint32_t i = 0; i < kRounds; ++i) {
        SiteRef& slot = held[i % held.size()];
        if (slot.ready != 0) {
          release(slot);
        }
        const std::uint64_t which = wire::mix(i * kThreads + t) % kStacks;
        slot = allocate(which, *last);
        wrong += slot.ready == 0 || path(site(slot).node) != Stack(which).values() ? 1U : 0U;
      }
      for (const SiteRef& ref : held) {
        release(ref);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(recycled().sites, 1'000U);
  std::uint64_t units = recycled().block_units;
  for (std::uint32_t i = 0; i < store().used(Table::kSites); ++i) {
    units += sites().site(i)->alloc_block_units;
    EXPECT_EQ(sites().site(i)->alloc_block_units, sites().site(i)->free_block_units) << i;
  }
  EXPECT_EQ(units, kThreads * kRounds * kOneBlock.block_units);
}

}  // namespace
}  // namespace tidemark::tracer
