// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/ledger_records.h"
#include "common/process_table.h"
#include "report/output.h"
#include "tracker/causes/advice.h"
#include "tracker/ledgers/ledgers.h"

namespace tidemark::report {

// All that a report of `tidemark explain` says. What it points to outlives it.
struct ExplainReport {
  const tracker::Ledgers* ledgers = nullptr;
  const ProcessTable* table = nullptr;
  std::string command;
  std::vector<tracker::Advice> advice;
  bool with_all = false;  // every row of every process
  bool is_over = false;   // nothing can be asked any more: no next command
  // What went wrong, and the like: a sentence each, raw bytes.
  std::vector<std::string> notes;
};
ExplainReport make_explain_report(const tracker::LedgerBuilder& builder);

// A table of the tree, where there are several processes, and of those that hold most; the answer
// in a sentence at the end. Everything in it is escaped.
std::string explain_text(const ExplainReport& report, const ProfileStyle& style);
// One object, as docs/output.md has it; without a line end.
std::string explain_json(const ExplainReport& report);

}  // namespace tidemark::report
