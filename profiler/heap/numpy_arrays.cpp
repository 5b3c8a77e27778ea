// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/numpy_arrays.h"

#include <string_view>

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMostItems = std::uint64_t{1} << 42U;
constexpr int kMostDimensions = 64;

}  // namespace

bool NumpyArrays::owns_data(std::uint64_t array) {
  constexpr std::uint32_t kOwnsData = 4;
  return (image_.load<std::uint32_t>(array + 64 + layout_.shift) & kOwnsData) != 0;
}

bool NumpyArrays::has_dimensions(std::uint64_t array) {
  const auto dimensions = image_.load<std::int32_t>(array + 24 + layout_.shift);
  const std::uint64_t sizes = image_.word(array + 32 + layout_.shift);
  return dimensions >= 0 && dimensions <= kMostDimensions &&
         (dimensions == 0 || image_.mapping_at(sizes) != nullptr);
}

bool NumpyArrays::is_of_objects(std::uint64_t array) {
  const std::uint64_t type = image_.word(array + 56 + layout_.shift);
  return image_.load<char>(type + 24 + layout_.shift) == 'O';
}

std::uint64_t NumpyArrays::items(std::uint64_t array) {
  const auto dimensions = image_.load<std::int32_t>(array + 24 + layout_.shift);
  const std::uint64_t sizes = image_.word(array + 32 + layout_.shift);
  std::uint64_t count = 1;
  for (int i = 0; i < dimensions && i < kMostDimensions && count < kMostItems; ++i) {
    count *= image_.word(sizes + 8 * static_cast<std::uint64_t>(i));
  }
  return count;
}

// It lies further on from numpy 2 on, where what was there before is no number of bytes.
std::uint64_t NumpyArrays::item_bytes(std::uint64_t array) {
  constexpr std::uint64_t kMost = 1U << 20U;
  const std::uint64_t type = image_.word(array + 56 + layout_.shift) + layout_.shift;
  const std::uint64_t of_numpy_2 = image_.word(type + 40);
  if (of_numpy_2 > 0 && of_numpy_2 < kMost) {
    return of_numpy_2;
  }
  const auto of_numpy_1 = image_.load<std::uint32_t>(type + 32);
  return of_numpy_1 < kMost ? of_numpy_1 : 0;
}

std::string NumpyArrays::dtype(std::uint64_t array) {
  constexpr std::string_view kKinds = "biufcOmM";
  constexpr std::string_view kNames[] = {"bool",    "int",    "uint",        "float",
                                         "complex", "object", "timedelta64", "datetime64"};
  const std::uint64_t type = image_.word(array + 56 + layout_.shift);
  const char kind = image_.load<char>(type + 24 + layout_.shift);
  const std::size_t known = kKinds.find(kind);
  if (known == std::string_view::npos) {
    const std::uint64_t width = item_bytes(array);
    return kind > ' ' && kind < 127 ? kind + std::to_string(width) : "";
  }
  const bool has_width = known >= 1 && known <= 4;
  return std::string(kNames[known]) + (has_width ? std::to_string(8 * item_bytes(array)) : "");
}

std::vector<std::int64_t> NumpyArrays::shape(std::uint64_t array) {
  const auto dimensions = image_.load<std::int32_t>(array + 24 + layout_.shift);
  const std::uint64_t sizes = image_.word(array + 32 + layout_.shift);
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < dimensions && i < kMostDimensions; ++i) {
    lengths.push_back(image_.load<std::int64_t>(sizes + 8 * static_cast<std::uint64_t>(i)));
  }
  return lengths;
}

}  // namespace tidemark::heap
