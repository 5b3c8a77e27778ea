// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_objects.h"

#include <algorithm>
#include <array>

#include "profiler/heap/python_dicts.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMostItems = std::uint64_t{1} << 32U;
constexpr std::uint64_t kMostStateBytes = 1U << 16U;
// Real ones have no longer rows of nothing: the size that is given is none.
constexpr std::uint64_t kMostEmpty = 1U << 20U;

}  // namespace

std::uint64_t item_count(MemoryImage& image, const PythonLayout& layout, std::uint64_t object) {
  const std::uint64_t count = image.word(object + layout.object_size);
  return static_cast<std::int64_t>(count) < 0 ? -count : count;
}

std::uint64_t next_deque_block(MemoryImage& image, const PythonLayout& layout, std::uint64_t deque,
                               std::uint64_t block) {
  const std::uint64_t first = image.word(deque + 24 + layout.shift);
  const std::uint64_t next = image.word(block + 8 * (kDequeBlockItems + 1));
  return next != first && image.word(next) == block ? next : 0;
}

void PythonObjects::references(std::uint64_t object, const TypeInfo& type, VisitReferences visit) {
  ReferenceBatch batch(buffer_, visit);
  if (type.has(kHeapTypeFlag)) {
    batch.add(type.address, ReferenceKind::kClass);
  }
  special_references(object, type, batch);
  if (type.kind != ObjectKind::kCode) {
    attributes(object, type, batch);
    members_and_words(object, type, batch);
  }
}

void PythonObjects::frame_references(std::uint64_t frame, VisitReferences visit) {
  ReferenceBatch batch(buffer_, visit);
  frames_.references(frame, batch);
}

void PythonObjects::special_references(std::uint64_t object, const TypeInfo& type,
                                       ReferenceBatch& batch) {
  const std::uint32_t shift = layout_.shift;
  switch (type.kind) {
    case ObjectKind::kDict:
      return dict_references(object, batch);
    case ObjectKind::kList:
      return pointers(image_.word(object + 24 + shift), image_.word(object + layout_.object_size),
                      batch);
    case ObjectKind::kTuple:
      return pointers(object + layout_.tuple_items, image_.word(object + layout_.object_size),
                      batch);
    case ObjectKind::kSet:
      return set_references(object, batch);
    case ObjectKind::kDeque:
      return deque_references(object, batch);
    case ObjectKind::kFunction:
      return function_references(object, batch);
    case ObjectKind::kCell:
      return batch.add(image_.word(object + 16 + shift), "cell_contents");
    case ObjectKind::kMethod:
      batch.add(image_.word(object + 16 + shift), "__func__");
      return batch.add(image_.word(object + 24 + shift), "__self__");
    case ObjectKind::kGenerator:
      return generator_references(object, type, batch);
    case ObjectKind::kFrame:
      return frames_.object_references(object, batch);
    case ObjectKind::kType:
      return type_references(object, batch);
    case ObjectKind::kModule:
      return module_references(object, batch);
    case ObjectKind::kWeakref:  // what it refers to lives without it
      return batch.add(image_.word(object + 24 + shift), "__callback__");
    case ObjectKind::kCode:
      return code_references(object, batch);
    case ObjectKind::kNumpyArray:
      return array_references(object, batch);
    default:
      return;
  }
}

void PythonObjects::dict_references(std::uint64_t dict, ReferenceBatch& batch) {
  for_each_item(image_, read_dict(image_, layout_, dict),
                [&](std::uint64_t key, std::uint64_t value) {
                  batch.add(value, ReferenceKind::kValue, key);
                  batch.add(key, ReferenceKind::kKey);
                  return true;
                });
}

void PythonObjects::pointers(std::uint64_t address, std::uint64_t count, ReferenceBatch& batch) {
  std::array<std::uint64_t, 512> some;
  if (count > kMostItems) {
    return;
  }
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i < count && empty < kMostEmpty; i += some.size()) {
    const std::span<std::uint64_t> part(some.data(),
                                        std::min<std::uint64_t>(some.size(), count - i));
    if (!image_.read_array(address + 8 * i, part)) {
      return;
    }
    for (const std::uint64_t target : part) {
      empty = target == 0 ? empty + 1 : 0;
      batch.add(target, ReferenceKind::kItem);
    }
  }
}

void PythonObjects::set_references(std::uint64_t set, ReferenceBatch& batch) {
  const std::uint64_t mask = image_.word(set + 32 + layout_.shift);
  const std::uint64_t table = image_.word(set + 40 + layout_.shift);
  if (image_.word(set + 24 + layout_.shift) == 0 || mask > kMostItems) {
    return;
  }
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i <= mask && empty < kMostEmpty; ++i) {
    std::uint64_t entry = 0;
    if (!image_.read_array(table + 16 * i, std::span(&entry, 1))) {
      return;
    }
    empty = entry == 0 ? empty + 1 : 0;
    batch.add(entry, ReferenceKind::kItem);
  }
}

void PythonObjects::deque_references(std::uint64_t deque, ReferenceBatch& batch) {
  const std::uint64_t count = image_.word(deque + layout_.object_size);
  std::uint64_t block = image_.word(deque + 24 + layout_.shift);
  std::uint64_t index = image_.word(deque + 40 + layout_.shift);
  for (std::uint64_t i = 0; i < count && i < kMostItems && index < kDequeBlockItems; ++i) {
    std::uint64_t item = 0;
    if (!image_.read_array(block + 8 + 8 * index, std::span(&item, 1))) {
      return;
    }
    batch.add(item, ReferenceKind::kItem);
    if (++index == kDequeBlockItems) {
      index = 0;
      block = next_deque_block(image_, layout_, deque, block);
    }
  }
}

void PythonObjects::function_references(std::uint64_t function, ReferenceBatch& batch) {
  const struct {
    std::uint32_t offset;
    const char* name;
    ReferenceKind kind = ReferenceKind::kMember;
  } parts[] = {
      {layout_.function_closure, "__closure__"},
      {layout_.function_defaults, "__defaults__"},
      {layout_.function_keyword_defaults, "__kwdefaults__"},
      {layout_.function_code, "__code__"},
      {layout_.function_globals, "__globals__", ReferenceKind::kGlobals},
      {layout_.function_builtins, "__builtins__", ReferenceKind::kBuiltins},
      {layout_.function_doc, "__doc__"},
      {layout_.function_name, "__name__"},
      {layout_.function_qualname, "__qualname__"},
      {layout_.function_module, "__module__"},
      {layout_.function_annotations, "__annotations__"},
      {layout_.function_annotate, "__annotate__"},
      {layout_.function_type_params, "__type_params__"},
  };
  for (const auto& part : parts) {
    if (part.offset != PythonLayout::kNone) {
      batch.add(image_.word(function + part.offset), part.name, part.kind);
    }
  }
  batch.add(image_.word(function + layout_.function_dict), ReferenceKind::kDict);
}

void PythonObjects::generator_references(std::uint64_t generator, const TypeInfo& type,
                                         ReferenceBatch& batch) {
  batch.add(image_.word(generator + layout_.generator_name), "__name__");
  batch.add(image_.word(generator + layout_.generator_qualname), "__qualname__");
  if (layout_.generator_code != PythonLayout::kNone) {
    batch.add(image_.word(generator + layout_.generator_code), "gi_code");
  }
  batch.add(image_.word(generator + layout_.generator_exceptions), "exception");
  if (layout_.minor <= 10) {
    batch.add(image_.word(generator + layout_.generator_exceptions + 8), "exception");
    batch.add(image_.word(generator + layout_.generator_exceptions + 16), "exception");
    return batch.add(image_.word(generator + layout_.generator_frame), "gi_frame");
  }
  if (type.name != "generator") {  // what an ordinary one has there is stale
    batch.add(image_.word(generator + layout_.generator_qualname + 24), "cr_origin");
  }
  // From 3.15 on the states are numbered from 0; before, from -2, and what has ended is 1 and more.
  constexpr std::int8_t kEndedBefore15 = 1;
  constexpr std::int8_t kEnded15 = 5;
  const auto state = image_.load<std::int8_t>(generator + layout_.generator_state);
  if (state < (layout_.minor >= 15 ? kEnded15 : kEndedBefore15)) {
    frames_.references(generator + layout_.generator_frame, batch);
  }
}

void PythonObjects::type_references(std::uint64_t type, ReferenceBatch& batch) {
  const std::uint64_t flags = image_.word(type + layout_.type_flags);
  batch.add(image_.word(type + layout_.type_dict), ReferenceKind::kDict);
  batch.add(image_.word(type + layout_.type_base), "__base__", ReferenceKind::kBases);
  batch.add(image_.word(type + layout_.type_bases), "__bases__", ReferenceKind::kBases);
  batch.add(image_.word(type + layout_.type_mro), "__mro__", ReferenceKind::kBases);
  batch.add(image_.word(type + layout_.type_cache), "tp_cache", ReferenceKind::kBases);
  if (layout_.minor < 12 || (flags & kStaticBuiltinFlag) == 0) {
    batch.add(image_.word(type + layout_.type_subclasses), "__subclasses__", ReferenceKind::kBases);
  }
  if ((flags & kHeapTypeFlag) != 0) {
    batch.add(image_.word(type + layout_.heap_type_name), "__name__");
    batch.add(image_.word(type + layout_.heap_type_slots), "__slots__");
    batch.add(image_.word(type + layout_.heap_type_qualname), "__qualname__");
    batch.add(image_.word(type + layout_.heap_type_module), "module");
  }
}

void PythonObjects::module_references(std::uint64_t module, ReferenceBatch& batch) {
  batch.add(image_.word(module + layout_.module_dict), ReferenceKind::kDict);
  batch.add(image_.word(module + layout_.module_name), "md_name");
  const std::uint64_t state = image_.word(module + layout_.module_state);
  std::uint64_t bytes = 0;
  if (layout_.module_state_size != PythonLayout::kNone) {
    bytes = image_.word(module + layout_.module_state_size);
  } else if (const std::uint64_t definition = image_.word(module + layout_.module_definition);
             definition != 0) {
    bytes = image_.word(definition + 56 + layout_.shift);
  }
  if (state == 0 || bytes >= kMostStateBytes) {
    return;
  }
  for (std::uint64_t offset = 0; offset + 8 <= bytes; offset += 8) {
    batch.add(image_.word(state + offset), ReferenceKind::kState, offset);
  }
}

void PythonObjects::code_references(std::uint64_t code, ReferenceBatch& batch) {
  const std::uint32_t parts[] = {
      layout_.code_constants, layout_.code_names,      layout_.code_file,
      layout_.code_name,      layout_.code_lines,      layout_.code_local_names,
      layout_.code_qualname,  layout_.code_cell_names, layout_.code_free_names};
  for (const std::uint32_t part : parts) {
    if (part != PythonLayout::kNone) {
      batch.add(image_.word(code + part), "code");
    }
  }
  // The instructions (3.9, 3.10), or the table of exceptions.
  batch.add(image_.word(code + (layout_.minor <= 10 ? 48 : 40 + layout_.shift)), "code");
}

void PythonObjects::array_references(std::uint64_t array, ReferenceBatch& batch) {
  batch.add(image_.word(array + 48 + layout_.shift), "base");
  batch.add(image_.word(array + 56 + layout_.shift), "dtype");
  if (arrays_.owns_data(array) && arrays_.is_of_objects(array)) {
    pointers(arrays_.data(array), arrays_.items(array), batch);
  }
}

void PythonObjects::attributes(std::uint64_t object, const TypeInfo& type, ReferenceBatch& batch) {
  if (layout_.minor < 11 || !type.has(kManagedDictFlag)) {
    const bool is_known = type.kind == ObjectKind::kType || type.kind == ObjectKind::kModule ||
                          type.kind == ObjectKind::kFunction;
    if (type.dict_offset != 0 && !is_known) {
      batch.add(dict_pointer_at(object, type), ReferenceKind::kDict);
    }
    return;
  }
  std::uint64_t dict = 0;
  std::uint64_t values = 0;
  if (layout_.minor == 11) {
    dict = image_.word(object - 24);
    values = image_.word(object - 32);
  } else if (layout_.minor == 12) {
    const std::uint64_t either = image_.word(object - 24);
    (either % 2 == 0 ? dict : values) = either % 2 == 0 ? either : either + 1;
  } else {
    dict = image_.word(object - layout_.managed_dict_before);
    const std::uint64_t inline_at = object + type.basic_size;
    const bool is_valid = image_.load<std::uint8_t>(inline_at + 3) != 0;
    values = type.has(kInlineValuesFlag) && is_valid ? inline_at + 8 : 0;
  }
  if (dict != 0) {
    batch.add(dict, ReferenceKind::kDict);
  } else if (values != 0) {
    inline_values(values, type, batch);
  }
}

void PythonObjects::inline_values(std::uint64_t values, const TypeInfo& type,
                                  ReferenceBatch& batch) {
  const DictKeys keys = read_dict_keys(image_, layout_, type.cached_keys);
  std::uint64_t count = std::min(keys.count, kMostInlineValues);
  if (layout_.minor >= 13) {
    count = std::min<std::uint64_t>(count, image_.load<std::uint8_t>(values - 8));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t value = image_.word(values + 8 * i);
    if (value != 0) {
      batch.add(value, ReferenceKind::kAttribute, image_.word(keys.key_address(i)));
    }
  }
}

std::uint64_t PythonObjects::dict_pointer_at(std::uint64_t object, const TypeInfo& type) {
  if (type.dict_offset > 0) {
    return image_.word(object + static_cast<std::uint64_t>(type.dict_offset));
  }
  std::uint64_t items = item_count(image_, layout_, object);
  if (type.kind == ObjectKind::kInt && layout_.minor >= 12) {
    items = image_.word(object + layout_.object_size) >> 3U;
  }
  if (items > kMostItems) {
    return 0;
  }
  const std::uint64_t end = (type.basic_size + items * type.item_size + 7) & ~std::uint64_t{7};
  return image_.word(object + end + static_cast<std::uint64_t>(type.dict_offset));
}

void PythonObjects::members_and_words(std::uint64_t object, const TypeInfo& type,
                                      ReferenceBatch& batch) {
  constexpr std::uint64_t kMostWords = 1U << 24U;
  for (const TypeMember& member : type.members) {
    batch.add(image_.word(object + member.offset), member.name.c_str());
  }
  auto member = type.members.begin();
  for (std::uint64_t offset = type.first_word; offset + 8 <= type.basic_size; offset += 8) {
    while (member != type.members.end() && member->offset < offset) {
      ++member;
    }
    const bool is_known = static_cast<std::int64_t>(offset) == type.dict_offset ||
                          static_cast<std::int64_t>(offset) == type.weaklist_offset ||
                          (member != type.members.end() && member->offset == offset);
    if (!is_known) {
      batch.add(image_.word(object + offset), ReferenceKind::kWord, offset);
    }
  }
  if (type.item_size == 8 && type.kind == ObjectKind::kOther) {
    const std::uint64_t items = item_count(image_, layout_, object);
    for (std::uint64_t i = 0; i < items && items < kMostWords; ++i) {
      std::uint64_t item = 0;
      if (!image_.read_array(object + type.basic_size + 8 * i, std::span(&item, 1))) {
        return;
      }
      batch.add(item, ReferenceKind::kItem);
    }
  }
}

}  // namespace tidemark::heap
