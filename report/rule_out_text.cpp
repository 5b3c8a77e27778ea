// SPDX-License-Identifier: Apache-2.0
#include "report/rule_out_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::report {
namespace {

constexpr std::array<std::string_view, kInterventionKindCount> kSuspects{
    "freed memory that glibc keeps",    "freed memory that jemalloc keeps",
    "freed memory that tcmalloc keeps", "freed memory that mimalloc keeps",
    "garbage in reference cycles",      "torch's caches of GPU and pinned memory",
    "files that it has mapped",         "page cache of its control group"};

// What to do about a suspect that is confirmed.
constexpr std::array<std::string_view, kInterventionKindCount> kRemedies{
    "set MALLOC_ARENA_MAX=2 where many threads allocate, MALLOC_TRIM_THRESHOLD_=131072 and "
    "MALLOC_MMAP_THRESHOLD_=131072 where blocks are large, or call malloc_trim(0) now and then",
    "set MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0, or background_thread:true",
    "set TCMALLOC_RELEASE_RATE=10, or call MallocExtension_ReleaseFreeMemory() now and then",
    "set MIMALLOC_PURGE_DELAY=0 (MIMALLOC_RESET_DELAY before version 2.1)",
    "call gc.collect() every few hundred steps, or break the cycle",
    "call torch.cuda.empty_cache() between phases, or pin fewer sizes",
    "the kernel drops them when it needs the room; watch the footprint instead of rss",
    "the kernel drops them when it needs the room; alarm on anonymous memory instead"};

std::size_t index_of(InterventionKind kind) { return static_cast<std::size_t>(kind); }

bool is_reading(InterventionKind kind) {
  return kind == InterventionKind::kMappedFiles || kind == InterventionKind::kPageCache;
}

std::string short_time(double seconds) {
  constexpr double kMsPerS = 1e3;
  return seconds < 1.0 / kMsPerS ? "< 1 ms"
         : seconds < 1.0         ? fmt::format("{:.0f} ms", seconds * kMsPerS)
                                 : format_duration(seconds);
}

std::string effect_text(const InterventionRecord& record) {
  if (!record.effect_bytes) {
    return "-";
  }
  if (is_reading(record.kind)) {
    return fmt::format("{} of {}", format_bytes(*record.effect_bytes),
                       format_bytes(record.before_bytes));
  }
  // Less than nothing is nothing: it has grown meanwhile.
  std::string text =
      fmt::format("{} +- {}", format_bytes(std::max<std::int64_t>(0, *record.effect_bytes)),
                  format_bytes(record.noise_bytes));
  if (record.gpu_bytes) {
    text += fmt::format(", GPU {}", format_bytes(*record.gpu_bytes));
  }
  return text;
}

std::string process_text(const ProcessKey& key, std::string_view program) {
  constexpr std::size_t kColumns = 60;
  return program.empty()
             ? fmt::format("pid {}", key.pid)
             : fmt::format("pid {} ({})", key.pid, shorten(escape_text(program), kColumns));
}

std::string confirmed_text(const InterventionRecord& record) {
  const auto bytes = std::max<std::int64_t>(0, record.effect_bytes.value_or(0));
  const std::string_view remedy = kRemedies.at(index_of(record.kind));
  switch (record.kind) {
    case InterventionKind::kGc:
      return fmt::format(
          "{} was garbage in reference cycles{}: {}.", format_bytes(bytes),
          record.objects ? fmt::format(" ({})", format_count(*record.objects, "object")) : "",
          remedy);
    case InterventionKind::kCuda:
      return fmt::format("{} was kept by torch's caches: {}.", format_bytes(bytes), remedy);
    case InterventionKind::kMappedFiles:
    case InterventionKind::kPageCache:
      return fmt::format(
          "{} of the {} that {} are files: {}.", format_bytes(bytes),
          format_bytes(record.before_bytes),
          record.kind == InterventionKind::kMappedFiles ? "rss shows" : "its control group holds",
          remedy);
    default:
      return fmt::format("{} was {}: {}.", format_bytes(bytes), kSuspects.at(index_of(record.kind)),
                         remedy);
  }
}

void add_notes(const RuleOutReport::Process& process, Document& document) {
  constexpr double kLongWaitS = 0.5;
  for (const InterventionRecord& record : process.interventions) {
    if (!record.problem.empty()) {
      document.paragraph(
          fmt::format("{}: {}", suspect_text(record.kind), escape_text(record.problem)), "note: ");
    } else if (record.waited_s >= kLongWaitS) {
      document.paragraph(fmt::format("{}: its interpreter was waited for, for {}",
                                     suspect_text(record.kind), format_duration(record.waited_s)),
                         "note: ");
    }
  }
}

}  // namespace

std::string_view suspect_text(InterventionKind kind) { return kSuspects.at(index_of(kind)); }

std::string_view outcome_text(InterventionOutcome outcome) {
  constexpr std::array<std::string_view, 3> kTexts{"ruled out", "confirmed", "cannot tell"};
  return kTexts.at(static_cast<std::size_t>(outcome));
}

std::vector<std::string> conclusions(const RuleOutReport::Process& process) {
  std::vector<std::string> sentences;
  std::vector<const InterventionRecord*> confirmed;
  std::vector<std::string> undecided;
  bool has_tried = false;
  for (const InterventionRecord& record : process.interventions) {
    has_tried = has_tried || (!is_reading(record.kind) && record.effect_bytes.has_value());
    if (record.outcome == InterventionOutcome::kConfirmed) {
      confirmed.push_back(&record);
    } else if (record.outcome == InterventionOutcome::kCannotTell) {
      undecided.emplace_back(suspect_text(record.kind));
    }
  }
  std::stable_sort(confirmed.begin(), confirmed.end(), [](const auto* a, const auto* b) {
    return std::pair(is_reading(b->kind), a->effect_bytes.value_or(0)) >
           std::pair(is_reading(a->kind), b->effect_bytes.value_or(0));
  });
  sentences.reserve(confirmed.size() + 2);
  for (const InterventionRecord* record : confirmed) {
    sentences.push_back(confirmed_text(*record));
  }
  if (!undecided.empty()) {
    std::string names;
    for (const std::string& name : undecided) {
      names += (names.empty() ? "" : ", ") + name;
    }
    sentences.push_back(fmt::format("Not decided: {}.", names));
  }
  if (has_tried && process.footprint_bytes) {
    sentences.push_back(
        fmt::format("{} is left{}; tidemark owners --pid {} names the objects that hold it.",
                    format_bytes(*process.footprint_bytes), undecided.empty() ? ", and in use" : "",
                    process.key.pid));
  }
  return sentences;
}

Table rule_out_table(const RuleOutReport::Process& process) {
  Table table;
  table.columns = {{"suspect"}, {"effect", true}, {"answer"}, {"took", true}};
  for (const InterventionRecord& record : process.interventions) {
    const bool is_confirmed = record.outcome == InterventionOutcome::kConfirmed;
    table.rows.push_back(
        {{std::string(suspect_text(record.kind))},
         {effect_text(record)},
         {std::string(outcome_text(record.outcome)), is_confirmed},
         {is_reading(record.kind) || !record.effect_bytes ? "-" : short_time(record.took_s)}});
  }
  return table;
}

std::string rule_out_text(const RuleOutReport& report, std::size_t columns) {
  Document document;
  for (const RuleOutReport::Process& process : report.processes) {
    if (!document.is_empty()) {
      document.empty_line();
    }
    document.paragraph(fmt::format("{}: footprint {}", process_text(process.key, process.program),
                                   format_bytes(process.footprint_bytes)));
    document.empty_line();
    if (!process.interventions.empty()) {
      document.table(rule_out_table(process));
      document.empty_line();
    }
    add_notes(process, document);
    for (std::string& sentence : conclusions(process)) {
      document.paragraph(std::move(sentence));
    }
  }
  for (const std::string& note : report.notes) {
    document.paragraph(escape_text(note), "note: ");
  }
  return to_text(document, {.columns = columns});
}

std::string plan_text(const RuleOutPlan& plan, std::size_t columns) {
  Document document;
  for (const RuleOutPlan::Process& process : plan.processes) {
    if (!document.is_empty()) {
      document.empty_line();
    }
    document.paragraph(fmt::format("{}: this would be done, one after the other",
                                   process_text(process.key, process.program)));
    document.empty_line();
    Table table;
    table.columns = {{"suspect"}, {"what would be done"}, {"possible"}};
    for (const RuleOutPlan::Step& step : process.steps) {
      table.rows.push_back({{std::string(suspect_text(step.kind))},
                            {escape_text(step.how)},
                            {step.problem.empty() ? "yes" : "no"}});
    }
    document.table(std::move(table));
    document.empty_line();
    for (const RuleOutPlan::Step& step : process.steps) {
      if (!step.problem.empty()) {
        document.paragraph(
            fmt::format("{}: {}", suspect_text(step.kind), escape_text(step.problem)), "note: ");
      }
    }
  }
  return to_text(document, {.columns = columns});
}

bool is_decided(const RuleOutReport& report) {
  const auto is_known = [](const RuleOutReport::Process& process) {
    return std::none_of(process.interventions.begin(), process.interventions.end(),
                        [](const InterventionRecord& record) {
                          return record.outcome == InterventionOutcome::kCannotTell;
                        });
  };
  return !report.processes.empty() &&
         std::all_of(report.processes.begin(), report.processes.end(), is_known);
}

}  // namespace tidemark::report
