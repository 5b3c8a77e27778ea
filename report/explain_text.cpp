// SPDX-License-Identifier: Apache-2.0
#include "report/explain_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/document.h"
#include "report/ledger_words.h"
#include "tracker/causes/signature_facts.h"

namespace tidemark::report {
namespace {

using tracker::LedgerChange;
using tracker::ProcessLedgers;

constexpr std::size_t kMostRows = 12;
constexpr std::size_t kMostTables = 1;  // of processes of a tree, without --all
constexpr double kSmallShare = 0.01;
// What a table of a process has beside the words.
constexpr std::size_t kFigureColumns = 34;

// The figures of a table: of a process, or of a tree, in which each shared page counts once.
struct Figures {
  std::uint64_t LedgerRow::*size;
  std::uint64_t LedgerRow::*footprint;
  std::string_view title;
};
constexpr Figures kOfProcess{&LedgerRow::rss_bytes, &LedgerRow::footprint_bytes, "RSS"};
constexpr Figures kOfTree{&LedgerRow::pss_bytes, &LedgerRow::pss_footprint_bytes, "PSS"};

// Rows that people do not tell apart are one, and what is small is in the last one.
std::vector<LedgerChange> shown_rows(std::vector<LedgerChange> rows, const Figures& figures,
                                     bool with_all, std::uint64_t whole_bytes) {
  if (with_all) {
    return rows;
  }
  std::vector<LedgerChange> shown;
  const auto merge = [&](LedgerChange& into, const LedgerChange& row) {
    add_to(into.now, row.now);
    add_to(into.before, row.before);
  };
  LedgerChange program;
  LedgerChange small;
  std::size_t smalls = 0;
  const auto least = static_cast<std::uint64_t>(kSmallShare * static_cast<double>(whole_bytes));
  for (LedgerChange& row : rows) {
    if (row.now.kind == LedgerKind::kProgram) {
      merge(program, row);
    }
  }
  std::erase_if(rows, [](const auto& row) { return row.now.kind == LedgerKind::kProgram; });
  program.now.kind = LedgerKind::kProgram;
  if (program.now.rss_bytes + program.before.rss_bytes > 0) {
    rows.push_back(program);
  }
  const auto size = [&](const LedgerChange& row) {
    return row.now.*figures.size + row.now.swap_bytes;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  for (LedgerChange& row : rows) {
    const auto moved = static_cast<std::uint64_t>(std::abs(row.footprint_growth_bytes()));
    if (shown.size() < kMostRows && (size(row) >= least || moved >= least)) {
      shown.push_back(std::move(row));
    } else {
      merge(small, row);
      ++smalls;
    }
  }
  if (smalls > 0) {
    small.now.kind = LedgerKind::kOther;
    small.now.name = fmt::format("{} smaller {}", smalls, plural(smalls, "row"));
    small.now.count = 0;
    shown.push_back(std::move(small));
  }
  return shown;
}

class LedgerTable {
 public:
  LedgerTable(const Figures& figures, std::uint64_t whole_bytes, bool has_growth,
              std::size_t columns)
      : figures_(figures),
        whole_bytes_(whole_bytes),
        has_growth_(has_growth),
        word_columns_(std::max<std::size_t>(columns, kFigureColumns + 36) - kFigureColumns -
                      (has_growth ? 12 : 0)) {
    table_.columns = {{std::string(figures.title), true}, {"footprint", true}};
    if (has_growth) {
      table_.columns.push_back({"growth", true});
    }
    table_.columns.push_back({"share", true});
    table_.columns.push_back({""});
  }

  void add(const LedgerChange& row) {
    add(row.now.*figures_.size, row.now.*figures_.footprint,
        static_cast<std::int64_t>(row.now.*figures_.footprint) -
            static_cast<std::int64_t>(row.before.*figures_.footprint),
        ledger_row_text(row.now, word_columns_));
  }
  template <typename Bytes>
  void add(Bytes size, Bytes footprint, std::int64_t growth, std::string what) {
    std::vector<Table::Cell> cells{{format_bytes(size)}, {format_bytes(footprint)}};
    if (has_growth_) {
      cells.push_back({growth == 0 ? "" : format_bytes_delta(growth)});
    }
    const bool has_share = size > 0;
    cells.push_back({has_share ? share_of(static_cast<std::uint64_t>(size), whole_bytes_) : ""});
    cells.push_back({std::move(what)});
    table_.rows.push_back(std::move(cells));
  }
  std::string text() const { return to_text(table_); }

 private:
  Figures figures_;
  std::uint64_t whole_bytes_;
  bool has_growth_;
  std::size_t word_columns_;
  Table table_;
};

bool has_growth(std::span<const ProcessLedgers> processes) {
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessLedgers& each) { return each.looks > 1; });
}

// What else is known of a process, a line each.
std::string ledger_facts_text(const MemoryLedger& ledger, std::size_t columns) {
  constexpr double kMoved = 0.005;
  std::string text;
  const LedgerRow sum = ledger.sum();
  std::vector<std::string> of_which;
  if (sum.huge_pages_bytes > 0) {
    of_which.push_back(format_bytes(sum.huge_pages_bytes) + " in huge pages");
  }
  if (ledger.swap_bytes > 0) {
    of_which.push_back(format_bytes(ledger.swap_bytes) + " of the footprint in swap");
  }
  if (ledger.hugetlb_bytes > 0) {
    of_which.push_back(format_bytes(ledger.hugetlb_bytes) +
                       " in reserved huge pages, which no sum of the kernel has");
  }
  if (ledger.malloc_heaps.value_or(0) > 0) {
    of_which.push_back(format_count(*ledger.malloc_heaps, "heap of malloc for threads",
                                    "heaps of malloc for threads"));
  }
  if (!of_which.empty()) {
    text += wrap_text("of it    ", fmt::format("{}.", fmt::join(of_which, "; ")), columns);
  }
  if (ledger.traced_live_bytes) {
    text += wrap_text(
        "traced   ",
        fmt::format("of the anonymous rows {} is in live blocks (tidemark profile names their "
                    "lines), {} is slack of the allocator, {} never came through one.",
                    format_bytes(*ledger.traced_live_bytes),
                    format_bytes(ledger.traced_slack_bytes),
                    format_bytes(ledger.traced_unhooked_bytes)),
        columns);
  }
  if (ledger.is_partial) {
    text += wrap_text("partial  ",
                      "not all free blocks of malloc were seen, because they changed meanwhile or "
                      "are too many: more than that may be free.",
                      columns);
  }
  if (std::abs(static_cast<double>(ledger.moved_bytes)) >
      kMoved * static_cast<double>(ledger.rss_bytes)) {
    text += wrap_text("moved    ",
                      fmt::format("its RSS changed by {} while it was read.",
                                  format_bytes_delta(ledger.moved_bytes)),
                      columns);
  }
  if (!ledger.problem.empty()) {
    text += wrap_text("problem  ", escape_text(ledger.problem) + ".", columns);
  }
  return text;
}

std::string process_text(const ExplainReport& report, const ProcessLedgers& process,
                         const ProfileStyle& style) {
  const MemoryLedger& ledger = process.last;
  std::string title =
      fmt::format("{}: RSS {}, footprint {}", ledger_process_label(report, ledger.key),
                  format_bytes(ledger.rss_bytes), format_bytes(ledger.footprint_bytes));
  if (ledger.threads.value_or(1) > 1) {
    title += ", " + format_count(*ledger.threads, "thread");
  }
  LedgerTable table(kOfProcess, ledger.rss_bytes, process.looks > 1, style.columns);
  const std::vector<LedgerChange> rows = shown_rows(tracker::add_up(std::span(&process, 1)),
                                                    kOfProcess, report.with_all, ledger.rss_bytes);
  for (const LedgerChange& row : rows) {
    table.add(row);
  }
  table.add(ledger.unexplained_rss_bytes(), ledger.unexplained_footprint_bytes(), 0,
            "not explained");
  table.add(ledger.rss_bytes, ledger.footprint_bytes,
            static_cast<std::int64_t>(ledger.footprint_bytes - process.first.footprint_bytes),
            "as the kernel counts it");
  const std::string facts = ledger_facts_text(ledger, style.columns);
  return fmt::format("{}\n\n{}\n{}{}", title, table.text(), facts, facts.empty() ? "" : "\n");
}

std::string tree_text(const ExplainReport& report, std::span<const ProcessLedgers> processes,
                      const ProfileStyle& style) {
  LedgerRow sum;
  LedgerRow before;
  for (const ProcessLedgers& process : processes) {
    add_to(sum, process.last.sum());
    add_to(before, process.first.sum());
  }
  LedgerTable table(kOfTree, sum.pss_bytes, has_growth(processes), style.columns);
  for (const LedgerChange& row :
       shown_rows(tracker::add_up(processes), kOfTree, report.with_all, sum.pss_bytes)) {
    table.add(row);
  }
  table.add(LedgerChange{[&] {
                           LedgerRow all = sum;
                           all.kind = LedgerKind::kOther;
                           all.name = "all of it";
                           all.count = 0;
                           return all;
                         }(),
                         before});
  return fmt::format(
      "the whole tree, {} processes: {}, footprint {}, each shared page once\n(the sum of their "
      "RSS "
      "is {})\n\n{}\n",
      processes.size(), format_bytes(sum.pss_bytes), format_bytes(sum.pss_footprint_bytes),
      format_bytes(sum.rss_bytes), table.text());
}

std::string others_text(const ExplainReport& report, std::span<const ProcessLedgers> others,
                        std::size_t columns) {
  constexpr std::size_t kMostOthers = 8;
  constexpr std::size_t kOtherColumns = 58;
  const std::size_t name_columns =
      std::max<std::size_t>(columns, kOtherColumns + 24) - kOtherColumns;
  Table table;
  table.columns = {{"RSS", true}, {"footprint", true}, {"process"}, {"most of it"}};
  for (const ProcessLedgers& process : others.first(std::min(others.size(), kMostOthers))) {
    LedgerRow largest;
    if (const std::vector<LedgerChange> rows = tracker::add_up(std::span(&process, 1));
        !rows.empty()) {
      largest = rows.front().now;
      largest.count = 0;
      largest.name = largest.kind == LedgerKind::kProgram ? "" : largest.name;
    }
    table.rows.push_back({{format_bytes(process.last.rss_bytes)},
                          {format_bytes(process.last.footprint_bytes)},
                          {shorten(ledger_process_label(report, process.last.key), name_columns)},
                          {ledger_row_text(largest, kOtherColumns / 2)}});
  }
  std::string text = to_text(table);
  if (others.size() > kMostOthers) {
    text += fmt::format("and {} more; --all has a table of each\n", others.size() - kMostOthers);
  }
  return text + '\n';
}

// The container, where it has a limit.
std::string machine_text(const ExplainReport& report, std::size_t columns) {
  const std::optional<SystemSample>& machine = report.ledgers->machine();
  if (!machine || !machine->cgroup_charged_bytes || !machine->cgroup_cache_bytes) {
    return "";
  }
  const std::string limit =
      machine->cgroup_limit_bytes ? " of its " + format_bytes(*machine->cgroup_limit_bytes) : "";
  return wrap_text("cgroup   ",
                   fmt::format("{}{}: {} in use, {} page cache (dropped when the room is needed).",
                               format_bytes(*machine->cgroup_charged_bytes), limit,
                               format_bytes(machine->cgroup_used_bytes),
                               format_bytes(*machine->cgroup_cache_bytes)),
                   columns);
}

}  // namespace

ExplainReport make_explain_report(const tracker::LedgerBuilder& builder) {
  ExplainReport report;
  report.ledgers = &builder.ledgers();
  report.table = &builder.table();
  report.command = builder.command();
  tracker::Facts facts;
  LedgerRow before;
  for (const ProcessLedgers& process : report.ledgers->processes()) {
    add_to(before, process.first.sum());
  }
  const tracker::LedgerFacts ledger_facts = tracker::ledger_facts(*report.ledgers, nullptr);
  facts.tree_floor_bytes = static_cast<double>(before.pss_footprint_bytes);
  facts.trainer.footprint_bytes = ledger_facts.footprint_growth_bytes;
  facts.tree.footprint_bytes = ledger_facts.footprint_growth_bytes;
  tracker::add_ledger_facts(ledger_facts, facts);
  report.advice = tracker::advice_for(facts);
  if (report.ledgers->left_out() > 0) {
    report.notes.push_back(
        fmt::format("{} not explained: there are too many",
                    format_count(report.ledgers->left_out(), "process was", "processes were")));
  }
  return report;
}

std::string explain_text(const ExplainReport& report, const ProfileStyle& style) {
  const std::vector<ProcessLedgers> processes = largest_ledgers(report);
  std::string out;
  if (processes.size() > 1) {
    out += tree_text(report, processes, style);
  }
  const std::size_t tables =
      report.with_all ? processes.size() : std::min(processes.size(), kMostTables);
  for (std::size_t i = 0; i < tables; ++i) {
    out += process_text(report, processes[i], style);
  }
  if (processes.size() > tables) {
    out += others_text(report, std::span(processes).subspan(tables), style.columns);
  }
  out += machine_text(report, style.columns);
  for (const tracker::Advice& advice : report.advice) {
    out += wrap_text("seen     ", advice.seen, style.columns) +
           wrap_text("likely   ", advice.cause, style.columns) +
           wrap_text("do       ", advice.remedy, style.columns);
  }
  for (const std::string& note : report.notes) {
    out += wrap_text("note     ", escape_text(note) + ".", style.columns);
  }
  return out + wrap_text("answer   ", ledger_answer_text(report), style.columns);
}

}  // namespace tidemark::report
