// SPDX-License-Identifier: Apache-2.0
#include "monitor/footprint.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::monitor {
namespace {

constexpr ProcessKey kParent{10, 100};

ProcessKey worker(int i) { return {20 + i, 200}; }

CheapMemory anon(std::uint64_t mib) { return {mib * kMiB, 0, 0}; }

PssFields share(std::uint64_t anon_mib, std::uint64_t private_mib, std::uint64_t shmem_mib = 0) {
  PssFields fields;
  fields.pss_anon_bytes = anon_mib * kMiB;
  fields.pss_shmem_bytes = shmem_mib * kMiB;
  fields.private_dirty_bytes = private_mib * kMiB;
  return fields;
}

std::uint64_t tree_mib(const FootprintLedger& ledger) { return ledger.totals().tree.bytes / kMiB; }

// A parent of 400 MiB, read once.
FootprintLedger ledger_with_parent() {
  FootprintLedger ledger;
  ledger.add(kParent, Role::kTrainer, std::nullopt);
  ledger.set_cheap(kParent, anon(400));
  ledger.set_share(kParent, share(400, 400), 1);
  ledger.commit();
  return ledger;
}

void fork_workers(FootprintLedger& ledger, int count) {
  for (int i = 0; i < count; ++i) {
    ledger.add(worker(i), Role::kDataloaderWorker, kParent);
    ledger.set_cheap(worker(i), anon(400));  // the kernel says: all 400 are mine too
  }
}

void read_family(FootprintLedger& ledger, int workers) {
  const std::uint64_t each = 400 / (static_cast<std::uint64_t>(workers) + 1);
  ledger.set_share(kParent, share(each, 0), 2);
  ledger.commit();
  for (int i = 0; i < workers; ++i) {
    ledger.set_share(worker(i), share(each, 0), 2);
    ledger.commit();
  }
}

TEST(Footprint, AProcessOfItsOwnCountsInFullBeforeItIsRead) {
  FootprintLedger ledger;
  ledger.add(kParent, Role::kTrainer, std::nullopt);
  EXPECT_EQ(tree_mib(ledger), 0U);

  ledger.set_cheap(kParent, {300 * kMiB, 50 * kMiB, 7 * kMiB});

  EXPECT_EQ(tree_mib(ledger), 357U);
}

TEST(Footprint, CarriesTheShareForwardByTheCheapChange) {
  auto ledger = ledger_with_parent();

  ledger.set_cheap(kParent, anon(450));

  EXPECT_EQ(tree_mib(ledger), 450U);
}

TEST(Footprint, FourForkedWorkersAddNothing) {
  auto ledger = ledger_with_parent();

  fork_workers(ledger, 4);

  EXPECT_EQ(tree_mib(ledger), 400U);
  EXPECT_TRUE(ledger.totals().tree.held);
}

TEST(Footprint, AHalfReadFamilyDoesNotMoveTheSum) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 4);

  ledger.set_share(kParent, share(80, 0), 2);

  ledger.commit();  // a fifth of each page
  ledger.set_share(worker(0), share(80, 0), 2);
  ledger.commit();

  EXPECT_EQ(tree_mib(ledger), 400U) << "two of five shares alone would be 160";
}

TEST(Footprint, AFullyReadFamilySettles) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 4);

  read_family(ledger, 4);

  EXPECT_EQ(tree_mib(ledger), 400U);
  EXPECT_FALSE(ledger.totals().tree.held);
}

std::uint64_t role_mib(const FootprintLedger& ledger, Role role) {
  return ledger.totals().roles[static_cast<std::size_t>(role)].bytes / kMiB;
}

TEST(Footprint, TheTrainersNumberDoesNotMoveWithItsWorkers) {
  auto ledger = ledger_with_parent();
  ASSERT_EQ(role_mib(ledger, Role::kTrainer), 400U);

  fork_workers(ledger, 4);
  EXPECT_EQ(role_mib(ledger, Role::kTrainer), 400U);
  read_family(ledger, 4);
  EXPECT_EQ(role_mib(ledger, Role::kTrainer), 400U) << "its Pss alone would say 80";
  EXPECT_EQ(role_mib(ledger, Role::kDataloaderWorker), 0U);
  ledger.remove(worker(3));
  EXPECT_EQ(role_mib(ledger, Role::kTrainer), 400U);
}

TEST(Footprint, WorkersAreCreditedWithWhatTheyAdd) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);
  ledger.set_share(kParent, share(200, 0), 2);
  ledger.commit();
  ledger.set_share(worker(0), share(290, 90), 2);  // 200 shared by two, 90 of its own
  ledger.commit();

  EXPECT_EQ(role_mib(ledger, Role::kTrainer), 400U);
  EXPECT_EQ(role_mib(ledger, Role::kDataloaderWorker), 90U);
}

TEST(Footprint, TheTreeIsTheSumOfItsRoles) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 3);
  ledger.set_cheap(worker(2), {433 * kMiB, 17 * kMiB, 5 * kMiB});
  read_family(ledger, 3);

  const auto totals = ledger.totals();

  std::uint64_t sum = 0;
  for (const auto& role : totals.roles) {
    sum += role.bytes;
  }
  EXPECT_EQ(sum, totals.tree.bytes);
}

TEST(Footprint, DyingWorkersTakeNothingWithThemButWhatWasTheirs) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 4);
  read_family(ledger, 4);

  for (int i = 0; i < 4; ++i) {
    ledger.remove(worker(i));
    EXPECT_EQ(tree_mib(ledger), 400U) << "after the death of worker " << i;
  }

  ledger.set_share(kParent, share(400, 400), 3);

  ledger.commit();
  EXPECT_EQ(tree_mib(ledger), 400U);
  EXPECT_FALSE(ledger.totals().tree.held);
}

TEST(Footprint, PrivateMemoryOfTheDeadIsGoneAtOnce) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);
  ledger.set_share(kParent, share(200, 0), 2);
  ledger.commit();
  ledger.set_share(worker(0), share(300, 100), 2);
  ledger.commit();
  ASSERT_EQ(tree_mib(ledger), 500U);

  ledger.remove(worker(0));

  EXPECT_EQ(tree_mib(ledger), 400U);
}

TEST(Footprint, GrowthShowsWhileTheFamilyIsStale) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 2);

  ledger.set_cheap(kParent, anon(430));
  ledger.set_cheap(worker(1), anon(405));

  EXPECT_EQ(tree_mib(ledger), 435U);
}

TEST(Footprint, CopyOnWriteIsSeenByTheNextReading) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);
  read_family(ledger, 1);

  ledger.set_share(kParent, share(400, 400), 3);

  ledger.commit();  // the worker has written to every page
  ledger.set_share(worker(0), share(400, 400), 3);
  ledger.commit();

  EXPECT_EQ(tree_mib(ledger), 800U);
}

TEST(Footprint, ExecLeavesTheFamilyAndItsPages) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);
  read_family(ledger, 1);

  ledger.exec(worker(0));
  ledger.set_cheap(worker(0), anon(5));

  EXPECT_EQ(tree_mib(ledger), 405U);
}

TEST(Footprint, ANeverReadAncestorLeavesItsPagesToItsChildren) {
  FootprintLedger ledger;
  ledger.add(kParent, Role::kTrainer, std::nullopt);
  ledger.give_up_share(kParent);
  ledger.set_cheap(kParent, anon(400));
  ledger.add(worker(0), Role::kDataloaderWorker, kParent);
  ledger.give_up_share(worker(0));
  ledger.set_cheap(worker(0), anon(400));
  ASSERT_EQ(tree_mib(ledger), 400U);

  ledger.remove(kParent);

  EXPECT_EQ(tree_mib(ledger), 400U);
  EXPECT_FALSE(ledger.totals().tree.held) << "without readings nothing is waited for";
}

// Four processes that are no family and map one segment of 100 MiB, all read.
FootprintLedger ledger_with_segment() {
  FootprintLedger ledger;
  for (int i = 0; i < 4; ++i) {
    ledger.add(worker(i), Role::kDataloaderWorker, std::nullopt);
    ledger.set_cheap(worker(i), {0, 100 * kMiB, 0});
  }
  for (int i = 0; i < 4; ++i) {
    ledger.set_share(worker(i), share(0, 0, 25), 1);
  }
  ledger.commit();
  return ledger;
}

TEST(Footprint, ASharedSegmentGrowsOnceNotPerProcess) {
  auto ledger = ledger_with_segment();
  ASSERT_EQ(tree_mib(ledger), 100U);

  for (int i = 0; i < 4; ++i) {
    ledger.set_cheap(worker(i), {0, 140 * kMiB, 0});
  }

  EXPECT_EQ(tree_mib(ledger), 140U);
}

TEST(Footprint, WhoMapsASegmentLaterAddsNothing) {
  auto ledger = ledger_with_segment();

  ledger.add(kParent, Role::kTrainer, std::nullopt);
  ledger.set_cheap(kParent, {5 * kMiB, 100 * kMiB, 0});

  EXPECT_EQ(tree_mib(ledger), 105U);
  EXPECT_TRUE(ledger.totals().tree.held);
}

TEST(Footprint, WhoFaultsInASegmentPageByPageAddsNothing) {
  auto ledger = ledger_with_segment();
  ledger.add(kParent, Role::kTrainer, std::nullopt);

  for (std::uint64_t mib = 10; mib <= 100; mib += 10) {
    ledger.set_cheap(kParent, {0, mib * kMiB, 0});
    EXPECT_EQ(tree_mib(ledger), 100U);
  }
}

TEST(Footprint, ASegmentStaysWithThoseWhoStillMapIt) {
  auto ledger = ledger_with_segment();

  for (int i = 0; i < 3; ++i) {
    ledger.remove(worker(i));
    EXPECT_EQ(tree_mib(ledger), 100U) << "after the end of worker " << i;
  }
  ledger.remove(worker(3));
  EXPECT_EQ(tree_mib(ledger), 0U);
}

TEST(Footprint, AWorkerThatFreesInheritedPagesDoesNotSubtractThem) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);

  ledger.set_cheap(worker(0), anon(20));

  EXPECT_EQ(tree_mib(ledger), 400U);
}

TEST(Footprint, NobodyWaitsForAMemberThatCannotBeRead) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 2);
  ledger.give_up_share(worker(1));

  ledger.set_share(kParent, share(133, 0), 2);

  ledger.commit();
  ledger.set_share(worker(0), share(133, 0), 2);
  ledger.commit();

  EXPECT_FALSE(ledger.totals().tree.held);
}

TEST(Footprint, ReadsStaleFamiliesFirstThenTheUnreadThenTheMostChanged) {
  auto ledger = ledger_with_parent();
  const ProcessKey quiet{50, 1};
  const ProcessKey changed{51, 1};
  const ProcessKey unread{52, 1};
  for (const ProcessKey& key : {quiet, changed, unread}) {
    ledger.add(key, Role::kOther, std::nullopt);
    ledger.set_cheap(key, anon(10));
  }
  ledger.set_share(quiet, share(10, 10), 1);
  ledger.commit();
  ledger.set_share(changed, share(10, 10), 5);
  ledger.commit();
  ledger.set_cheap(changed, anon(99));
  fork_workers(ledger, 1);

  EXPECT_THAT(ledger.reading_order(),
              testing::ElementsAre(worker(0), kParent, unread, changed, quiet));
}

TEST(Footprint, ASharerThatWeDoNotSeeCannotLowerTheSum) {
  auto ledger = ledger_with_parent();

  ledger.set_share(kParent, share(200, 0), 2);  // somebody was forked after our last look
  ledger.commit();

  EXPECT_EQ(tree_mib(ledger), 400U) << "it still maps all of it";
}

TEST(Footprint, AReadingDuringWhichSomebodyDiedDoesNotCount) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 1);
  ledger.set_share(worker(0), share(200, 0), 2);
  ledger.remove(worker(0));  // and so the parent's share doubles before it is read
  ledger.set_share(kParent, share(400, 400), 2);
  ledger.commit();

  EXPECT_EQ(tree_mib(ledger), 400U);
}

TEST(Footprint, AReadingBeforeABirthDoesNotCount) {
  auto ledger = ledger_with_parent();
  ledger.set_cheap(kParent, anon(500));
  ledger.set_share(kParent, share(250, 0), 2);  // already shared with the newborn

  fork_workers(ledger, 1);
  ledger.commit();

  EXPECT_EQ(tree_mib(ledger), 500U);
  EXPECT_TRUE(ledger.totals().tree.held) << "both are read again";
}

TEST(Footprint, AnEndedFamilyLeavesNothing) {
  auto ledger = ledger_with_parent();
  fork_workers(ledger, 2);
  read_family(ledger, 2);

  for (int i = 0; i < 2; ++i) {
    ledger.remove(worker(i));
  }
  ledger.remove(kParent);

  EXPECT_EQ(tree_mib(ledger), 0U);
}

// The example in sharing_ledger.h, line by line.
TEST(SharingLedger, DoesWhatItsHeaderSays) {
  const ProcessKey a = worker(0);
  const ProcessKey b = worker(1);
  SharingLedger ledger(1.0);
  const auto sum = [&] {
    std::uint64_t bytes = 0;
    ledger.for_each([&](const ProcessKey&, std::uint64_t of_one, bool) { bytes += of_one; });
    return bytes;
  };
  ledger.add(kParent, std::nullopt);
  ledger.set_mapped(kParent, 300);
  ledger.set_share(kParent, {300, 300, 1.0, 1});
  ledger.commit();
  EXPECT_EQ(sum(), 300U);

  for (const ProcessKey& forked : {a, b}) {
    ledger.add(forked, kParent);
    ledger.set_mapped(forked, 300);
  }
  EXPECT_EQ(sum(), 300U);
  EXPECT_TRUE(ledger.need(kParent).stale);
  for (const ProcessKey& member : {kParent, a, b}) {
    ledger.set_share(member, {100, 0, 1.0, 2});
  }
  ledger.commit();
  EXPECT_EQ(sum(), 300U);
  EXPECT_FALSE(ledger.need(kParent).stale);

  ledger.set_share(a, {120, 30, 1.0, 3});
  ledger.commit();
  EXPECT_EQ(sum(), 320U);
  ledger.set_share(kParent, {105, 0, 1.0, 4});
  ledger.set_share(b, {105, 0, 1.0, 4});
  ledger.commit();
  EXPECT_EQ(sum(), 330U);

  ledger.set_mapped(b, 320);
  EXPECT_EQ(sum(), 350U);

  ledger.remove(a);
  EXPECT_EQ(sum(), 320U);
  EXPECT_TRUE(ledger.need(b).stale);
  ledger.set_share(kParent, {150, 0, 1.0, 5});
  ledger.set_share(b, {170, 20, 1.0, 5});
  ledger.commit();
  EXPECT_EQ(sum(), 320U);
  EXPECT_FALSE(ledger.need(b).stale);
}

}  // namespace
}  // namespace tidemark::monitor
