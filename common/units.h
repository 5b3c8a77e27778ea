// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark {

inline constexpr std::uint64_t kMiB = 1ULL << 20U;
inline constexpr std::uint64_t kGiB = 1ULL << 30U;

// "64KiB", "1.5GiB", "200MB", "4096" (bytes). KiB/MiB/GiB/TiB are powers of 1024, kB/MB/GB/TB of
// 1000; a bare K/M/G/T is a power of 1024. Negative, overflowing or unknown units are errors.
Result<std::uint64_t> parse_size_bytes(std::string_view text);

// "500ms", "10s", "5min", "2h", "1d"; a bare number is seconds.
Result<std::int64_t> parse_duration_ns(std::string_view text);

// What a rate counts against.
enum class RateUnit { kSecond, kStep };

// A growth: `bytes` per `per` seconds or steps. "1MiB/step", "20MB/min", "200MB/10s".
struct Rate {
  double bytes = 0.0;
  RateUnit unit = RateUnit::kSecond;
  double per = 1.0;

  double bytes_per_unit() const { return bytes / per; }
};
Result<Rate> parse_rate(std::string_view text);

// "0 B", "312 MiB", "17.5 GiB": at most 4 significant digits, always with the unit.
std::string format_bytes(std::uint64_t bytes);
// The same with a sign: "+1.2 GiB", "-300 MiB", "+0 B".
std::string format_bytes_delta(std::int64_t bytes);
// "0.25 s", "12 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double seconds);
// "00:03:20": the time column of line output. Days appear as "2d 03:04:05".
std::string format_clock(double seconds);

}  // namespace tidemark
