// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::recording {

// Seconds since 1970 of an ISO 8601 time: "2025-03-01T12:00:00.250Z", "2025-03-01
// 12:00:00,25+0100", "2025-03-01T12:00". Without a zone it is taken as UTC: only differences matter
// to us.
std::optional<double> parse_iso_time(std::string_view text);

// Turns the time column of a file into seconds (or steps) since the start of the run. Numbers that
// can only be dates (seconds, milli-, micro- or nanoseconds since 1970) and ISO 8601 times count
// from the first one; all others are taken as they are.
class TimeAxis {
 public:
  // `unit_s` is what the name of the column says; nullopt when it says nothing.
  explicit TimeAxis(std::optional<double> unit_s) : unit_s_(unit_s) {}
  // Steps are never dates, however many there are.
  static TimeAxis of_steps();

  // nullopt: not a time, or an impossible one (beyond 2^53). The first time that is one decides how
  // all are read.
  std::optional<double> seconds(std::string_view text);
  // When t = 0 was, if the times are dates.
  std::optional<std::int64_t> start_wall_ns() const;

 private:
  std::optional<double> number(std::string_view text) const;
  std::optional<double> seconds_of(double value);

  enum class Kind { kUndecided, kNumber, kIso };
  std::optional<double> unit_s_;
  Kind kind_ = Kind::kUndecided;
  bool may_be_date_ = true;
  double units_per_second_ = 1.0;  // of dates whose column names no unit
  std::optional<double> start_s_;  // of dates: seconds since 1970
};

}  // namespace tidemark::recording
