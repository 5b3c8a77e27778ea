// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/owner_ways.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/fd.h"
#include "common/io.h"
#include "tests/unit/heap/placed_objects.h"

namespace tidemark::heap {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::PlacedObjects;

const std::function<bool()> kNever = [] { return false; };

// __main__.collator (a Collator) .cache, a dict with 1 MiB below it.
class OwnerWays : public testing::Test {
 protected:
  void SetUp() override {
    objects_.add_module(0x100, 0x200, "__main__");
    objects_.add_entry(0x200, 0x210, "collator", 0x300);
    objects_.add(0x300, ObjectKind::kOther, "Collator", 48).references = {
        {0x400, 0, "", ReferenceKind::kDict}};
    objects_.add(0x400, ObjectKind::kDict, "dict", 104);
    objects_.add_entry(0x400, 0x410, "cache", kOwner);
    objects_.add(kOwner, ObjectKind::kDict, "dict", 232);
    objects_.add(0x600, ObjectKind::kBytes, "bytes", 1U << 20U);
    objects_.add_entry(kOwner, 0x510, "key", 0x600);
  }

  std::string dot() {
    const ObjectGraph graph(objects_, roots_, {});
    ObjectPaths paths(graph);
    const Fd file(::memfd_create("dot", MFD_CLOEXEC));
    EXPECT_TRUE(write_ways(graph, paths, graph.find(kOwner), graph.bytes_below(), file.get()));
    ::lseek(file.get(), 0, SEEK_SET);
    return *read_to_end(file.get());
  }
  std::string found(const std::string& path) {
    const ObjectGraph graph(objects_, roots_, {});
    ObjectPaths paths(graph);
    const auto node = find_object(graph, paths, path, kNever);
    return node == ObjectGraph::kNone ? "none" : fmt::format("{:x}", graph.address(node));
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t times = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++times;
    }
    return times;
  }

  static constexpr std::uint64_t kOwner = 0x500;
  PlacedObjects objects_;
  std::vector<Root> roots_ = {{0x100, "__main__", 0, false, false}};
};

TEST_F(OwnerWays, DrawsTheWayThatAPersonWouldNameFirst) {
  const std::string text = dot();

  EXPECT_THAT(text, HasSubstr("label=\"ways to __main__.collator.cache\""));
  EXPECT_THAT(text, HasSubstr("label=\"module __main__\", shape=ellipse"));
  EXPECT_THAT(text, HasSubstr("label=\"collator\""));
  EXPECT_THAT(text, HasSubstr("label=\"cache\""));
  EXPECT_THAT(text, HasSubstr("label=\"dict\\n2 references\\n232 B, leads to 1.00 MiB\""));
  EXPECT_EQ(count(text, "fillcolor=gold"), 1U);
  EXPECT_EQ(count(text, " -> "), 5U);
}

TEST_F(OwnerWays, DrawsOtherHoldersUpToTheirRoots) {
  objects_.add_module(0x1100, 0x1200, "registry");
  objects_.add_entry(0x1200, 0x1210, "known", 0x1300);
  objects_.add(0x1300, ObjectKind::kList, "list");
  objects_.add_items(0x1300, {0x300});  // of the collator, not of its cache
  roots_.push_back({0x1100, "registry", 5, false, false});
  const std::string text = dot();

  EXPECT_THAT(text, HasSubstr("label=\"module registry\""));
  EXPECT_THAT(text, HasSubstr("label=\"known\""));
  EXPECT_THAT(text, HasSubstr("label=\"[0]\""));
}

TEST_F(OwnerWays, DrawsNoChildrenThatKnowTheirParent) {
  objects_.add(0x700, ObjectKind::kOther, "Child").references = {
      {kOwner, 0, "parent", ReferenceKind::kMember}};
  objects_.add_entry(kOwner, 0x710, "child", 0x700);

  EXPECT_THAT(dot(), Not(HasSubstr("Child")));
}

TEST_F(OwnerWays, CountsHoldersThatAreTooManyToDraw) {
  objects_.add(0x2000, ObjectKind::kList, "list");
  objects_.add_entry(0x200, 0x220, "handles", 0x2000);
  std::vector<std::uint64_t> handles;
  for (std::uint64_t i = 0; i < 100; ++i) {
    handles.push_back(0x3000 + 16 * i);
    objects_.add(handles.back(), ObjectKind::kOther, "Handle").references = {
        {kOwner, 0, "of", ReferenceKind::kMember}};
  }
  objects_.add_items(0x2000, handles);
  const std::string text = dot();

  EXPECT_EQ(count(text, "[label=\"Handle"), kMostOtherWays);
  EXPECT_THAT(text, HasSubstr(fmt::format("label=\"{} further holders\", style=dashed",
                                          100 - kMostOtherWays)));
}

TEST_F(OwnerWays, LeavesOutTheMiddleOfALongWay) {
  objects_.at(kOwner).references.clear();
  std::uint64_t last = 0x300;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t next = 0x10000 + 16 * i;
    objects_.add(next, ObjectKind::kOther, "Link");
    objects_.at(last).references = {{next, 0, "next", ReferenceKind::kMember}};
    last = next;
  }
  objects_.at(last).references = {{kOwner, 0, "next", ReferenceKind::kMember}};
  const std::string text = dot();

  EXPECT_THAT(text, HasSubstr(" steps\""));
  EXPECT_LT(count(text, " -> "), 50U);
}

TEST_F(OwnerWays, EscapesWhatStrangersHaveNamed) {
  objects_.at(0x410).text = "a\"]; x -> y [label=\"\\\n\x1b[31m\xff";
  const std::string text = dot();

  EXPECT_THAT(text, HasSubstr(R"(label="a\"]; x -> y [label=\"\\\\\\n\\x1b[31m\\xff")"));
}

TEST_F(OwnerWays, FindsObjectsByTheirPath) {
  EXPECT_EQ(found("__main__.collator.cache"), "500");
  EXPECT_EQ(found("__main__.collator"), "300");
  EXPECT_EQ(found("__main__.collator.cache[key]"), "600");
  EXPECT_EQ(found("__main__.collator.cache[*]"), "600");
  EXPECT_EQ(found("__main__.other"), "none");
  EXPECT_EQ(found(""), "none");
}

// The path of a variable begins with its function, wherever that is.
TEST_F(OwnerWays, FindsVariablesOfFunctions) {
  objects_.add(0x800, ObjectKind::kFunction, "function").name = "collate";
  objects_.at(0x800).references = {{0x810, 0, "__closure__", ReferenceKind::kMember}};
  objects_.add(0x810, ObjectKind::kTuple, "tuple");
  objects_.add_items(0x810, {0x820});
  objects_.add(0x820, ObjectKind::kCell, "cell").references = {
      {0x830, 0, "cell_contents", ReferenceKind::kMember}};
  objects_.add(0x830, ObjectKind::kList, "list");
  objects_.add_entry(0x200, 0x230, "hook", 0x800);

  EXPECT_EQ(found("collate() closure: variable"), "820");
}

TEST_F(OwnerWays, SaysThatTheDiskIsFull) {
  const ObjectGraph graph(objects_, roots_, {});
  ObjectPaths paths(graph);
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  const Status status =
      write_ways(graph, paths, graph.find(kOwner), graph.bytes_below(), full.get());

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kNoSpace);
}

}  // namespace
}  // namespace tidemark::heap
