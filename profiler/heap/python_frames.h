// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"
#include "profiler/heap/python_types.h"
#include "profiler/heap/references.h"

namespace tidemark::heap {

// The frames of functions that run or wait: on the stack of a thread, in a generator, or, of 3.9
// and 3.10, objects.
class PythonFrames {
 public:
  PythonFrames(MemoryImage& image, const PythonLayout& layout, PythonTypes& types)
      : image_(image), layout_(layout), types_(types) {}

  void references(std::uint64_t frame, ReferenceBatch& batch);
  // Of an object for a frame, with those of the frame if it has no other place.
  void object_references(std::uint64_t object, ReferenceBatch& batch);
  // What a frame takes beyond its head.
  std::uint64_t extra_bytes(std::uint64_t code);
  // The next further out.
  std::uint64_t previous(std::uint64_t frame) {
    return image_.word(frame + layout_.frame_previous);
  }
  // Its code object; 0: it is none of a function.
  std::uint64_t code_of(std::uint64_t frame);
  // A reference as it is in a frame, from 3.14 on with a tag.
  std::uint64_t untagged(std::uint64_t reference) const;

 private:
  void old_references(std::uint64_t frame, ReferenceBatch& batch);

  MemoryImage& image_;
  const PythonLayout& layout_;
  PythonTypes& types_;
};

}  // namespace tidemark::heap
