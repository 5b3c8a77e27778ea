// SPDX-License-Identifier: Apache-2.0
// What is read of tensors and arrays from outside, against what torch says of each of them, and who
// holds those that grow. Skipped where the Python of the system has no torch.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "profiler/heap/heap_watch.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/heap/tensor_groups.h"
#include "profiler/inject/remote_memory.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::heap {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::SizeIs;

constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kPrograms = TIDEMARK_SOURCE_DIR "/tests/programs/owners/";

bool has_torch() {
  static const bool has = [] {
    return ::access(kPython, X_OK) == 0 &&
           tests::Subprocess({kPython, "-c", "import torch, numpy"}).wait() == 0;
  }();
  return has;
}

class TensorTruth : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_torch()) {
      GTEST_SKIP() << "there is no torch";
    }
    script_ = std::make_unique<tests::Subprocess>(
        std::vector<std::string>{kPython, std::string(kPrograms) + "heap_truth.py",
                                 folder_.path("objects"), "--torch", folder_.path("tensors")});
    script_->read_until("ready\n");
    truth_ = json::parse(std::ifstream(folder_.path("tensors")), nullptr, false);
    auto image = MemoryImage::open(script_->pid(), std::uint64_t{1} << 30U);
    auto memory = inject::RemoteMemory::open(script_->pid());
    ASSERT_TRUE(image && memory && truth_.is_object());
    image_ = std::make_unique<MemoryImage>(*std::move(image));
    auto runtime = find_python(*image_, *memory);
    ASSERT_TRUE(runtime) << runtime.error().what;
    objects_ = std::make_unique<ProcessObjects>(*image_, *std::move(runtime));
    graph_ = std::make_unique<ObjectGraph>(*objects_, objects_->roots(), GraphLimits());
  }

  std::vector<std::uint64_t> all_of(ObjectKind kind) const {
    std::vector<std::uint64_t> found;
    for (const ObjectGraph::Node node : graph_->order()) {
      if (graph_->type(node).kind == kind) {
        found.push_back(graph_->address(node));
      }
    }
    return found;
  }

  // The tensor of C++ behind one of Python; 0: there is not just one.
  std::uint64_t behind(std::uint64_t object) const {
    std::set<std::uint64_t> found;
    const ObjectGraph::Node node = graph_->find(object);
    if (node != ObjectGraph::kNone) {
      for (const ObjectGraph::Node target : graph_->targets(node)) {
        if (graph_->type(target).kind == ObjectKind::kCppTensor) {
          found.insert(graph_->address(target));
        }
      }
    }
    return found.size() == 1 ? *found.begin() : 0;
  }

  // What torch says of each storage, by address.
  std::map<std::uint64_t, json> true_storages() const {
    std::map<std::uint64_t, json> storages;
    for (const json& tensor : truth_["tensors"]) {
      if (!tensor["storage"].is_null()) {
        storages.emplace(tensor["storage"].get<std::uint64_t>(), tensor);
      }
    }
    return storages;
  }

  tests::TempTree folder_;
  std::unique_ptr<tests::Subprocess> script_;
  json truth_;
  std::unique_ptr<MemoryImage> image_;
  std::unique_ptr<ProcessObjects> objects_;
  std::unique_ptr<ObjectGraph> graph_;
};

TEST_F(TensorTruth, EachTensorIsWhatTorchSaysOfIt) {
  std::size_t count = 0;
  for (const json& tensor : truth_["tensors"]) {
    if (tensor["object"].is_null()) {
      continue;
    }
    ++count;
    const std::uint64_t address = behind(tensor["object"]);
    ASSERT_NE(address, 0U) << tensor;
    const auto facts = objects_->cpp().tensor(address);
    ASSERT_TRUE(facts) << tensor;
    EXPECT_EQ(facts->shape, tensor["shape"].get<std::vector<std::int64_t>>()) << tensor;
    EXPECT_EQ(facts->dtype, tensor["dtype"]) << tensor;
    EXPECT_EQ(facts->device, tensor["device"]) << tensor;
    EXPECT_EQ(facts->requires_grad, tensor["requires_grad"]) << tensor;
    EXPECT_EQ(facts->is_graph, !tensor["node"].is_null()) << tensor;
    if (!tensor["storage"].is_null()) {
      EXPECT_EQ(facts->storage, tensor["storage"]) << tensor;
    }
  }
  EXPECT_GE(count, 50U);
}

TEST_F(TensorTruth, EachStorageIsThereWithItsSizeAndItsData) {
  for (const auto& [address, tensor] : true_storages()) {
    EXPECT_NE(graph_->find(address), ObjectGraph::kNone) << tensor;
    const auto facts = objects_->cpp().storage(address);
    ASSERT_TRUE(facts) << tensor;
    EXPECT_EQ(facts->bytes, tensor["storage_bytes"]) << tensor;
    EXPECT_EQ(facts->data, tensor["data"]) << tensor;
  }
}

TEST_F(TensorTruth, TheBytesOfTensorsAreThoseOfTheirStoragesOnce) {
  std::uint64_t expected = 0;
  for (const auto& [address, tensor] : true_storages()) {
    expected += tensor["storage_bytes"].get<std::uint64_t>();
  }
  const auto known = true_storages();
  const auto counted =
      count_tensors(objects_->cpp(), all_of(ObjectKind::kCppTensor),
                    [&](std::uint64_t storage) { return known.contains(storage); });

  std::uint64_t bytes = 0;
  for (const CountedTensor& tensor : counted) {
    bytes += tensor.bytes;
  }
  EXPECT_EQ(bytes, expected);
  // Beyond what torch lists there are the indices and the values of the sparse one, and its own.
  EXPECT_LE(all_of(ObjectKind::kCppStorage).size(), known.size() + 3);
}

TEST_F(TensorTruth, OperationsAreThereByTheirClasses) {
  std::map<std::string, int> expected;
  for (const json& node : truth_["nodes"]) {
    // A function of the user is one of Python behind one of C++.
    ++expected[node == "SquareBackward" ? "PyNode" : node.get<std::string>()];
  }
  std::map<std::string, int> found;
  for (const ObjectGraph::Node node : graph_->order()) {
    if (graph_->type(node).kind == ObjectKind::kCpp) {
      ++found[graph_->type(node).name];
    }
  }
  for (const auto& [name, count] : expected) {
    EXPECT_EQ(found[name], count) << name;
  }
}

TEST_F(TensorTruth, AScanOfTheMemoryFindsTheSameStorages) {
  const auto storages = all_of(ObjectKind::kCppStorage);
  const auto found = objects_->cpp().scan(storages, [] { return false; }, {});

  EXPECT_THAT(found.storages, testing::UnorderedElementsAreArray(storages));
  EXPECT_GE(found.tensors.size(), all_of(ObjectKind::kCppTensor).size());
}

TEST_F(TensorTruth, MemoryThatNumpyHasLentIsThatOfTheArray) {
  std::size_t lent = 0;
  for (const std::uint64_t storage : all_of(ObjectKind::kCppStorage)) {
    const auto facts = objects_->cpp().storage(storage);
    const ObjectGraph::Node node = graph_->find(storage);
    lent += facts && facts->bytes == 800 && graph_->bytes(node) < 800 ? 1U : 0U;
  }
  EXPECT_EQ(lent, 1U);
}

// --------------------------------------------------------------------------- who holds what grows

// Three looks at a process.
class Looks {
 public:
  Looks(pid_t pid, std::chrono::milliseconds between) : watch_({pid, 0}, HeapOptions()) {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(i == 0 ? std::chrono::milliseconds(0) : between);
      auto facts = watch_.look(to_seconds(SystemClock().monotonic_ns()));
      if (!facts) {
        ADD_FAILURE() << facts.error().what;
        return;
      }
      EXPECT_EQ(facts->looks.front().look.problem, "");
      owners_.insert(owners_.end(), facts->owners.begin(), facts->owners.end());
      last_ = facts->looks.front();
    }
  }

  // That with the most growth; nullptr: nothing has grown.
  const OwnerSample* first() const {
    const auto most = std::max_element(
        last_.owners.begin(), last_.owners.end(),
        [](const auto& a, const auto& b) { return a.grown_bytes < b.grown_bytes; });
    return most == last_.owners.end() || most->grown_bytes == 0 ? nullptr : &*most;
  }
  const OwnerRecord& record(const OwnerSample& sample) const {
    return *std::find_if(owners_.begin(), owners_.end(),
                         [&](const OwnerRecord& record) { return record.owner == sample.owner; });
  }
  const HeapFacts::OfProcess& last() const { return last_; }

 private:
  HeapWatch watch_;
  std::vector<OwnerRecord> owners_;
  HeapFacts::OfProcess last_;
};

class HeldTensors : public testing::TestWithParam<const char*> {};

TEST_P(HeldTensors, AreNamedWithTheirOwner) {
  if (!has_torch()) {
    GTEST_SKIP() << "there is no torch";
  }
  tests::Subprocess script({kPython, std::string(kPrograms) + "array_shapes.py", GetParam()});
  script.read_until("ready\n");
  const json truth = json::parse(script.output().substr(0, script.output().find('\n')));
  const auto pid = truth["pid"].get<pid_t>();

  const Looks looks(pid, std::chrono::seconds(2));

  const OwnerSample* const first = looks.first();
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(truth["owners"][0], Contains(looks.record(*first).path));
  if (truth["holds"].is_null()) {
    return;
  }
  ASSERT_FALSE(first->holds.empty());
  const HeldObjects& most = first->holds.front();
  EXPECT_EQ(most.type, truth["holds"]["type"]);
  EXPECT_EQ(most.dtype, truth["holds"]["dtype"]);
  EXPECT_EQ(most.shape, truth["holds"]["shape"].get<std::vector<std::int64_t>>());
  EXPECT_EQ(most.device, truth["holds"].value("device", ""));
  const double each = static_cast<double>(most.bytes) / static_cast<double>(most.count);
  EXPECT_NEAR(each, truth["bytes_per_step"].get<double>(), 0.1 * each);
}

INSTANTIATE_TEST_SUITE_P(All, HeldTensors,
                         testing::Values("tensor_cache", "autograd_graph", "forward_hooks",
                                         "loader_worker", "numpy_arrays", "borrowed_arrays",
                                         "native_arrays"),
                         [](const auto& shape) { return std::string(shape.param); });

#ifdef TIDEMARK_HAS_HARNESS
TEST(NativeTensors, ThatGrowAreNamedByWhatTheyLookLike) {
  tests::Subprocess trainer({TIDEMARK_BINARY_DIR "/bin/tidemark-harness", "train", "leak",
                             "--cause", "collator", "--mb-per-step", "1", "--steps", "4000",
                             "--step-time", "20ms", "--from-step", "10"});
  trainer.read_until("Step 40 ");

  const Looks looks(trainer.pid(), std::chrono::seconds(2));

  const OwnerSample* const first = looks.first();
  ASSERT_NE(first, nullptr);
  const OwnerRecord& owner = looks.record(*first);
  EXPECT_EQ(owner.kind, OwnerKind::kNative);
  EXPECT_EQ(owner.path, "torch tensors uint8 [524288] cpu");
  ASSERT_THAT(first->holds, SizeIs(1));
  EXPECT_EQ(first->holds.front().bytes, first->grown_bytes);
  EXPECT_EQ(first->holds.front().count, first->grown_bytes / 524288);
  EXPECT_GT(first->grown_bytes, std::uint64_t{20} << 20U);
  EXPECT_GE(looks.last().look.new_bytes, first->grown_bytes);
  ASSERT_FALSE(looks.last().tensors.empty());
  EXPECT_EQ(looks.last().tensors.front().dtype, "uint8");
}

TEST(NativeTensors, OfStoragesWithoutTensorAreNamedByTheirSize) {
  tests::Subprocess program({TIDEMARK_BINARY_DIR "/tests/programs/keeps_storages"});
  program.read_until("ready");

  const Looks looks(program.pid(), std::chrono::seconds(1));

  const OwnerSample* const first = looks.first();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(looks.record(*first).path, "torch storages of 65536 bytes cpu");
  ASSERT_THAT(first->holds, SizeIs(1));
  EXPECT_EQ(first->holds.front().type, "c10::StorageImpl");
  EXPECT_GE(first->holds.front().count, 10U);
  EXPECT_EQ(first->grown_bytes, first->holds.front().count << 16U);
  EXPECT_EQ(looks.last().look.new_bytes, first->grown_bytes);
  EXPECT_THAT(looks.last().owners, SizeIs(2));  // those of 1 MiB are there, and have not grown
}
#endif

}  // namespace
}  // namespace tidemark::heap
