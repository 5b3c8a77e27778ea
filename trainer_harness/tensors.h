// SPDX-License-Identifier: Apache-2.0
// Shared by the files that call libtorch; no other file includes it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace tidemark::harness {

// Runs code that calls libtorch; what it throws becomes an Error. The text of c10::Error has a
// backtrace after its first line.
template <typename Code>
auto catch_torch_errors(std::string_view doing, Code&& code) -> decltype(code()) {
  try {
    return std::forward<Code>(code)();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return Error{Errc::kIo, std::string(doing) + ": " + what.substr(0, what.find('\n'))};
  }
}

// What the dataset has, what the collator makes of it, and what the model takes.
struct Sample {
  at::Tensor pixels;  // [3, side, side]
  std::int64_t label = 0;
};
struct Batch {
  at::Tensor pixels;     // [images, 3, side, side]
  at::Tensor labels;     // [images]
  at::Tensor originals;  // the images as they were before resizing, in bytes
};

inline constexpr std::int64_t kImageSide = 16;
inline constexpr std::int64_t kClasses = 10;

// Resident memory: every byte is written.
inline at::Tensor filled_tensor(std::uint64_t bytes) {
  return at::full({static_cast<std::int64_t>(bytes)}, 0x5A, at::kByte);
}

inline constexpr std::uint64_t kSetBlockBytes = 16U << 20U;

// Blocks, because 20 GB may not be available in one piece.
inline void add_filled_blocks(std::vector<at::Tensor>& blocks, std::uint64_t bytes,
                              std::uint64_t block_bytes) {
  for (; bytes > 0; bytes -= std::min(bytes, block_bytes)) {
    blocks.push_back(filled_tensor(std::min(bytes, block_bytes)));
  }
}

}  // namespace tidemark::harness
