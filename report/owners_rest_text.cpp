// SPDX-License-Identifier: Apache-2.0
// Tables of types and tensors, and how far the figures can be trusted.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/document.h"
#include "report/owners_text.h"

namespace tidemark::report {
namespace {

using tracker::LookedProcess;
using tracker::OwnerCoverage;
using tracker::TensorGrowth;
using tracker::TypeGrowth;

constexpr std::size_t kMostRows = 30;

std::string count_growth(const std::optional<double>& count) {
  return count ? fmt::format("{:+.0f}", *count) : "?";
}
std::string bytes_growth(const std::optional<double>& bytes) {
  return bytes ? format_bytes_delta(*bytes) : "?";
}

std::vector<Table::Column> growth_columns(std::string_view what) {
  return {
      {"bytes", true}, {"growth", true}, {"count", true}, {"growth", true}, {std::string(what)}};
}

template <typename Growth>
std::vector<Table::Cell> growth_row(const Growth& growth, std::string what) {
  return {{format_bytes(growth.now.bytes)},
          {bytes_growth(growth.growth_bytes)},
          {format_grouped(growth.now.count)},
          {count_growth(growth.growth_count)},
          {std::move(what)}};
}

std::string tensor_words(const TensorSample& tensor) {
  std::string text =
      fmt::format("{} {} [{}]", shorten(escape_text(tensor.device), 20),
                  shorten(escape_text(tensor.dtype), 20), fmt::join(tensor.shape, ", "));
  for (const auto& [is_set, word] :
       {std::pair{tensor.requires_grad, "requires grad"}, std::pair{tensor.is_graph, "in a graph"},
        std::pair{tensor.is_view, "view"}, std::pair{tensor.is_pinned, "pinned"}}) {
    text += is_set ? fmt::format(", {}", word) : "";
  }
  return text;
}

// A table for each process.
template <typename Make>
std::string tables_of(const OwnersReport& report, std::string_view title, Make make) {
  std::string out;
  for (const LookedProcess& process : report.run->processes) {
    const Table table = make(process);
    if (!table.rows.empty()) {
      out += fmt::format("{} of {}\n{}\n", title, owner_process_text(process), to_text(table));
    }
  }
  return out.empty() ? fmt::format("{}: none were found\n\n", title) : out;
}

std::string growth_of_process(const OwnerCoverage& coverage) {
  const LookedProcess& process = *coverage.process;
  const HeapLook& first = process.looks.front();
  const HeapLook& last = process.looks.back();
  std::string text = fmt::format("{}: ", owner_process_text(process));
  text +=
      coverage.footprint_growth_bytes
          ? fmt::format("footprint {} to {}", format_bytes_delta(*coverage.footprint_growth_bytes),
                        format_bytes(*last.footprint_bytes))
          : "footprint not known";
  text += fmt::format(", objects {}", format_bytes_delta(coverage.heap_growth_bytes));
  text += fmt::format(" in {}", format_duration(last.t_s - first.t_s));
  if (first.step && last.step && *last.step > *first.step) {
    text += fmt::format(", {}",
                        format_count(static_cast<std::uint64_t>(*last.step - *first.step), "step"));
  }
  if (coverage.explained_share) {
    text += fmt::format("; owners explain {}",
                        format_percent(std::min(1.0, *coverage.explained_share)));
  } else {
    text += fmt::format("; owners hold {}", format_bytes_delta(coverage.owned_bytes));
  }
  return text + ".";
}

// What is worth a line: of growth of which owners explain nearly all there is none.
std::string unexplained_words(const OwnerCoverage& coverage) {
  constexpr double kNearlyAll = 0.95;
  const double missing =
      coverage.footprint_growth_bytes.value_or(0.0) - std::max(0.0, coverage.owned_bytes);
  const bool has_python = !coverage.process->looks.back().interpreter.python.empty();
  std::string text;
  if (has_python && coverage.native_bytes >= tracker::kLeastSharedGrowth) {
    text = fmt::format("Of it, {} belong to native code, and to no object of Python.",
                       format_bytes(coverage.native_bytes));
  }
  if (coverage.explained_share && *coverage.explained_share < kNearlyAll &&
      missing >= tracker::kLeastSharedGrowth) {
    text += fmt::format(
        "{}Not explained: {}. That is memory of native code without an object of Python or a "
        "tensor, objects too small to be named, or free memory that the allocator keeps; "
        "tidemark profile tells these apart.",
        text.empty() ? "" : " ", format_bytes(missing));
  }
  return text;
}

std::string_view reading_words(HeapReading reading) {
  switch (reading) {
    case HeapReading::kFrozen:
      return "of a frozen copy";
    case HeapReading::kStopped:
      return "of the process while its threads were held";
    case HeapReading::kRunning:
      break;
  }
  return "of the process as it was";
}

std::string pause_text(double seconds) {
  return seconds < 1.0 ? fmt::format("{:.1f} ms", 1e3 * seconds) : fmt::format("{:.1f} s", seconds);
}

std::string looks_of_process(const LookedProcess& process) {
  const HeapLook& last = process.looks.back();
  double paused_s = 0.0;
  double took_s = 0.0;
  std::optional<std::uint64_t> copied;
  for (const HeapLook& look : process.looks) {
    paused_s = std::max(paused_s, look.paused_s);
    took_s = std::max(took_s, look.took_s);
    if (look.copied_bytes) {
      copied = std::max(copied.value_or(0), *look.copied_bytes);
    }
  }
  std::string text =
      fmt::format("{}: {} {}; {} with {}; it stood still for {} at most, a look took {:.1f} s",
                  owner_process_text(process),
                  format_count(process.looks.size() + process.looks_left_out, "look"),
                  reading_words(last.reading), format_grouped(last.objects) + " objects",
                  format_bytes(last.heap_bytes), pause_text(paused_s), took_s);
  if (copied) {
    text += fmt::format(", and the process had to copy {} meanwhile", format_bytes(*copied));
  }
  return text + ".";
}

// What is wrong with the last look that says so, or none.
template <typename Member>
const std::string* last_text(const std::vector<HeapLook>& looks, Member member) {
  const auto look = std::find_if(looks.rbegin(), looks.rend(),
                                 [&](const HeapLook& each) { return !(each.*member).empty(); });
  return look == looks.rend() ? nullptr : &((*look).*member);
}

std::string troubles_of_process(const LookedProcess& process, const ProfileStyle& style) {
  std::string out;
  const auto add = [&](std::string_view label, const std::string& text) {
    out += wrap_text(fmt::format("{:<9}", label), fmt::format("pid {}: {}", process.key.pid, text),
                     style.columns);
  };
  const auto partial = std::count_if(process.looks.begin(), process.looks.end(),
                                     [](const HeapLook& look) { return look.is_partial; });
  if (partial > 0) {
    add("partial", fmt::format("the budget was used up at {} of {}: what was not reached is "
                               "missing; --budget gives more time or memory",
                               partial, format_count(process.looks.size(), "look")));
  }
  if (const std::string* detour = last_text(process.looks, &HeapLook::detour)) {
    add("detour", escape_text(*detour));
  }
  std::uint64_t unread = 0;
  for (const HeapLook& look : process.looks) {
    unread = std::max(unread, look.unread_bytes.value_or(0));
  }
  if (unread > 0) {
    add("unread", fmt::format("{} could not be read", format_bytes(unread)));
  }
  for (const auto* looks : {&process.looks, &process.failed}) {
    if (const std::string* problem = last_text(*looks, &HeapLook::problem)) {
      add("problem", escape_text(*problem));
    }
  }
  return out;
}

std::string interpreter_words(const LookedProcess& process) {
  const InterpreterFacts& facts = process.looks.back().interpreter;
  if (facts.python.empty()) {
    return "";
  }
  std::string text = fmt::format("Python {}{}", shorten(escape_text(facts.python), 40),
                                 facts.is_free_threaded ? " (free-threaded)" : "");
  if (!facts.torch.empty()) {
    text += ", torch " + shorten(escape_text(facts.torch), 40);
  }
  if (!facts.numpy.empty()) {
    text += ", numpy " + shorten(escape_text(facts.numpy), 40);
  }
  if (facts.gc_enabled) {
    text += *facts.gc_enabled ? "; garbage collection is on" : "; garbage collection is OFF";
  }
  if (!facts.gc_thresholds.empty()) {
    text += fmt::format(", thresholds {}", fmt::join(facts.gc_thresholds, " "));
  }
  if (facts.gc_frozen_objects.value_or(0) > 0) {
    text += fmt::format(", {} left out of it for ever (gc.freeze)",
                        format_count(*facts.gc_frozen_objects, "object"));
  }
  return text + ".";
}

}  // namespace

std::string types_text(const OwnersReport& report) {
  return tables_of(report, "types", [](const LookedProcess& process) {
    Table table{growth_columns("type"), {}};
    for (const TypeGrowth& growth : tracker::type_growth(process)) {
      if (table.rows.size() < kMostRows) {
        table.rows.push_back(growth_row(growth, shorten(escape_text(growth.now.type), 60)));
      }
    }
    return table;
  });
}

std::string tensors_text(const OwnersReport& report) {
  return tables_of(report, "tensors", [](const LookedProcess& process) {
    Table table{growth_columns("tensors"), {}};
    for (const TensorGrowth& growth : tracker::tensor_growth(process)) {
      if (table.rows.size() < kMostRows) {
        table.rows.push_back(growth_row(growth, tensor_words(growth.now)));
      }
    }
    return table;
  });
}

std::string owners_coverage_text(const OwnersReport& report, const ProfileStyle& style) {
  constexpr std::size_t kMostProcesses = 8;
  std::string growth;
  std::string looks;
  std::string troubles;
  std::string interpreters;
  std::size_t shown = 0;
  for (const OwnerCoverage& coverage : report.ranking.processes) {
    const LookedProcess& process = *coverage.process;
    troubles += troubles_of_process(process, style);
    if (process.looks.empty() || shown++ >= kMostProcesses) {
      continue;
    }
    const std::string_view before = shown == 1 ? "growth   " : "         ";
    if (process.looks.size() > 1) {
      growth += wrap_text(growth.empty() ? "growth   " : "         ", growth_of_process(coverage),
                          style.columns);
      if (const std::string rest = unexplained_words(coverage); !rest.empty()) {
        growth += wrap_text("         ", rest, style.columns);
      }
    }
    looks += wrap_text(before == "growth   " ? "looks    " : "         ", looks_of_process(process),
                       style.columns);
    if (const std::string words = interpreter_words(process);
        !words.empty() && interpreters.empty()) {
      interpreters = wrap_text("runs     ", words, style.columns);
    }
  }
  std::string out = growth + looks;
  if (shown > kMostProcesses) {
    out += fmt::format("         and {}: --json has them\n",
                       format_count(shown - kMostProcesses, "more process", "more processes"));
  }
  out += interpreters + troubles;
  for (const std::string& note : report.notes) {
    out += wrap_text("note     ", escape_text(note), style.columns);
  }
  for (const auto& [what, count] : report.run->losses) {
    out += fmt::format("lost     {} {}\n", escape_text(what), format_grouped(count));
  }
  return out;
}

}  // namespace tidemark::report
