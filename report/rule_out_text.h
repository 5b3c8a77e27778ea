// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/intervention_records.h"
#include "common/process_key.h"
#include "report/document.h"

// What interventions have shown, for people and for programs. All text is escaped.
namespace tidemark::report {

struct RuleOutReport {
  struct Process {
    ProcessKey key;
    std::string program;                           // raw bytes: "train.py"
    std::optional<std::uint64_t> footprint_bytes;  // at the end
    std::vector<InterventionRecord> interventions;
  };
  std::string command;  // of the run; mostly empty
  std::vector<Process> processes;
  std::vector<std::string> notes;
};

// What would be done.
struct RuleOutPlan {
  struct Step {
    InterventionKind kind = InterventionKind::kTrim;
    std::string how;
    std::string problem;  // why it cannot be; empty: it can
  };
  struct Process {
    ProcessKey key;
    std::string program;
    std::vector<Step> steps;
  };
  std::vector<Process> processes;
};

// "freed memory that glibc keeps".
std::string_view suspect_text(InterventionKind kind);
// "ruled out", "confirmed", "cannot tell".
std::string_view outcome_text(InterventionOutcome outcome);
// What of the memory is what, and what to do about it: a sentence each.
std::vector<std::string> conclusions(const RuleOutReport::Process& process);
// A row for each suspect.
Table rule_out_table(const RuleOutReport::Process& process);

std::string rule_out_text(const RuleOutReport& report, std::size_t columns);
std::string rule_out_json(const RuleOutReport& report);
std::string plan_text(const RuleOutPlan& plan, std::size_t columns);
std::string plan_json(const RuleOutPlan& plan);

// There is an answer for each suspect that was asked about.
bool is_decided(const RuleOutReport& report);

}  // namespace tidemark::report
