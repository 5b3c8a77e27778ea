// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "recording/import/csv_header.h"
#include "recording/import/timestamp.h"

namespace tidemark::recording {

enum class CsvScope { kProcess, kRole, kTree };

// One row in our terms. What the row does not say is nullopt.
struct CsvRow {
  double t_s = 0.0;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> epoch;
  CsvScope scope = CsvScope::kProcess;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> start_ticks;
  std::optional<std::int64_t> ppid;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> processes;
  std::string_view name;  // these two: valid until the next row
  std::string_view role;
  std::optional<std::uint64_t> footprint_bytes;
  ProcessSample sample;  // its key is not set
};

// Turns lines into rows. Keeps what the first row decides: the kind of time, and the unit of sizes
// whose column does not name one.
class CsvRowParser {
 public:
  explicit CsvRowParser(CsvHeader header);
  CsvRowParser(const CsvRowParser&) = delete;
  CsvRowParser& operator=(const CsvRowParser&) = delete;

  // nullptr: `row` is filled. Otherwise why the line cannot be used, as a string literal.
  const char* parse(std::string_view line, CsvRow& row);

  const CsvHeader& header() const { return header_; }
  std::optional<std::int64_t> start_wall_ns() const { return time_.start_wall_ns(); }
  // What was assumed about units, as sentences.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Most files have few of the possible columns: those that are there are looked up once.
  struct IntegerColumn {
    std::size_t index = 0;  // in the row
    std::optional<std::int64_t> CsvRow::*result = nullptr;
    std::int64_t min = 0;
    std::int64_t max = 0;
  };
  // The column of a field of the sample.
  template <typename Value>
  struct SampleColumn {
    CsvColumn* column = nullptr;  // in the header
    Value ProcessSample::*result = nullptr;
  };

  void find_columns();
  void add_sample_column(CsvColumn& column, std::optional<std::uint64_t> ProcessSample::*result);
  void add_sample_column(CsvColumn& column, std::optional<std::uint32_t> ProcessSample::*result);
  void add_sample_column(CsvColumn& column, std::optional<double> ProcessSample::*result);
  void add_sample_column(CsvColumn& column, char ProcessSample::*result);
  std::string_view text(CsvField field) const;
  const char* parse_time(CsvRow& row);
  const char* parse_integers(CsvRow& row) const;
  const char* parse_seconds(CsvRow& row) const;
  const char* parse_sizes(CsvRow& row);
  const char* parse_size(CsvColumn& column, std::optional<std::uint64_t>& result);
  double decide_unit(CsvColumn& column, double value);

  CsvHeader header_;
  TimeAxis time_;
  bool time_is_steps_;
  std::size_t time_index_ = 0;
  bool has_texts_ = false;
  std::vector<IntegerColumn> integers_;
  std::vector<SampleColumn<std::optional<std::uint64_t>>> sizes_;
  std::vector<SampleColumn<std::optional<std::uint32_t>>> counts_;
  std::vector<SampleColumn<std::optional<double>>> seconds_;
  std::vector<SampleColumn<char>> letters_;
  std::vector<std::string_view> fields_;
  std::string scratch_;
  std::vector<std::string> notes_;
};

}  // namespace tidemark::recording
