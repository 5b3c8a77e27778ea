// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

// Which columns there is room for.
struct Columns {
  std::size_t name = 24;
  bool change = false;
  bool rate = false;
  bool rss = false;
  bool pss = false;
  bool swap = false;
  bool gpu = false;
  bool cpu = false;
  std::size_t command = 0;
  bool rate_is_per_step = false;
  bool has_ended = false;

  std::size_t rate_size() const { return rate_is_per_step ? 14 : 13; }
};

constexpr std::size_t kSize = 10;
constexpr std::size_t kAge = 6;
constexpr std::size_t kCpu = 6;
constexpr std::size_t kLeastCommand = 12;

Columns choose_columns(const TreeModel& tree, int width) {
  Columns columns;
  auto left = static_cast<std::ptrdiff_t>(width);
  columns.name = width < 60 ? 20 : width < 100 ? 24 : 28;
  left -= static_cast<std::ptrdiff_t>(columns.name + 1 + kSize);
  const auto take = [&](bool wanted, std::size_t size) {
    const auto needed = static_cast<std::ptrdiff_t>(size + 1);
    if (!wanted || left < needed) {
      return false;
    }
    left -= needed;
    return true;
  };
  columns.rate_is_per_step = tree.rate_is_per_step;
  columns.has_ended = tree.has_ended;
  columns.rate = take(width >= 60, columns.rate_size());
  columns.gpu = take(tree.shows_gpu, kSize);
  columns.change = take(width >= 60, kSize + 1);
  columns.rss = take(true, kSize);
  columns.swap = take(tree.shows_swap, kSize);
  columns.cpu = take(tree.shows_cpu && width >= 80, kCpu);
  columns.pss = take(width >= 100, kSize + kAge);
  if (left > static_cast<std::ptrdiff_t>(kLeastCommand)) {
    columns.command = static_cast<std::size_t>(left - 2);
  }
  return columns;
}

std::string pss_cell(const TreeRow& row) {
  const std::string age =
      row.pss_age_s && *row.pss_age_s >= 1.0 ? fmt::format("{:.0f}s", *row.pss_age_s) : "";
  return fmt::format(" {:>{}}{:>{}}", format_bytes(row.pss_bytes), kSize, age, kAge);
}

// What stands still has none.
std::string rate_cell(const TreeRow& row, const Columns& columns) {
  if (columns.has_ended) {
    return "ended";
  }
  constexpr double kStill = 1.0;  // byte per second or step
  if (!row.rate_bytes_per_s || std::fabs(*row.rate_bytes_per_s) < kStill) {
    return "";
  }
  return columns.rate_is_per_step
             ? format_rate(*row.rate_bytes_per_s, RateUnit::kStep,
                           {.has_sign = true, .has_fixed_unit = true})
             : format_rate(*row.rate_bytes_per_s, RateUnit::kSecond, {.has_sign = true});
}

std::string row_text(const TreeRow& row, const Columns& columns, std::string_view name,
                     std::string_view command) {
  const std::string footprint =
      row.is_zombie ? "zombie"
                    : (row.footprint_held ? "~" : "") + format_bytes(row.footprint_bytes);
  std::string line =
      fmt::format("{:<{}} {:>{}}", shorten(name, columns.name), columns.name, footprint, kSize);
  if (columns.change) {
    line += fmt::format(" {:>{}}", format_bytes_delta(row.change_bytes), kSize + 1);
  }
  if (columns.rate) {
    line += fmt::format(" {:>{}}", rate_cell(row, columns), columns.rate_size());
  }
  if (columns.rss) {
    line += fmt::format(" {:>{}}", format_bytes(row.rss_bytes), kSize);
  }
  if (columns.pss) {
    line += pss_cell(row);
  }
  if (columns.swap) {
    line += fmt::format(" {:>{}}", format_bytes(row.swap_bytes), kSize);
  }
  if (columns.cpu) {
    line += fmt::format(" {:>{}}", row.cpu_share ? format_percent(*row.cpu_share) : "", kCpu);
  }
  if (columns.gpu) {
    line += fmt::format(" {:>{}}", row.gpu_bytes ? format_bytes(*row.gpu_bytes) : "", kSize);
  }
  if (columns.command > 0) {
    line += "  " + shorten(command, columns.command);
  }
  return line;
}

std::string header_text(const Columns& columns, SortBy sort) {
  const auto head = [&](SortBy by, std::string_view name) {
    return std::string(sort == by ? "*" : "") + std::string(name);
  };
  std::string line = fmt::format("{:<{}} {:>{}}", head(SortBy::kPid, "  PROCESS"), columns.name,
                                 head(SortBy::kFootprint, "FOOTPRINT"), kSize);
  if (columns.change) {
    line += fmt::format(" {:>{}}", head(SortBy::kChange, "CHANGE"), kSize + 1);
  }
  if (columns.rate) {
    line += fmt::format(" {:>{}}", head(SortBy::kRate, "RATE"), columns.rate_size());
  }
  if (columns.rss) {
    line += fmt::format(" {:>{}}", head(SortBy::kRss, "RSS"), kSize);
  }
  if (columns.pss) {
    line += fmt::format(" {:>{}}{:>{}}", "PSS", kSize, "AGE", kAge);
  }
  if (columns.swap) {
    line += fmt::format(" {:>{}}", "SWAP", kSize);
  }
  if (columns.cpu) {
    line += fmt::format(" {:>{}}", "CPU", kCpu);
  }
  if (columns.gpu) {
    line += fmt::format(" {:>{}}", "GPU", kSize);
  }
  return columns.command > 0 ? line + "  COMMAND" : line;
}

std::string name_of(const TreeRow& row, bool is_member, bool utf8) {
  if (row.is_role) {
    return (utf8 ? (row.is_open ? "▾ " : "▸ ") : (row.is_open ? "- " : "+ ")) + row.name;
  }
  return (is_member ? "    " : "  ") + row.name;
}

std::string_view sort_words(SortBy sort) {
  static constexpr std::array<std::string_view, 5> kWords{"by footprint", "by rss", "by change",
                                                          "by rate", "by pid"};
  return kWords[static_cast<std::size_t>(sort)];
}

std::string title_of(const TreeModel& tree) {
  std::string title =
      fmt::format("{} processes{}, footprint {}, rss {}", tree.processes,
                  tree.has_ended ? " until the end" : "", format_bytes(tree.total.footprint_bytes),
                  format_bytes(tree.total.rss_bytes));
  if (tree.total.change_bytes) {
    title += ", " + format_bytes_delta(*tree.total.change_bytes);
  }
  return title;
}

std::string right_of(const TreeModel& tree) {
  if (tree.is_typing_filter) {
    return "filter: " + escape_text(tree.filter) + "_";
  }
  return tree.filter.empty() ? std::string(sort_words(tree.sort))
                             : "filter: " + escape_text(tree.filter);
}

}  // namespace

Element tree_view(const TreeModel& tree, int width, int lines, const Theme& theme) {
  const Columns columns = choose_columns(tree, width);
  Elements rows;
  rows.push_back(title_line(title_of(tree), right_of(tree), tree.is_focused, theme));
  rows.push_back(text(header_text(columns, tree.sort)) | ftxui::dim);
  const auto shown = static_cast<std::size_t>(std::max(0, lines - 2));
  const std::size_t first = first_visible_row(tree, shown);
  const std::size_t end = std::min(tree.rows.size(), first + shown);
  Role open_role = Role::kOther;
  bool is_below_head = false;
  for (std::size_t i = 0; i < end; ++i) {
    const TreeRow& row = tree.rows[i];
    const bool is_member = is_below_head && !row.is_role && row.id.role == open_role;
    if (row.is_role) {
      open_role = row.id.role;
      is_below_head = true;
    }
    if (i < first) {
      continue;
    }
    Element line = text(row_text(row, columns, name_of(row, is_member, theme.utf8), row.command));
    if (row.is_trainer) {
      line = line | ftxui::bold;
    }
    rows.push_back(i == tree.selected ? line | ftxui::inverted : line);
  }
  if (tree.rows.empty()) {
    rows.push_back(text(tree.filter.empty() ? "  nobody is left" : "  nothing matches the filter"));
  }
  return exactly(std::move(rows), lines);
}

}  // namespace tidemark::dashboard
