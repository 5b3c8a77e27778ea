// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_sizes.h"

#include <algorithm>

#include "profiler/heap/python_dicts.h"
#include "profiler/heap/python_objects.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMostItems = std::uint64_t{1} << 32U;
constexpr std::uint64_t kMostFrameItems = 20'000;

}  // namespace

std::uint64_t PythonSizes::text_bytes(std::uint64_t text, const TypeInfo& type) {
  auto state = image_.load<std::uint32_t>(text + layout_.text_state);
  if (layout_.is_free_threaded) {
    state = state >> 8U << 2U;
  } else if (layout_.minor >= 14 && (state >> 5U & 1U) == 0) {
    state = state >> 14U & ~std::uint32_t{3};
  }
  const std::uint64_t width = state >> 2U & 7U;
  const bool is_compact = (state >> 5U & 1U) != 0;
  const bool is_ascii = (state >> 6U & 1U) != 0;
  const std::uint64_t characters =
      (image_.word(text + layout_.object_size) + 1) * std::min<std::uint64_t>(width, 4);
  const std::uint64_t data =
      is_compact ? text + layout_.compact_data : image_.word(text + layout_.compact_data);
  std::uint64_t bytes = type.kind_size + (data == 0 ? 0 : characters);
  if (is_compact) {
    bytes = (is_ascii ? layout_.ascii_data : layout_.compact_data) + characters;
  }
  if (!is_ascii) {
    const std::uint64_t utf8_at = text + layout_.compact_data - 8 - (layout_.minor <= 11 ? 8 : 0);
    const std::uint64_t utf8 = image_.word(utf8_at);
    bytes += utf8 != 0 && utf8 != data ? image_.word(utf8_at - 8) + 1 : 0;
  }
  return bytes;
}

std::uint64_t PythonSizes::deque_bytes(std::uint64_t deque) {
  std::uint64_t block = image_.word(deque + 24 + layout_.shift);
  const std::uint64_t last = image_.word(deque + 32 + layout_.shift);
  const std::uint64_t most = item_count(image_, layout_, deque) / kDequeBlockItems + 2;
  std::uint64_t blocks = 1;
  while (block != last && block != 0 && blocks < most) {
    block = next_deque_block(image_, layout_, deque, block);
    ++blocks;
  }
  return blocks * 8 * (kDequeBlockItems + 2);
}

// Of an instance whose attributes are in no dict: what their values take, with room for more.
std::uint64_t PythonSizes::attribute_bytes(std::uint64_t object, const TypeInfo& type) {
  if (layout_.minor < 11 || !type.has(kManagedDictFlag)) {
    return 0;
  }
  if (layout_.minor >= 13) {
    const std::uint64_t room = image_.load<std::uint8_t>(object + type.basic_size);
    return type.has(kInlineValuesFlag) ? 8 + 8 * room + ((room + 7) & ~std::uint64_t{7}) : 0;
  }
  const std::uint64_t dict = image_.word(object - 24);
  const bool has_values =
      layout_.minor == 11 ? dict == 0 && image_.word(object - 32) != 0 : dict % 2 != 0;
  const std::uint64_t room =
      read_dict_keys(image_, layout_, type.cached_keys).count + image_.word(type.cached_keys + 16);
  return has_values && room < kMostInlineValues ? 8 * room + ((room + 9) & ~std::uint64_t{7}) : 0;
}

std::uint64_t PythonSizes::int_bytes(std::uint64_t number) {
  const std::uint64_t digits = layout_.minor >= 12 ? image_.word(number + layout_.object_size) >> 3U
                                                   : item_count(image_, layout_, number);
  return 24 + layout_.shift + 4 * std::max<std::uint64_t>(digits, layout_.minor >= 11 ? 1 : 0);
}

std::uint64_t PythonSizes::dict_bytes(std::uint64_t dict, const TypeInfo& type) {
  std::uint64_t bytes = type.basic_size + read_dict(image_, layout_, dict).bytes;
  if (type.is_ordered) {  // a node for each item, and where which is
    bytes +=
        32 * image_.word(dict + layout_.object_size) + 8 * image_.word(dict + 72 + layout_.shift);
  }
  return bytes;
}

std::uint64_t PythonSizes::type_bytes(std::uint64_t object, const TypeInfo& type) {
  const std::uint64_t keys = image_.word(object + layout_.heap_type_cached_keys);
  return type.basic_size + read_dict_keys(image_, layout_, keys).bytes;
}

std::uint64_t PythonSizes::frame_bytes(std::uint64_t object, const TypeInfo& type) {
  if (layout_.minor <= 10) {
    const std::uint64_t items = std::min(item_count(image_, layout_, object), kMostFrameItems);
    return type.basic_size + 8 * items - 8;
  }
  // It has room for all that its frame has, also as long as that is elsewhere.
  const std::uint64_t frame = image_.word(object + layout_.frame_object_frame);
  return type.basic_size + frames_.extra_bytes(frames_.code_of(frame));
}

// Of the object without what comes before it.
std::uint64_t PythonSizes::own_bytes(std::uint64_t object, const TypeInfo& type) {
  const std::uint32_t shift = layout_.shift;
  const std::uint64_t basic = type.basic_size;
  switch (type.kind) {
    case ObjectKind::kInt:
      return int_bytes(object);
    case ObjectKind::kText:
      return text_bytes(object, type);
    case ObjectKind::kList:
      return basic + 8 * image_.word(object + 32 + shift);
    case ObjectKind::kTuple:
      return basic + 8 * item_count(image_, layout_, object);
    case ObjectKind::kBytes:
      return basic + item_count(image_, layout_, object);
    case ObjectKind::kDict:
      return dict_bytes(object, type);
    case ObjectKind::kSet: {
      const bool is_small = image_.word(object + 40 + shift) == object + 64 + shift;
      return basic + (is_small ? 0 : 16 * (image_.word(object + 32 + shift) + 1));
    }
    case ObjectKind::kByteArray: {
      const std::uint64_t allocated = image_.word(object + 24 + shift);
      return basic + allocated + (layout_.minor >= 15 && allocated != 0 ? 33 : 0);
    }
    case ObjectKind::kDeque:
      return basic + deque_bytes(object);
    case ObjectKind::kArray:
      return basic + image_.word(object + 32 + shift) *
                         image_.load<std::uint32_t>(image_.word(object + 40 + shift) + 4);
    case ObjectKind::kNumpyArray:
      return basic +
             (arrays_.owns_data(object) ? arrays_.items(object) * arrays_.item_bytes(object) : 0);
    case ObjectKind::kGenerator:
      return basic + (layout_.minor >= 11
                          ? frames_.extra_bytes(frames_.code_of(object + layout_.generator_frame))
                          : 0);
    case ObjectKind::kType:
      return type_bytes(object, type);
    case ObjectKind::kFrame:
      return frame_bytes(object, type);
    case ObjectKind::kCode: {
      const std::uint64_t bytes =
          basic + std::min(item_count(image_, layout_, object), kMostItems) * type.item_size;
      return layout_.minor >= 11 ? (bytes + 7) & ~std::uint64_t{7} : bytes;
    }
    default: {
      const std::uint64_t items = type.item_size == 0 ? 0 : item_count(image_, layout_, object);
      return basic + (items < kMostItems ? items * type.item_size : 0);
    }
  }
}

std::uint64_t PythonSizes::bytes(std::uint64_t object, const TypeInfo& type) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 42U;
  constexpr std::uint64_t kStaticTypeBytes = 416;
  if (type.kind == ObjectKind::kType &&
      (image_.word(object + layout_.type_flags) & kHeapTypeFlag) == 0) {
    return kStaticTypeBytes;
  }
  std::uint64_t bytes = own_bytes(object, type) + attribute_bytes(object, type);
  if (!layout_.is_free_threaded) {
    bytes += type.has(kHasGcFlag) ? 16U : 0U;
    const bool has_managed = (layout_.minor >= 11 && type.has(kManagedDictFlag)) ||
                             (layout_.minor >= 12 && type.has(kManagedWeakrefFlag));
    bytes += has_managed ? 16U : 0U;
  }
  return bytes < kMostBytes ? bytes : type.basic_size;
}

}  // namespace tidemark::heap
