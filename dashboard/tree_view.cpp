// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

constexpr std::size_t kSize = 10;
constexpr std::size_t kAge = 8;
constexpr std::size_t kLeastCommand = 12;

// What stands still has none.
std::string rate_cell(const TreeRow& row, const TreeModel& tree) {
  if (tree.has_ended) {
    return "ended";
  }
  constexpr double kStill = 1.0;  // byte per second or step
  if (!row.rate_bytes_per_s || std::fabs(*row.rate_bytes_per_s) < kStill) {
    return "";
  }
  return tree.rate_is_per_step
             ? format_rate(*row.rate_bytes_per_s, RateUnit::kStep,
                           {.has_sign = true, .has_fixed_unit = true})
             : format_rate(*row.rate_bytes_per_s, RateUnit::kSecond, {.has_sign = true});
}

// How long ago PSS was read: it is too slow to be read with every sample.
std::string pss_cell(const TreeRow& row, const TreeModel& /*tree*/) {
  constexpr double kMinuteS = 60.0;
  std::string age;
  if (row.pss_age_s) {
    age = *row.pss_age_s < 1.0        ? "now"
          : *row.pss_age_s < kMinuteS ? fmt::format("{:.0f}s ago", std::floor(*row.pss_age_s))
                                      : fmt::format("{:.0f}m ago", *row.pss_age_s / kMinuteS);
  }
  return format_bytes(row.pss_bytes) + fmt::format("{:>{}}", age, kAge);
}

// A column of figures, to the right of the footprint.
struct FigureColumn {
  int place;  // from the left
  std::string title;
  std::size_t width;
  std::string (*cell)(const TreeRow& row, const TreeModel& tree);
};

// Which columns there is room for.
struct TreeColumns {
  std::size_t name = 24;
  std::vector<FigureColumn> figures;
  std::size_t command = 0;
};

std::string head(const TreeModel& tree, SortBy by, std::string_view title) {
  return std::string(tree.sort == by ? "*" : "") + std::string(title);
}

TreeColumns choose_columns(const TreeModel& tree, int width) {
  TreeColumns columns;
  columns.name = width < 60 ? 20 : width < 100 ? 24 : 28;
  auto left =
      static_cast<std::ptrdiff_t>(width) - static_cast<std::ptrdiff_t>(columns.name + 1 + kSize);
  const auto take = [&](bool wanted, FigureColumn column) {
    const auto needed = static_cast<std::ptrdiff_t>(column.width + 1);
    if (wanted && left >= needed) {
      left -= needed;
      columns.figures.push_back(std::move(column));
    }
  };
  using Row = TreeRow;
  using Tree = TreeModel;
  // The first are those that are missed most.
  take(width >= 60, {2, head(tree, SortBy::kRate, "RATE"),
                     tree.rate_is_per_step ? std::size_t{14} : std::size_t{13}, rate_cell});
  take(tree.shows_gpu, {7, "GPU", kSize, [](const Row& row, const Tree&) {
                          return row.gpu_bytes ? format_bytes(*row.gpu_bytes) : "";
                        }});
  take(width >= 60,
       {1, head(tree, SortBy::kChange, "CHANGE"), kSize + 1,
        [](const Row& row, const Tree&) { return format_bytes_delta(row.change_bytes); }});
  take(true, {3, head(tree, SortBy::kRss, "RSS"), kSize,
              [](const Row& row, const Tree&) { return format_bytes(row.rss_bytes); }});
  take(tree.shows_swap, {5, "SWAP", kSize,
                         [](const Row& row, const Tree&) { return format_bytes(row.swap_bytes); }});
  take(tree.shows_cpu && width >= 80, {6, "CPU", 6, [](const Row& row, const Tree&) {
                                         return row.cpu_share ? format_percent(*row.cpu_share) : "";
                                       }});
  take(width >= 100, {4, fmt::format("PSS{:>{}}", "READ", kAge), kSize - 2 + kAge, pss_cell});
  std::sort(columns.figures.begin(), columns.figures.end(),
            [](const FigureColumn& a, const FigureColumn& b) { return a.place < b.place; });
  if (left > static_cast<std::ptrdiff_t>(kLeastCommand)) {
    columns.command = static_cast<std::size_t>(left - 2);
  }
  return columns;
}

std::string row_text(const TreeRow& row, const TreeModel& tree, const TreeColumns& columns,
                     std::string_view name) {
  const std::string footprint =
      row.is_zombie ? "zombie"
                    : (row.footprint_held ? "~" : "") + format_bytes(row.footprint_bytes);
  std::string line =
      fmt::format("{:<{}} {:>{}}", shorten(name, columns.name), columns.name, footprint, kSize);
  for (const FigureColumn& column : columns.figures) {
    line += fmt::format(" {:>{}}", column.cell(row, tree), column.width);
  }
  return columns.command > 0 ? line + "  " + shorten(row.command, columns.command) : line;
}

std::string header_text(const TreeModel& tree, const TreeColumns& columns) {
  std::string line = fmt::format("{:<{}} {:>{}}", head(tree, SortBy::kPid, "  PROCESS"),
                                 columns.name, head(tree, SortBy::kFootprint, "FOOTPRINT"), kSize);
  for (const FigureColumn& column : columns.figures) {
    line += fmt::format(" {:>{}}", column.title, column.width);
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
  std::string title = fmt::format(
      "{}{}, footprint {}, rss {}", format_count(tree.processes, "process", "processes"),
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
  const TreeColumns columns = choose_columns(tree, width);
  Elements rows;
  rows.push_back(title_line(title_of(tree), right_of(tree), tree.is_focused, theme));
  rows.push_back(text(header_text(tree, columns)) | ftxui::dim);
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
    Element line = text(row_text(row, tree, columns, name_of(row, is_member, theme.utf8)));
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
