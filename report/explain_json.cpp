// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "common/json_writer.h"
#include "common/record_fields.h"
#include "report/explain_text.h"
#include "report/ledger_words.h"
#include "report/track_text.h"

namespace tidemark::report {
namespace {

using tracker::LedgerChange;
using tracker::ProcessLedgers;

void add_row(JsonWriter& json, const LedgerChange& change, bool has_growth) {
  json.begin_object();
  visit_output_fields<LedgerRow>([&](const auto& field) {
    using Value = std::decay_t<decltype(change.now.*field.member)>;
    if constexpr (std::is_same_v<Value, LedgerKind>) {
      json.field(field.name, name_of(change.now.kind));
    } else if constexpr (std::is_same_v<Value, std::string>) {
      json.text_field(field.name, change.now.name);
    } else {
      json.field(field.name, change.now.*field.member);
    }
  });
  const auto growth = [&](std::int64_t bytes) {
    return has_growth ? std::optional(bytes) : std::nullopt;
  };
  json.field("rss_growth_bytes", growth(change.rss_growth_bytes()))
      .field("footprint_growth_bytes", growth(change.footprint_growth_bytes()))
      .end_object();
}

void add_rows(JsonWriter& json, std::span<const ProcessLedgers> processes, bool has_growth) {
  json.array("rows", tracker::add_up(processes),
             [&](const LedgerChange& change) { add_row(json, change, has_growth); });
}

void add_process(JsonWriter& json, const ExplainReport& report, const ProcessLedgers& process) {
  const MemoryLedger& ledger = process.last;
  const ProcessRecord* const record = report.table->find(ledger.key);
  json.begin_object().field("pid", ledger.key.pid).field("start_ticks", ledger.key.start_ticks);
  json.text_field("role", record == nullptr ? "" : role_name(record->role));
  json.text_field("program", record == nullptr ? "" : record->program());
  json.field("looks", process.looks)
      .field("seconds", process.looks > 1 ? std::optional(process.seconds()) : std::nullopt);
  visit_output_fields<MemoryLedger>([&](const auto& field) {
    using Value = std::decay_t<decltype(ledger.*field.member)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      json.text_field(field.name, ledger.*field.member);
    } else {
      json.field(field.name, ledger.*field.member);
    }
  });
  json.field("unexplained_rss_bytes", ledger.unexplained_rss_bytes())
      .field("unexplained_footprint_bytes", ledger.unexplained_footprint_bytes());
  add_rows(json, std::span(&process, 1), process.looks > 1);
  json.end_object();
}

void add_tree(JsonWriter& json, const ExplainReport& report) {
  LedgerRow sum;
  bool has_growth = false;
  for (const ProcessLedgers& process : report.ledgers->processes()) {
    add_to(sum, process.last.sum());
    has_growth = has_growth || process.looks > 1;
  }
  json.field("processes", report.ledgers->processes().size())
      .field("rss_bytes", sum.rss_bytes)
      .field("pss_bytes", sum.pss_bytes)
      .field("footprint_bytes", sum.pss_footprint_bytes)
      .field("swap_bytes", sum.swap_bytes);
  add_rows(json, report.ledgers->processes(), has_growth);
}

}  // namespace

std::string explain_json(const ExplainReport& report) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  json.object("target", [&] { json.text_field("command", report.command); });
  json.object("tree", [&] { add_tree(json, report); });
  json.array("processes", report.ledgers->processes(),
             [&](const ProcessLedgers& process) { add_process(json, report, process); });
  json.object_or_null("cgroup", report.ledgers->machine(), [&](const SystemSample& machine) {
    json.field("charged_bytes", machine.cgroup_charged_bytes)
        .field("cache_bytes", machine.cgroup_cache_bytes)
        .field("used_bytes", machine.cgroup_used_bytes)
        .field("limit_bytes", machine.cgroup_limit_bytes);
  });
  add_advice(json, report.advice);
  json.field("answer", ledger_answer_text(report)).array("notes", report.notes);
  return json.end_object().take();
}

}  // namespace tidemark::report
