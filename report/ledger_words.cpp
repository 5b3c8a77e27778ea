// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_words.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::LedgerChange;
using tracker::ProcessLedgers;

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

std::string row_words(const LedgerRow& row, std::size_t columns) {
  std::string name = end_of(escape_text(row.name), columns > 12 ? columns - 12 : columns);
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

// "large blocks (1.82 GiB, 53 %) and small Python objects (612 MiB, 18 %)".
std::string kinds_text(std::span<const std::pair<LedgerKind, std::int64_t>> kinds,
                       std::uint64_t whole_bytes) {
  constexpr std::int64_t kWorthNaming = 5;  // as much of the first
  std::vector<std::string> parts;
  for (const auto& [kind, bytes] : kinds.first(std::min<std::size_t>(kinds.size(), 2))) {
    if (bytes * kWorthNaming >= kinds[0].second) {
      parts.push_back(fmt::format("{} ({}, {})", ledger_kind_words(kind), format_bytes(bytes),
                                  share_of(static_cast<std::uint64_t>(bytes), whole_bytes)));
    }
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

// Clean pages of libraries are nobody's concern.
std::int64_t size_that_matters(const LedgerChange& row) {
  return static_cast<std::int64_t>(row.now.kind == LedgerKind::kProgram ? row.now.footprint_bytes
                                                                        : row.now.rss_bytes);
}

// Much that is free is worth a word, whatever else grows.
std::string freed_text(const ProcessLedgers& process, LedgerKind told) {
  constexpr double kMuch = 0.2;
  std::uint64_t freed = 0;
  for (const LedgerRow& row : process.last.rows) {
    freed += row.kind == LedgerKind::kMallocFree ? row.rss_bytes : 0;
  }
  const bool is_much =
      static_cast<double>(freed) >= kMuch * static_cast<double>(process.last.rss_bytes);
  return is_much && told != LedgerKind::kMallocFree
             ? fmt::format(" {} ({}) was freed, and malloc keeps it.", format_bytes(freed),
                           share_of(freed, process.last.rss_bytes))
             : "";
}

}  // namespace

std::string ledger_row_text(const LedgerRow& row, std::size_t columns) {
  const std::string text = row_words(row, columns);
  const std::size_t count = text.size() > columns ? text.rfind(" (") : std::string::npos;
  return shorten(count == std::string::npos ? text : text.substr(0, count), columns);
}

std::string_view ledger_kind_words(LedgerKind kind) {
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

std::string ledger_process_label(const ExplainReport& report, const ProcessKey& key) {
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

std::string share_of(std::uint64_t bytes, std::uint64_t whole) {
  return whole == 0 ? "" : format_percent(static_cast<double>(bytes) / static_cast<double>(whole));
}

std::vector<ProcessLedgers> largest_ledgers(const ExplainReport& report) {
  std::vector<ProcessLedgers> processes = report.ledgers->processes();
  std::stable_sort(processes.begin(), processes.end(),
                   [](const ProcessLedgers& a, const ProcessLedgers& b) {
                     return a.last.footprint_bytes > b.last.footprint_bytes;
                   });
  return processes;
}

std::string ledger_answer_text(const ExplainReport& report) {
  const std::vector<ProcessLedgers> processes = largest_ledgers(report);
  if (processes.empty()) {
    return "NO DATA: the memory of no process could be read.";
  }
  const ProcessLedgers& process = processes.front();
  const std::string who = ledger_process_label(report, process.last.key);
  const std::int64_t grown = static_cast<std::int64_t>(process.last.footprint_bytes) -
                             static_cast<std::int64_t>(process.first.footprint_bytes);
  auto kinds = largest_kinds(process, size_that_matters);
  std::string text;
  if (process.looks > 1 && grown >= static_cast<std::int64_t>(kMiB)) {
    kinds = largest_kinds(process,
                          [](const LedgerChange& row) { return row.footprint_growth_bytes(); });
    text = fmt::format("{} grew by {} in {}: {}.", who, format_bytes(grown),
                       format_duration(process.seconds()),
                       kinds_text(kinds, static_cast<std::uint64_t>(grown)));
  } else {
    const bool is_most =
        !kinds.empty() && static_cast<std::uint64_t>(kinds[0].second) * 2 >= process.last.rss_bytes;
    text = fmt::format(
        "{}{}{} {} {}.",
        process.looks > 1 ? fmt::format("nothing grew in {}; ", format_duration(process.seconds()))
                          : "",
        is_most ? "most of " : "the largest parts of ", who, is_most ? "is" : "are",
        kinds_text(std::span(kinds).first(std::min<std::size_t>(kinds.size(), is_most ? 1 : 2)),
                   process.last.rss_bytes));
  }
  text += freed_text(process, kinds.empty() ? LedgerKind::kOther : kinds.front().first);
  if (!report.is_over && !kinds.empty()) {
    text += fmt::format(" Next: {}.", next_command(kinds.front().first, has_python(process.last),
                                                   process.last.key.pid));
  }
  return text;
}

}  // namespace tidemark::report
