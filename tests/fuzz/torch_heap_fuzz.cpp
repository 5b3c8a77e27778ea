// SPDX-License-Identifier: Apache-2.0
// The objects of torch in a stranger's memory: the input changes that of a small program that is
// made up, in changes of 6 bytes each: where (of words), what, and a number. Three looks read it:
// as it was, changed by the first half, and by all. Nothing may make the reader crash, hang, or
// take much memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "common/check.h"
#include "profiler/heap/cpp_objects.h"
#include "profiler/heap/heap_analysis.h"
#include "tests/support/made_up_torch.h"

namespace {

using namespace tidemark;
using namespace tidemark::heap;
using tests::MadeUpTorch;

constexpr std::size_t kChangeBytes = 6;
constexpr std::uint64_t kNumbers[] = {0,
                                      1,
                                      64,
                                      0xffff,
                                      1U << 20U,
                                      0xffffffff,
                                      std::uint64_t{1} << 41U,
                                      std::uint64_t{1} << 60U,
                                      ~std::uint64_t{0},
                                      std::uint64_t{1} << 63U};

std::string_view change(std::string_view changes, std::string& bytes, std::size_t count) {
  for (; count > 0 && changes.size() >= kChangeBytes; --count) {
    std::uint8_t field[kChangeBytes];
    std::memcpy(field, changes.data(), kChangeBytes);
    changes.remove_prefix(kChangeBytes);
    const std::size_t word = (field[0] | std::size_t{field[1]} << 8U) % (bytes.size() / 8);
    const std::uint64_t number = field[3] | std::uint64_t{field[4]} << 8U;
    std::uint64_t value = number;
    switch (field[2] % 4) {
      case 0:
        value = MadeUpTorch::kHeap + number * 8 % MadeUpTorch::kHeapBytes;
        break;
      case 1:
        value = MadeUpTorch::kLibrary + number * 8 % MadeUpTorch::kLibraryBytes;
        break;
      case 2:
        value = kNumbers[number % std::size(kNumbers)];
        break;
      default:
        break;
    }
    std::memcpy(bytes.data() + 8 * word, &value, 8);
  }
  return changes;
}

void look(HeapAnalysis& analysis, const std::string& bytes, double t_s) {
  MemoryImage image = MadeUpTorch::image(bytes);
  HeapFacts facts;
  facts.looks.emplace_back();
  facts.looks.front().look.t_s = t_s;
  analysis.set_with_blocks(true);
  TIDEMARK_CHECK(analysis.run_native(
                     image, {}, [] { return true; }, facts),
                 "a look that is sound");
  for (const OwnerRecord& owner : facts.owners) {
    TIDEMARK_CHECK(owner.path.size() <= kMostOwnerTextBytes, "a path that is too long");
  }
  for (const OwnerSample& sample : facts.looks.front().owners) {
    TIDEMARK_CHECK(sample.grown_bytes <= *sample.reached_bytes, "more growth than there is");
  }
}

// As the walk over the objects of Python does that leads to them.
void follow(const std::string& bytes) {
  constexpr std::size_t kMostReferences = 1U << 20U;
  MemoryImage image = MadeUpTorch::image(bytes);
  CppObjects objects(image);
  std::size_t count = 0;
  for (std::uint64_t at = MadeUpTorch::kHeap; at < MadeUpTorch::kHeap + MadeUpTorch::kHeapBytes;
       at += 8) {
    if (const CppClass* const of = objects.find(at); of != nullptr) {
      objects.references(at, *of, [&](std::span<const Reference> some) { count += some.size(); });
      (void)objects.bytes(at, *of);
    }
  }
  TIDEMARK_CHECK(count < kMostReferences * 64, "references without end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MadeUpTorch torch;
  HeapAnalysis analysis({1, 1}, {});
  look(analysis, torch.bytes(), 1);
  std::string bytes = torch.bytes();
  const std::string_view changes(reinterpret_cast<const char*>(data), size);
  const std::string_view rest = change(changes, bytes, changes.size() / kChangeBytes / 2);
  look(analysis, bytes, 2);
  change(rest, bytes, rest.size());
  look(analysis, bytes, 3);
  follow(bytes);
  return 0;
}
