// SPDX-License-Identifier: Apache-2.0
#include "common/ledger_records.h"

#include <array>

#include "common/enum_names.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, kLedgerKindCount> kKindNames{
    "malloc_in_use", "malloc_free", "malloc",  "python_in_use", "python_free",
    "anonymous",     "stacks",      "program", "file",          "shared_memory",
    "pinned",        "tracer",      "other"};
static_assert(kKindNames.size() == static_cast<std::size_t>(LedgerKind::kOther) + 1);

}  // namespace

void add_to(LedgerRow& sum, const LedgerRow& row) {
  sum.count += row.count;
  sum.rss_bytes += row.rss_bytes;
  sum.pss_bytes += row.pss_bytes;
  sum.footprint_bytes += row.footprint_bytes;
  sum.pss_footprint_bytes += row.pss_footprint_bytes;
  sum.swap_bytes += row.swap_bytes;
  sum.huge_pages_bytes += row.huge_pages_bytes;
}

LedgerRow MemoryLedger::sum() const {
  LedgerRow sum;
  for (const LedgerRow& row : rows) {
    add_to(sum, row);
  }
  return sum;
}

std::int64_t MemoryLedger::unexplained_rss_bytes() const {
  return static_cast<std::int64_t>(rss_bytes - sum().rss_bytes);
}

std::int64_t MemoryLedger::unexplained_footprint_bytes() const {
  return static_cast<std::int64_t>(footprint_bytes - sum().footprint_bytes);
}

std::string_view ledger_kind_name(LedgerKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}
std::optional<LedgerKind> ledger_kind_from_name(std::string_view name) {
  return enum_from_name<LedgerKind>(kKindNames, name);
}

}  // namespace tidemark
