// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tidemark::tracer {

// Addresses [begin, end) of this process.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Reads little-endian numbers from mapped memory, never outside of its range: a number that does
// not fit is 0, and ok() is false from then on.
class ByteReader {
 public:
  explicit ByteReader(ByteRange range) noexcept
      : at_(range.begin), end_(range.end), ok_(range.begin <= range.end) {}

  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return !ok_ || at_ == end_; }
  std::uint64_t at() const noexcept { return at_; }
  std::uint64_t end() const noexcept { return end_; }

  std::uint8_t u8() noexcept { return number<std::uint8_t>(); }
  std::uint16_t u16() noexcept { return number<std::uint16_t>(); }
  std::uint32_t u32() noexcept { return number<std::uint32_t>(); }
  std::uint64_t u64() noexcept { return number<std::uint64_t>(); }
  std::int32_t s32() noexcept { return number<std::int32_t>(); }

  std::uint64_t uleb128() noexcept {
    std::uint64_t value = 0;
    leb128(value);
    return value;
  }

  std::int64_t sleb128() noexcept {
    std::uint64_t value = 0;
    const Leb128 read = leb128(value);
    if (read.shift < 64 && (read.last & 0x40U) != 0) {
      value |= ~std::uint64_t{0} << read.shift;
    }
    return static_cast<std::int64_t>(value);
  }

  // Skips `length` bytes and returns their range.
  ByteRange take(std::uint64_t length) noexcept {
    if (!ok_ || length > end_ - at_) {
      fail();
      return {end_, end_};
    }
    at_ += length;
    return {at_ - length, at_};
  }

 private:
  struct Leb128 {
    unsigned shift;     // bits read
    std::uint8_t last;  // its bit 6 is the sign
  };

  template <typename Number>
  Number number() noexcept {
    if (!ok_ || end_ - at_ < sizeof(Number)) {
      fail();
      return 0;
    }
    Number value;
    std::memcpy(&value, std::bit_cast<const void*>(at_), sizeof(Number));
    at_ += sizeof(Number);
    return value;
  }

  // Bits above the 64th are dropped, as every reader of DWARF does with padded numbers.
  Leb128 leb128(std::uint64_t& value) noexcept {
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = u8();
      if (shift < 64) {
        value |= (byte & std::uint64_t{0x7f}) << shift;
        shift += 7;
      }
    } while (ok_ && (byte & 0x80U) != 0);
    return {shift, byte};
  }

  void fail() noexcept {
    ok_ = false;
    at_ = end_;
  }

  std::uint64_t at_;
  std::uint64_t end_;
  bool ok_;
};

}  // namespace tidemark::tracer
