// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>

namespace tidemark::harness {

// What the collator makes and the model takes. Only the files that call libtorch include this.
struct Batch {
  at::Tensor pixels;     // [images, 3, side, side]
  at::Tensor labels;     // [images]
  at::Tensor originals;  // the images as they were before resizing, in bytes
};

inline constexpr std::int64_t kImageSide = 16;
inline constexpr std::int64_t kClasses = 10;

// Memory that is really there: every byte is written.
inline at::Tensor filled_tensor(std::uint64_t bytes) {
  return at::full({static_cast<std::int64_t>(bytes)}, 0x5A, at::kByte);
}

}  // namespace tidemark::harness
