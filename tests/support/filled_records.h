// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/record_fields.h"

namespace tidemark::tests {

// Gives every field of the lists of common/record_fields.h a value that none before it had.
class FieldFiller {
 public:
  template <typename List, typename Record>
  void fill(Record& record) {
    visit_fields<List>([&](const auto& field) { set(record.*field.member); });
  }
  template <typename Record>
  Record filled() {
    Record record{};
    fill<Record>(record);
    return record;
  }

 private:
  template <std::integral T>
  void set(T& value) {
    value = static_cast<T>(++last_);
  }
  void set(bool& value) { value = true; }
  void set(char& value) { value = static_cast<char>('A' + ++last_ % 26); }
  void set(double& value) { value = static_cast<double>(++last_) + 0.5; }
  void set(std::string& value) { value = "text " + std::to_string(++last_); }
  void set(LossName& name) { name = LossName("loss " + std::to_string(++last_)); }
  void set(std::vector<std::int64_t>& numbers) { numbers = {++last_, -std::int64_t{++last_}}; }
  void set(ProcessKey& key) { set(key.pid), set(key.start_ticks); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void set(Enum& value) { value = static_cast<Enum>(1); }
  template <typename T>
  void set(std::optional<T>& value) {
    set(value.emplace());
  }

  std::uint32_t last_ = 0;
};

// A tick with one of each record, all of whose fields are filled.
inline Tick filled_tick() {
  FieldFiller filler;
  Tick tick = filler.filled<Tick>();
  filler.fill<GroupSample>(tick.tree);
  tick.roles = {{Role::kTrainer, filler.filled<GroupSample>()}};
  ProcessRecord process = filler.filled<ProcessRecord>();
  process.exited_s.reset();  // not yet
  process.exit_status.reset();
  tick.new_processes = {process};
  tick.processes = {filler.filled<ProcessSample>()};
  tick.processes[0].key = process.key;
  tick.system = filler.filled<SystemSample>();
  tick.gpus = {filler.filled<GpuSample>()};
  filler.fill<GpuState>(tick.gpus[0]);
  tick.gpus[0].name = "A100";
  tick.gpus[0].processes = {filler.filled<GpuProcessUse>()};
  tick.markers = {filler.filled<MarkerRecord>()};
  tick.events = {filler.filled<EventRecord>()};
  tick.losses = {filler.filled<LossRecord>()};
  AllocationFacts& facts = tick.allocations;
  facts.modules = {filler.filled<ModuleRecord>()};
  facts.frames = {filler.filled<FrameRecord>()};
  facts.sites = {filler.filled<SiteRecord>()};
  facts.sites[0].key = process.key;
  facts.samples = {filler.filled<SiteSample>()};
  facts.ages = {{0, {filler.filled<SiteAges::Interval>()}}};
  facts.traces = {filler.filled<TraceSample>()};
  facts.traces[0].key = process.key;
  facts.accounts = {filler.filled<MemoryAccount>()};
  facts.accounts[0].key = process.key;
  facts.untraced = {filler.filled<UntracedProcess>()};
  facts.untraced[0].key = process.key;
  facts.shm = filler.filled<ShmGrowthReport>();
  facts.shm->largest = {filler.filled<GrowingSegment>()};
  HeapFacts::OfProcess& of = tick.heap.looks.emplace_back();
  of.look = filler.filled<HeapLook>();
  of.look.key = process.key;
  filler.fill<InterpreterFacts>(of.look.interpreter);
  of.types = {filler.filled<TypeSample>(), filler.filled<TypeSample>()};
  of.tensors = {filler.filled<TensorSample>(), filler.filled<TensorSample>()};
  for (const std::uint32_t number : {1U, 2U}) {
    OwnerRecord owner = filler.filled<OwnerRecord>();
    owner.owner = number;
    owner.key = process.key;
    owner.steps = {filler.filled<PathStep>(), filler.filled<PathStep>()};
    tick.heap.owners.push_back(owner);
    OwnerSample sample = filler.filled<OwnerSample>();
    sample.owner = number;
    sample.holds = {filler.filled<HeldObjects>(), filler.filled<HeldObjects>()};
    sample.sites = {filler.filled<OwnerSite>(), filler.filled<OwnerSite>()};
    of.owners.push_back(sample);
  }
  tick.interventions = {filler.filled<InterventionRecord>()};
  tick.interventions[0].key = process.key;
  MemoryLedger& ledger = tick.ledgers.emplace_back(filler.filled<MemoryLedger>());
  ledger.key = process.key;
  ledger.rows = {filler.filled<LedgerRow>(), filler.filled<LedgerRow>()};
  return tick;
}

}  // namespace tidemark::tests
