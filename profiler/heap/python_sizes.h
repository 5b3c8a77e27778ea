// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/numpy_arrays.h"
#include "profiler/heap/python_frames.h"
#include "profiler/heap/python_layout.h"
#include "profiler/heap/python_types.h"

namespace tidemark::heap {

// How much memory objects of Python take. Not thread-safe.
class PythonSizes {
 public:
  PythonSizes(MemoryImage& image, const PythonLayout& layout, PythonTypes& types)
      : image_(image), layout_(layout), frames_(image, layout, types), arrays_(image, layout) {}

  // As sys.getsizeof() counts, with the elements of arrays that own them and the attributes of
  // instances that have no dict.
  std::uint64_t bytes(std::uint64_t object, const TypeInfo& type);

 private:
  std::uint64_t own_bytes(std::uint64_t object, const TypeInfo& type);
  std::uint64_t attribute_bytes(std::uint64_t object, const TypeInfo& type);
  std::uint64_t int_bytes(std::uint64_t number);
  std::uint64_t text_bytes(std::uint64_t text, const TypeInfo& type);
  std::uint64_t dict_bytes(std::uint64_t dict, const TypeInfo& type);
  std::uint64_t deque_bytes(std::uint64_t deque);
  std::uint64_t type_bytes(std::uint64_t object, const TypeInfo& type);
  std::uint64_t frame_bytes(std::uint64_t object, const TypeInfo& type);

  MemoryImage& image_;
  const PythonLayout& layout_;
  PythonFrames frames_;
  NumpyArrays arrays_;
};

}  // namespace tidemark::heap
