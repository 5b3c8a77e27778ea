// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/numpy_arrays.h"
#include "profiler/heap/python_frames.h"
#include "profiler/heap/python_layout.h"
#include "profiler/heap/python_types.h"
#include "profiler/heap/references.h"

namespace tidemark::heap {

// Of an object of variable size.
std::uint64_t item_count(MemoryImage& image, const PythonLayout& layout, std::uint64_t object);
// A block of a deque has so many items between the addresses of its neighbours.
inline constexpr std::uint64_t kDequeBlockItems = 64;
// Each block leads to that on its left, too: so no way through them is endless. 0: there is no
// other.
std::uint64_t next_deque_block(MemoryImage& image, const PythonLayout& layout, std::uint64_t deque,
                               std::uint64_t block);
// Of the attributes of an instance that has no dict.
inline constexpr std::uint64_t kMostInlineValues = 256;

// What objects of Python refer to. Whether there is an object at the end of a reference is for the
// caller to find out. Not thread-safe.
class PythonObjects {
 public:
  PythonObjects(MemoryImage& image, const PythonLayout& layout, PythonTypes& types)
      : image_(image), layout_(layout), frames_(image, layout, types), arrays_(image, layout) {}

  void references(std::uint64_t object, const TypeInfo& type, VisitReferences visit);
  // Of a frame of a running function.
  void frame_references(std::uint64_t frame, VisitReferences visit);
  PythonFrames& frames() { return frames_; }
  NumpyArrays& arrays() { return arrays_; }

 private:
  void special_references(std::uint64_t object, const TypeInfo& type, ReferenceBatch& batch);
  void dict_references(std::uint64_t dict, ReferenceBatch& batch);
  void pointers(std::uint64_t address, std::uint64_t count, ReferenceBatch& batch);
  void set_references(std::uint64_t set, ReferenceBatch& batch);
  void deque_references(std::uint64_t deque, ReferenceBatch& batch);
  void function_references(std::uint64_t function, ReferenceBatch& batch);
  void generator_references(std::uint64_t generator, const TypeInfo& type, ReferenceBatch& batch);
  void type_references(std::uint64_t type, ReferenceBatch& batch);
  void module_references(std::uint64_t module, ReferenceBatch& batch);
  void code_references(std::uint64_t code, ReferenceBatch& batch);
  void array_references(std::uint64_t array, ReferenceBatch& batch);
  void attributes(std::uint64_t object, const TypeInfo& type, ReferenceBatch& batch);
  void inline_values(std::uint64_t values, const TypeInfo& type, ReferenceBatch& batch);
  void members_and_words(std::uint64_t object, const TypeInfo& type, ReferenceBatch& batch);
  std::uint64_t dict_pointer_at(std::uint64_t object, const TypeInfo& type);

  MemoryImage& image_;
  const PythonLayout& layout_;
  PythonFrames frames_;
  NumpyArrays arrays_;
  std::vector<Reference> buffer_;  // what is on its way to a visitor
};

}  // namespace tidemark::heap
