// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"

namespace tidemark::heap {

// What arrays of numpy say of themselves, by their addresses.
class NumpyArrays {
 public:
  NumpyArrays(MemoryImage& image, const PythonLayout& layout) : image_(image), layout_(layout) {}

  bool owns_data(std::uint64_t array);  // else it belongs to another object
  // Whether it may be an array: what it says of its dimensions can be true.
  bool has_dimensions(std::uint64_t array);
  bool is_of_objects(std::uint64_t array);
  std::uint64_t data(std::uint64_t array) { return image_.word(array + 16 + layout_.shift); }
  std::uint64_t items(std::uint64_t array);
  std::uint64_t item_bytes(std::uint64_t array);
  // "float32"; of what has no such name, a letter for its kind: "V16".
  std::string dtype(std::uint64_t array);
  std::vector<std::int64_t> shape(std::uint64_t array);

 private:
  MemoryImage& image_;
  const PythonLayout& layout_;
};

}  // namespace tidemark::heap
