// SPDX-License-Identifier: Apache-2.0
#include "recording/run_window.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "recording/sqlite.h"

namespace tidemark::recording {
namespace {

// The first tick at or after `t_s`; beyond the last when there is none. Time rises with the number
// of the tick, and only that has an index.
Result<std::int64_t> first_tick_from(Statement& probe, std::int64_t last, double t_s) {
  std::int64_t low = 0;
  std::int64_t high = last + 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    probe.bind(1, middle);
    TIDEMARK_TRY_ASSIGN(const bool has_row, probe.step());
    const bool is_before = has_row && probe.real(0) < t_s;
    probe.reset();
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<std::vector<WindowPoint>> read_rows(Statement& rows, double from_s, double to_s,
                                           std::size_t most) {
  std::vector<WindowPoint> points;
  const double stretch = (to_s - from_s) / static_cast<double>(std::max<std::size_t>(1, most));
  while (true) {
    TIDEMARK_TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) {
      return points;
    }
    const double t_s = rows.real(0);
    const double bytes = rows.is_null(1) ? rows.real(2) : rows.real(1);
    if (t_s > to_s) {
      continue;
    }
    if (!points.empty() && t_s - points.back().t_s < stretch) {
      points.back().min_bytes = std::min(points.back().min_bytes, bytes);
      points.back().max_bytes = std::max(points.back().max_bytes, bytes);
    } else {
      points.push_back({t_s, bytes, bytes});
    }
  }
}

}  // namespace

Result<std::vector<WindowPoint>> read_tree_window(const std::string& path, double from_s,
                                                  double to_s, std::size_t most) {
  TIDEMARK_TRY_ASSIGN(auto database, Database::open(path, Database::Mode::kReadOnly));
  TIDEMARK_TRY_ASSIGN(auto last, database.query_integer("SELECT ifnull(max(tick), -1) FROM ticks"));
  TIDEMARK_TRY_ASSIGN(
      auto probe, database.prepare("SELECT t_s FROM ticks WHERE tick >= ?1 ORDER BY tick LIMIT 1"));
  TIDEMARK_TRY_ASSIGN(const auto first, first_tick_from(probe, last, from_s));
  TIDEMARK_TRY_ASSIGN(const auto end, first_tick_from(probe, last, to_s));
  TIDEMARK_TRY_ASSIGN(
      auto rows,
      database.prepare(
          "SELECT t.t_s, g.footprint_bytes, g.rss_bytes FROM ticks t JOIN group_samples g"
          " ON g.tick = t.tick AND g.who = 'tree' WHERE t.tick BETWEEN ?1 AND ?2 ORDER BY t.tick"));
  rows.bind(1, first);
  rows.bind(2, end);
  return read_rows(rows, from_s, to_s, most);
}

}  // namespace tidemark::recording
