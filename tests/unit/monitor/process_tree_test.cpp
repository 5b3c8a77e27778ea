// SPDX-License-Identifier: Apache-2.0
#include "monitor/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process_rows.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using tests::row;

constexpr pid_t kSelf = 99;

std::vector<pid_t> pids(const std::vector<ProcessEntry>& entries) {
  std::vector<pid_t> result;
  for (const ProcessEntry& entry : entries) {
    result.push_back(entry.key.pid);
  }
  return result;
}

std::vector<pid_t> pids(const std::vector<ProcessKey>& keys) {
  std::vector<pid_t> result;
  for (const ProcessKey& key : keys) {
    result.push_back(key.pid);
  }
  return result;
}

ProcessTree tree_of(ProcessKey root) {
  return ProcessTree({{root}, std::nullopt, {}, false}, kSelf);
}

TEST(ProcessTree, TakesTheRootWithAllDescendants) {
  auto tree = tree_of({10, 100});

  const auto change = tree.update(std::vector{row(1, 0, 1), row(10, 1, 100), row(11, 10, 101),
                                              row(12, 11, 102), row(20, 1, 90)});

  EXPECT_THAT(pids(change.started), ElementsAre(10, 11, 12));
  EXPECT_FALSE(tree.contains({20, 90}));
}

TEST(ProcessTree, FindsDescendantsThatComeLater) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(10, 1, 100)});

  const auto change = tree.update(std::vector{row(10, 1, 100), row(30, 10, 300), row(31, 30, 301)});

  EXPECT_THAT(pids(change.started), ElementsAre(30, 31));
}

TEST(ProcessTree, KeepsChildrenOfADeadParent) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(1, 0, 1), row(10, 1, 100), row(11, 10, 101), row(12, 11, 102)});

  const auto change = tree.update(std::vector{row(1, 0, 1), row(10, 1, 100), row(12, 1, 102)});

  EXPECT_THAT(pids(change.gone), ElementsAre(11));
  EXPECT_TRUE(tree.contains({12, 102})) << "reparented to init, still ours";
}

TEST(ProcessTree, OrphansKeepTheirOwnChildren) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(10, 1, 100), row(11, 10, 101)});
  tree.update(std::vector{row(11, 1, 101)});

  const auto change = tree.update(std::vector{row(11, 1, 101), row(40, 11, 400)});

  EXPECT_THAT(pids(change.started), ElementsAre(40));
}

TEST(ProcessTree, AReusedPidIsAStranger) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(10, 1, 100), row(11, 10, 101)});

  const auto change = tree.update(std::vector{row(10, 1, 100), row(11, 1, 555)});

  EXPECT_THAT(pids(change.gone), ElementsAre(11));
  EXPECT_THAT(change.started, IsEmpty());
  EXPECT_FALSE(tree.contains({11, 555}));
}

TEST(ProcessTree, ARootWhosePidWasReusedIsNotWatched) {
  auto tree = tree_of({10, 100});

  EXPECT_THAT(tree.update(std::vector{row(10, 1, 777), row(11, 10, 778)}).started, IsEmpty());
}

TEST(ProcessTree, AParentYoungerThanItsChildIsAnImpostor) {
  auto tree = tree_of({10, 100});

  const auto change = tree.update(std::vector{row(10, 1, 100), row(5, 10, 50)});

  EXPECT_THAT(pids(change.started), ElementsAre(10)) << "pid 5 is older than its claimed parent";
}

TEST(ProcessTree, AdoptsTheGrandchildOfAShortLivedChildByItsGroup) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(1, 0, 1), row(10, 1, 100, 10)});

  const auto change =
      tree.update(std::vector{row(1, 0, 1), row(10, 1, 100, 10), row(60, 1, 600, 10)});

  EXPECT_THAT(pids(change.started), ElementsAre(60))
      << "its parent came and went between two looks";
}

TEST(ProcessTree, DoesNotAdoptOlderMembersOfTheSameGroup) {
  auto tree = tree_of({10, 100});
  tree.update(std::vector{row(10, 1, 100, 10), row(9, 1, 99, 10), row(50, 1, 200, 50)});

  const auto change =
      tree.update(std::vector{row(10, 1, 100, 10), row(9, 1, 99, 10), row(50, 1, 200, 50)});

  EXPECT_THAT(change.started, IsEmpty()) << "train.py | tee: the pipe's other end is not ours";
}

TEST(ProcessTree, ChildrenOfTheSubreaperAreRootsButNotTheSubreaper) {
  ProcessTree tree({{}, kSelf, [](const ProcessKey&) { return true; }, false}, kSelf);

  const auto change =
      tree.update(std::vector{row(kSelf, 1, 90), row(70, kSelf, 700), row(71, 70, 701)});

  EXPECT_THAT(pids(change.started), ElementsAre(70, 71));
}

TEST(ProcessTree, LeavesItselfAndItsHelpersOut) {
  ProcessTree tree({{{10, 10}}, std::nullopt, {}, false}, kSelf);

  const auto change =
      tree.update(std::vector{row(10, 1, 10), row(kSelf, 10, 90), row(98, kSelf, 95)});

  EXPECT_THAT(pids(change.started), ElementsAre(10)) << "tidemark started from the watched shell";
}

TEST(ProcessTree, TheWholeSystemHasNoKernelThreads) {
  ProcessTree tree({{}, std::nullopt, {}, true}, kSelf);

  const auto change =
      tree.update(std::vector{row(1, 0, 1), row(2, 0, 1), row(3, 2, 1), row(10, 1, 100)});

  EXPECT_THAT(pids(change.started), UnorderedElementsAre(1, 10));
}

TEST(ProcessTree, SurvivesACycleInATornTable) {
  auto tree = tree_of({10, 100});

  const auto change = tree.update(std::vector{row(10, 1, 100), row(20, 21, 200), row(21, 20, 200)});

  EXPECT_THAT(pids(change.started), ElementsAre(10));
}

TEST(ProcessTree, AddIsIdempotent) {
  auto tree = tree_of({10, 100});

  EXPECT_TRUE(tree.add(row(11, 10, 101)));
  EXPECT_FALSE(tree.add(row(11, 10, 101)));
  tree.remove({11, 999});
  EXPECT_TRUE(tree.contains({11, 101})) << "another identity was removed";
}

TEST(ProcessTree, AdoptsOnlyThoseChildrenOfOursThatBelongToTheCommand) {
  TreeRoots roots;
  roots.children_of = kSelf;
  roots.adopts = [](const ProcessKey& child) { return child.pid != 20; };
  ProcessTree tree(roots, kSelf);

  const auto change =
      tree.update(std::vector{row(kSelf, 1, 50), row(10, kSelf, 100), row(11, 10, 101),
                              row(20, kSelf, 90), row(21, 20, 102)});

  EXPECT_THAT(pids(change.started), ElementsAre(10, 11));
}

}  // namespace
}  // namespace tidemark::monitor
