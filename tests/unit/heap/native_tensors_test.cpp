// SPDX-License-Identifier: Apache-2.0
// Tensors of a program without Python that is made up, what of them grows, and what its memory may
// be like to harm who reads it.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/cpp_objects.h"
#include "profiler/heap/heap_analysis.h"
#include "tests/support/made_up_torch.h"

namespace tidemark::heap {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;
using tests::MadeUpTorch;

constexpr std::uint64_t kBytes = MadeUpTorch::kStorageBytes;

CppObjects::Found scan(CppObjects& objects) {
  return objects.scan({}, [] { return false; }, {});
}

std::vector<std::uint64_t> references(CppObjects& objects, std::uint64_t object) {
  std::vector<std::uint64_t> targets;
  const CppClass* const of = objects.find(object);
  if (of != nullptr) {
    objects.references(object, *of, [&](std::span<const Reference> some) {
      for (const Reference& reference : some) {
        targets.push_back(reference.target);
      }
    });
  }
  return targets;
}

TEST(CppObjects, AreFoundWithoutPython) {
  MadeUpTorch torch;
  MemoryImage image = MadeUpTorch::image(torch.bytes());
  CppObjects objects(image);

  const CppObjects::Found found = scan(objects);

  EXPECT_THAT(found.tensors, UnorderedElementsAreArray(torch.tensors()));
  EXPECT_THAT(found.storages, UnorderedElementsAreArray(torch.storages()));
  const auto leaf = objects.tensor(torch.tensors()[0]);
  const auto result = objects.tensor(torch.tensors()[2]);
  const auto plain = objects.tensor(torch.tensors()[5]);
  ASSERT_TRUE(leaf && result && plain);
  EXPECT_THAT(leaf->shape, ElementsAre(128, 256));
  EXPECT_EQ(leaf->dtype, "float32");
  EXPECT_EQ(leaf->device, "cpu");
  EXPECT_TRUE(leaf->requires_grad && !leaf->is_graph);
  EXPECT_TRUE(result->requires_grad && result->is_graph);
  EXPECT_FALSE(plain->requires_grad);
  const auto storage = objects.storage(torch.storages()[5]);
  ASSERT_TRUE(storage);
  EXPECT_EQ(storage->bytes, kBytes);
  EXPECT_THAT(references(objects, torch.operations()[0]), Contains(torch.operations()[1]));
  EXPECT_THAT(references(objects, torch.operations()[1]), Contains(torch.tensors()[1]));
}

// Looks at such a program, with more and more in it.
class NativeLooks {
 public:
  void look(MadeUpTorch& torch) {
    MemoryImage image = MadeUpTorch::image(torch.bytes());
    HeapFacts facts;
    facts.looks.emplace_back();
    analysis_.set_with_blocks(true);
    EXPECT_TRUE(analysis_.run_native(
        image, {}, [] { return true; }, facts));
    owners_.insert(owners_.end(), facts.owners.begin(), facts.owners.end());
    last_ = facts.looks.front();
    blocks_ = analysis_.take_blocks();
  }
  const OwnerSample* find(const std::string& path) const {
    for (const OwnerSample& sample : last_.owners) {
      for (const OwnerRecord& owner : owners_) {
        if (owner.owner == sample.owner && owner.path == path) {
          return &sample;
        }
      }
    }
    return nullptr;
  }
  const HeapLook& last() const { return last_.look; }
  const std::vector<OwnerBlocks>& blocks() const { return blocks_; }

 private:
  HeapAnalysis analysis_{{1, 1}, {}};
  std::vector<OwnerRecord> owners_;
  HeapFacts::OfProcess last_;
  std::vector<OwnerBlocks> blocks_;
};

constexpr const char* kTensors = "torch tensors float32 [128, 256] cpu";

TEST(NativeTensors, GrowInGroupsThatLookTheSame) {
  MadeUpTorch torch;
  NativeLooks looks;
  looks.look(torch);
  torch.add_tensor();
  looks.look(torch);
  torch.add_tensor();

  looks.look(torch);

  const OwnerSample* const group = looks.find(kTensors);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->grown_bytes, 2 * kBytes);
  EXPECT_EQ(group->entries, 10U);
  ASSERT_THAT(group->holds, SizeIs(1));
  EXPECT_EQ(group->holds[0].count, 2U);
  EXPECT_EQ(looks.last().new_bytes, 2 * kBytes);
  EXPECT_EQ(looks.last().heap_bytes, 10 * kBytes);
  // The tracer is asked for the memory that is new.
  ASSERT_THAT(looks.blocks(), SizeIs(1));
  EXPECT_THAT(looks.blocks()[0].addresses,
              UnorderedElementsAreArray({torch.data_of(8), torch.data_of(9)}));
  EXPECT_EQ(looks.blocks()[0].share, 1.0);
}

TEST(NativeTensors, OfAStorageThatNoTensorHasAreKnownByItsSize) {
  MadeUpTorch torch;
  NativeLooks looks;
  torch.add_storage(4 * kBytes);
  looks.look(torch);
  torch.add_storage(4 * kBytes);

  looks.look(torch);

  const OwnerSample* const group = looks.find("torch storages of 524288 bytes cpu");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->grown_bytes, 4 * kBytes);
  EXPECT_EQ(looks.find(kTensors)->grown_bytes, 0U);
}

TEST(NativeTensors, ThatHaveBecomeFewerOnceDoNotGrow) {
  NativeLooks looks;
  for (const int count : {8, 12, 6, 14}) {
    MadeUpTorch torch(count);
    looks.look(torch);
  }

  ASSERT_NE(looks.find(kTensors), nullptr);
  EXPECT_EQ(looks.find(kTensors)->grown_bytes, 0U);
  EXPECT_THAT(looks.blocks(), IsEmpty());
}

// Where the first word of a storage stands by chance, as on a stack.
TEST(NativeTensors, MayHaveStoragesThatAreNone) {
  MadeUpTorch torch;
  const std::uint64_t word = torch.take(64);
  torch.put(word, torch.table("N3c1011StorageImplE"));
  torch.put(word + 16, MadeUpTorch::kHeap);
  torch.put(word + 24, MadeUpTorch::kHeap);  // no code
  torch.put(word + 48, std::uint64_t{1} << 40U);
  NativeLooks looks;

  looks.look(torch);

  EXPECT_EQ(looks.last().heap_bytes, 8 * kBytes);
}

TEST(NativeTensors, MayHaveSizesThatLie) {
  MadeUpTorch torch;
  torch.put(torch.tensors()[7] + 64, 3);                         // dimensions
  torch.put(torch.tensors()[6] + 72, std::uint64_t{1} << 63U);   // a length
  torch.put(torch.storages()[5] + 48, std::uint64_t{1} << 63U);  // bytes
  NativeLooks looks;

  looks.look(torch);

  // Two are no tensors, and the memory of a third is not known.
  ASSERT_NE(looks.find(kTensors), nullptr);
  EXPECT_EQ(looks.find(kTensors)->entries, 6U);
  EXPECT_EQ(looks.find(kTensors)->reached_bytes, 5 * kBytes);
}

TEST(CppObjects, MayBeOfClassesThatDeriveFromThemselves) {
  MadeUpTorch torch;
  const std::string accumulator = "N5torch8autograd14AccumulateGradE";
  torch.put(torch.information(accumulator) + 16, torch.information(accumulator));
  MemoryImage image = MadeUpTorch::image(torch.bytes());
  CppObjects objects(image);

  EXPECT_THAT(scan(objects).tensors, SizeIs(8));
  ASSERT_NE(objects.find(torch.operations()[1]), nullptr);
  EXPECT_EQ(objects.find(torch.operations()[1])->role, CppRole::kPart);
}

TEST(CppObjects, MayHaveVectorsThatLieAboutTheirEnd) {
  MadeUpTorch torch;
  const std::uint64_t product = torch.operations()[0];
  for (const std::uint64_t end :
       {std::uint64_t{1} << 60U, MadeUpTorch::kHeap + (std::uint64_t{3} << 20U)}) {
    torch.put(product + 104, end);
    torch.put(product + 112, end);
    MemoryImage image = MadeUpTorch::image(torch.bytes());
    CppObjects objects(image);
    scan(objects);

    EXPECT_THAT(references(objects, product), SizeIs(testing::Lt(2000U)));
  }
}

}  // namespace
}  // namespace tidemark::heap
