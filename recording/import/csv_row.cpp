// SPDX-License-Identifier: Apache-2.0
#include "recording/import/csv_row.h"

#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/import/csv_line.h"

namespace tidemark::recording {
namespace {

// Largest size that we believe; also keeps sums of many from overflowing.
constexpr double kMaxBytes = 0x1p53;
constexpr double kBytesPerMib = 1024.0 * 1024.0;

enum class Parsed { kNumber, kUnknown, kBad };

// Tools write an unknown value as nothing or as one of these.
bool means_unknown(std::string_view text) {
  if (text.empty()) {
    return true;
  }
  for (const std::string_view word : {"nan", "NaN", "NAN", "null", "None", "NA", "N/A", "-"}) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

// Digits only, as most sizes are: much quicker than the general way. Up to 15 are exact.
bool parse_digits(std::string_view text, double& value) {
  if (text.empty() || text.size() > 15) {
    return false;
  }
  std::uint64_t sum = 0;
  for (const char c : text) {
    const auto digit = static_cast<unsigned>(c) - unsigned{'0'};
    if (digit > 9) {
      return false;
    }
    sum = sum * 10 + digit;
  }
  value = static_cast<double>(sum);
  return true;
}

Parsed parse(std::string_view text, char separator, double& value) {
  if (parse_digits(text, value)) {
    return Parsed::kNumber;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(value)) {
    return Parsed::kNumber;
  }
  text = trim(text);
  if (means_unknown(text)) {
    return Parsed::kUnknown;
  }
  std::string plain(text);
  if (separator != ',') {  // 12,5 with a decimal comma
    const std::size_t comma = plain.find(',');
    if (comma != std::string::npos) {
      plain[comma] = '.';
    }
  }
  const auto again = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  const bool is_number = again.ec == std::errc{} && again.ptr == plain.data() + plain.size();
  return is_number && std::isfinite(value) ? Parsed::kNumber : Parsed::kBad;
}

// Whole numbers, also as "12.0": pandas writes a column of integers with gaps that way.
Parsed parse_integer(std::string_view text, char separator, std::optional<std::int64_t>& result) {
  if (const auto plain = parse_number<std::int64_t>(text)) {
    result = plain;
    return Parsed::kNumber;
  }
  double value = 0.0;
  const Parsed parsed = parse(text, separator, value);
  if (parsed != Parsed::kNumber) {
    return parsed;
  }
  if (value != std::trunc(value) || std::fabs(value) > kMaxBytes) {
    return Parsed::kBad;
  }
  result = static_cast<std::int64_t>(value);
  return Parsed::kNumber;
}

std::optional<CsvScope> parse_scope(std::string_view text) {
  if (text.empty() || text == "process") {
    return CsvScope::kProcess;
  }
  if (text == "role") {
    return CsvScope::kRole;
  }
  return text == "tree" ? std::optional(CsvScope::kTree) : std::nullopt;
}

TimeAxis axis_of(const CsvHeader& header) {
  const auto& time = header[CsvField::kTime];
  return time ? TimeAxis(time->unit) : TimeAxis::of_steps();
}

}  // namespace

CsvRowParser::CsvRowParser(CsvHeader header)
    : header_(std::move(header)),
      time_(axis_of(header_)),
      time_is_steps_(!header_[CsvField::kTime]) {
  find_columns();
}

void CsvRowParser::find_columns() {
  if (const auto& time = header_[time_is_steps_ ? CsvField::kStep : CsvField::kTime]) {
    time_index_ = time->index;
  }
  for (const CsvField field : {CsvField::kScope, CsvField::kName, CsvField::kRole}) {
    has_texts_ = has_texts_ || header_[field];
  }
  struct Integer {
    CsvField field;
    std::optional<std::int64_t> CsvRow::*result;
    std::int64_t min;
    std::int64_t max;
  };
  const Integer integers[] = {
      {CsvField::kStep, &CsvRow::step, INT64_MIN, INT64_MAX},
      {CsvField::kEpoch, &CsvRow::epoch, INT64_MIN, INT64_MAX},
      {CsvField::kStartTicks, &CsvRow::start_ticks, 0, INT64_MAX},
      {CsvField::kPid, &CsvRow::pid, 0, INT32_MAX},
      {CsvField::kPpid, &CsvRow::ppid, 0, INT32_MAX},
      {CsvField::kRank, &CsvRow::rank, 0, INT32_MAX},
      {CsvField::kProcesses, &CsvRow::processes, 0, INT32_MAX},
  };
  for (const auto& [field, result, min, max] : integers) {
    if (const auto& column = header_[field]) {
      integers_.push_back({column->index, result, min, max});
    }
  }
  std::size_t place = 0;
  visit_fields<ProcessSample>([&](const auto& field) {
    if (auto& column = header_.sample_fields[place++]) {
      add_sample_column(*column, field.member);
    }
  });
}

void CsvRowParser::add_sample_column(CsvColumn& column,
                                     std::optional<std::uint64_t> ProcessSample::*result) {
  sizes_.push_back({&column, result});
}
void CsvRowParser::add_sample_column(CsvColumn& column,
                                     std::optional<std::uint32_t> ProcessSample::*result) {
  counts_.push_back({&column, result});
}
void CsvRowParser::add_sample_column(CsvColumn& column,
                                     std::optional<double> ProcessSample::*result) {
  seconds_.push_back({&column, result});
}
void CsvRowParser::add_sample_column(CsvColumn& column, char ProcessSample::*result) {
  letters_.push_back({&column, result});
}

std::string_view CsvRowParser::text(CsvField field) const {
  const auto& column = header_[field];
  return column ? trim(fields_[column->index]) : std::string_view();
}

const char* CsvRowParser::parse(std::string_view line, CsvRow& row) {
  row = CsvRow{};
  if (!split_csv_line(line, header_.separator, fields_, scratch_)) {
    return "its quotes do not match";
  }
  const bool has_trailing_separator =
      fields_.size() == header_.columns + 1 && fields_.back().empty();
  if (fields_.size() != header_.columns && !has_trailing_separator) {
    return "it does not have as many fields as the header";
  }
  if (const char* problem = parse_time(row)) {
    return problem;
  }
  if (has_texts_) {
    const auto scope = parse_scope(text(CsvField::kScope));
    if (!scope) {
      return "its scope is none of process, role and tree";
    }
    row.scope = *scope;
    row.name = plain_csv_text(text(CsvField::kName));
    row.role = plain_csv_text(text(CsvField::kRole));
  }
  for (const auto& [column, letter] : letters_) {
    const std::string_view field = plain_csv_text(trim(fields_[column->index]));
    row.sample.*letter = field.size() == 1 ? field.front() : '?';
  }
  if (const char* problem = parse_integers(row)) {
    return problem;
  }
  if (const char* problem = parse_seconds(row)) {
    return problem;
  }
  return parse_sizes(row);
}

const char* CsvRowParser::parse_time(CsvRow& row) {
  const auto t_s = time_.seconds(trim(fields_[time_index_]));
  if (!t_s) {
    return "its time is not a number or a date";
  }
  if (*t_s < 0.0) {
    return "its time is negative";
  }
  row.t_s = *t_s;
  return nullptr;
}

const char* CsvRowParser::parse_integers(CsvRow& row) const {
  constexpr const char* kProblem =
      "a field that should be a whole number is not, or is out of range";
  for (const auto& [index, member, min, max] : integers_) {
    std::optional<std::int64_t>& result = row.*member;
    const Parsed parsed = parse_integer(fields_[index], header_.separator, result);
    if (parsed == Parsed::kBad || (result && (*result < min || *result > max))) {
      return kProblem;
    }
  }
  for (const auto& [column, member] : counts_) {
    std::optional<std::int64_t> count;
    const Parsed parsed = parse_integer(fields_[column->index], header_.separator, count);
    if (parsed == Parsed::kBad || (count && (*count < 0 || *count > INT32_MAX))) {
      return kProblem;
    }
    if (count) {
      row.sample.*member = static_cast<std::uint32_t>(*count);
    }
  }
  if (header_[CsvField::kPid] && row.scope == CsvScope::kProcess && !row.pid) {
    return "it has no pid";
  }
  return nullptr;
}

const char* CsvRowParser::parse_seconds(CsvRow& row) const {
  for (const auto& [column, member] : seconds_) {
    double value = 0.0;
    switch (tidemark::recording::parse(fields_[column->index], header_.separator, value)) {
      case Parsed::kBad:
        return "a field that should be a number of seconds is not";
      case Parsed::kUnknown:
        break;
      case Parsed::kNumber:
        row.sample.*member = value * column->unit.value_or(1.0);
        break;
    }
  }
  return nullptr;
}

const char* CsvRowParser::parse_sizes(CsvRow& row) {
  for (const auto& [column, member] : sizes_) {
    if (const char* problem = parse_size(*column, row.sample.*member)) {
      return problem;
    }
  }
  auto& footprint = header_.fields[static_cast<std::size_t>(CsvField::kFootprint)];
  return footprint ? parse_size(*footprint, row.footprint_bytes) : nullptr;
}

const char* CsvRowParser::parse_size(CsvColumn& column, std::optional<std::uint64_t>& result) {
  double value = 0.0;
  switch (tidemark::recording::parse(fields_[column.index], header_.separator, value)) {
    case Parsed::kBad:
      return "a memory field is not a number";
    case Parsed::kUnknown:
      return nullptr;
    case Parsed::kNumber:
      break;
  }
  const double bytes = value * (column.unit ? *column.unit : decide_unit(column, value));
  if (!(bytes >= 0.0)) {
    return "a memory field is negative";
  }
  if (bytes > kMaxBytes) {
    return "a memory field is impossibly large";
  }
  // Not llround: a call in the hottest loop of the importer.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  result = static_cast<std::uint64_t>(bytes + 0.5);
  return nullptr;
}

// A name without a unit means bytes, as psutil gives them; a first value that cannot be bytes of a
// process (a fraction, or less than 64 KiB) means MiB, the usual unit of hand-written files.
double CsvRowParser::decide_unit(CsvColumn& column, double value) {
  const bool is_bytes = value == std::trunc(value) && value >= 65536.0;
  column.unit = is_bytes ? 1.0 : kBytesPerMib;
  notes_.push_back(fmt::format("column '{}' names no unit: taken as {}",
                               shorten(escape_text(column.name), 40), is_bytes ? "bytes" : "MiB"));
  return *column.unit;
}

}  // namespace tidemark::recording
