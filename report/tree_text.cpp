// SPDX-License-Identifier: Apache-2.0
#include "report/tree_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::report {
namespace {

constexpr std::size_t kAlike = 4;  // so many are shown as one and the number of the others

struct TreeRow {
  const ProcessSample* sample;
  const ProcessRecord* record;  // nullptr: unknown
};

class TreeText {
 public:
  TreeText(const Tick& tick, const ProcessLookup& lookup) {
    std::map<pid_t, bool> members;
    for (const ProcessSample& sample : tick.processes) {
      members[sample.key.pid] = true;
    }
    for (const ProcessSample& sample : tick.processes) {
      const ProcessRecord* record = lookup(sample.key);
      // Imported series have no pid: 0 is nobody's parent.
      const bool has_parent = record != nullptr && record->ppid > 0 &&
                              record->ppid != sample.key.pid && members.contains(record->ppid);
      (has_parent ? children_[record->ppid] : roots_).push_back({&sample, record});
    }
  }

  std::string text() {
    put("PID", "ROLE", "FOOTPRINT", "RSS", "COMMAND");
    put_rows(roots_, 0);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kDeepest = 64;  // a table read in pieces could hold a cycle

  void put(std::string_view pid, std::string_view role, std::string_view footprint,
           std::string_view rss, std::string_view command) {
    out_ += fmt::format("{:<20} {:<18} {:>10} {:>10}  {}\n", pid, role, footprint, rss, command);
  }

  void put_row(const TreeRow& row, std::size_t depth) {
    const std::string role = row.record == nullptr ? "?"
                             : row.record->rank    ? fmt::format("rank {}", *row.record->rank)
                                                   : std::string(role_name(row.record->role));
    const std::string command = row.record == nullptr       ? "?"
                                : !row.record->argv.empty() ? row.record->argv
                                : !row.record->comm.empty() ? "[" + row.record->comm + "]"
                                                            : "?";
    const pid_t pid = row.sample->key.pid;
    put(std::string(2 * std::min<std::size_t>(depth, 6), ' ') +
            (pid > 0 ? std::to_string(pid) : "?"),
        role, row.sample->state == 'Z' ? "zombie" : format_bytes(row.sample->footprint_bytes()),
        format_bytes(row.sample->rss_bytes), shorten(escape_text(command), 80));
  }

  bool is_leaf(const TreeRow& row) const { return !children_.contains(row.sample->key.pid); }

  bool alike(const TreeRow& a, const TreeRow& b) const {
    return a.record != nullptr && b.record != nullptr && is_leaf(a) && is_leaf(b) &&
           a.record->role == b.record->role && a.record->rank == b.record->rank &&
           a.record->argv == b.record->argv &&
           (!a.record->argv.empty() || a.record->comm == b.record->comm) &&
           a.sample->state != 'Z' && b.sample->state != 'Z';
  }

  void put_children(pid_t parent, std::size_t depth) {
    const auto found = children_.find(parent);
    if (found != children_.end() && depth <= kDeepest) {
      put_rows(found->second, depth);
    }
  }

  void put_rows(const std::vector<TreeRow>& rows, std::size_t depth) {
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i + 1;
      while (end < rows.size() && alike(rows[i], rows[end])) {
        ++end;
      }
      put_row(rows[i], depth);
      if (end - i >= kAlike) {
        put_others(rows, i + 1, end, depth);
      } else {
        end = i + 1;
        put_children(rows[i].sample->key.pid, depth + 1);
      }
      i = end;
    }
  }

  void put_others(const std::vector<TreeRow>& rows, std::size_t begin, std::size_t end,
                  std::size_t depth) {
    const pid_t last = rows[end - 1].sample->key.pid;
    put(std::string(2 * std::min<std::size_t>(depth, 6), ' ') + "...", "", "", "",
        fmt::format("and {} more like it, {}{}", end - begin, range_text(rows, begin, end),
                    last > 0 ? fmt::format(", up to pid {}", last) : ""));
  }

  // Of their footprints; of their RSS where nobody's footprint is known.
  static std::string range_text(const std::vector<TreeRow>& rows, std::size_t begin,
                                std::size_t end) {
    std::optional<std::pair<std::uint64_t, std::uint64_t>> footprint;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> rss;
    const auto widen = [](auto& range, const std::optional<std::uint64_t>& bytes) {
      if (bytes) {
        range = range ? std::pair(std::min(range->first, *bytes), std::max(range->second, *bytes))
                      : std::pair(*bytes, *bytes);
      }
    };
    for (std::size_t i = begin; i < end; ++i) {
      widen(footprint, rows[i].sample->footprint_bytes());
      widen(rss, rows[i].sample->rss_bytes);
    }
    const auto& range = footprint ? footprint : rss;
    return range ? fmt::format("{}{} to {} each", footprint ? "" : "rss ",
                               format_bytes(range->first), format_bytes(range->second))
                 : "? each";
  }

  std::vector<TreeRow> roots_;
  std::map<pid_t, std::vector<TreeRow>> children_;
  std::string out_;
};

}  // namespace

std::string tree_text(const Tick& tick, const ProcessLookup& lookup) {
  return TreeText(tick, lookup).text();
}

}  // namespace tidemark::report
