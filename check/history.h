// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "tracker/compare/baseline.h"

namespace tidemark::check {

// One line of a history: a check of a commit. Strings are raw bytes.
struct HistoryRow {
  std::string time;    // "2026-11-16T12:00:00Z"
  std::string commit;  // empty: unknown
  std::string check;
  std::string machine;
  std::string result;  // "pass", "fail", ...
  tracker::BaselineRun figures;
  double seconds = 0.0;
};

// A file that is not there yet is empty. Columns are found by their names; others are left alone.
Result<std::vector<HistoryRow>> read_history(const std::string& path);
Result<std::vector<HistoryRow>> parse_history(std::string_view text);
// All of a file, with its line of names. It reads back the same, whatever bytes the texts hold.
std::string history_file_text(std::span<const HistoryRow> rows);
// Creates the file, with a line of names, where there is none.
Status append_history(const std::string& path, const HistoryRow& row);

// Whether append_history() could work, asked before there is a row. Creates nothing.
Status can_append_history(const std::string& path);

// Since when a figure of a check has another level.
struct HistoryChange {
  std::string_view what;  // "growth", "plateau", "peak"
  bool by_step = false;   // of growth: per step, else per second
  tracker::LevelChange change;
  std::string commit;  // the first of the new level
  std::string time;
};
// Of the rows of this check on this machine, in their order.
std::vector<HistoryChange> history_changes(std::span<const HistoryRow> rows, std::string_view check,
                                           std::string_view machine);

// What CI systems and git say about the commit that is checked; empty: nothing.
std::string current_commit();
// "2026-11-16T12:00:00Z".
std::string utc_time_text(std::int64_t wall_ns);

}  // namespace tidemark::check
