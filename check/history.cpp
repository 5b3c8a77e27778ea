// SPDX-License-Identifier: Apache-2.0
#include "check/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/files.h"
#include "recording/import/csv_line.h"
#include "report/output.h"

namespace tidemark::check {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostHistoryBytes = 64U << 20U;
constexpr double kLeastChange = 0.02;  // of a level

constexpr std::array<std::string_view, 10> kHistoryColumns{"time",
                                                           "commit",
                                                           "check",
                                                           "machine",
                                                           "result",
                                                           "rate_bytes_per_s",
                                                           "rate_bytes_per_step",
                                                           "plateau_bytes",
                                                           "peak_bytes",
                                                           "seconds"};

std::string number_field(const std::optional<double>& number, int decimals) {
  return number ? fmt::format("{:.{}f}", *number, decimals) : "";
}

std::string history_line(const HistoryRow& row) {
  std::string line;
  for (const std::string* const text :
       {&row.time, &row.commit, &row.check, &row.machine, &row.result}) {
    recording::append_csv_text(line, escape_text(*text));
    line += ',';
  }
  for (const auto& rate : {row.figures.rate_bytes_per_s, row.figures.rate_bytes_per_step}) {
    line += number_field(rate, 3) + ',';
  }
  line += fmt::format("{:.0f},{:.0f},{:.1f}\n", row.figures.plateau_bytes, row.figures.peak_bytes,
                      row.seconds);
  return line;
}

// What escape_text() was given. A backslash that is not of its making stays.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == '\\' || next == 'n' || next == 't') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      i += 1;
      continue;
    }
    const std::string_view digits = next == 'x' ? text.substr(i + 2, 2) : std::string_view();
    unsigned byte = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() == 2 && read.ptr == digits.data() + 2) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string names_line() { return fmt::format("{}\n", fmt::join(kHistoryColumns, ",")); }

// Which field of a line holds which column; -1: none does.
using Places = std::array<std::ptrdiff_t, kHistoryColumns.size()>;

Result<HistoryRow> row_of(const std::vector<std::string_view>& fields, const Places& places,
                          std::size_t line) {
  const auto field = [&](std::size_t column) -> std::string_view {
    const std::ptrdiff_t place = places[column];
    return place < 0 || static_cast<std::size_t>(place) >= fields.size()
               ? std::string_view()
               : recording::plain_csv_text(fields[static_cast<std::size_t>(place)]);
  };
  bool is_broken = false;
  const auto number = [&](std::size_t column) -> std::optional<double> {
    if (field(column).empty()) {
      return std::nullopt;
    }
    const auto value = parse_number<double>(field(column));
    is_broken = is_broken || !value || !std::isfinite(*value);
    return value;
  };
  HistoryRow row;
  row.time = unescaped(field(0));
  row.commit = unescaped(field(1));
  row.check = unescaped(field(2));
  row.machine = unescaped(field(3));
  row.result = unescaped(field(4));
  row.figures.rate_bytes_per_s = number(5);
  row.figures.rate_bytes_per_step = number(6);
  row.figures.plateau_bytes = number(7).value_or(0.0);
  row.figures.peak_bytes = number(8).value_or(0.0);
  row.seconds = number(9).value_or(0.0);
  if (is_broken) {
    return Error{Errc::kMalformed, fmt::format("line {} holds something that is no number", line)};
  }
  return row;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// The commit that is checked out in the folder of a repository; empty: none is.
std::string commit_in(const fs::path& git_folder, const fs::path& common_folder) {
  constexpr std::string_view kReference = "ref: ";
  const auto head = read_file((git_folder / "HEAD").string());
  const std::string_view text = head ? trim(*head) : std::string_view();
  if (!text.starts_with(kReference)) {
    return std::string(text);
  }
  const std::string name(text.substr(kReference.size()));
  if (const auto reference = read_file((common_folder / name).string())) {
    return std::string(trim(*reference));
  }
  const auto packed = read_file((common_folder / "packed-refs").string());
  std::string_view rest = packed ? std::string_view(*packed) : std::string_view();
  while (const auto line = next_line(rest)) {
    const std::size_t blank = line->find(' ');
    if (blank != std::string_view::npos && line->substr(blank + 1) == name) {
      return std::string(line->substr(0, blank));
    }
  }
  return "";
}

std::string commit_of_git() {
  constexpr std::string_view kElsewhere = "gitdir: ";
  std::error_code error;
  for (fs::path folder = fs::current_path(error); !error && !folder.empty();
       folder = folder.parent_path()) {
    fs::path git = folder / ".git";
    if (fs::is_regular_file(git, error)) {  // of a worktree or submodule
      const auto text = read_file(git.string());
      const std::string_view place = text ? trim(*text) : std::string_view();
      if (!place.starts_with(kElsewhere)) {
        return "";
      }
      git = folder / place.substr(kElsewhere.size());
    }
    if (fs::is_directory(git, error)) {
      const auto common = read_file((git / "commondir").string());
      return commit_in(git, common ? git / trim(*common) : git);
    }
    if (folder == folder.root_path()) {
      break;
    }
    error.clear();
  }
  return "";
}

}  // namespace

Result<std::vector<HistoryRow>> parse_history(std::string_view text) {
  std::vector<HistoryRow> rows;
  std::string_view rest = text;
  const auto names = next_line(rest);
  if (!names) {
    return rows;
  }
  std::vector<std::string_view> fields;
  std::string scratch;
  Places places{};
  if (!recording::split_csv_line(*names, ',', fields, scratch)) {
    return Error{Errc::kMalformed, "line 1: quotes do not match"};
  }
  for (std::size_t i = 0; i < kHistoryColumns.size(); ++i) {
    const auto found = std::find(fields.begin(), fields.end(), kHistoryColumns[i]);
    places[i] = found == fields.end() ? -1 : found - fields.begin();
  }
  if (places[2] < 0 || places[7] < 0) {
    return Error{Errc::kMalformed,
                 "line 1 does not name the columns of a history (check, plateau_bytes, ...)"};
  }
  std::size_t number = 1;
  while (const auto line = next_line(rest)) {
    ++number;
    if (line->empty()) {
      continue;
    }
    if (!recording::split_csv_line(*line, ',', fields, scratch)) {
      return Error{Errc::kMalformed, fmt::format("line {}: quotes do not match", number)};
    }
    TIDEMARK_TRY_ASSIGN(auto row, row_of(fields, places, number));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string history_file_text(std::span<const HistoryRow> rows) {
  std::string text = names_line();
  for (const HistoryRow& row : rows) {
    text += history_line(row);
  }
  return text;
}

Result<std::vector<HistoryRow>> read_history(const std::string& path) {
  const auto text = read_file(path, kMostHistoryBytes);
  if (!text) {
    return text.error().code == Errc::kNotFound ? Result(std::vector<HistoryRow>())
                                                : Result<std::vector<HistoryRow>>(text.error());
  }
  auto rows = parse_history(*text);
  return rows ? std::move(rows) : recording::named(path, rows.error());
}

Status append_history(const std::string& path, const HistoryRow& row) {
  TIDEMARK_TRY_ASSIGN(const auto file, open_file(path, O_RDWR | O_CREAT | O_APPEND, 0666));
  (void)::flock(file.get(), LOCK_EX);  // where it is not to be had, one write is whole as well
  struct stat status {};
  const bool is_known = ::fstat(file.get(), &status) == 0;
  std::string text = is_known && status.st_size == 0 ? names_line() : "";
  char last = '\n';
  if (is_known && status.st_size > 0 && ::pread(file.get(), &last, 1, status.st_size - 1) == 1 &&
      last != '\n') {
    text = "\n";  // somebody has edited it
  }
  return write_all(file.get(), text + history_line(row));
}

Status can_append_history(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) {
    return report::can_write_report(path);
  }
  return ::access(path.c_str(), W_OK) == 0
             ? ok()
             : Status(system_error(fmt::format("cannot write {}", path), errno));
}

std::vector<HistoryChange> history_changes(std::span<const HistoryRow> rows, std::string_view check,
                                           std::string_view machine) {
  struct Figure {
    std::string_view what;
    bool by_step;
    std::function<std::optional<double>(const tracker::BaselineRun&)> of;
  };
  const std::array<Figure, 4> figures{{
      {"growth", true, [](const tracker::BaselineRun& run) { return run.rate_bytes_per_step; }},
      {"growth", false, [](const tracker::BaselineRun& run) { return run.rate_bytes_per_s; }},
      {"plateau", false, [](const auto& run) { return std::optional(run.plateau_bytes); }},
      {"peak", false, [](const auto& run) { return std::optional(run.peak_bytes); }},
  }};
  std::vector<HistoryChange> changes;
  for (const Figure& figure : figures) {
    std::vector<double> values;
    std::vector<const HistoryRow*> of;
    for (const HistoryRow& row : rows) {
      const std::optional<double> value = figure.of(row.figures);
      if (row.check == check && row.machine == machine && value) {
        values.push_back(*value);
        of.push_back(&row);
      }
    }
    const auto change = tracker::find_level_change(values, kLeastChange);
    const bool is_told = figure.what == "growth" && !changes.empty();  // on the other axis
    if (change && !is_told) {
      const HistoryRow& first = *of[change->index];
      changes.push_back({figure.what, figure.by_step, *change, first.commit, first.time});
    }
  }
  return changes;
}

std::string current_commit() {
  for (const char* const name : {"GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "GIT_COMMIT"}) {
    if (std::string value = variable(name); !value.empty()) {
      return value;
    }
  }
  return commit_of_git();
}

std::string utc_time_text(std::int64_t wall_ns) {
  const time_t seconds = wall_ns / kNsPerSecond;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace tidemark::check
