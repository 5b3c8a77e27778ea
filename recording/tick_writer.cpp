// SPDX-License-Identifier: Apache-2.0
#include "recording/tick_writer.h"

#include <optional>
#include <utility>

#include "recording/heap_tables.h"
#include "recording/ledger_tables.h"
#include "recording/rows.h"
#include "recording/schema.h"

namespace tidemark::recording {

Result<SiteWriter> SiteWriter::prepare(Database& database) {
  const auto prepare = [&](std::string_view table, std::string_view verb = "INSERT OR REPLACE") {
    return database.prepare(insert_sql(table, verb));
  };
  TIDEMARK_TRY_ASSIGN(auto module, prepare("modules"));
  TIDEMARK_TRY_ASSIGN(auto frame, prepare("frames"));
  // A site that is named later keeps the tick in which it was first seen.
  TIDEMARK_TRY_ASSIGN(auto site, prepare("sites", "INSERT OR IGNORE"));
  TIDEMARK_TRY_ASSIGN(auto site_frame, prepare("site_frames"));
  TIDEMARK_TRY_ASSIGN(auto sample, prepare("site_samples"));
  TIDEMARK_TRY_ASSIGN(auto forget_ages,
                      database.prepare("DELETE FROM site_births WHERE site = ?1"));
  TIDEMARK_TRY_ASSIGN(auto age, prepare("site_births"));
  TIDEMARK_TRY_ASSIGN(auto trace, prepare("trace_samples"));
  TIDEMARK_TRY_ASSIGN(auto account, prepare("trace_accounts"));
  TIDEMARK_TRY_ASSIGN(auto shm_growth, prepare("shm_growth"));
  TIDEMARK_TRY_ASSIGN(auto shm_segment, prepare("shm_segments"));
  return SiteWriter(Statements{std::move(module), std::move(frame), std::move(site),
                               std::move(site_frame), std::move(sample), std::move(forget_ages),
                               std::move(age), std::move(trace), std::move(account),
                               std::move(shm_growth), std::move(shm_segment)});
}

Status SiteWriter::write(const AllocationFacts& facts, std::int64_t tick,
                         const ProcessNumber& number_of) {
  for (const ModuleRecord& module : facts.modules) {
    TIDEMARK_TRY(insert(statements_.module, module, module.module, tick));
  }
  for (const FrameRecord& frame : facts.frames) {
    TIDEMARK_TRY(insert(statements_.frame, frame, frame.frame, tick));
  }
  for (const SiteRecord& site : facts.sites) {
    TIDEMARK_TRY(write_site(site, tick, number_of));
  }
  for (const SiteSample& sample : facts.samples) {
    TIDEMARK_TRY(insert(statements_.sample, sample, tick, sample.site));
  }
  for (const SiteAges& ages : facts.ages) {
    TIDEMARK_TRY(write_ages(ages, tick));
  }
  for (const TraceSample& trace : facts.traces) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(trace.key));
    TIDEMARK_TRY(insert(statements_.trace, trace, tick, process));
  }
  for (const MemoryAccount& account : facts.accounts) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(account.key));
    TIDEMARK_TRY(insert(statements_.account, account, tick, process));
  }
  return facts.shm ? write_shm(*facts.shm, tick) : ok();
}

Status SiteWriter::write_site(const SiteRecord& site, std::int64_t tick,
                              const ProcessNumber& number_of) {
  TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(site.key));
  TIDEMARK_TRY(insert(statements_.site, site, site.site, tick, process));
  std::int64_t depth = 0;
  for (const std::uint32_t frame : site.frames) {
    RowBinder bind(statements_.site_frame);
    bind(site.site), bind(depth++), bind(frame);
    TIDEMARK_TRY(statements_.site_frame.run());
  }
  return ok();
}

Status SiteWriter::write_ages(const SiteAges& ages, std::int64_t tick) {
  statements_.forget_ages.bind(1, std::int64_t{ages.site});
  TIDEMARK_TRY(statements_.forget_ages.run());
  std::int64_t place = 0;
  for (const SiteAges::Interval& interval : ages.intervals) {
    TIDEMARK_TRY(insert(statements_.age, interval, ages.site, place++, tick));
  }
  return ok();
}

Status SiteWriter::write_shm(const ShmGrowthReport& shm, std::int64_t tick) {
  TIDEMARK_TRY(insert(statements_.shm_growth, shm, tick));
  std::int64_t place = 0;
  for (const GrowingSegment& segment : shm.largest) {
    TIDEMARK_TRY(insert(statements_.shm_segment, segment, tick, place++));
  }
  return ok();
}

Result<TickWriter> TickWriter::prepare(Database& database) {
  // Where a tick may name something twice, the last row counts.
  const auto prepare = [&](std::string_view table, std::string_view verb = "INSERT OR REPLACE") {
    return database.prepare(insert_sql(table, verb));
  };
  TIDEMARK_TRY_ASSIGN(auto tick, prepare("ticks", "INSERT"));
  TIDEMARK_TRY_ASSIGN(auto lateness,
                      database.prepare("UPDATE ticks SET write_late_s = ?1 WHERE tick = ?2"));
  TIDEMARK_TRY_ASSIGN(auto process, prepare("processes", "INSERT"));
  TIDEMARK_TRY_ASSIGN(
      auto process_end,
      database.prepare("UPDATE processes SET died_s = ?1, exit_status = ?2 WHERE process = ?3"));
  TIDEMARK_TRY_ASSIGN(auto process_sample, prepare("process_samples"));
  TIDEMARK_TRY_ASSIGN(auto group, prepare("group_samples"));
  TIDEMARK_TRY_ASSIGN(auto system, prepare("system_samples", "INSERT"));
  TIDEMARK_TRY_ASSIGN(auto gpu, prepare("gpus"));
  TIDEMARK_TRY_ASSIGN(auto gpu_sample, prepare("gpu_samples"));
  TIDEMARK_TRY_ASSIGN(auto gpu_process, prepare("gpu_process_samples"));
  TIDEMARK_TRY_ASSIGN(auto gpu_state, prepare("gpu_states"));
  TIDEMARK_TRY_ASSIGN(auto marker, prepare("markers", "INSERT"));
  TIDEMARK_TRY_ASSIGN(auto event, prepare("events", "INSERT"));
  TIDEMARK_TRY_ASSIGN(auto loss, prepare("losses", "INSERT"));
  TIDEMARK_TRY_ASSIGN(auto untraced, prepare("untraced_processes"));
  TIDEMARK_TRY_ASSIGN(auto intervention, prepare("interventions"));
  TIDEMARK_TRY_ASSIGN(auto sites, SiteWriter::prepare(database));
  TIDEMARK_TRY_ASSIGN(auto heap, HeapWriter::prepare(database));
  TIDEMARK_TRY_ASSIGN(auto ledgers, LedgerWriter::prepare(database));
  return TickWriter(
      Statements{std::move(tick), std::move(lateness), std::move(process), std::move(process_end),
                 std::move(process_sample), std::move(group), std::move(system), std::move(gpu),
                 std::move(gpu_sample), std::move(gpu_process), std::move(gpu_state),
                 std::move(marker), std::move(event), std::move(loss), std::move(untraced),
                 std::move(intervention)},
      std::move(sites), std::make_unique<HeapWriter>(std::move(heap)),
      std::make_unique<LedgerWriter>(std::move(ledgers)));
}

TickWriter::TickWriter(Statements statements, SiteWriter sites, std::unique_ptr<HeapWriter> heap,
                       std::unique_ptr<LedgerWriter> ledgers)
    : statements_(std::move(statements)),
      sites_(std::move(sites)),
      heap_(std::move(heap)),
      ledgers_(std::move(ledgers)) {}

TickWriter::~TickWriter() = default;
TickWriter::TickWriter(TickWriter&&) noexcept = default;
TickWriter& TickWriter::operator=(TickWriter&&) noexcept = default;

Status TickWriter::write(const Tick& tick) {
  ++tick_;
  t_s_ = tick.t_s;
  TIDEMARK_TRY(insert(statements_.tick, tick, tick_));
  TIDEMARK_TRY(write_group("tree", tick.tree));
  for (const RoleSample& role : tick.roles) {
    TIDEMARK_TRY(write_group(role_name(role.role), role.sum));
  }
  for (const ProcessRecord& process : tick.new_processes) {
    TIDEMARK_TRY(write_process(process));
  }
  for (const ProcessSample& sample : tick.processes) {
    TIDEMARK_TRY(write_sample(sample));
  }
  if (tick.system) {
    TIDEMARK_TRY(insert(statements_.system_sample, *tick.system, tick_));
  }
  for (const GpuSample& gpu : tick.gpus) {
    TIDEMARK_TRY(write_gpu(gpu));
  }
  TIDEMARK_TRY(append(statements_.marker, tick.markers));
  TIDEMARK_TRY(append(statements_.event, tick.events));
  TIDEMARK_TRY(append(statements_.loss, tick.losses));
  const auto number_of_traced = [this](const ProcessKey& key) { return traced_number_of(key); };
  TIDEMARK_TRY(sites_.write(tick.allocations, tick_, number_of_traced));
  TIDEMARK_TRY(heap_->write(tick.heap, tick_, number_of_traced));
  TIDEMARK_TRY(ledgers_->write(tick.ledgers, tick_, number_of_traced));
  for (const TraceSample& trace : tick.allocations.traces) {
    if (trace.has_ended) {
      traced_numbers_.erase(trace.key);
    }
  }
  for (const UntracedProcess& untraced : tick.allocations.untraced) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(untraced.key));
    TIDEMARK_TRY(insert(statements_.untraced, untraced, tick_, process));
  }
  for (const InterventionRecord& intervention : tick.interventions) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(intervention.key));
    TIDEMARK_TRY(insert(statements_.intervention, intervention, tick_, process));
  }
  return ok();
}

// The file numbers the rows.
template <typename Record>
Status TickWriter::append(Statement& statement, const std::vector<Record>& records) {
  for (const Record& record : records) {
    TIDEMARK_TRY(insert(statement, record, std::nullopt, tick_));
  }
  return ok();
}

Status TickWriter::write_lateness(double seconds) {
  statements_.lateness.bind(1, seconds);
  statements_.lateness.bind(2, tick_);
  return statements_.lateness.run();
}

Status TickWriter::write_process(const ProcessRecord& process) {
  const std::int64_t number = ++last_process_;
  process_numbers_[process.key] = number;  // after an exec: the new row from now on
  return insert(statements_.process, process, number, tick_);
}

Status TickWriter::write_end(const ProcessRecord& process) {
  TIDEMARK_TRY_ASSIGN(const std::int64_t number, number_of(process.key));
  RowBinder bind(statements_.process_end);
  bind(process.exited_s), bind(process.exit_status), bind(number);
  process_numbers_.erase(process.key);
  return statements_.process_end.run();
}

Status TickWriter::write_sample(const ProcessSample& sample) {
  TIDEMARK_TRY_ASSIGN(const std::int64_t number, number_of(sample.key));
  return insert(statements_.process_sample, sample, tick_, number);
}

Status TickWriter::write_group(std::string_view who, const GroupSample& sum) {
  return insert(statements_.group_sample, sum, tick_, who);
}

Status TickWriter::write_gpu(const GpuSample& gpu) {
  const auto known = gpu_names_.find(gpu.index);
  if (known == gpu_names_.end() || known->second != gpu.name) {
    RowBinder bind(statements_.gpu);
    bind(gpu.index), bind(gpu.name);
    TIDEMARK_TRY(statements_.gpu.run());
    gpu_names_[gpu.index] = gpu.name;
  }
  TIDEMARK_TRY(insert(statements_.gpu_sample, gpu, tick_));
  TIDEMARK_TRY(insert_as<GpuState>(statements_.gpu_state, gpu, tick_, gpu.index));
  for (const GpuProcessUse& use : gpu.processes) {
    TIDEMARK_TRY(insert(statements_.gpu_process_sample, use, tick_, gpu.index));
  }
  return ok();
}

// A process without a record (its tick was dropped) still gets a row, so that every sample
// has a process.
Result<std::int64_t> TickWriter::number_of(const ProcessKey& key) {
  const auto known = process_numbers_.find(key);
  if (known != process_numbers_.end()) {
    return known->second;
  }
  ProcessRecord process;
  process.key = key;
  process.started_s = t_s_;
  TIDEMARK_TRY(write_process(process));
  return last_process_;
}

// The last sample of a traced process, and a look at its heap, may come after its end.
Result<std::int64_t> TickWriter::traced_number_of(const ProcessKey& key) {
  const auto traced = traced_numbers_.find(key);
  if (traced != traced_numbers_.end() && !process_numbers_.contains(key)) {
    return traced->second;
  }
  auto number = number_of(key);
  if (number) {
    traced_numbers_[key] = *number;
  }
  return number;
}

}  // namespace tidemark::recording
