// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/record_fields.h"
#include "common/result.h"

namespace tidemark::recording {

// What a column of a CSV file can mean to us, beside the fields of a ProcessSample.
enum class CsvField {
  kTime,
  kStep,
  kEpoch,
  kScope,  // "process" (or no such column), "role" or "tree": as `export` writes it
  kPid,
  kStartTicks,
  kPpid,
  kName,
  kRole,
  kRank,
  kProcesses,
  kFootprint,
};
inline constexpr std::size_t kCsvFieldCount = 12;

struct CsvColumn {
  std::size_t index = 0;  // in the row
  std::string name;       // as the file writes it
  // Bytes (or seconds) for each unit of the value; nullopt when the name does not say.
  std::optional<double> unit;
};

struct CsvHeader {
  char separator = ',';
  std::size_t columns = 0;
  std::array<std::optional<CsvColumn>, kCsvFieldCount> fields;
  // In the order of kFields<ProcessSample>.
  std::array<std::optional<CsvColumn>, kFieldCount<ProcessSample>> sample_fields;

  const std::optional<CsvColumn>& operator[](CsvField field) const {
    return fields[static_cast<std::size_t>(field)];
  }
};

// The end of a field's name says its unit.
constexpr bool is_size(std::string_view field_name) { return field_name.ends_with("_bytes"); }
constexpr bool is_time(std::string_view field_name) { return field_name.ends_with("_s"); }

// Finds our columns by their names: case, blanks and punctuation do not matter, the unit is the end
// of the name ("rss_mb", "RSS (MiB)", "elapsed_ms"). kb, mb and gb are powers of 1024: that is what
// /proc, ps and the psutil scripts that write such files mean by them. Unknown columns are left
// alone. An Error says what is missing; `file` is its name.
Result<CsvHeader> parse_csv_header(std::string_view line, std::string_view file);

}  // namespace tidemark::recording
