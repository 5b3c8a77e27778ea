// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"

namespace tidemark::heap {

// How an object is read.
enum class ObjectKind : std::uint8_t {
  kOther,  // by what its type says of its members, and word by word
  kDict,
  kList,
  kTuple,
  kSet,
  kText,
  kBytes,
  kInt,
  kException,
  kType,
  kFunction,
  kCell,
  kMethod,
  kGenerator,
  kFrame,
  kModule,
  kWeakref,
  kCode,
  kDeque,
  kByteArray,
  kArray,
  kNumpyArray,
  kTensor,      // of torch, as Python sees it
  kCpp,         // an object of C++ with a virtual function: not of Python
  kCppTensor,   // of torch, without its memory
  kCppStorage,  // the memory of tensors
};

struct TypeMember {
  std::string name;
  std::uint32_t offset = 0;
};

// A type of a process, at one look.
struct TypeInfo {
  std::uint64_t address = 0;
  std::string name;            // "dict", "torch.Tensor"; "VisionCollator" of __main__
  std::string full_name;       // "__main__.VisionCollator"
  std::uint32_t identity = 0;  // the same at each look
  ObjectKind kind = ObjectKind::kOther;
  std::uint64_t basic_size = 0;
  std::uint64_t item_size = 0;
  std::uint64_t flags = 0;
  std::int64_t dict_offset = 0;
  std::int64_t weaklist_offset = 0;
  std::uint64_t cached_keys = 0;    // of the attributes of its instances
  std::uint32_t first_word = 0;     // from here on its instances are read word by word
  std::uint32_t kind_size = 0;      // of an object of its kind, without what a subclass adds
  bool is_ordered = false;          // a dict that keeps a list of its keys (OrderedDict)
  std::vector<TypeMember> members;  // by offset

  bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
};

// The types that objects of a process have. Not thread-safe.
class PythonTypes {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = 0xffffffff;

  PythonTypes(MemoryImage& image, const PythonLayout& layout) : image_(image), layout_(layout) {}

  // kNone: there is no type at this address.
  Index find(std::uint64_t address) {
    if (address == last_address_) {
      return last_index_;
    }
    const Index index = look_up(address);
    last_address_ = address;
    last_index_ = index;
    return index;
  }
  // That of an object; kNone: there is no object.
  Index of(std::uint64_t object) { return find(image_.word(object + layout_.object_type)); }
  // One of C++, by the name that the compiler has given it.
  Index of_cpp(std::string_view mangled, ObjectKind kind);

  const TypeInfo& operator[](Index index) const { return types_[index]; }
  std::size_t size() const { return types_.size(); }

  // The characters of a str, in UTF-8; empty: it is none.
  std::string text(std::uint64_t object, std::size_t most_bytes);
  // What a dict has for a key that is a str; 0: among the first so many items it has none.
  std::uint64_t value_of(std::uint64_t dict, std::string_view key, std::size_t most_items);

 private:
  Index look_up(std::uint64_t address);
  bool is_type(std::uint64_t address);
  bool is_text_type(std::uint64_t address);
  TypeInfo read(std::uint64_t address);
  void read_kind(TypeInfo& type);
  void read_members(TypeInfo& type);
  void read_name(TypeInfo& type);
  // Calls visit(address) for a type and those that it derives from, until it returns false.
  template <typename Visit>
  void for_each_base(std::uint64_t address, Visit visit);
  std::string type_name(std::uint64_t address);

  MemoryImage& image_;
  const PythonLayout& layout_;
  std::uint64_t type_of_types_ = 0;
  std::uint64_t last_address_ = 0;
  Index last_index_ = kNone;
  std::uint64_t last_text_type_ = 0;
  std::deque<TypeInfo> types_;
  std::size_t members_ = 0;  // of all types
  std::unordered_map<std::uint64_t, Index> by_address_;
  std::unordered_map<std::string, Index> by_cpp_name_;
  std::unordered_set<std::uint64_t> others_;  // addresses where no type is
};

}  // namespace tidemark::heap
