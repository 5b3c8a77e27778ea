// SPDX-License-Identifier: Apache-2.0
#include "tracker/ledgers/ledgers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace tidemark::tracker {
namespace {

std::int64_t growth_bytes(const ProcessLedgers& process) {
  return static_cast<std::int64_t>(process.last.footprint_bytes) -
         static_cast<std::int64_t>(process.first.footprint_bytes);
}

// What is charged to the group beside page cache is what processes hold: a group that is full of
// that is in need.
std::optional<double> charged_share(const SystemSample& machine) {
  constexpr double kHeld = 0.75;
  if (!machine.cgroup_charged_bytes || !machine.cgroup_cache_bytes ||
      machine.cgroup_limit_bytes.value_or(0) == 0) {
    return std::nullopt;
  }
  const auto limit = static_cast<double>(*machine.cgroup_limit_bytes);
  const auto charged = static_cast<double>(*machine.cgroup_charged_bytes);
  const double held = charged - static_cast<double>(*machine.cgroup_cache_bytes);
  return held <= kHeld * limit ? std::optional(charged / limit) : std::nullopt;
}

void add_growth(const ProcessLedgers& process, LedgerFacts& facts) {
  const std::int64_t grown = growth_bytes(process);
  facts.footprint_growth_bytes = static_cast<double>(grown);
  const std::int64_t freed = footprint_growth_of(process, LedgerKind::kMallocFree);
  if (grown > 0) {
    facts.free_share = static_cast<double>(freed) / static_cast<double>(grown);
  }
  facts.huge_pages_bytes = static_cast<double>(process.last.sum().huge_pages_bytes) -
                           static_cast<double>(process.first.sum().huge_pages_bytes);
  std::int64_t live = 0;
  for (const LedgerKind kind : {LedgerKind::kMallocInUse, LedgerKind::kMalloc,
                                LedgerKind::kPythonInUse, LedgerKind::kAnonymous}) {
    live += footprint_growth_of(process, kind);
  }
  facts.live_heap_bytes = static_cast<double>(live);
}

}  // namespace

void Ledgers::add(const Tick& tick) {
  if (tick.system) {
    machine_ = tick.system;
  }
  for (const MemoryLedger& ledger : tick.ledgers) {
    const auto known =
        std::find_if(processes_.begin(), processes_.end(),
                     [&](const ProcessLedgers& each) { return each.last.key == ledger.key; });
    if (known != processes_.end()) {
      known->last = ledger;
      ++known->looks;
    } else if (processes_.size() < kMostProcesses) {
      processes_.push_back({ledger, ledger, 1});
    } else {
      ++left_out_;
    }
  }
}

const ProcessLedgers* Ledgers::of(const ProcessKey& key) const {
  const auto known = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const ProcessLedgers& each) { return each.last.key == key; });
  return known == processes_.end() ? nullptr : &*known;
}

std::vector<LedgerChange> add_up(std::span<const ProcessLedgers> processes) {
  std::map<std::pair<LedgerKind, std::string>, LedgerChange> sums;
  const auto add = [&](const MemoryLedger& ledger, LedgerRow LedgerChange::*side) {
    for (const LedgerRow& row : ledger.rows) {
      LedgerChange& change = sums[{row.kind, row.name}];
      change.now.kind = row.kind;
      change.now.name = row.name;
      change.now.maker_pid = row.maker_pid;
      add_to(change.*side, row);
    }
  };
  for (const ProcessLedgers& process : processes) {
    add(process.first, &LedgerChange::before);
    add(process.last, &LedgerChange::now);
  }
  std::vector<LedgerChange> all;
  all.reserve(sums.size());
  for (auto& [kind, change] : sums) {
    all.push_back(std::move(change));
  }
  std::stable_sort(all.begin(), all.end(), [](const LedgerChange& a, const LedgerChange& b) {
    return a.now.rss_bytes + a.now.swap_bytes > b.now.rss_bytes + b.now.swap_bytes;
  });
  return all;
}

std::int64_t footprint_growth_of(const ProcessLedgers& process, LedgerKind kind) {
  const auto sum = [&](const MemoryLedger& ledger) {
    std::int64_t bytes = 0;
    for (const LedgerRow& row : ledger.rows) {
      bytes += row.kind == kind ? static_cast<std::int64_t>(row.footprint_bytes) : 0;
    }
    return bytes;
  };
  return sum(process.last) - sum(process.first);
}

LedgerFacts ledger_facts(const Ledgers& ledgers, const ProcessKey* key) {
  LedgerFacts facts;
  const ProcessLedgers* grown = key == nullptr ? nullptr : ledgers.of(*key);
  for (const ProcessLedgers& process : ledgers.processes()) {
    if (process.last.malloc_heaps) {
      facts.most_malloc_heaps =
          std::max(facts.most_malloc_heaps.value_or(0), *process.last.malloc_heaps);
    }
    if (key == nullptr && (grown == nullptr || growth_bytes(process) > growth_bytes(*grown))) {
      grown = &process;
    }
  }
  if (ledgers.machine()) {
    facts.cgroup_charged_share = charged_share(*ledgers.machine());
  }
  if (grown != nullptr && grown->looks > 1) {
    add_growth(*grown, facts);
  }
  return facts;
}

}  // namespace tidemark::tracker
