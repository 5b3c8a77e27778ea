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
#include "report/track_words.h"
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

// The end of a path says more than its start.
std::string end_of(std::string_view text, std::size_t columns) {
  if (text.size() <= columns || columns < 4) {
    return std::string(text);
  }
  text.remove_prefix(text.size() - (columns - 3));
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0U) == 0x80U) {
    text.remove_prefix(1);
  }
  return fmt::format("...{}", text);
}

std::string counted(std::string_view what, std::uint64_t count, std::string_view one,
                    std::string_view several = "") {
  return count == 0
             ? std::string(what)
             : fmt::format("{} ({} {})", what, format_grouped(count), plural(count, one, several));
}

std::string segment_text(const LedgerRow& row, std::size_t columns) {
  if (row.name.empty()) {
    return counted("other shared memory", row.count, "mapping");
  }
  if (row.name == kSharedAnonymousName) {
    return counted("shared memory without a name", row.count, "mapping");
  }
  std::string text = "shared " + end_of(escape_text(row.name), columns);
  return row.maker_pid ? fmt::format("{}, made by pid {}", text, *row.maker_pid) : text;
}

// What a person would call the kind in a sentence.
std::string_view kind_words(LedgerKind kind) {
  switch (kind) {
    case LedgerKind::kMallocInUse:
      return "blocks of malloc in use";
    case LedgerKind::kMallocFree:
      return "memory that was freed and that malloc keeps";
    case LedgerKind::kMalloc:
      return "heaps of malloc";
    case LedgerKind::kPythonInUse:
      return "small Python objects";
    case LedgerKind::kPythonFree:
      return "free room in Python's arenas";
    case LedgerKind::kAnonymous:
      return "large blocks and other anonymous memory";
    case LedgerKind::kThreadStacks:
      return "stacks of threads";
    case LedgerKind::kProgram:
      return "the program and its libraries";
    case LedgerKind::kFile:
      return "mapped files";
    case LedgerKind::kSharedMemory:
      return "shared memory";
    case LedgerKind::kPinned:
      return "memory pinned for the GPU";
    case LedgerKind::kTracer:
      return "Tidemark's own trace file";
    case LedgerKind::kOther:
      break;
  }
  return "the kernel's own mappings";
}

// What to type next about the kind that matters most.
std::string next_command(LedgerKind kind, bool has_python, pid_t pid) {
  switch (kind) {
    case LedgerKind::kMallocFree:
      return fmt::format("tidemark rule-out --pid {} tells how much of it malloc_trim gives back",
                         pid);
    case LedgerKind::kFile:
      return fmt::format(
          "the kernel drops pages of files when it needs the room; tidemark track --pid {} tells "
          "whether anything else grows",
          pid);
    case LedgerKind::kProgram:
    case LedgerKind::kThreadStacks:
    case LedgerKind::kTracer:
    case LedgerKind::kOther:
    case LedgerKind::kSharedMemory:
    case LedgerKind::kPinned:
      return fmt::format("tidemark track --pid {} --duration 10min tells whether it grows", pid);
    case LedgerKind::kMallocInUse:
    case LedgerKind::kMalloc:
    case LedgerKind::kPythonInUse:
    case LedgerKind::kPythonFree:
    case LedgerKind::kAnonymous:
      break;
  }
  return has_python
             ? fmt::format("tidemark owners --pid {} names the objects that hold it", pid)
             : fmt::format("tidemark profile --pid {} names the lines that allocate it", pid);
}

std::string percent_of(std::uint64_t bytes, std::uint64_t whole) {
  return whole == 0 ? "" : format_percent(static_cast<double>(bytes) / static_cast<double>(whole));
}

// Rows that people do not tell apart are one, and what is small is in the last one.
std::vector<LedgerChange> shown_rows(std::vector<LedgerChange> rows, bool with_all,
                                     std::uint64_t whole_bytes) {
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
  const auto size = [](const LedgerChange& row) { return row.now.rss_bytes + row.now.swap_bytes; };
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
    small.now.name = counted("smaller rows", smalls, "row");
    small.now.count = 0;
    shown.push_back(std::move(small));
  }
  return shown;
}

// The figures of a table: of a process, or of a tree, in which each shared page counts once.
struct Figures {
  std::uint64_t LedgerRow::*size;
  std::uint64_t LedgerRow::*footprint;
  std::string_view title;
};
constexpr Figures kOfProcess{&LedgerRow::rss_bytes, &LedgerRow::footprint_bytes, "RSS"};
constexpr Figures kOfTree{&LedgerRow::pss_bytes, &LedgerRow::pss_footprint_bytes, "PSS"};

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
    cells.push_back({has_share ? percent_of(static_cast<std::uint64_t>(size), whole_bytes_) : ""});
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

std::string name_of_process(const ExplainReport& report, const ProcessKey& key) {
  const ProcessRecord* const record = report.table->find(key);
  if (record == nullptr) {
    return fmt::format("pid {}", key.pid);
  }
  std::optional<std::uint32_t> rank;
  if (record->rank) {
    rank = static_cast<std::uint32_t>(*record->rank);
  }
  return process_label(record->role, rank, key.pid, record->program(), 30);
}

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
      fmt::format("{}: RSS {}, footprint {}", name_of_process(report, ledger.key),
                  format_bytes(ledger.rss_bytes), format_bytes(ledger.footprint_bytes));
  if (ledger.threads.value_or(1) > 1) {
    title += ", " + format_count(*ledger.threads, "thread");
  }
  LedgerTable table(kOfProcess, ledger.rss_bytes, process.looks > 1, style.columns);
  const std::vector<LedgerChange> rows =
      shown_rows(tracker::add_up(std::span(&process, 1)), report.with_all, ledger.rss_bytes);
  for (const LedgerChange& row : rows) {
    table.add(row);
  }
  table.add(ledger.unexplained_rss_bytes(), ledger.unexplained_footprint_bytes(), 0,
            "not explained");
  table.add(ledger.rss_bytes, ledger.footprint_bytes,
            static_cast<std::int64_t>(ledger.footprint_bytes - process.first.footprint_bytes),
            "as the kernel counts it");
  return fmt::format("{}\n\n{}{}\n", title, table.text(), ledger_facts_text(ledger, style.columns));
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
       shown_rows(tracker::add_up(processes), report.with_all, sum.pss_bytes)) {
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

std::vector<ProcessLedgers> largest_first(const ExplainReport& report) {
  std::vector<ProcessLedgers> processes = report.ledgers->processes();
  std::stable_sort(processes.begin(), processes.end(),
                   [](const ProcessLedgers& a, const ProcessLedgers& b) {
                     return a.last.footprint_bytes > b.last.footprint_bytes;
                   });
  return processes;
}

std::string others_text(const ExplainReport& report, std::span<const ProcessLedgers> others) {
  constexpr std::size_t kMostOthers = 8;
  Table table;
  table.columns = {{"RSS", true}, {"footprint", true}, {"process"}, {"most of it"}};
  for (const ProcessLedgers& process : others.first(std::min(others.size(), kMostOthers))) {
    const std::vector<LedgerChange> rows = tracker::add_up(std::span(&process, 1));
    table.rows.push_back({{format_bytes(process.last.rss_bytes)},
                          {format_bytes(process.last.footprint_bytes)},
                          {name_of_process(report, process.last.key)},
                          {rows.empty() ? "" : std::string(kind_words(rows.front().now.kind))}});
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
      machine->cgroup_limit_bytes
          ? fmt::format(" of {} that it may have", format_bytes(*machine->cgroup_limit_bytes))
          : "";
  return wrap_text(
      "cgroup   ",
      fmt::format("{}{}: {} in use, and {} of page cache, which the kernel drops when it needs the "
                  "room.",
                  format_bytes(*machine->cgroup_charged_bytes), limit,
                  format_bytes(machine->cgroup_used_bytes),
                  format_bytes(*machine->cgroup_cache_bytes)),
      columns);
}

bool has_python(const MemoryLedger& ledger) {
  return std::any_of(ledger.rows.begin(), ledger.rows.end(), [](const LedgerRow& row) {
    return row.kind == LedgerKind::kPythonInUse ||
           (row.kind == LedgerKind::kProgram && row.name.find("python") != std::string::npos);
  });
}

// The kinds of rows by what `bytes_of` says, the most first; a kind without any is left out.
template <typename BytesOf>
std::vector<std::pair<LedgerKind, std::int64_t>> largest_kinds(const ProcessLedgers& process,
                                                               BytesOf bytes_of) {
  std::vector<std::pair<LedgerKind, std::int64_t>> kinds;
  for (int i = 0; i < kLedgerKindCount; ++i) {
    const auto kind = static_cast<LedgerKind>(i);
    std::int64_t bytes = 0;
    for (const LedgerChange& row : tracker::add_up(std::span(&process, 1))) {
      bytes += row.now.kind == kind ? bytes_of(row) : 0;
    }
    if (bytes > 0) {
      kinds.emplace_back(kind, bytes);
    }
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return kinds;
}

std::string kinds_text(const std::vector<std::pair<LedgerKind, std::int64_t>>& kinds,
                       std::uint64_t whole_bytes) {
  constexpr std::size_t kMost = 2;
  constexpr std::int64_t kWorthNaming = 5;  // as much of the first
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kinds.size(), kMost); ++i) {
    if (kinds[i].second * kWorthNaming >= kinds[0].second) {
      parts.push_back(
          fmt::format("{} ({}, {})", kind_words(kinds[i].first), format_bytes(kinds[i].second),
                      percent_of(static_cast<std::uint64_t>(kinds[i].second), whole_bytes)));
    }
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

std::string ledger_row_text(const LedgerRow& row, std::size_t columns) {
  const std::string name = end_of(escape_text(row.name), columns > 12 ? columns - 12 : columns);
  switch (row.kind) {
    case LedgerKind::kMallocInUse:
      return counted("malloc: in use", row.count, "heap");
    case LedgerKind::kMallocFree:
      return "malloc: freed, kept for later";
    case LedgerKind::kMalloc:
      return counted("malloc: in use or free", row.count, "heap");
    case LedgerKind::kPythonInUse:
      return counted("Python: small objects", row.count, "arena");
    case LedgerKind::kPythonFree:
      return "Python: free in its arenas";
    case LedgerKind::kAnonymous:
      return counted("large blocks, other anonymous", row.count, "mapping");
    case LedgerKind::kThreadStacks:
      return counted("stacks of threads", row.count, "stack");
    case LedgerKind::kProgram:
      return row.name.empty() ? "program and libraries" : "program " + name;
    case LedgerKind::kFile:
      return row.name.empty() ? counted("other mapped files", row.count, "mapping")
                              : "file " + name;
    case LedgerKind::kSharedMemory:
      return segment_text(row, columns > 26 ? columns - 26 : columns);
    case LedgerKind::kPinned:
      return row.name == kSharedAnonymousName ? "pinned for the GPU" : "pinned " + name;
    case LedgerKind::kTracer:
      return "Tidemark's own trace file";
    case LedgerKind::kOther:
      return row.name.empty() ? "other" : name;
  }
  return name;
}

std::string ledger_answer_text(const ExplainReport& report) {
  const std::vector<ProcessLedgers> processes = largest_first(report);
  if (processes.empty()) {
    return "NO DATA: the memory of no process could be read.";
  }
  const ProcessLedgers& process = processes.front();
  const std::string who = name_of_process(report, process.last.key);
  const std::int64_t grown = static_cast<std::int64_t>(process.last.footprint_bytes) -
                             static_cast<std::int64_t>(process.first.footprint_bytes);
  auto kinds = largest_kinds(process, [](const LedgerChange& row) {
    return static_cast<std::int64_t>(row.now.rss_bytes);
  });
  std::string text;
  if (process.looks > 1 && grown >= static_cast<std::int64_t>(kMiB)) {
    kinds = largest_kinds(process,
                          [](const LedgerChange& row) { return row.footprint_growth_bytes(); });
    text = fmt::format("{} grew by {} in {}: {}.", who, format_bytes(grown),
                       format_duration(process.seconds()),
                       kinds_text(kinds, static_cast<std::uint64_t>(grown)));
  } else {
    text = fmt::format("{}{} is mostly {}.",
                       process.looks > 1
                           ? fmt::format("Nothing grew in {}; ", format_duration(process.seconds()))
                           : "",
                       who, kinds_text(kinds, process.last.rss_bytes));
  }
  if (!report.is_over && !kinds.empty()) {
    text += fmt::format(" Next: {}.", next_command(kinds.front().first, has_python(process.last),
                                                   process.last.key.pid));
  }
  return text;
}

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
  const std::vector<ProcessLedgers> processes = largest_first(report);
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
    out += others_text(report, std::span(processes).subspan(tables));
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
