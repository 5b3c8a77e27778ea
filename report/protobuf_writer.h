// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::report {

// Appends the fields of one message in the wire format of protocol buffers. A message within a
// message is written by a writer of its own and given as bytes.
class ProtobufWriter {
 public:
  void varint_field(std::uint32_t field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
  }
  void bytes_field(std::uint32_t field, std::string_view bytes) {
    varint((field << 3U) | 2U);
    varint(bytes.size());
    out_ += bytes;
  }
  // A number of a packed list; put the finished list in by bytes_field().
  void packed(std::uint64_t value) { varint(value); }

  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      out_ += static_cast<char>((value & 0x7fU) | 0x80U);
    }
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace tidemark::report
