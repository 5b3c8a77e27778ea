// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/object_blocks.h"

#include <optional>

#include "profiler/heap/python_layout.h"

namespace tidemark::heap {
namespace {

// Before an object lie the links of the collector, and where its attributes and weak references
// are.
std::uint64_t head_bytes(const PythonLayout& layout, const TypeInfo& type) {
  if (layout.is_free_threaded) {
    return 0;
  }
  const bool has_managed = (layout.minor >= 11 && type.has(kManagedDictFlag)) ||
                           (layout.minor >= 12 && type.has(kManagedWeakrefFlag));
  return (type.has(kHasGcFlag) ? 16U : 0U) + (has_managed ? 16U : 0U);
}

// 64 items between the addresses of the block on the left and of that on the right.
void add_deque_blocks(MemoryImage& image, const PythonLayout& layout, std::uint64_t deque,
                      std::vector<std::uint64_t>& blocks) {
  constexpr std::uint64_t kItems = 64;
  constexpr std::uint64_t kMost = 1U << 20U;
  std::uint64_t block = image.word(deque + 24 + layout.shift);
  const std::uint64_t last = image.word(deque + 32 + layout.shift);
  const std::uint64_t most = image.word(deque + layout.object_size) / kItems + 2;
  for (std::uint64_t i = 0; block != 0 && i < most && i < kMost; ++i) {
    blocks.push_back(block);
    block = block == last ? 0 : image.word(block + 8 * (kItems + 1));
  }
}

void add_python_blocks(MemoryImage& image, const PythonLayout& layout, std::uint64_t object,
                       const TypeInfo& type, std::vector<std::uint64_t>& blocks) {
  constexpr std::uint32_t kOwnsData = 4;
  const std::uint32_t shift = layout.shift;
  blocks.push_back(object - head_bytes(layout, type));
  switch (type.kind) {
    case ObjectKind::kList:
    case ObjectKind::kArray:
      return blocks.push_back(image.word(object + 24 + shift));
    case ObjectKind::kDict:
      return blocks.push_back(image.word(object + 32 + shift));
    case ObjectKind::kSet:
      return blocks.push_back(image.word(object + 40 + shift));
    case ObjectKind::kDeque:
      return add_deque_blocks(image, layout, object, blocks);
    case ObjectKind::kByteArray:  // from 3.15 on those of an object of the type bytes
      return blocks.push_back(image.word(object + 32 + shift) -
                              (layout.minor >= 15 ? 32 + shift : 0));
    case ObjectKind::kNumpyArray:
      if ((image.load<std::uint32_t>(object + 64 + shift) & kOwnsData) != 0) {
        blocks.push_back(image.word(object + 16 + shift));
      }
      return;
    default:
      return;
  }
}

}  // namespace

void add_blocks(MemoryImage& image, ProcessObjects& objects, std::uint64_t address,
                PythonTypes::Index type, std::vector<std::uint64_t>& blocks) {
  const TypeInfo& of = objects.type(type);
  const bool is_storage = of.kind == ObjectKind::kCppStorage;
  if (!is_storage && of.kind != ObjectKind::kCpp && of.kind != ObjectKind::kCppTensor) {
    return add_python_blocks(image, objects.runtime().layout, address, of, blocks);
  }
  blocks.push_back(address);
  const auto storage = is_storage ? objects.cpp().storage(address) : std::nullopt;
  // What another object has lent does not count for the storage.
  if (storage && storage->is_host && objects.bytes(address, type) > storage->bytes) {
    blocks.push_back(storage->data);
  }
}

}  // namespace tidemark::heap
