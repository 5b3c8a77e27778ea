// SPDX-License-Identifier: Apache-2.0
// A small Python that is made up, and what its memory may be like to harm who reads it.
#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/object_graph.h"
#include "profiler/heap/paths.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/python_roots.h"
#include "profiler/heap/python_runtime.h"
#include "tests/support/made_up_python.h"

namespace tidemark::heap {
namespace {

using testing::Contains;
using testing::Not;
using tests::MadeUpPython;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60U;

struct Found {
  std::string problem;
  std::string version;
  std::vector<std::string> paths;  // of all objects
  std::uint64_t bytes = 0;
  std::size_t roots = 0;
  bool is_partial = false;
};

Found read(const MadeUpPython& python) {
  MemoryImage image = MadeUpPython::image(python.bytes());
  const unsigned minor = python.layout().minor;
  auto runtime = read_python(image, python.runtime(), minor >= kFirstPublishedMinor ? 0 : minor);
  Found found;
  if (!runtime) {
    found.problem = runtime.error().what;
    return found;
  }
  ProcessObjects objects(image, *std::move(runtime));
  GraphLimits limits;
  limits.most_references = 1'000'000;
  const ObjectGraph graph(objects, objects.roots(), limits);
  ObjectPaths paths(graph);
  found.version = python_version(image, objects.runtime(), objects.types());
  for (const ObjectGraph::Node node : graph.order()) {
    found.paths.push_back(paths.of(node).text);
    found.bytes += graph.bytes(node);
  }
  found.roots = graph.roots().size();
  found.is_partial = graph.is_partial();
  return found;
}

class EachPython : public testing::TestWithParam<unsigned> {
 protected:
  MadeUpPython python_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Each, EachPython, testing::Range(kFirstPythonMinor, kLastPythonMinor + 1),
                         [](const auto& minor) {
                           return "Python3_" + std::to_string(minor.param);
                         });

TEST_P(EachPython, IsReadWhereItsVersionSaysThatThingsAre) {
  const Found found = read(python_);

  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.version, fmt::format("3.{}.1", GetParam()));
  EXPECT_FALSE(found.is_partial);
  for (const char* const path :
       {"__main__.cache[*]", "__main__.trainer.history[*]", "__main__.recent[*]",
        "__main__.seen[*]", "step() locals: batch[*]", "step() default: loss"}) {
    EXPECT_THAT(found.paths, Contains(path));
  }
}

TEST_P(EachPython, HasCollectorListsThatEnd) {
  MemoryImage image = MadeUpPython::image(python_.bytes());
  const auto runtime = read_python(image, python_.runtime(), GetParam() >= 13 ? 0 : GetParam());
  ASSERT_TRUE(runtime);
  const auto collector = read_collector(image, runtime->layout, runtime->interpreters.front());
  ASSERT_EQ(collector.lists.size(), 4U);
  EXPECT_THAT(read_collector_list(image, collector.lists.front(), 100).objects,
              testing::ElementsAre(python_.variable("cache")));

  // Its first object now leads to itself.
  const std::uint64_t tracked = python_.variable("cache") - 16;
  python_.put(tracked, tracked);
  MemoryImage torn = MadeUpPython::image(python_.bytes());
  const CollectorList list = read_collector_list(torn, collector.lists.front(), 100);
  EXPECT_FALSE(list.is_whole);
  EXPECT_LE(list.objects.size(), 2U);
}

TEST_P(EachPython, MayHaveNoBeginning) {
  python_.put(python_.runtime() + python_.layout().runtime_interpreters, 0);

  EXPECT_EQ(read(python_).problem, "its Python has not begun yet, or has ended");
}

TEST_P(EachPython, MayHaveListsThatLieAboutTheirSize) {
  const std::uint64_t list = python_.variable("cache");
  for (const std::uint64_t size : {kHuge, ~std::uint64_t{0}, std::uint64_t{1} << 31U}) {
    python_.put(list + python_.layout().object_size, size);
    python_.put(list + 24, MadeUpPython::kBegin);
    const Found found = read(python_);

    EXPECT_LT(found.paths.size(), 1000U);
    EXPECT_LT(found.bytes, std::uint64_t{1} << 40U);
  }
}

TEST_P(EachPython, MayHaveTablesThatLieAboutTheirSize) {
  const std::uint64_t dict_at = python_.variable("trainer") + 40;
  std::uint64_t dict = 0;
  std::memcpy(&dict, python_.bytes().data() + (dict_at - MadeUpPython::kBegin), 8);
  std::uint64_t keys = 0;
  std::memcpy(&keys, python_.bytes().data() + (dict + 32 - MadeUpPython::kBegin), 8);
  for (const std::uint64_t offset : {8U, 24U, 32U}) {
    python_.put(keys + offset, ~std::uint64_t{0});
    EXPECT_LT(read(python_).paths.size(), 1000U);
  }
  python_.put(python_.variable("seen") + 32, kHuge);
  EXPECT_LT(read(python_).paths.size(), 1000U);
  python_.put(python_.variable("seen") + 32, 0xffffffff);
  EXPECT_LT(read(python_).paths.size(), 1000U);
}

// Its last block leads to its first, and it says that it has items without an end.
TEST_P(EachPython, MayHaveDequesThatLoop) {
  const std::uint64_t deque = python_.variable("recent");
  std::uint64_t blocks[2] = {};
  std::memcpy(blocks, python_.bytes().data() + (deque + 24 - MadeUpPython::kBegin), 16);
  python_.put(deque + python_.layout().object_size, std::uint64_t{1} << 31U);
  python_.put(blocks[1] + std::uint64_t{8} * 65, blocks[0]);
  python_.put(blocks[0], blocks[1]);
  python_.put(deque + 32, 0x1234560);
  const auto begin = std::chrono::steady_clock::now();

  const Found found = read(python_);

  EXPECT_FALSE(found.is_partial);
  EXPECT_LT(found.bytes, 1U << 20U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_P(EachPython, MayHaveFramesAndThreadsThatLoop) {
  const PythonLayout& layout = python_.layout();
  const std::uint64_t interpreters = python_.runtime() + layout.runtime_interpreters;
  std::uint64_t interpreter = 0;
  std::memcpy(&interpreter, python_.bytes().data() + (interpreters - MadeUpPython::kBegin), 8);
  std::uint64_t thread = 0;
  std::memcpy(
      &thread,
      python_.bytes().data() + (interpreter + layout.interpreter_threads - MadeUpPython::kBegin),
      8);
  const std::size_t roots = read(python_).roots;
  python_.put(thread + layout.thread_next, thread);
  const std::uint64_t frame_at =
      layout.thread_frame != PythonLayout::kNone ? thread + layout.thread_frame : 0;
  if (frame_at != 0) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, python_.bytes().data() + (frame_at - MadeUpPython::kBegin), 8);
    python_.put(frame + layout.frame_previous, frame);
  }

  EXPECT_LE(read(python_).roots, roots + 4);
}

TEST_P(EachPython, MayHaveTypesThatLoop) {
  const PythonLayout& layout = python_.layout();
  const std::uint64_t trainer = python_.type("Trainer");
  python_.put(trainer + layout.type_base, trainer);
  EXPECT_THAT(read(python_).paths, Contains("__main__.trainer"));

  // The type of types, and that of texts, are of the type Trainer.
  python_.put(python_.type("type") + layout.object_type, trainer);
  python_.put(python_.type("str") + layout.object_type, trainer);
  EXPECT_THAT(read(python_).paths, Not(Contains("__main__.trainer")));
}

// Each class has a name that is an object of the next class: none is read to know another.
TEST_P(EachPython, MayHaveNamesThatAreOfTypesWithSuchNames) {
  const PythonLayout& layout = python_.layout();
  const std::uint64_t trainer = python_.type("Trainer");
  const std::uint64_t name = python_.make_text("name");
  python_.put(trainer + layout.type_flags, kHeapTypeFlag | kReadyFlag | kTextFlag);
  python_.put(trainer + layout.heap_type_qualname, name);
  python_.put(name + layout.object_type, trainer);

  EXPECT_THAT(read(python_).paths, Contains("__main__.trainer"));
}

TEST_P(EachPython, MayHaveTextsOfNoKind) {
  const PythonLayout& layout = python_.layout();
  const std::uint64_t text = python_.make_text("text");
  python_.put(python_.variable("trainer") + 40, python_.make_dict({{text, text}}));
  for (const std::uint64_t state : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{4} << 2U,
                                    std::uint64_t{7} << 2U, std::uint64_t{1} << 2U}) {
    python_.put(text + layout.text_state, state);
    python_.put(text + layout.object_size, kHuge);
    const Found found = read(python_);
    EXPECT_LT(found.paths.size(), 100U);
    for (const std::string& path : found.paths) {
      EXPECT_LE(path.size(), kMostOwnerTextBytes);
    }
  }
}

// Objects of torch's namespaces may have any name that their memory has.
TEST(PythonTypes, DoNotWriteOutNamesThatWouldBeEndless) {
  std::string mangled = "i";
  for (int i = 0; i < 30; ++i) {
    mangled =
        fmt::format("1aI{}{}E", mangled, i == 0 ? "i" : fmt::format("S{}_", i == 1 ? "" : "0"));
  }
  const MadeUpPython python(12);
  MemoryImage image = MadeUpPython::image(python.bytes());
  PythonTypes types(image, python.layout());

  const auto type = types.of_cpp(mangled, ObjectKind::kCpp);

  EXPECT_EQ(types[type].full_name, mangled);
  EXPECT_EQ(types[types.of_cpp("N5torch8autograd5ErrorE", ObjectKind::kCpp)].full_name,
            "torch::autograd::Error");
}

TEST(PythonTypes, AreKnownByTheirOwnNumbers) {
  const MadeUpPython python(12);
  MemoryImage image = MadeUpPython::image(python.bytes());
  PythonTypes types(image, python.layout());

  // The first to be read has a name for which the type of texts must be known.
  const auto trainer = types.find(python.type("Trainer"));
  const auto text = types.find(python.type("str"));

  ASSERT_NE(trainer, PythonTypes::kNone);
  EXPECT_EQ(types[trainer].full_name, "__main__.Trainer");
  EXPECT_EQ(types[text].full_name, "str");
}

}  // namespace
}  // namespace tidemark::heap
