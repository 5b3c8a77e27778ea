// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "profiler/tracer/unwind/module_lookup.h"

namespace tidemark::tests {

using Bytes = std::vector<std::uint8_t>;

// Assembles the tables of a module in memory, as linkers lay them out: .eh_frame_hdr, then
// .eh_frame with one CIE and an FDE per function. Functions are at addresses relative to the
// header.
class EhFrameBuilder {
 public:
  struct Function {
    std::int32_t begin;
    std::uint32_t length;
    Bytes program;
  };

  Bytes common_program{0x0c, 7, 8, 0x80 | 16, 1};  // CFA = rsp + 8, return address at CFA - 8
  std::string_view augmentation = "zR";
  Bytes augmentation_data{0x1b};  // pointers are pcrel sdata4
  std::vector<Function> functions;

  Bytes build() const {
    Bytes bytes{1, 0x1b, 0x03, 0x3b};
    const std::size_t count = functions.size();
    const std::size_t frames = 12 + 8 * count;
    put32(bytes, static_cast<std::uint32_t>(frames - 4));
    put32(bytes, static_cast<std::uint32_t>(count));
    bytes.resize(frames);
    const std::size_t common = bytes.size();
    append_common(bytes);
    for (std::size_t i = 0; i < count; ++i) {
      set32(bytes, 12 + 8 * i, static_cast<std::uint32_t>(functions[i].begin));
      set32(bytes, 16 + 8 * i, static_cast<std::uint32_t>(bytes.size()));
      append_function(bytes, functions[i], common);
    }
    put32(bytes, 0);
    return bytes;
  }

  static tracer::LoadedModule module_of(const Bytes& bytes) {
    const auto begin = reinterpret_cast<std::uint64_t>(bytes.data());
    return {begin, begin + bytes.size(), begin};
  }

 private:
  static void put32(Bytes& bytes, std::uint32_t value) {
    bytes.resize(bytes.size() + 4);
    set32(bytes, bytes.size() - 4, value);
  }
  static void set32(Bytes& bytes, std::size_t at, std::uint32_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
  static void append(Bytes& bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  // Pads with DW_CFA_nop and writes the length in front of the entry.
  static void close_entry(Bytes& bytes, std::size_t begin) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    set32(bytes, begin, static_cast<std::uint32_t>(bytes.size() - begin - 4));
  }

  void append_common(Bytes& bytes) const {
    const std::size_t begin = bytes.size();
    put32(bytes, 0);
    put32(bytes, 0);
    bytes.push_back(1);
    bytes.insert(bytes.end(), augmentation.begin(), augmentation.end());
    append(bytes, {0, 1, 0x78, 16});  // end of the letters, code 1, data -8, return address in 16
    if (!augmentation.empty()) {
      bytes.push_back(static_cast<std::uint8_t>(augmentation_data.size()));
      append(bytes, augmentation_data);
    }
    append(bytes, common_program);
    close_entry(bytes, begin);
  }

  void append_function(Bytes& bytes, const Function& function, std::size_t common) const {
    const std::size_t begin = bytes.size();
    put32(bytes, 0);
    put32(bytes, static_cast<std::uint32_t>(bytes.size() - common));
    put32(bytes,
          static_cast<std::uint32_t>(function.begin) - static_cast<std::uint32_t>(bytes.size()));
    put32(bytes, function.length);
    if (!augmentation.empty()) {
      bytes.push_back(0);
    }
    append(bytes, function.program);
    close_entry(bytes, begin);
  }
};

}  // namespace tidemark::tests
