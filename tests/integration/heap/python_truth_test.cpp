// SPDX-License-Identifier: Apache-2.0
// What is read of the objects of a process from outside, against what its Python says of each of
// them: on every version that is on this machine.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/heap_analysis.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/python_objects.h"
#include "profiler/heap/python_roots.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/inject/remote_memory.h"
#include "tests/integration/heap/heap_truth.h"
#include "tests/integration/profile/python_matrix.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::heap {
namespace {

using tests::HeapTruth;
using tests::Python;
using tests::TrueObject;

constexpr const char* kScript = TIDEMARK_SOURCE_DIR "/tests/programs/owners/heap_truth.py";

// A process that has written down what its heap has, and waits.
class TrueHeap {
 public:
  explicit TrueHeap(const Python& python)
      : script_({python.path, kScript, folder_.path("truth"), "--objects", "40000"}) {
    script_.read_until("ready\n");
    truth_ = tests::read_heap_truth(folder_.path("truth"));
    auto image = MemoryImage::open(script_.pid(), std::uint64_t{1} << 30U);
    auto memory = inject::RemoteMemory::open(script_.pid());
    if (!image || !memory) {
      ADD_FAILURE() << "cannot read its memory";
      return;
    }
    image_ = std::make_unique<MemoryImage>(*std::move(image));
    auto runtime = find_python(*image_, *memory);
    if (!runtime) {
      ADD_FAILURE() << runtime.error().what;
      return;
    }
    EXPECT_EQ(runtime->layout.minor, static_cast<unsigned>(python.minor));
    EXPECT_EQ(runtime->layout.is_free_threaded, truth_.is_free_threaded);
    objects_ = std::make_unique<ProcessObjects>(*image_, *std::move(runtime));
  }

  bool is_read() const { return objects_ != nullptr; }
  unsigned minor() const { return objects_->runtime().layout.minor; }
  const HeapTruth& truth() const { return truth_; }
  MemoryImage& image() { return *image_; }
  ProcessObjects& objects() { return *objects_; }

 private:
  tests::TempTree folder_;
  tests::Subprocess script_;
  HeapTruth truth_;
  std::unique_ptr<MemoryImage> image_;
  std::unique_ptr<ProcessObjects> objects_;
};

// How often something went wrong for objects of each type, with the first of them.
class Misses {
 public:
  void add(const std::string& type, const std::string& what) {
    auto& [count, first] = by_type_[type];
    first = count++ == 0 ? what : first;
    ++count_;
  }
  std::size_t count() const { return count_; }
  std::string text() const {
    std::string text;
    for (const auto& [type, misses] : by_type_) {
      text += fmt::format("{} x {}: {}\n", misses.first, type, misses.second);
    }
    return text;
  }

 private:
  std::map<std::string, std::pair<std::size_t, std::string>> by_type_;
  std::size_t count_ = 0;
};

std::string type_name(const HeapTruth& truth, const TrueObject& object) {
  const auto found = truth.type_names.find(object.type);
  return found == truth.type_names.end() ? "?" : found->second;
}

bool is_object(ProcessObjects& objects, const Reference& reference) {
  return objects.type_of(reference.target, reference.kind) != PythonTypes::kNone;
}

// Sorted. With `is_through_dict`, also what the dict of its attributes has.
std::vector<std::uint64_t> references_of(ProcessObjects& objects, std::uint64_t object,
                                         bool is_through_dict) {
  std::vector<std::uint64_t> targets;
  std::vector<std::uint64_t> dicts;
  const PythonTypes::Index type = objects.type_of(object, ReferenceKind::kItem);
  if (type == PythonTypes::kNone) {
    return targets;
  }
  objects.references(object, type, [&](std::span<const Reference> references) {
    for (const Reference& reference : references) {
      if (is_object(objects, reference)) {
        targets.push_back(reference.target);
        if (reference.kind == ReferenceKind::kDict) {
          dicts.push_back(reference.target);
        }
      }
    }
  });
  for (const std::uint64_t dict : dicts) {
    if (is_through_dict) {
      const auto more = references_of(objects, dict, false);
      targets.insert(targets.end(), more.begin(), more.end());
    }
  }
  std::sort(targets.begin(), targets.end());
  return targets;
}

bool is_in(const std::vector<std::uint64_t>& sorted, std::uint64_t target) {
  return std::binary_search(sorted.begin(), sorted.end(), target);
}

bool is_container(ObjectKind kind) {
  return kind == ObjectKind::kList || kind == ObjectKind::kTuple || kind == ObjectKind::kSet ||
         kind == ObjectKind::kDeque || kind == ObjectKind::kDict;
}

class TruthOfHeap : public testing::TestWithParam<int> {
 protected:
  // For every such version that there is.
  static void for_each(const std::function<void(TrueHeap&)>& test) {
    std::vector<Python> found = tests::pythons();
    std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
    if (found.empty()) {
      GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
    }
    for (const Python& python : found) {
      SCOPED_TRACE(python.path);
      TrueHeap heap(python);
      if (heap.is_read()) {
        test(heap);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Each, TruthOfHeap, testing::Range(9, 16), [](const auto& version) {
  return "Python3_" + std::to_string(version.param);
});

// Caches of functools name each of their links, which are found one by one; the rest of what is
// missed are lists that a module of C keeps for itself.
TEST_P(TruthOfHeap, HasItsReferences) {
  for_each([](TrueHeap& heap) {
    ProcessObjects& objects = heap.objects();
    std::size_t count = 0;
    Misses missed;
    Misses missed_of_own;  // of containers, and of the program's own classes
    for (const TrueObject& object : heap.truth().objects) {
      if (object.changes) {
        continue;
      }
      const std::string name = type_name(heap.truth(), object);
      const ObjectKind kind =
          objects.type(objects.type_of(object.address, ReferenceKind::kItem)).kind;
      // From 3.13 on the attributes may lie in the object and be in a dict as well.
      const auto found = references_of(objects, object.address, heap.minor() >= 13);
      for (const std::uint64_t target : object.references) {
        ++count;
        if (!is_in(found, target)) {
          const std::string what = fmt::format("{:x} -> {:x}", object.address, target);
          missed.add(name, what);
          if (is_container(kind) || name.starts_with("__main__.")) {
            missed_of_own.add(name, what);
          }
        }
      }
    }

    EXPECT_GT(count, 100'000U);
    EXPECT_LT(missed.count() * 1000, count * 5) << missed.text();
    EXPECT_EQ(missed_of_own.count(), 0U) << missed_of_own.text();
    testing::Test::RecordProperty(fmt::format("missed_of_{}", count),
                                  static_cast<int>(missed.count()));
  });
}

// The collector does not ask a dict for keys that are texts, nor, from 3.13 on, for values that lie
// in the instance. What is not written down has come later.
TEST_P(TruthOfHeap, HasNoOtherReferencesOfContainers) {
  for_each([](TrueHeap& heap) {
    ProcessObjects& objects = heap.objects();
    std::unordered_set<std::uint64_t> known;
    for (const TrueObject& object : heap.truth().objects) {
      known.insert(object.address);
    }
    Misses invented;
    for (const TrueObject& object : heap.truth().objects) {
      const ObjectKind kind =
          objects.type(objects.type_of(object.address, ReferenceKind::kItem)).kind;
      if (object.changes || !is_container(kind) ||
          (kind == ObjectKind::kDict && heap.minor() >= 13)) {
        continue;
      }
      std::vector<std::uint64_t> wanted = object.references;
      std::sort(wanted.begin(), wanted.end());
      for (const std::uint64_t target : references_of(objects, object.address, false)) {
        const auto type = objects.type_of(target, ReferenceKind::kItem);
        const bool is_key =
            kind == ObjectKind::kDict && objects.type(type).kind == ObjectKind::kText;
        if (!is_key && !is_in(wanted, target) && known.contains(target)) {
          invented.add(type_name(heap.truth(), object),
                       fmt::format("{:x} -> {:x}", object.address, target));
        }
      }
    }

    EXPECT_EQ(invented.count(), 0U) << invented.text();
  });
}

TEST_P(TruthOfHeap, HasItsTypes) {
  for_each([](TrueHeap& heap) {
    Misses misses;
    for (const TrueObject& object : heap.truth().objects) {
      const std::string name = type_name(heap.truth(), object);
      const auto type = heap.objects().type_of(object.address, ReferenceKind::kItem);
      const std::string found =
          type == PythonTypes::kNone ? "nothing" : heap.objects().type(type).full_name;
      if (found != name || heap.objects().type(type).address != object.type) {
        misses.add(name, fmt::format("{:x} is {}", object.address, found));
      }
    }

    EXPECT_EQ(misses.count(), 0U) << misses.text();
  });
}

// What sys.getsizeof() may be too low by, or too high.
struct Slack {
  std::uint64_t less = 0;
  std::uint64_t more = 0;
};

Slack slack_of(const TypeInfo& type, const TypeInfo& as_type, unsigned minor) {
  constexpr std::uint64_t kAny = 1U << 20U;
  constexpr std::uint64_t kMostAttributeBytes = 328;  // of 31 attributes
  const bool has_buffer = type.full_name.starts_with("_io.Buffered") ||
                          type.full_name == "_struct.Struct" ||
                          type.full_name == "itertools.product";
  if (has_buffer) {  // it is not known where
    return {kAny, 0};
  }
  if (type.kind == ObjectKind::kCode && minor <= 10) {
    return {kAny, 0};  // with what is kept of attributes that it has read
  }
  if (type.kind == ObjectKind::kFrame && minor <= 10) {
    return {0, kAny};  // frames are used again for functions with fewer variables
  }
  if (type.kind == ObjectKind::kType && !as_type.has(kHeapTypeFlag)) {
    return {24, 24};
  }
  if (type.kind == ObjectKind::kDict && minor >= 13) {
    return {kMostAttributeBytes, 0};  // its values may lie in the instance
  }
  return {0, type.has(kManagedDictFlag) && minor >= 11 ? kMostAttributeBytes : 0};
}

TEST_P(TruthOfHeap, HasTheSizesOfItsObjects) {
  for_each([](TrueHeap& heap) {
    ProcessObjects& objects = heap.objects();
    Misses misses;
    std::uint64_t all = 0;
    for (const TrueObject& object : heap.truth().objects) {
      const auto type = objects.type_of(object.address, ReferenceKind::kItem);
      const auto as_type = objects.types().find(object.address);
      const TypeInfo& info = objects.type(type);
      const Slack slack = slack_of(
          info, as_type == PythonTypes::kNone ? info : objects.type(as_type), heap.minor());
      const std::uint64_t bytes = objects.bytes(object.address, type);
      all += bytes;
      if (bytes + slack.less < object.bytes || bytes > object.bytes + slack.more) {
        misses.add(type_name(heap.truth(), object),
                   fmt::format("{:x} has {} of {} bytes", object.address, bytes, object.bytes));
      }
    }

    EXPECT_EQ(misses.count(), 0U) << misses.text();
    EXPECT_GT(all, 1U << 20U);
  });
}

// From names, without what the collector knows: most of all; the rest belongs to types that are
// compiled in. With what the collector knows, all.
TEST_P(TruthOfHeap, ReachesItsObjects) {
  for_each([](TrueHeap& heap) {
    ProcessObjects& objects = heap.objects();
    ObjectGraph graph(objects, objects.roots(), {});
    std::size_t tracked = 0;
    Misses unreached;
    for (const TrueObject& object : heap.truth().objects) {
      tracked += object.is_tracked ? 1 : 0;
      if (object.is_tracked && graph.find(object.address) == ObjectGraph::kNone) {
        unreached.add(type_name(heap.truth(), object), fmt::format("{:x}", object.address));
      }
    }
    EXPECT_LT(unreached.count() * 100, tracked * 2) << unreached.text();
    if (heap.truth().is_free_threaded) {
      return;  // its collector has no lists
    }

    const CollectorState collector = read_collector(heap.image(), objects.runtime().layout,
                                                    objects.runtime().interpreters.front());
    ASSERT_EQ(collector.lists.size(), 4U);
    EXPECT_FALSE(collector.is_collecting);
    EXPECT_FALSE(collector.is_enabled);
    std::unordered_set<std::uint64_t> listed;
    std::size_t last = 0;  // of what is frozen: gc.get_objects() does not name it
    std::vector<Root> seeds;
    for (const std::uint64_t head : collector.lists) {
      const CollectorList list = read_collector_list(heap.image(), head, 1U << 30U);
      EXPECT_TRUE(list.is_whole);
      last = list.objects.size();
      for (const std::uint64_t object : list.objects) {
        listed.insert(object);
        seeds.push_back({object, "", 0, true, true});
      }
    }
    graph.add_unreachable(std::move(seeds), {});
    Misses unlisted;
    Misses nowhere;
    for (const TrueObject& object : heap.truth().objects) {
      const std::string what = fmt::format("{:x}", object.address);
      if (object.is_tracked && !listed.contains(object.address)) {
        unlisted.add(type_name(heap.truth(), object), what);
      }
      if (graph.find(object.address) == ObjectGraph::kNone) {
        nowhere.add(type_name(heap.truth(), object), what);
      }
    }

    EXPECT_EQ(unlisted.count(), 0U) << unlisted.text();
    EXPECT_EQ(nowhere.count(), 0U) << nowhere.text();
    // Few have come while all were written down.
    EXPECT_NEAR(static_cast<double>(listed.size() - last), static_cast<double>(tracked), 10.0);
  });
}

// The way to its last node is as long as the list: nothing may follow it for each of them.
TEST(HeapAnalysis, LooksAtLongLinkedLists) {
  constexpr int kNodes = 200'000;
  tests::Subprocess script({"/usr/bin/python3", "-c",
                            fmt::format("class Node:\n"
                                        "    def __init__(self, after): self.after = after\n"
                                        "head = None\n"
                                        "for _ in range({}): head = Node(head)\n"
                                        "print('ready', flush=True)\n"
                                        "input()\n",
                                        kNodes)});
  script.read_until("ready\n");
  auto image = MemoryImage::open(script.pid(), std::uint64_t{1} << 30U);
  const auto memory = inject::RemoteMemory::open(script.pid());
  ASSERT_TRUE(image && memory);
  auto runtime = find_python(*image, *memory);
  ASSERT_TRUE(runtime) << runtime.error().what;
  ProcessObjects objects(*image, *std::move(runtime));
  HeapFacts facts;
  facts.looks.emplace_back();
  const auto begin = std::chrono::steady_clock::now();

  HeapAnalysis analysis({script.pid(), 0}, {});
  ASSERT_TRUE(analysis.run(
      *image, objects, {}, [] { return true; }, {}, facts));

  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_GT(facts.looks.front().look.objects, std::uint64_t{kNodes});
  EXPECT_THAT(facts.owners, testing::Contains(testing::Field(
                                &OwnerRecord::path, testing::StartsWith("__main__.head"))));
}

}  // namespace
}  // namespace tidemark::heap
