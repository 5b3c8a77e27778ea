// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_types.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <set>

#include "profiler/heap/python_dicts.h"

namespace tidemark::heap {
namespace {

constexpr std::size_t kMostTypes = 1U << 18U;
constexpr std::size_t kMostOthers = 1U << 20U;
constexpr std::size_t kMostNameBytes = 200;
constexpr int kMostBases = 60;
constexpr int kMostMembers = 300;
constexpr std::size_t kMostMembersOfAll = 1U << 20U;
constexpr std::uint64_t kLargestObject = 4U << 20U;
constexpr std::uint64_t kLowestAddress = 4096;

struct NamedKind {
  std::string_view name;
  ObjectKind kind;
};
// Of types that are compiled in: their names alone tell. Subclasses are read like them.
constexpr NamedKind kKinds[] = {
    {"function", ObjectKind::kFunction},
    {"cell", ObjectKind::kCell},
    {"method", ObjectKind::kMethod},
    {"generator", ObjectKind::kGenerator},
    {"coroutine", ObjectKind::kGenerator},
    {"async_generator", ObjectKind::kGenerator},
    {"frame", ObjectKind::kFrame},
    {"module", ObjectKind::kModule},
    {"code", ObjectKind::kCode},
    {"set", ObjectKind::kSet},
    {"frozenset", ObjectKind::kSet},
    {"frozendict", ObjectKind::kDict},
    {"collections.deque", ObjectKind::kDeque},
    {"bytearray", ObjectKind::kByteArray},
    {"array.array", ObjectKind::kArray},
    {"numpy.ndarray", ObjectKind::kNumpyArray},
    {"weakref", ObjectKind::kWeakref},
    {"weakref.ReferenceType", ObjectKind::kWeakref},
    {"weakproxy", ObjectKind::kWeakref},
    {"weakref.ProxyType", ObjectKind::kWeakref},
    {"weakcallableproxy", ObjectKind::kWeakref},
    {"weakref.CallableProxyType", ObjectKind::kWeakref},
    {"torch._C._TensorBase", ObjectKind::kTensor},
    {"torch._C.TensorBase", ObjectKind::kTensor},
};

struct FlaggedKind {
  std::uint64_t flag;
  ObjectKind kind;
  std::string_view base;
};
constexpr FlaggedKind kFlagged[] = {
    {kDictFlag, ObjectKind::kDict, "dict"},    {kListFlag, ObjectKind::kList, "list"},
    {kTupleFlag, ObjectKind::kTuple, "tuple"}, {kTypeFlag, ObjectKind::kType, "type"},
    {kTextFlag, ObjectKind::kText, "str"},     {kBytesFlag, ObjectKind::kBytes, "bytes"},
    {kIntFlag, ObjectKind::kInt, "int"},       {kExceptionFlag, ObjectKind::kException, ""},
};

std::uint32_t identity_of(std::uint64_t address, std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>{}(name) ^ (address * 0x9e3779b97f4a7c15);
  return static_cast<std::uint32_t>(hash >> 32U) | 1U;
}

// Each time that a part of a name is repeated may double its length.
bool is_short_demangled(std::string_view mangled) {
  constexpr std::ptrdiff_t kMostRepeated = 12;
  return std::count(mangled.begin(), mangled.end(), '_') <= kMostRepeated;
}

std::string demangled(const std::string& mangled) {
  if (!is_short_demangled(mangled)) {
    return mangled;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return name == nullptr ? mangled : std::string(name.get());
}

// "AddBackward0": Python calls the operations of torch so as well.
std::string_view without_autograd(std::string_view name) {
  for (const std::string_view prefix : {"torch::autograd::generated::", "torch::autograd::"}) {
    if (name.starts_with(prefix)) {
      return name.substr(prefix.size());
    }
  }
  return name;
}

void append_utf8(std::string& text, std::uint32_t point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xc0U | point >> 6U);
    text += static_cast<char>(0x80U | (point & 0x3fU));
  } else if (point < 0x10000) {
    text += static_cast<char>(0xe0U | point >> 12U);
    text += static_cast<char>(0x80U | (point >> 6U & 0x3fU));
    text += static_cast<char>(0x80U | (point & 0x3fU));
  } else {
    text += static_cast<char>(0xf0U | (point >> 18U & 7U));
    text += static_cast<char>(0x80U | (point >> 12U & 0x3fU));
    text += static_cast<char>(0x80U | (point >> 6U & 0x3fU));
    text += static_cast<char>(0x80U | (point & 0x3fU));
  }
}

}  // namespace

template <typename Visit>
void PythonTypes::for_each_base(std::uint64_t address, Visit visit) {
  for (int i = 0; i < kMostBases && address != 0 && (i == 0 || is_type(address)); ++i) {
    if (!visit(address)) {
      return;
    }
    address = image_.word(address + layout_.type_base);
  }
}

// A type is an object whose type is a type, and so on until one that is its own type: `type`.
bool PythonTypes::is_type(std::uint64_t address) {
  constexpr int kMostMetatypes = 5;
  std::uint64_t type = address;
  for (int i = 0; i < kMostMetatypes; ++i) {
    const std::uint64_t of = image_.word(type + layout_.object_type);
    if (of < kLowestAddress || of % 8 != 0 ||
        (image_.word(of + layout_.type_flags) & kTypeFlag) == 0) {
      return false;
    }
    if (of != image_.word(of + layout_.object_type)) {
      type = of;
      continue;
    }
    if (type_of_types_ == 0 && type_name(of) == "type") {
      type_of_types_ = of;
    }
    const std::uint64_t flags = image_.word(address + layout_.type_flags);
    const std::uint64_t bytes = image_.word(address + layout_.type_basic_size);
    const char first = image_.load<char>(image_.word(address + layout_.type_name));
    // Static types are not always made ready (_lru_list_elem of 3.9).
    const bool is_ready = (flags & kReadyFlag) != 0 || (flags & kHeapTypeFlag) == 0;
    return of == type_of_types_ && is_ready && bytes >= 16 && bytes <= kLargestObject &&
           static_cast<unsigned char>(first) > ' ';
  }
  return false;
}

PythonTypes::Index PythonTypes::look_up(std::uint64_t address) {
  if (address < kLowestAddress || address % 8 != 0) {
    return kNone;
  }
  if (const auto found = by_address_.find(address); found != by_address_.end()) {
    return found->second;
  }
  if (others_.contains(address)) {
    return kNone;
  }
  if (types_.size() >= kMostTypes || !is_type(address)) {
    if (others_.size() >= kMostOthers) {
      others_.clear();
    }
    others_.insert(address);
    return kNone;
  }
  types_.push_back(read(address));
  const auto index = static_cast<Index>(types_.size() - 1);
  by_address_.emplace(address, index);
  return index;
}

PythonTypes::Index PythonTypes::of_cpp(std::string_view mangled, ObjectKind kind) {
  const std::string key(mangled);
  if (const auto found = by_cpp_name_.find(key); found != by_cpp_name_.end()) {
    return found->second;
  }
  TypeInfo type;
  type.full_name = demangled(key);
  type.name = without_autograd(type.full_name);
  type.identity = identity_of(0, key);
  type.kind = kind;
  const auto index = static_cast<Index>(types_.size());
  by_cpp_name_.emplace(key, index);
  types_.push_back(std::move(type));
  return index;
}

std::string PythonTypes::type_name(std::uint64_t address) {
  return image_.text(image_.word(address + layout_.type_name), kMostNameBytes);
}

TypeInfo PythonTypes::read(std::uint64_t address) {
  TypeInfo type;
  type.address = address;
  type.basic_size = image_.word(address + layout_.type_basic_size);
  type.item_size =
      std::min<std::uint64_t>(image_.word(address + layout_.type_item_size), 1U << 16U);
  type.flags = image_.word(address + layout_.type_flags);
  type.dict_offset = image_.load<std::int64_t>(address + layout_.type_dict_offset);
  type.weaklist_offset = image_.load<std::int64_t>(address + layout_.type_weaklist_offset);
  read_kind(type);
  read_members(type);
  read_name(type);
  if (type.has(kHeapTypeFlag)) {
    type.cached_keys = image_.word(address + layout_.heap_type_cached_keys);
  }
  type.identity = identity_of(address, type.full_name);
  return type;
}

void PythonTypes::read_kind(TypeInfo& type) {
  const std::uint32_t header = 16 + layout_.shift;
  type.kind_size = static_cast<std::uint32_t>(type.basic_size);
  const auto* const flagged =
      std::find_if(std::begin(kFlagged), std::end(kFlagged),
                   [&](const FlaggedKind& kind) { return type.has(kind.flag); });
  if (flagged != std::end(kFlagged)) {
    type.kind = flagged->kind;
  }
  for_each_base(type.address, [&](std::uint64_t base) {
    const std::string name = type_name(base);
    type.is_ordered = type.is_ordered || name == "collections.OrderedDict";
    const bool is_compiled = (image_.word(base + layout_.type_flags) & kHeapTypeFlag) == 0 ||
                             name.find('.') != std::string::npos;
    const auto* const named =
        std::find_if(std::begin(kKinds), std::end(kKinds),
                     [&](const NamedKind& kind) { return kind.name == name; });
    const bool is_it = flagged != std::end(kFlagged) ? name == flagged->base
                                                     : is_compiled && named != std::end(kKinds);
    if (!is_it) {
      return true;
    }
    if (flagged == std::end(kFlagged)) {
      type.kind = named->kind;
    }
    type.kind_size = static_cast<std::uint32_t>(image_.word(base + layout_.type_basic_size));
    return false;
  });
  type.first_word = type.kind_size;
  if (type.kind == ObjectKind::kOther || type.kind == ObjectKind::kException) {
    type.first_word = header;
  } else if (type.kind == ObjectKind::kTensor) {
    type.first_word = header + 16;  // after its pointer to the tensor of C++
  }
}

void PythonTypes::read_members(TypeInfo& type) {
  constexpr std::uint32_t kObject = 6;
  constexpr std::uint32_t kObjectOrError = 16;
  std::set<std::uint32_t> known;
  for_each_base(type.address, [&](std::uint64_t base) {
    const std::uint64_t members = image_.word(base + layout_.type_members);
    for (int i = 0; members != 0 && i < kMostMembers; ++i) {
      const std::uint64_t member = members + 40 * static_cast<std::uint64_t>(i);
      const std::uint64_t name = image_.word(member);
      if (name == 0) {
        break;
      }
      const auto what = image_.load<std::uint32_t>(member + 8);
      const std::uint64_t offset = image_.word(member + 16);
      if ((what == kObject || what == kObjectOrError) && offset >= type.first_word &&
          offset < kLargestObject && offset % 8 == 0 && members_ < kMostMembersOfAll &&
          known.insert(static_cast<std::uint32_t>(offset)).second) {
        ++members_;
        type.members.push_back(
            {image_.text(name, kMostNameBytes), static_cast<std::uint32_t>(offset)});
      }
    }
    return true;
  });
  std::sort(type.members.begin(), type.members.end(),
            [](const TypeMember& a, const TypeMember& b) { return a.offset < b.offset; });
}

void PythonTypes::read_name(TypeInfo& type) {
  type.name = type_name(type.address);
  type.full_name = type.name;
  if (!type.has(kHeapTypeFlag) || type.name.find('.') != std::string::npos) {
    return;
  }
  const std::string qualified =
      text(image_.word(type.address + layout_.heap_type_qualname), kMostNameBytes);
  if (!qualified.empty()) {
    const std::size_t local = qualified.rfind(">.");  // "f.<locals>.Sample"
    type.name = local == std::string::npos ? qualified : qualified.substr(local + 2);
  }
  constexpr std::size_t kMostItems = 64;
  const std::uint64_t dict = image_.word(type.address + layout_.type_dict);
  const std::string module = text(value_of(dict, "__module__", kMostItems), kMostNameBytes);
  type.full_name = module.empty() ? type.name : module + "." + type.name;
  if (!module.empty() && module != "__main__" && module != "builtins") {
    type.name = type.full_name;
  }
}

std::uint64_t PythonTypes::value_of(std::uint64_t dict, std::string_view key,
                                    std::size_t most_items) {
  std::uint64_t found = 0;
  std::size_t count = 0;
  for_each_item(image_, read_dict(image_, layout_, dict),
                [&](std::uint64_t item_key, std::uint64_t value) {
                  found = text(item_key, key.size() + 1) == key ? value : 0;
                  return found == 0 && ++count < most_items;
                });
  return found;
}

// Without reading all of the type: its own name may be such a text.
bool PythonTypes::is_text_type(std::uint64_t address) {
  if (address != last_text_type_) {
    if ((image_.word(address + layout_.type_flags) & kTextFlag) == 0 || !is_type(address)) {
      return false;
    }
    last_text_type_ = address;
  }
  return true;
}

std::string PythonTypes::text(std::uint64_t object, std::size_t most_bytes) {
  std::string text;
  if (object % 8 != 0 || !is_text_type(image_.word(object + layout_.object_type))) {
    return text;
  }
  auto state = image_.load<std::uint32_t>(object + layout_.text_state);
  // The first of its fields takes 16 bits in free-threaded builds, and from 3.14 on perhaps in all.
  if (layout_.minor >= 14 && (layout_.is_free_threaded || (state >> 5U & 1U) == 0)) {
    state = layout_.is_free_threaded ? state >> 8U << 2U : state >> 14U & ~std::uint32_t{3};
  }
  const unsigned width = state >> 2U & 7U;
  const bool is_compact = (state >> 5U & 1U) != 0;
  const bool is_ascii = (state >> 6U & 1U) != 0;
  if (width != 1 && width != 2 && width != 4) {
    return text;
  }
  std::uint64_t at = object + (is_ascii ? layout_.ascii_data : layout_.compact_data);
  if (!is_compact) {
    at = image_.word(object + layout_.compact_data);
  }
  const std::uint64_t length =
      std::min<std::uint64_t>(image_.word(object + layout_.object_size), most_bytes);
  for (std::uint64_t i = 0; i < length && text.size() < most_bytes; ++i) {
    switch (width) {
      case 1:
        append_utf8(text, image_.load<std::uint8_t>(at + i));
        break;
      case 2:
        append_utf8(text, image_.load<std::uint16_t>(at + 2 * i));
        break;
      default:
        append_utf8(text, image_.load<std::uint32_t>(at + 4 * i));
        break;
    }
  }
  return text;
}

}  // namespace tidemark::heap
