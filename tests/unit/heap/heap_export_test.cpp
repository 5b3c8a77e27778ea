// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/heap_export.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"
#include "tests/unit/heap/placed_objects.h"

namespace tidemark::heap {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using tests::PlacedObjects;

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

// A snapshot as a reader that knows only its `meta` sees it.
class Snapshot {
 public:
  struct Node {
    std::string type;
    std::string name;
    std::uint64_t id = 0;
    std::uint64_t bytes = 0;
    std::uint64_t edge_count = 0;
  };

  explicit Snapshot(const std::string& text) : json_(nlohmann::json::parse(text)) {
    const auto& meta = json_["snapshot"]["meta"];
    const std::size_t fields = meta["node_fields"].size();
    const auto& values = json_["nodes"];
    EXPECT_EQ(values.size(), fields * json_["snapshot"]["node_count"].get<std::size_t>());
    for (std::size_t i = 0; i < values.size(); i += fields) {
      nodes_.push_back({meta["node_types"][0][values[i].get<std::size_t>()], string(values[i + 1]),
                        values[i + 2], values[i + 3], values[i + 4]});
    }
    read_edges(meta, fields);
  }

  const nlohmann::json& json() const { return json_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(const std::string& name) const {
    for (const Node& node : nodes_) {
      if (node.name == name) {
        return node;
      }
    }
    ADD_FAILURE() << "no node " << name;
    return nodes_.front();
  }
  // "property history: dict -> list".
  const std::multiset<std::string>& edges() const { return edges_; }

 private:
  std::string string(const nlohmann::json& index) const {
    return json_["strings"].at(index.get<std::size_t>());
  }

  void read_edges(const nlohmann::json& meta, std::size_t node_fields) {
    const auto& values = json_["edges"];
    ASSERT_EQ(values.size(), 3 * json_["snapshot"]["edge_count"].get<std::size_t>());
    std::size_t at = 0;
    for (const Node& from : nodes_) {
      for (std::size_t i = 0; i < from.edge_count; ++i, at += 3) {
        ASSERT_LT(at, values.size());
        const std::string type = meta["edge_types"][0][values[at].get<std::size_t>()];
        const auto to = values[at + 2].get<std::size_t>();
        ASSERT_EQ(to % node_fields, 0U);
        ASSERT_LT(to / node_fields, nodes_.size());
        const std::string name = type == "element"
                                     ? std::to_string(values[at + 1].get<std::size_t>())
                                     : string(values[at + 1]);
        edges_.insert(
            fmt::format("{} {}: {} -> {}", type, name, from.name, nodes_[to / node_fields].name));
      }
    }
    EXPECT_EQ(at, values.size());
  }

  nlohmann::json json_;
  std::vector<Node> nodes_;
  std::multiset<std::string> edges_;
};

std::string written(const ObjectGraph& graph, const SnapshotLimits& limits = {}) {
  const Fd file(::memfd_create("snapshot", MFD_CLOEXEC));
  EXPECT_TRUE(write_heap_snapshot(graph, file.get(), limits));
  ::lseek(file.get(), 0, SEEK_SET);
  return *read_to_end(file.get(), kMostBytes);
}

std::vector<Root> main_module() { return {{0x100, "__main__", 0, false, false}}; }

// __main__.history, a list of two texts and a function.
void make_module(PlacedObjects& objects) {
  objects.add_module(0x100, 0x200, "__main__");
  objects.add_entry(0x200, 0x300, "history", 0x400);
  objects.add(0x400, ObjectKind::kList, "list", 72);
  objects.add_text(0x500, "first");
  objects.add_text(0x510, "second");
  objects.add(0x520, ObjectKind::kFunction, "function").name = "make.<locals>.collate";
  objects.add_items(0x400, {0x500, 0x510, 0x520});
}

TEST(HeapExport, WritesObjectsAndTheNamesOfTheirReferences) {
  PlacedObjects objects;
  make_module(objects);
  const ObjectGraph graph(objects, main_module(), {});
  const Snapshot snapshot(written(graph));

  EXPECT_EQ(snapshot.nodes().size(), graph.size() + 3);
  EXPECT_THAT(snapshot.edges(), Contains("property __main__: (roots) -> module"));
  EXPECT_THAT(snapshot.edges(), Contains("property __dict__: module -> dict"));
  EXPECT_THAT(snapshot.edges(), Contains("property history: dict -> list"));
  EXPECT_THAT(snapshot.edges(), Contains("internal key: dict -> history"));
  EXPECT_THAT(snapshot.edges(), Contains("element 0: list -> first"));
  EXPECT_THAT(snapshot.edges(), Contains("element 2: list -> make.<locals>.collate"));
  EXPECT_EQ(snapshot.node("list").type, "object");
  EXPECT_EQ(snapshot.node("list").bytes, 72U);
  EXPECT_EQ(snapshot.node("first").type, "string");
  EXPECT_EQ(snapshot.node("make.<locals>.collate").type, "closure");
}

// DevTools shows no reference from the first node, but takes distances from it.
TEST(HeapExport, BeginsWithANodeThatLeadsToTheRoots) {
  PlacedObjects objects;
  make_module(objects);
  auto roots = main_module();
  roots.push_back({0x400, "interpreter", 30, true, false});
  const Snapshot snapshot(written(ObjectGraph(objects, roots, {})));

  EXPECT_EQ(snapshot.nodes().front().type, "synthetic");
  EXPECT_EQ(snapshot.nodes().front().id, 1U);
  EXPECT_THAT(snapshot.edges(), Contains("element 1:  -> (roots)"));
  EXPECT_THAT(snapshot.edges(), Contains("property __main__:  -> module"));
  EXPECT_THAT(snapshot.edges(), Contains("property interpreter: (roots) -> list"));
  EXPECT_THAT(snapshot.edges(), Not(Contains("property interpreter:  -> list")));
}

TEST(HeapExport, NamesAttributesLocalsMembersAndTheRest) {
  PlacedObjects objects;
  objects.add(0x100, ObjectKind::kOther, "Holder");
  objects.add_text(0x110, "cache");
  int number = 0;
  const auto refer = [&](ReferenceKind kind, std::uint64_t detail, const char* name) {
    const std::uint64_t target = 0x1000 + 16 * static_cast<std::uint64_t>(number++);
    objects.add(target, ObjectKind::kOther, fmt::format("T{}", number - 1));
    objects.at(0x100).references.push_back({target, detail, name, kind});
  };
  refer(ReferenceKind::kAttribute, 0x110, "");
  refer(ReferenceKind::kLocal, 0x110, "");
  refer(ReferenceKind::kMember, 0, "fget");
  refer(ReferenceKind::kClass, 0, "");
  refer(ReferenceKind::kWord, 24, "");
  refer(ReferenceKind::kCpp, 0, "grad_fn");
  refer(ReferenceKind::kCpp, 0, "");
  refer(ReferenceKind::kValue, 0x100, "");  // its key is no text
  const Snapshot snapshot(written(ObjectGraph(objects, {{0x100, "__main__", 0}}, {})));

  EXPECT_THAT(snapshot.edges(), Contains("property cache: Holder -> T0"));
  EXPECT_THAT(snapshot.edges(), Contains("property cache: Holder -> T1"));
  EXPECT_THAT(snapshot.edges(), Contains("property fget: Holder -> T2"));
  EXPECT_THAT(snapshot.edges(), Contains("internal __class__: Holder -> T3"));
  EXPECT_THAT(snapshot.edges(), Contains("internal +24: Holder -> T4"));
  EXPECT_THAT(snapshot.edges(), Contains("property grad_fn: Holder -> T5"));
  EXPECT_THAT(snapshot.edges(), Contains("internal native: Holder -> T6"));
  EXPECT_THAT(snapshot.edges(), Contains("property [Holder]: Holder -> T7"));
}

TEST(HeapExport, WritesUnreachableObjectsApart) {
  PlacedObjects objects;
  make_module(objects);
  objects.add(0x900, ObjectKind::kOther, "Cycle");
  ObjectGraph graph(objects, main_module(), {});
  graph.add_unreachable({{0x900, "", 0, true, true}}, {});
  const Snapshot snapshot(written(graph));

  EXPECT_THAT(snapshot.edges(), Contains("element 0: (nothing in Python leads here) -> Cycle"));
}

// Comparison takes what has the same id in two snapshots for the same object.
TEST(HeapExport, GivesAnObjectTheSameIdAtEachLook) {
  PlacedObjects before;
  make_module(before);
  PlacedObjects after;
  make_module(after);
  after.add(0x50, ObjectKind::kList, "new");  // others have other numbers in the graph now
  after.at(0x200).references.insert(after.at(0x200).references.begin(),
                                    {0x50, 0x500, "", ReferenceKind::kValue});
  const Snapshot one(written(ObjectGraph(before, main_module(), {})));
  const Snapshot two(written(ObjectGraph(after, main_module(), {})));

  std::map<std::string, std::uint64_t> ids;
  for (const auto& node : one.nodes()) {
    ids[node.name] = node.id;
  }
  for (const auto& node : two.nodes()) {
    if (node.name != "new") {
      EXPECT_EQ(node.id, ids.at(node.name)) << node.name;
    }
  }
}

TEST(HeapExport, GivesManyObjectsOddIdsOf32BitsEachOnce) {
  PlacedObjects objects;
  objects.add(0x100, ObjectKind::kList, "list");
  std::vector<std::uint64_t> items;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    items.push_back((i % 2 == 0 ? 0x555500000000 : 0x7fff00000000) + 16 * i);
    objects.add(items.back(), ObjectKind::kOther, "float");
  }
  objects.add_items(0x100, items);
  const Snapshot snapshot(written(ObjectGraph(objects, {{0x100, "x", 0}}, {})));

  std::set<std::uint64_t> ids;
  for (const auto& node : snapshot.nodes()) {
    EXPECT_EQ(node.id % 2, 1U);
    EXPECT_LT(node.id, std::uint64_t{1} << 32U);
    EXPECT_TRUE(ids.insert(node.id).second);
  }
}

TEST(HeapExport, CutsAndEscapesWhatStrangersHaveNamed) {
  PlacedObjects objects;
  make_module(objects);
  objects.at(0x500).text = "\"],\"nodes\":[\n\\\x01\xff end";
  objects.at(0x510).text = std::string(79, 'x') + "\u00e4\u00e4";
  const std::string text = written(ObjectGraph(objects, main_module(), {}));
  const Snapshot snapshot(text);

  EXPECT_EQ(snapshot.node("\"],\"nodes\":[\n\\\x01\uFFFD end").type, "string");
  EXPECT_EQ(snapshot.node(std::string(79, 'x')).type, "string");
}

// It reads the process again, which may have changed.
TEST(HeapExport, WritesAsManyReferencesAsItHasCounted) {
  PlacedObjects objects;
  make_module(objects);
  const ObjectGraph graph(objects, main_module(), {});
  objects.at(0x400).references.erase(objects.at(0x400).references.begin() + 1);
  objects.at(0x200).references.clear();
  const Snapshot snapshot(written(graph));

  EXPECT_THAT(snapshot.edges(), Contains("internal ?: dict -> list"));
  EXPECT_THAT(snapshot.edges(), Contains("element 0: list -> first"));
  EXPECT_THAT(snapshot.edges(), Contains("internal ?: list -> second"));
}

TEST(HeapExport, KeepsSizesBelow32Bits) {
  PlacedObjects objects;
  make_module(objects);
  objects.at(0x400).bytes = std::uint64_t{5} << 30U;
  const Snapshot snapshot(written(ObjectGraph(objects, main_module(), {})));

  EXPECT_EQ(snapshot.node("list").bytes, 0xfffffff8U);
}

TEST(HeapExport, NamesTypesAndVariablesWhenTextsAreTooMany) {
  PlacedObjects objects;
  make_module(objects);
  for (std::uint64_t i = 0; i < 100; ++i) {
    objects.add_text(0x10000 + 16 * i, fmt::format("{:080}", i));
    objects.add_items(0x400, {0x10000 + 16 * i});
  }
  objects.add(0x600, ObjectKind::kOther, "LateType");
  objects.at(0x200).references.push_back({0x600, 0, "late_member", ReferenceKind::kMember});
  SnapshotLimits limits;
  limits.most_text_bytes = 4096;
  const Snapshot snapshot(written(ObjectGraph(objects, main_module(), {}), limits));

  EXPECT_THAT(snapshot.edges(), Contains("property late_member: dict -> LateType"));
  const auto cut = std::count_if(snapshot.nodes().begin(), snapshot.nodes().end(),
                                 [](const auto& node) { return node.name == "..."; });
  EXPECT_GT(cut, 50);
  EXPECT_LT(cut, 100);
}

TEST(HeapExport, SaysThatTheDiskIsFull) {
  PlacedObjects objects;
  make_module(objects);
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  const Status status =
      write_heap_snapshot(ObjectGraph(objects, main_module(), {}), full.get(), {});

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kNoSpace);
  EXPECT_THAT(status.error().what, HasSubstr("No space left"));
}

TEST(HeapExport, EndsWhenItIsGivenUp) {
  PlacedObjects objects;
  objects.add(0x100, ObjectKind::kList, "list");
  std::vector<std::uint64_t> items;
  for (std::uint64_t i = 1; i < 20'000; ++i) {
    items.push_back(0x1000 * i);
    objects.add(items.back(), ObjectKind::kOther, "float");
  }
  objects.add_items(0x100, items);
  const Fd file(::memfd_create("snapshot", MFD_CLOEXEC));
  int asked = 0;
  SnapshotLimits limits;
  limits.is_cancelled = [&] {
    ++asked;
    return true;
  };
  const Status status =
      write_heap_snapshot(ObjectGraph(objects, {{0x100, "x", 0}}, {}), file.get(), limits);

  EXPECT_FALSE(status);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace tidemark::heap
