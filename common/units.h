// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

// Quantities: how they are written on a command line, and how every output prints them.
namespace tidemark {

struct RunInfo;

inline constexpr std::uint64_t kMiB = 1ULL << 20U;
inline constexpr std::uint64_t kGiB = 1ULL << 30U;

// "64KiB", "1.5GiB", "200MB", "4096B", "0". KiB/MiB/GiB/TiB are powers of 1024, kB/MB/GB/TB of
// 1000; K/M/G/T alone are powers of 1024. In any case: "4gb". A number without a unit, unless it is
// zero, is an error, for it would mean bytes to us and hardly ever to its author; so are negative
// and overflowing sizes and unknown units.
Result<std::uint64_t> parse_size_bytes(std::string_view text);

// "500ms", "10s", "5min", "2h", "1d", "0". Without a unit it is an error, as with sizes.
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

// "0 B", "312 MiB", "-17.5 GiB": at most 4 significant digits, always with the unit. "?" for what
// is unknown or not finite.
std::string format_bytes(double bytes);
// The same with a sign: "+1.2 GiB", "-300 MiB", "+0 B".
std::string format_bytes_delta(double bytes);
template <std::integral T>
std::string format_bytes(T bytes) {
  return format_bytes(static_cast<double>(bytes));
}
template <std::integral T>
std::string format_bytes_delta(T bytes) {
  return format_bytes_delta(static_cast<double>(bytes));
}
template <typename T>
std::string format_bytes(const std::optional<T>& bytes) {
  return bytes ? format_bytes(*bytes) : "?";
}
template <typename T>
std::string format_bytes_delta(const std::optional<T>& bytes) {
  return bytes ? format_bytes_delta(*bytes) : "?";
}

struct RateFormat {
  bool has_sign = false;
  bool has_fixed_unit = false;  // else a figure too small to read is given for a larger unit
};
// Bytes per second or per step: "72.0 MiB/min", "1.20 MiB/step"; "352 KiB/h", "9.77 KiB/1000
// steps".
std::string format_rate(double bytes, RateUnit unit, RateFormat format = {});

// A share of 1: "12 %".
std::string format_percent(double share, int decimals = 0);
// "12,345".
std::string format_grouped(std::uint64_t number);
// The word for so many: "process", "processes". Without `several` it takes an s.
std::string plural(std::uint64_t count, std::string_view one, std::string_view several = "");
// "1 process", "2 processes".
std::string format_count(std::uint64_t count, std::string_view one, std::string_view several = "");

// "0.25 s", "12 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double seconds);
// "00:03:20": the time column of line output. Days appear as "2d 03:04:05".
std::string format_clock(double seconds);
// A place in a run: "step 90" or "00:03:20".
std::string format_place(double at, RateUnit unit);

// How a run prints its times: by the clock, or by its steps where it has no time.
class TimeFormat {
 public:
  enum class Seconds { kWhole, kWithDecimals };

  // By the clock, in whole seconds.
  TimeFormat() = default;
  explicit TimeFormat(Seconds seconds, bool time_is_steps = false)
      : seconds_(seconds), is_steps_(time_is_steps) {}
  // With decimals where samples may be less than a second apart.
  static TimeFormat of(const RunInfo& info);

  // False: there are no rates per minute either.
  bool has_time() const { return !is_steps_; }
  // "00:03:20"; "00:03:20.25"; "step 12".
  std::string at(double t_s) const;
  // Of a run that has come so far: "3 min 20 s"; "12 steps".
  std::string length(double t_s) const;

 private:
  Seconds seconds_ = Seconds::kWhole;
  bool is_steps_ = false;
};

}  // namespace tidemark
