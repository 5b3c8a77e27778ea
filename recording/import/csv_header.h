// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::recording {

// What a column of a CSV file can mean to us. Sizes come last.
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
  kState,
  kThreads,
  kPssAge,
  kRss,
  kRssAnon,
  kRssFile,
  kRssShmem,
  kSwap,
  kHwm,
  kPss,
  kPssFootprint,
  kUss,
  kFootprint,
};
inline constexpr std::size_t kCsvFieldCount = 24;
inline constexpr std::size_t kFirstSizeField = static_cast<std::size_t>(CsvField::kRss);

struct CsvColumn {
  std::size_t index = 0;  // in the row
  std::string name;       // as the file writes it
  // Bytes (or seconds) for each unit of the value; nullopt when the name does not tell.
  std::optional<double> unit;
};

struct CsvHeader {
  char separator = ',';
  std::size_t columns = 0;
  std::array<std::optional<CsvColumn>, kCsvFieldCount> fields;

  const std::optional<CsvColumn>& operator[](CsvField field) const {
    return fields[static_cast<std::size_t>(field)];
  }
};

// Finds our columns by their names: case, blanks and punctuation do not matter, the unit is the end
// of the name ("rss_mb", "RSS (MiB)", "elapsed_ms"). kb, mb and gb are powers of 1024: that is what
// /proc, ps and the psutil scripts that write such files mean by them. Unknown columns are left
// alone. An Error says what is missing; `file` is its name.
Result<CsvHeader> parse_csv_header(std::string_view line, std::string_view file);

}  // namespace tidemark::recording
