// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"
#include "profiler/heap/python_types.h"

namespace tidemark::heap {

enum class ReferenceKind : std::uint8_t {
  kItem,       // of a list, tuple, set, deque, array of objects
  kKey,        // of a dict
  kValue,      // of a dict; `detail`: the key
  kDict,       // the dict of the attributes of an instance, a module or a function
  kAttribute,  // of an instance without such a dict; `detail`: the name, a str
  kMember,     // what a type names; `name`
  kGlobals,    // of a function or a frame; `name`
  kBuiltins,   // likewise
  kBases,      // of a type: what it derives from and what derives from it; `name`
  kBack,       // of a frame: its caller; `name`
  kClass,      // of an instance: its type
  kLocal,      // of a frame; `detail`: the name, a str
  kStack,      // of a frame: a value in between
  kWord,       // somewhere in an object of a C extension; `detail`: the offset
  kState,      // of a module of C
  kCpp,        // between objects of C++, and from those of Python to them; `name`
};

struct Reference {
  std::uint64_t target = 0;
  std::uint64_t detail = 0;
  const char* name = "";  // as long as the types live
  ReferenceKind kind = ReferenceKind::kItem;
};
// Something to call with some references after some, until there are no more. It refers to a
// function object that must outlive it.
class VisitReferences {
 public:
  template <typename Visit>
  requires(!std::is_same_v<std::remove_cvref_t<Visit>, VisitReferences>)
      // Implicit, so that a lambda can be passed.
      VisitReferences(Visit&& visit)  // NOLINT(google-explicit-constructor,bugprone-forwarding-*)
      : object_(&visit), call_([](void* object, std::span<const Reference> references) {
          (*static_cast<std::remove_reference_t<Visit>*>(object))(references);
        }) {}
  void operator()(std::span<const Reference> references) const { call_(object_, references); }

 private:
  void* object_;
  void (*call_)(void* object, std::span<const Reference> references);
};

// What objects of Python refer to, and how much memory they take. Whether there is an object at the
// end of a reference is for the caller to find out. Not thread-safe.
class PythonObjects {
 public:
  PythonObjects(MemoryImage& image, const PythonLayout& layout, PythonTypes& types)
      : image_(image), layout_(layout), types_(types) {}

  void references(std::uint64_t object, const TypeInfo& type, VisitReferences visit);
  // As sys.getsizeof() counts, with the elements of arrays that own them and the attributes of
  // instances that have no dict.
  std::uint64_t bytes(std::uint64_t object, const TypeInfo& type);

  // Of a frame of a running function; the next further out.
  void frame_references(std::uint64_t frame, VisitReferences visit);
  std::uint64_t previous_frame(std::uint64_t frame) {
    return image_.word(frame + layout_.frame_previous);
  }
  // Its code object; 0: it is none of a function.
  std::uint64_t frame_code(std::uint64_t frame);
  // A reference as it is in a frame, from 3.14 on with a tag.
  std::uint64_t untagged(std::uint64_t reference) const;

  bool is_object_array(std::uint64_t array);
  std::uint64_t array_items(std::uint64_t array);
  std::uint64_t array_item_bytes(std::uint64_t array);
  // "float32"; of what has no such name, a letter for its kind: "V16".
  std::string array_dtype(std::uint64_t array);
  std::vector<std::int64_t> array_shape(std::uint64_t array);

 private:
  class Batch;

  void special_references(std::uint64_t object, const TypeInfo& type, Batch& batch);
  void dict_references(std::uint64_t dict, Batch& batch);
  void pointers(std::uint64_t address, std::uint64_t count, Batch& batch);
  void set_references(std::uint64_t set, Batch& batch);
  std::uint64_t next_deque_block(std::uint64_t deque, std::uint64_t block);
  void deque_references(std::uint64_t deque, Batch& batch);
  void function_references(std::uint64_t function, Batch& batch);
  void generator_references(std::uint64_t generator, const TypeInfo& type, Batch& batch);
  void frame_object_references(std::uint64_t object, Batch& batch);
  void frame_parts(std::uint64_t frame, Batch& batch);
  void old_frame_parts(std::uint64_t frame, Batch& batch);
  void type_references(std::uint64_t type, Batch& batch);
  void module_references(std::uint64_t module, Batch& batch);
  void code_references(std::uint64_t code, Batch& batch);
  void array_references(std::uint64_t array, Batch& batch);
  void attributes(std::uint64_t object, const TypeInfo& type, Batch& batch);
  std::uint64_t attribute_bytes(std::uint64_t object, const TypeInfo& type);
  void inline_values(std::uint64_t values, const TypeInfo& type, Batch& batch);
  void members_and_words(std::uint64_t object, const TypeInfo& type, Batch& batch);
  std::uint64_t dict_pointer_at(std::uint64_t object, const TypeInfo& type);
  std::uint64_t item_count(std::uint64_t object);  // of one of variable size
  std::uint64_t frame_extra_bytes(std::uint64_t code);
  std::uint64_t text_bytes(std::uint64_t text, const TypeInfo& type);
  std::uint64_t deque_bytes(std::uint64_t deque);

  MemoryImage& image_;
  const PythonLayout& layout_;
  PythonTypes& types_;
  std::vector<Reference> buffer_;  // what is on its way to a visitor
};

}  // namespace tidemark::heap
