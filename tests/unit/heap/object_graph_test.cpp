// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/object_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/paths.h"
#include "tests/unit/heap/made_up_objects.h"

namespace tidemark::heap {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using tests::MadeUpObjects;
using Address = MadeUpObjects::Address;

std::string path_of(MadeUpObjects& objects, Address address) {
  const ObjectGraph graph(objects, objects.roots, {});
  const auto node = graph.find(address);
  if (node == ObjectGraph::kNone) {
    return "nowhere";
  }
  return ObjectPaths(graph).of(node).text;
}

TEST(ObjectGraph, HasWhatIsReachedFromRoots) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address list = objects.list(800);
  objects.assign(main, "kept", list);
  const Address element = objects.add("Sample");
  objects.item(list, element);
  objects.item(list, 0xdead000);  // nothing is there
  const Address lost = objects.add("Lost");

  const ObjectGraph graph(objects, objects.roots, {});

  EXPECT_EQ(graph.size(), 4U);
  EXPECT_EQ(graph.reachable(), 4U);
  EXPECT_FALSE(graph.is_partial());
  EXPECT_EQ(graph.find(lost), ObjectGraph::kNone);
  const auto node = graph.find(list);
  EXPECT_EQ(graph.bytes(node), 800U);
  EXPECT_EQ(graph.type(node).name, "list");
  EXPECT_EQ(graph.reference_count(node), 1U);
  EXPECT_THAT(graph.targets(node), ElementsAre(graph.find(element)));
  EXPECT_EQ(graph.root(graph.find(element)).label, "__main__");
}

TEST(ObjectGraph, CountsReferencesAlsoToTheSame) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address list = objects.list();
  objects.assign(main, "kept", list);
  const Address element = objects.add("Sample");
  for (int i = 0; i < 5; ++i) {
    objects.item(list, element);
  }
  objects.item(list, list);

  const ObjectGraph graph(objects, objects.roots, {});

  EXPECT_EQ(graph.reference_count(graph.find(list)), 5U);
  EXPECT_THAT(graph.targets(graph.find(list)), ElementsAre(graph.find(element)));
}

TEST(ObjectGraph, EndsInCycles) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address first = objects.list();
  const Address second = objects.list();
  objects.assign(main, "kept", first);
  objects.item(first, second);
  objects.item(second, first);

  const ObjectGraph graph(objects, objects.roots, {});

  EXPECT_EQ(graph.size(), 4U);
  EXPECT_EQ(graph.parent(graph.find(second)), graph.find(first));
}

TEST(ObjectGraph, NamesAttributesBeforeClassesAndGlobals) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address trainer = objects.add("Trainer");
  const Address type = objects.add("type", ObjectKind::kType);
  const Address function = objects.add("function", ObjectKind::kFunction);
  const Address state = objects.add("State");
  const Address history = objects.list();
  objects.refer(trainer, {type, 0, "", ReferenceKind::kClass});
  objects.refer(type, {history, 0, "history", ReferenceKind::kMember});
  objects.refer(function, {history, 0, "__globals__", ReferenceKind::kGlobals});
  objects.assign(main, "step", function);
  objects.assign(main, "trainer", trainer);
  objects.attribute(trainer, "state", state);
  objects.attribute(state, "history", history);

  EXPECT_EQ(path_of(objects, history), "__main__.trainer.state.history");
}

TEST(ObjectGraph, NamesModulesByThemselves) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address other = objects.module("loader");
  objects.assign(main, "loader", other);
  const Address cache = objects.dict();
  objects.assign(other, "cache", cache);

  EXPECT_EQ(path_of(objects, cache), "loader.cache");
}

TEST(ObjectGraph, PutsTheCheapestRootFirst) {
  MadeUpObjects objects;
  const Address history = objects.list();
  objects.roots.push_back({history, "loop() locals: h", 9, false, true});
  const Address main = objects.module("__main__");
  objects.assign(main, "history", history);

  EXPECT_EQ(path_of(objects, history), "__main__.history");
}

TEST(ObjectGraph, SaysWhatLiesBelowEach) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address left = objects.list(100);
  const Address right = objects.list(200);
  const Address shared = objects.list(800);
  objects.assign(main, "left", left);
  objects.assign(main, "right", right);
  objects.item(left, shared);
  objects.item(shared, right);

  const ObjectGraph graph(objects, objects.roots, {});
  const auto below = graph.bytes_below();

  EXPECT_EQ(below[graph.find(left)], 104 + 800U);  // in words
  EXPECT_EQ(below[graph.find(right)], 200U);
  EXPECT_EQ(below[graph.find(main)], 64 + 64 + 104 + 200 + 800U);
}

TEST(ObjectGraph, IsPartialWithMoreObjectsThanAllowed) {
  MadeUpObjects objects;
  const Address list = objects.list();
  objects.assign(objects.module("__main__"), "kept", list);
  for (int i = 0; i < 1000; ++i) {
    objects.item(list, objects.add("Sample"));
  }
  GraphLimits limits;
  limits.most_objects = 100;

  const ObjectGraph graph(objects, objects.roots, limits);

  EXPECT_TRUE(graph.is_partial());
  EXPECT_EQ(graph.size(), 100U);
  EXPECT_EQ(graph.reachable(), 100U);
}

TEST(ObjectGraph, IsPartialWhenTimeIsUp) {
  MadeUpObjects objects;
  Address list = objects.list();
  objects.assign(objects.module("__main__"), "kept", list);
  for (int i = 0; i < 20'000; ++i) {
    const Address next = objects.list();
    objects.item(list, next);
    list = next;
  }
  GraphLimits limits;
  limits.is_over = [] { return true; };

  const ObjectGraph graph(objects, objects.roots, limits);

  EXPECT_TRUE(graph.is_partial());
  EXPECT_LT(graph.size(), 10'000U);
  EXPECT_GT(graph.size(), 1'000U);
}

// A list that is read as long as there is memory after it has more references than any real one.
TEST(ObjectGraph, IsPartialWithMoreReferencesThanAllowed) {
  MadeUpObjects objects;
  const Address list = objects.list();
  objects.assign(objects.module("__main__"), "kept", list);
  const Address one = objects.add("Sample");
  const Address other = objects.add("Sample");
  for (int i = 0; i < 1000; ++i) {
    objects.item(list, i % 2 == 0 ? one : other);
  }
  GraphLimits limits;
  limits.most_references = 100;

  const ObjectGraph graph(objects, objects.roots, limits);

  EXPECT_TRUE(graph.is_partial());
  EXPECT_LE(graph.targets(graph.find(list)).size(), 100U);
}

TEST(ObjectGraph, GoesOnFromWhatNothingLeadsTo) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address kept = objects.list();
  objects.assign(main, "kept", kept);
  const Address lost = objects.list();
  const Address below = objects.list();
  objects.item(lost, below);
  objects.item(lost, kept);
  ObjectGraph graph(objects, objects.roots, {});

  graph.add_unreachable({{lost, "", 0, true, true}, {kept, "", 0, true, true}}, {});

  EXPECT_EQ(graph.reachable(), 3U);
  EXPECT_THAT(graph.order().subspan(3), ElementsAre(graph.find(lost), graph.find(below)));
  EXPECT_EQ(graph.root(graph.find(kept)).label, "__main__");
}

TEST(ObjectPaths, HaveIndexesWithoutNumbersAndKeysOfSmallDicts) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address list = objects.list();
  const Address small = objects.dict();
  const Address inner = objects.add("Sample");
  objects.assign(main, "batches", list);
  objects.item(list, small);
  objects.value(small, "images", inner);

  EXPECT_EQ(path_of(objects, inner), "__main__.batches[*][images]");

  for (int i = 0; i < 100; ++i) {
    objects.value(small, std::to_string(i), objects.add("Sample"));
  }
  EXPECT_EQ(path_of(objects, inner), "__main__.batches[*][*]");
}

TEST(ObjectPaths, LeaveOutWhatPythonNeedsInBetween) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address trainer = objects.add("Trainer");
  const Address attributes = objects.dict();
  const Address history = objects.list();
  objects.assign(main, "trainer", trainer);
  objects.refer(trainer, {attributes, 0, "", ReferenceKind::kDict});
  objects.value(attributes, "history", history);

  EXPECT_EQ(path_of(objects, history), "__main__.trainer.history");
}

TEST(ObjectPaths, NameVariablesOfFunctionsByTheFunction) {
  MadeUpObjects objects;
  const Address main = objects.module("__main__");
  const Address function = objects.add("function", ObjectKind::kFunction);
  objects.set_name(function, "make.<locals>.on_step");
  const Address closure = objects.add("tuple", ObjectKind::kTuple);
  const Address defaults = objects.add("tuple", ObjectKind::kTuple);
  const Address cell = objects.add("cell", ObjectKind::kCell);
  const Address seen = objects.list();
  const Address history = objects.list();
  objects.assign(main, "hook", function);
  objects.member(function, "__closure__", closure);
  objects.member(function, "__defaults__", defaults);
  objects.item(closure, objects.add("cell", ObjectKind::kCell));
  objects.item(closure, cell);
  objects.member(cell, "cell_contents", seen);
  objects.item(defaults, history);

  EXPECT_THAT(path_of(objects, seen), EndsWith("on_step() closure: make.<locals>.on_step_free_1"));
  EXPECT_THAT(path_of(objects, history),
              EndsWith("on_step() default: make.<locals>.on_step_default_0"));
}

TEST(ObjectPaths, BeginWithTheVariableOfAFrame) {
  MadeUpObjects objects;
  const Address history = objects.list();
  const Address inner = objects.list();
  objects.roots.push_back({history, "main() locals: history", 9, false, true});
  objects.item(history, inner);

  EXPECT_EQ(path_of(objects, inner), "main() locals: history[*]");
}

// The ends of a long way are named, and nothing of it takes a stack.
TEST(ObjectPaths, OfLinkedListsAreShort) {
  MadeUpObjects objects;
  Address node = objects.add("Node");
  objects.assign(objects.module("__main__"), "head", node);
  for (int i = 0; i < 200'000; ++i) {
    const Address next = objects.add("Node");
    objects.attribute(node, i % 2 == 0 ? "next" : "after", next);
    node = next;
  }

  const ObjectGraph graph(objects, objects.roots, {});
  const ObjectPath path = ObjectPaths(graph).of(graph.find(node));

  EXPECT_EQ(graph.size(), 200'003U);
  EXPECT_THAT(path.text, StartsWith("__main__.head.next.after.next"));
  EXPECT_THAT(path.text, HasSubstr("..."));
  EXPECT_THAT(path.text, EndsWith(".next.after"));
  EXPECT_LE(path.text.size(), kMostOwnerTextBytes);
  EXPECT_LT(path.steps.size(), 70U);
}

TEST(ObjectPaths, NameRepeatedStepsOnce) {
  MadeUpObjects objects;
  Address node = objects.add("Node");
  objects.assign(objects.module("__main__"), "head", node);
  for (int i = 0; i < 20; ++i) {
    const Address next = objects.add("Node");
    objects.attribute(node, "next", next);
    node = next;
  }

  EXPECT_EQ(path_of(objects, node), "__main__.head.next.next");
}

}  // namespace
}  // namespace tidemark::heap
