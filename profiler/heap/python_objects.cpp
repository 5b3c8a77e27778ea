// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_objects.h"

#include <algorithm>
#include <array>

#include "profiler/heap/python_dicts.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMostItems = std::uint64_t{1} << 32U;
constexpr std::uint32_t kMostLocals = 10'000;
constexpr std::uint32_t kMostStack = 20'000;
constexpr std::uint64_t kMostStateBytes = 1U << 16U;
constexpr std::uint64_t kLowestAddress = 4096;
constexpr std::uint64_t kDequeBlockItems = 64;
// Real ones have no longer rows of nothing: the size that is given is none.
constexpr std::uint64_t kMostEmpty = 1U << 20U;
constexpr std::uint8_t kOwnedByFrameObject = 2;
constexpr int kMostDimensions = 64;
constexpr std::uint64_t kMostInlineValues = 256;
constexpr std::uint64_t kStaticTypeBytes = 416;

bool can_be_object(std::uint64_t address) { return address > kLowestAddress && address % 8 == 0; }

}  // namespace

// References on their way to the visitor.
class PythonObjects::Batch {
 public:
  Batch(PythonObjects& objects, VisitReferences visit)
      : objects_(objects), visit_(visit), references_(std::move(objects.buffer_)) {
    references_.clear();
  }
  ~Batch() {
    flush();
    objects_.buffer_ = std::move(references_);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(std::uint64_t target, ReferenceKind kind, std::uint64_t detail = 0) {
    add({target, detail, "", kind});
  }
  void add(std::uint64_t target, const char* name, ReferenceKind kind = ReferenceKind::kMember) {
    add({target, 0, name, kind});
  }

 private:
  void add(const Reference& reference) {
    constexpr std::size_t kMost = 256;
    if (can_be_object(reference.target)) {
      references_.push_back(reference);
      if (references_.size() == kMost) {
        flush();
      }
    }
  }
  void flush() {
    if (!references_.empty()) {
      visit_(references_);
      references_.clear();
    }
  }

  PythonObjects& objects_;
  VisitReferences visit_;
  std::vector<Reference> references_;
};

void PythonObjects::references(std::uint64_t object, const TypeInfo& type, VisitReferences visit) {
  Batch batch(*this, visit);
  if (type.has(kHeapTypeFlag)) {
    batch.add(type.address, ReferenceKind::kClass);
  }
  special_references(object, type, batch);
  if (type.kind != ObjectKind::kCode) {
    attributes(object, type, batch);
    members_and_words(object, type, batch);
  }
}

void PythonObjects::special_references(std::uint64_t object, const TypeInfo& type, Batch& batch) {
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
      return frame_object_references(object, batch);
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

void PythonObjects::dict_references(std::uint64_t dict, Batch& batch) {
  for_each_item(image_, read_dict(image_, layout_, dict),
                [&](std::uint64_t key, std::uint64_t value) {
                  batch.add(value, ReferenceKind::kValue, key);
                  batch.add(key, ReferenceKind::kKey);
                  return true;
                });
}

void PythonObjects::pointers(std::uint64_t address, std::uint64_t count, Batch& batch) {
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

void PythonObjects::set_references(std::uint64_t set, Batch& batch) {
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

// Each block of a deque leads to that on its left, too: so no way through them is endless. 0: there
// is no other.
std::uint64_t PythonObjects::next_deque_block(std::uint64_t deque, std::uint64_t block) {
  const std::uint64_t first = image_.word(deque + 24 + layout_.shift);
  const std::uint64_t next = image_.word(block + 8 * (kDequeBlockItems + 1));
  return next != first && image_.word(next) == block ? next : 0;
}

void PythonObjects::deque_references(std::uint64_t deque, Batch& batch) {
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
      block = next_deque_block(deque, block);
    }
  }
}

void PythonObjects::function_references(std::uint64_t function, Batch& batch) {
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
                                         Batch& batch) {
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
    frame_parts(generator + layout_.generator_frame, batch);
  }
}

void PythonObjects::frame_object_references(std::uint64_t object, Batch& batch) {
  const std::uint32_t shift = layout_.shift;
  if (layout_.minor <= 10) {
    batch.add(image_.word(object + layout_.frame_previous), "f_back", ReferenceKind::kBack);
    return old_frame_parts(object, batch);
  }
  batch.add(image_.word(object + 16 + shift), "f_back", ReferenceKind::kBack);
  batch.add(image_.word(object + 32 + shift), "f_trace");
  if (layout_.minor >= 13) {
    batch.add(image_.word(object + 48 + shift), "f_extra_locals");
    batch.add(image_.word(object + 56 + shift), "f_locals_cache");
  }
  if (layout_.minor >= 14) {
    batch.add(image_.word(object + 64 + shift), "f_overwritten_fast_locals");
  }
  const std::uint64_t frame = image_.word(object + layout_.frame_object_frame);
  if (frame != 0 && image_.load<std::uint8_t>(frame + layout_.frame_owner) == kOwnedByFrameObject) {
    frame_parts(frame, batch);
  }
}

std::uint64_t PythonObjects::untagged(std::uint64_t reference) const {
  if (layout_.minor >= 14) {
    return (reference & 3U) == 3 ? 0 : reference & ~std::uint64_t{7};
  }
  return reference & ~std::uint64_t{1};
}

std::uint64_t PythonObjects::frame_code(std::uint64_t frame) {
  const std::uint64_t code = untagged(image_.word(frame + layout_.frame_code));
  const PythonTypes::Index type = types_.of(code);
  return type != PythonTypes::kNone && types_[type].kind == ObjectKind::kCode ? code : 0;
}

void PythonObjects::frame_references(std::uint64_t frame, VisitReferences visit) {
  Batch batch(*this, visit);
  if (layout_.minor <= 10) {
    old_frame_parts(frame, batch);
  } else {
    frame_parts(frame, batch);
  }
}

void PythonObjects::frame_parts(std::uint64_t frame, Batch& batch) {
  batch.add(image_.word(frame + layout_.frame_locals), "f_locals");
  batch.add(untagged(image_.word(frame + layout_.frame_function)), "f_func");
  batch.add(image_.word(frame + layout_.frame_object), "f_frame");
  const std::uint64_t code = frame_code(frame);
  batch.add(code, "f_code");
  const auto locals = image_.load<std::uint32_t>(code + layout_.code_local_count);
  if (code == 0 || locals > kMostLocals) {
    return;
  }
  std::int64_t top = 0;
  if (layout_.minor <= 13) {
    top = image_.load<std::int32_t>(frame + layout_.frame_stack_top);
  } else if (const std::uint64_t pointer = image_.word(frame + layout_.frame_stack_top);
             pointer != 0) {
    top = static_cast<std::int64_t>(pointer - frame - layout_.frame_fast_locals) / 8;
  }
  if (top < static_cast<std::int64_t>(locals) || top > kMostStack) {
    top = locals;  // it runs: where its stack ends is in a register
  }
  const std::uint64_t names = image_.word(code + layout_.code_local_names);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(top); ++i) {
    const std::uint64_t value =
        untagged(image_.word(frame + layout_.frame_fast_locals + std::uint64_t{8} * i));
    if (i < locals) {
      batch.add(value, ReferenceKind::kLocal,
                image_.word(names + layout_.tuple_items + std::uint64_t{8} * i));
    } else {
      batch.add(value, ReferenceKind::kStack);
    }
  }
}

// Frames of 3.9 and 3.10 are objects.
void PythonObjects::old_frame_parts(std::uint64_t frame, Batch& batch) {
  const std::uint64_t code = frame_code(frame);
  batch.add(code, "f_code");
  batch.add(image_.word(frame + 40), "f_builtins", ReferenceKind::kBuiltins);
  batch.add(image_.word(frame + 48), "f_globals", ReferenceKind::kGlobals);
  batch.add(image_.word(frame + layout_.frame_locals), "f_locals");
  batch.add(image_.word(frame + (layout_.minor == 9 ? 80 : 72)), "f_trace");
  if (code == 0) {
    return;
  }
  std::uint32_t slot = 0;
  const auto add_locals = [&](std::uint64_t names, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count && slot < kMostLocals; ++i, ++slot) {
      batch.add(image_.word(frame + layout_.frame_fast_locals + std::uint64_t{8} * slot),
                ReferenceKind::kLocal, image_.word(names + layout_.tuple_items + 8 * i));
    }
  };
  const std::uint64_t cells = image_.word(code + layout_.code_cell_names);
  const std::uint64_t free = image_.word(code + layout_.code_free_names);
  add_locals(image_.word(code + layout_.code_local_names),
             image_.load<std::uint32_t>(code + layout_.code_local_count));
  add_locals(cells, image_.word(cells + layout_.object_size));
  add_locals(free, image_.word(free + layout_.object_size));
  const std::uint64_t stack = image_.word(frame + 64);
  std::int64_t depth = image_.load<std::int32_t>(frame + layout_.frame_stack_top);
  if (layout_.minor == 9) {
    const std::uint64_t top = image_.word(frame + layout_.frame_stack_top);
    depth = top == 0 ? 0 : static_cast<std::int64_t>(top - stack) / 8;
  }
  for (std::int64_t i = 0; i < depth && i < kMostStack; ++i) {
    batch.add(image_.word(stack + 8 * static_cast<std::uint64_t>(i)), ReferenceKind::kStack);
  }
}

void PythonObjects::type_references(std::uint64_t type, Batch& batch) {
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

void PythonObjects::module_references(std::uint64_t module, Batch& batch) {
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

void PythonObjects::code_references(std::uint64_t code, Batch& batch) {
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

bool PythonObjects::is_object_array(std::uint64_t array) {
  const std::uint64_t dtype = image_.word(array + 56 + layout_.shift);
  return image_.load<char>(dtype + 24 + layout_.shift) == 'O';
}

std::uint64_t PythonObjects::array_items(std::uint64_t array) {
  const auto dimensions = image_.load<std::int32_t>(array + 24 + layout_.shift);
  const std::uint64_t sizes = image_.word(array + 32 + layout_.shift);
  std::uint64_t items = 1;
  for (int i = 0; i < dimensions && i < kMostDimensions && items < kMostItems * 1024; ++i) {
    items *= image_.word(sizes + 8 * static_cast<std::uint64_t>(i));
  }
  return items;
}

// It lies further on from numpy 2 on, where what was there before is no number of bytes.
std::uint64_t PythonObjects::array_item_bytes(std::uint64_t array) {
  constexpr std::uint64_t kMost = 1U << 20U;
  const std::uint64_t dtype = image_.word(array + 56 + layout_.shift) + layout_.shift;
  const std::uint64_t of_numpy_2 = image_.word(dtype + 40);
  if (of_numpy_2 > 0 && of_numpy_2 < kMost) {
    return of_numpy_2;
  }
  const auto of_numpy_1 = image_.load<std::uint32_t>(dtype + 32);
  return of_numpy_1 < kMost ? of_numpy_1 : 0;
}

std::string PythonObjects::array_dtype(std::uint64_t array) {
  constexpr std::string_view kKinds = "biufcOmM";
  constexpr std::string_view kNames[] = {"bool",    "int",    "uint",        "float",
                                         "complex", "object", "timedelta64", "datetime64"};
  const std::uint64_t dtype = image_.word(array + 56 + layout_.shift);
  const char kind = image_.load<char>(dtype + 24 + layout_.shift);
  const std::size_t known = kKinds.find(kind);
  if (known == std::string_view::npos) {
    const std::uint64_t items = array_item_bytes(array);
    return kind > ' ' && kind < 127 ? kind + std::to_string(items) : "";
  }
  const bool has_width = known >= 1 && known <= 4;
  return std::string(kNames[known]) +
         (has_width ? std::to_string(8 * array_item_bytes(array)) : "");
}

std::vector<std::int64_t> PythonObjects::array_shape(std::uint64_t array) {
  const auto dimensions = image_.load<std::int32_t>(array + 24 + layout_.shift);
  const std::uint64_t sizes = image_.word(array + 32 + layout_.shift);
  std::vector<std::int64_t> shape;
  for (int i = 0; i < dimensions && i < kMostDimensions; ++i) {
    shape.push_back(image_.load<std::int64_t>(sizes + 8 * static_cast<std::uint64_t>(i)));
  }
  return shape;
}

void PythonObjects::array_references(std::uint64_t array, Batch& batch) {
  constexpr std::uint32_t kOwnsData = 4;
  batch.add(image_.word(array + 48 + layout_.shift), "base");
  batch.add(image_.word(array + 56 + layout_.shift), "dtype");
  const auto flags = image_.load<std::uint32_t>(array + 64 + layout_.shift);
  if ((flags & kOwnsData) != 0 && is_object_array(array)) {
    pointers(image_.word(array + 16 + layout_.shift), array_items(array), batch);
  }
}

void PythonObjects::attributes(std::uint64_t object, const TypeInfo& type, Batch& batch) {
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

// Of an instance whose attributes are in no dict: what their values take, with room for more.
std::uint64_t PythonObjects::attribute_bytes(std::uint64_t object, const TypeInfo& type) {
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

void PythonObjects::inline_values(std::uint64_t values, const TypeInfo& type, Batch& batch) {
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

std::uint64_t PythonObjects::item_count(std::uint64_t object) {
  const std::uint64_t count = image_.word(object + layout_.object_size);
  return static_cast<std::int64_t>(count) < 0 ? -count : count;
}

std::uint64_t PythonObjects::dict_pointer_at(std::uint64_t object, const TypeInfo& type) {
  if (type.dict_offset > 0) {
    return image_.word(object + static_cast<std::uint64_t>(type.dict_offset));
  }
  std::uint64_t items = item_count(object);
  if (type.kind == ObjectKind::kInt && layout_.minor >= 12) {
    items = image_.word(object + layout_.object_size) >> 3U;
  }
  if (items > kMostItems) {
    return 0;
  }
  const std::uint64_t end = (type.basic_size + items * type.item_size + 7) & ~std::uint64_t{7};
  return image_.word(object + end + static_cast<std::uint64_t>(type.dict_offset));
}

void PythonObjects::members_and_words(std::uint64_t object, const TypeInfo& type, Batch& batch) {
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
    const std::uint64_t items = item_count(object);
    for (std::uint64_t i = 0; i < items && items < kMostWords; ++i) {
      std::uint64_t item = 0;
      if (!image_.read_array(object + type.basic_size + 8 * i, std::span(&item, 1))) {
        return;
      }
      batch.add(item, ReferenceKind::kItem);
    }
  }
}

std::uint64_t PythonObjects::text_bytes(std::uint64_t text, const TypeInfo& type) {
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

std::uint64_t PythonObjects::deque_bytes(std::uint64_t deque) {
  std::uint64_t block = image_.word(deque + 24 + layout_.shift);
  const std::uint64_t last = image_.word(deque + 32 + layout_.shift);
  const std::uint64_t most = item_count(deque) / kDequeBlockItems + 2;
  std::uint64_t blocks = 1;
  while (block != last && block != 0 && blocks < most) {
    block = next_deque_block(deque, block);
    ++blocks;
  }
  return blocks * 8 * (kDequeBlockItems + 2);
}

// What a frame takes beyond its head.
std::uint64_t PythonObjects::frame_extra_bytes(std::uint64_t code) {
  constexpr std::uint32_t kMost = 100'000;
  if (code == 0) {
    return 0;
  }
  if (layout_.code_frame_size != PythonLayout::kNone) {
    const std::uint64_t bytes =
        std::uint64_t{8} * image_.load<std::uint32_t>(code + layout_.code_frame_size);
    return bytes < 8 * kMost && bytes > layout_.frame_fast_locals
               ? bytes - layout_.frame_fast_locals
               : 0;
  }
  const std::uint64_t slots =
      std::uint64_t{image_.load<std::uint32_t>(code + layout_.code_local_count)} +
      image_.load<std::uint32_t>(code + layout_.code_stack_size);
  return slots < kMost ? 8 * slots : 0;
}

std::uint64_t PythonObjects::bytes(std::uint64_t object, const TypeInfo& type) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 42U;
  constexpr std::uint32_t kOwnsData = 4;
  const std::uint32_t shift = layout_.shift;
  std::uint64_t bytes = type.basic_size;
  switch (type.kind) {
    case ObjectKind::kInt: {
      const std::uint64_t digits =
          layout_.minor >= 12 ? image_.word(object + 16 + shift) >> 3U : item_count(object);
      bytes = 24 + shift + 4 * std::max<std::uint64_t>(digits, layout_.minor >= 11 ? 1 : 0);
      break;
    }
    case ObjectKind::kText:
      bytes = text_bytes(object, type);
      break;
    case ObjectKind::kList:
      bytes += 8 * image_.word(object + 32 + shift);
      break;
    case ObjectKind::kTuple:
      bytes += 8 * item_count(object);
      break;
    case ObjectKind::kBytes:
      bytes += item_count(object);
      break;
    case ObjectKind::kDict:
      bytes += read_dict(image_, layout_, object).bytes;
      if (type.is_ordered) {  // a node for each item, and where which is
        bytes +=
            32 * image_.word(object + layout_.object_size) + 8 * image_.word(object + 72 + shift);
      }
      break;
    case ObjectKind::kSet:
      if (image_.word(object + 40 + shift) != object + 64 + shift) {
        bytes += 16 * (image_.word(object + 32 + shift) + 1);
      }
      break;
    case ObjectKind::kByteArray: {
      const std::uint64_t allocated = image_.word(object + 24 + shift);
      bytes += allocated + (layout_.minor >= 15 && allocated != 0 ? 33U : 0U);
      break;
    }
    case ObjectKind::kDeque:
      bytes += deque_bytes(object);
      break;
    case ObjectKind::kArray:
      bytes += image_.word(object + 32 + shift) *
               image_.load<std::uint32_t>(image_.word(object + 40 + shift) + 4);
      break;
    case ObjectKind::kNumpyArray:
      if ((image_.load<std::uint32_t>(object + 64 + shift) & kOwnsData) != 0) {
        bytes += array_items(object) * array_item_bytes(object);
      }
      break;
    case ObjectKind::kType:
      if ((image_.word(object + layout_.type_flags) & kHeapTypeFlag) != 0) {
        const std::uint64_t keys = image_.word(object + layout_.heap_type_cached_keys);
        bytes += read_dict_keys(image_, layout_, keys).bytes;
      } else {
        return kStaticTypeBytes;
      }
      break;
    case ObjectKind::kGenerator:
      bytes +=
          layout_.minor >= 11 ? frame_extra_bytes(frame_code(object + layout_.generator_frame)) : 0;
      break;
    case ObjectKind::kFrame:
      if (layout_.minor <= 10) {
        bytes += 8 * std::min<std::uint64_t>(item_count(object), kMostStack) - 8;
      } else {  // it has room for all that its frame has, also as long as that is elsewhere
        const std::uint64_t frame = image_.word(object + layout_.frame_object_frame);
        bytes += frame_extra_bytes(frame_code(frame));
      }
      break;
    case ObjectKind::kCode:
      bytes += std::min(item_count(object), kMostItems) * type.item_size;
      bytes = layout_.minor >= 11 ? (bytes + 7) & ~std::uint64_t{7} : bytes;
      break;
    default:
      if (type.item_size != 0) {
        const std::uint64_t items = item_count(object);
        bytes += items < kMostItems ? items * type.item_size : 0;
      }
      break;
  }
  bytes += attribute_bytes(object, type);
  if (!layout_.is_free_threaded) {
    bytes += type.has(kHasGcFlag) ? 16U : 0U;
    const bool has_managed = (layout_.minor >= 11 && type.has(kManagedDictFlag)) ||
                             (layout_.minor >= 12 && type.has(kManagedWeakrefFlag));
    bytes += has_managed ? 16U : 0U;
  }
  return bytes < kMostBytes ? bytes : type.basic_size;
}

}  // namespace tidemark::heap
