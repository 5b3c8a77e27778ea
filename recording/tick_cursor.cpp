// SPDX-License-Identifier: Apache-2.0
#include "recording/tick_cursor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/heap_tables.h"
#include "recording/ledger_tables.h"
#include "recording/schema.h"

namespace tidemark::recording {

Error damaged_file(const std::string& path, std::string_view why) {
  return Error{Errc::kMalformed, fmt::format("{} is damaged: {}", path, why)};
}

namespace {

// Names that a hostile file makes up are kept up to here.
constexpr std::size_t kMaxUnknownNames = 20;

Result<std::map<std::int64_t, std::string>> load_gpu_names(Database& database) {
  TIDEMARK_TRY_ASSIGN(auto query, database.prepare("SELECT gpu, name FROM gpus"));
  std::map<std::int64_t, std::string> names;
  while (true) {
    TIDEMARK_TRY_ASSIGN(const bool has_row, query.step());
    if (!has_row) {
      return names;
    }
    names[query.integer(0)] = query.bytes(1);
  }
}

GpuSample* find_gpu(std::vector<GpuSample>& gpus, std::int64_t index) {
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const GpuSample& candidate) {
    return std::int64_t{candidate.index} == index;
  });
  return gpu == gpus.end() ? nullptr : &*gpu;
}

// A number of a module, frame, site or owner.
Result<std::uint32_t> number_in(const Statement& row, int column, const std::string& path) {
  const std::int64_t value = row.integer(column);
  if (!row.is_integer(column) || !std::in_range<std::uint32_t>(value)) {
    return damaged_file(path, "a number is out of range");
  }
  return static_cast<std::uint32_t>(value);
}

// Rows of a table whose columns are the tick, the number of a record, and its fields.
template <typename Record>
Status take_numbered(TableCursor& table, std::int64_t tick, int number_column,
                     std::uint32_t Record::*number, std::vector<Record>& records) {
  return table.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t value, table.number(number_column));
    Record& record = records.emplace_back();
    record.*number = value;
    return table.load<Record>(3, record);
  });
}

// Rows of a table whose columns are the tick, a process, and the fields of a record.
template <typename Record>
Status take_of_processes(TableCursor& table, std::int64_t tick, std::vector<Record>& records,
                         const ProcessOfNumber& process_of) {
  return table.take_rows(tick, [&] {
    const ProcessKey* const key = process_of(table.row().integer(2));
    if (key == nullptr) {
      return ok();
    }
    Record& record = records.emplace_back();
    record.key = *key;
    return table.load<Record>(3, record);
  });
}

}  // namespace

Result<TableCursor> TableCursor::open(Database& database, std::int32_t version,
                                      std::string_view table, std::string_view rest) {
  TableCursor cursor(version, database.path());
  if (table_named(table).since_version > version) {
    cursor.at_end_ = true;
    return cursor;
  }
  TIDEMARK_TRY_ASSIGN(cursor.statement_,
                      database.prepare(select_sql(table, "tick", rest, version)));
  TIDEMARK_TRY(cursor.advance());
  return cursor;
}

Status TableCursor::advance() {
  if (at_end_) {
    return ok();  // stepping on would start the query anew
  }
  const auto row = statement_->step();
  at_end_ = !row || !*row;
  tick_ = at_end_ ? 0 : statement_->integer(0);
  return row ? ok() : Status(row.error());
}

Result<std::uint32_t> TableCursor::number(int column) const {
  return number_in(row(), column, path_);
}

Result<SiteCursor> SiteCursor::open(Database& database, std::int32_t version) {
  const auto open = [&](std::string_view table, std::string_view rest) {
    return TableCursor::open(database, version, table, rest);
  };
  TIDEMARK_TRY_ASSIGN(auto modules, open("modules", "ORDER BY tick, module"));
  TIDEMARK_TRY_ASSIGN(auto frames, open("frames", "ORDER BY tick, frame"));
  TIDEMARK_TRY_ASSIGN(auto sites, open("sites", "ORDER BY tick, site"));
  TIDEMARK_TRY_ASSIGN(auto samples, open("site_samples", "ORDER BY tick, site"));
  TIDEMARK_TRY_ASSIGN(auto ages, open("site_births", "ORDER BY tick, site, place"));
  TIDEMARK_TRY_ASSIGN(auto traces, open("trace_samples", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto accounts, open("trace_accounts", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto untraced, open("untraced_processes", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto shm_growth, open("shm_growth", "ORDER BY tick"));
  TIDEMARK_TRY_ASSIGN(auto shm_segments, open("shm_segments", "ORDER BY tick, place"));
  std::optional<Statement> stack;
  if (table_named("site_frames").since_version <= version) {
    TIDEMARK_TRY_ASSIGN(
        stack,
        database.prepare(fmt::format(
            "SELECT frame FROM site_frames WHERE site = ?1 ORDER BY depth LIMIT {}", kMostFrames)));
  }
  return SiteCursor(
      Tables{std::move(modules), std::move(frames), std::move(sites), std::move(samples),
             std::move(ages), std::move(traces), std::move(accounts), std::move(untraced),
             std::move(shm_growth), std::move(shm_segments)},
      std::move(stack), database.path());
}

// A kind that a later version has added reads as the first one.
Status SiteCursor::take(std::int64_t tick, AllocationFacts& facts,
                        const ProcessOfNumber& process_of) {
  TIDEMARK_TRY(take_numbered(tables_.modules, tick, 1, &ModuleRecord::module, facts.modules));
  TIDEMARK_TRY(take_numbered(tables_.frames, tick, 1, &FrameRecord::frame, facts.frames));
  TIDEMARK_TRY(take_sites(tick, facts.sites, process_of));
  TIDEMARK_TRY(take_numbered(tables_.samples, tick, 2, &SiteSample::site, facts.samples));
  TIDEMARK_TRY(take_ages(tick, facts.ages));
  TIDEMARK_TRY(take_of_processes(tables_.traces, tick, facts.traces, process_of));
  TIDEMARK_TRY(take_of_processes(tables_.accounts, tick, facts.accounts, process_of));
  TIDEMARK_TRY(take_of_processes(tables_.untraced, tick, facts.untraced, process_of));
  return take_shm(tick, facts.shm);
}

Status SiteCursor::take_sites(std::int64_t tick, std::vector<SiteRecord>& sites,
                              const ProcessOfNumber& process_of) {
  return tables_.sites.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t number, tables_.sites.number(1));
    const ProcessKey* const key = process_of(tables_.sites.row().integer(3));
    if (key == nullptr) {
      return ok();
    }
    SiteRecord& site = sites.emplace_back();
    site.site = number;
    site.key = *key;
    TIDEMARK_TRY(tables_.sites.load<SiteRecord>(4, site));
    return load_stack(site);
  });
}

Status SiteCursor::load_stack(SiteRecord& site) {
  stack_->bind(1, std::int64_t{site.site});
  while (true) {
    TIDEMARK_TRY_ASSIGN(const bool has_row, stack_->step());
    if (!has_row) {
      return ok();
    }
    const auto frame = number_in(*stack_, 0, path_);
    if (!frame) {
      stack_->reset();
      return frame.error();
    }
    site.frames.push_back(*frame);
  }
}

Status SiteCursor::take_ages(std::int64_t tick, std::vector<SiteAges>& ages) {
  TableCursor& table = tables_.ages;
  return table.take_rows(tick, [&]() -> Status {
    TIDEMARK_TRY_ASSIGN(const std::uint32_t site, table.number(1));
    if (ages.empty() || ages.back().site != site) {
      ages.push_back({site, {}});
    }
    return table.load<SiteAges::Interval>(4, ages.back().intervals.emplace_back());
  });
}

Status SiteCursor::take_shm(std::int64_t tick, std::optional<ShmGrowthReport>& shm) {
  TableCursor& sums = tables_.shm_growth;
  TIDEMARK_TRY(sums.take_rows(tick, [&] { return sums.load<ShmGrowthReport>(2, shm.emplace()); }));
  TableCursor& segments = tables_.shm_segments;
  return segments.take_rows(tick, [&] {
    return shm ? segments.load<GrowingSegment>(3, shm->largest.emplace_back()) : ok();
  });
}

Result<TickCursor> TickCursor::open(Database& database, std::int32_t version) {
  const auto open = [&](std::string_view table, std::string_view rest) {
    return TableCursor::open(database, version, table, rest);
  };
  TIDEMARK_TRY_ASSIGN(auto ticks, open("ticks", "ORDER BY tick"));
  TIDEMARK_TRY_ASSIGN(auto processes, open("processes", "ORDER BY process"));
  TIDEMARK_TRY_ASSIGN(auto process_samples, open("process_samples", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto group_samples, open("group_samples", "ORDER BY tick, who"));
  TIDEMARK_TRY_ASSIGN(auto system_samples, open("system_samples", "ORDER BY tick"));
  TIDEMARK_TRY_ASSIGN(auto gpu_samples, open("gpu_samples", "ORDER BY tick, gpu"));
  TIDEMARK_TRY_ASSIGN(auto gpu_uses, open("gpu_process_samples", "ORDER BY tick, gpu, pid"));
  TIDEMARK_TRY_ASSIGN(auto gpu_states, open("gpu_states", "ORDER BY tick, gpu"));
  TIDEMARK_TRY_ASSIGN(auto markers, open("markers", "ORDER BY marker"));
  TIDEMARK_TRY_ASSIGN(auto events, open("events", "ORDER BY event"));
  TIDEMARK_TRY_ASSIGN(auto losses, open("losses", "ORDER BY loss"));
  TIDEMARK_TRY_ASSIGN(auto interventions, open("interventions", "ORDER BY tick, process, t_s"));
  TIDEMARK_TRY_ASSIGN(auto ended,
                      open("processes", "WHERE died_s IS NOT NULL ORDER BY died_s, process"));
  TIDEMARK_TRY_ASSIGN(auto gpu_names, load_gpu_names(database));
  TIDEMARK_TRY_ASSIGN(auto sites, SiteCursor::open(database, version));
  TIDEMARK_TRY_ASSIGN(auto heap, HeapCursor::open(database, version));
  TIDEMARK_TRY_ASSIGN(auto ledgers, LedgerCursor::open(database, version));
  return TickCursor(
      Tables{std::move(ticks), std::move(processes), std::move(process_samples),
             std::move(group_samples), std::move(system_samples), std::move(gpu_samples),
             std::move(gpu_uses), std::move(gpu_states), std::move(markers), std::move(events),
             std::move(losses), std::move(interventions), std::move(ended)},
      std::move(sites), std::make_unique<HeapCursor>(std::move(heap)),
      std::make_unique<LedgerCursor>(std::move(ledgers)), std::move(gpu_names), database.path());
}

TickCursor::TickCursor(Tables tables, SiteCursor sites, std::unique_ptr<HeapCursor> heap,
                       std::unique_ptr<LedgerCursor> ledgers,
                       std::map<std::int64_t, std::string> gpu_names, std::string path)
    : tables_(std::move(tables)),
      sites_(std::move(sites)),
      heap_(std::move(heap)),
      ledgers_(std::move(ledgers)),
      gpu_names_(std::move(gpu_names)),
      path_(std::move(path)) {}

TickCursor::~TickCursor() = default;
TickCursor::TickCursor(TickCursor&&) noexcept = default;
TickCursor& TickCursor::operator=(TickCursor&&) noexcept = default;

Result<bool> TickCursor::next(Tick& tick) {
  if (tables_.ticks.at_end()) {
    tick_ = std::numeric_limits<std::int64_t>::max();
    return false;
  }
  tick = Tick{};
  const std::int64_t number = tables_.ticks.tick();
  tick_ = number;
  TIDEMARK_TRY(load(tables_.ticks, 2, tick));
  if (last_t_s_ && tick.t_s < *last_t_s_) {
    return malformed("its ticks are not in the order of time");
  }
  TIDEMARK_TRY(take_groups(number, tick));
  TIDEMARK_TRY(take_processes(number, tick.new_processes));
  TIDEMARK_TRY(take_samples(number, tick.processes));
  TIDEMARK_TRY(tables_.system_samples.take_rows(
      number, [&] { return load(tables_.system_samples, 2, tick.system.emplace()); }));
  TIDEMARK_TRY(take_gpus(number, tick.gpus));
  TIDEMARK_TRY(take_facts(tables_.markers, number, tick.markers));
  TIDEMARK_TRY(take_facts(tables_.events, number, tick.events));
  TIDEMARK_TRY(take_facts(tables_.losses, number, tick.losses));
  const auto process_of = [this](std::int64_t process) -> const ProcessKey* {
    const auto key = keys_.find(process);
    return key == keys_.end() ? nullptr : &key->second;
  };
  TIDEMARK_TRY(sites_.take(number, tick.allocations, process_of));
  TIDEMARK_TRY(heap_->take(number, tick.heap, process_of));
  TIDEMARK_TRY(take_of_processes(tables_.interventions, number, tick.interventions, process_of));
  TIDEMARK_TRY(ledgers_->take(number, tick.ledgers, process_of));
  TIDEMARK_TRY(tables_.ticks.advance());
  last_t_s_ = tick.t_s;
  return true;
}

Result<std::optional<ProcessRecord>> TickCursor::next_ended(double before_s) {
  TableCursor& table = tables_.ended;
  if (table.at_end()) {
    return std::optional<ProcessRecord>();
  }
  // One that was not introduced by an earlier tick cannot end yet.
  const Statement& row = table.row();
  if (!keys_.contains(row.integer(1)) || row.integer(2) >= tick_) {
    return std::optional<ProcessRecord>();
  }
  ProcessRecord process;
  TIDEMARK_TRY(load(table, 3, process));
  if (!(process.exited_s.value_or(0.0) < before_s)) {
    return std::optional<ProcessRecord>();
  }
  TIDEMARK_TRY(table.advance());
  return std::optional(std::move(process));
}

// False: a role or kind is not known to us; the record has the default in its place.
template <typename Record>
Result<bool> TickCursor::load_names(const TableCursor& table, int first_column, Record& record) {
  std::optional<std::string> unknown;
  TIDEMARK_TRY(table.load<Record>(first_column, record, &unknown));
  if (unknown) {
    note_unknown(*unknown);
  }
  return !unknown;
}

template <typename Record>
Status TickCursor::load(const TableCursor& table, int first_column, Record& record) {
  TIDEMARK_TRY(load_names(table, first_column, record));
  return ok();
}

void TickCursor::note_unknown(std::string_view name) {
  if (unknown_names_.size() < kMaxUnknownNames) {
    unknown_names_.insert(shorten(escape_text(name), 40));
  }
}

template <typename Record>
Status TickCursor::take_facts(TableCursor& table, std::int64_t tick, std::vector<Record>& records) {
  return table.take_rows(tick, [&]() -> Status {
    Record record;
    TIDEMARK_TRY_ASSIGN(const bool is_known, load_names(table, 3, record));
    if (is_known) {  // an event whose kind we do not know would only mislead
      records.push_back(std::move(record));
    }
    return ok();
  });
}

Status TickCursor::take_processes(std::int64_t tick, std::vector<ProcessRecord>& processes) {
  return tables_.processes.take_rows(tick, [&] {
    ProcessRecord& process = processes.emplace_back();
    Status status = load(tables_.processes, 3, process);
    keys_[tables_.processes.row().integer(1)] = process.key;
    process.exited_s.reset();  // comes when its time comes: next_ended()
    process.exit_status.reset();
    return status;
  });
}

Status TickCursor::take_samples(std::int64_t tick, std::vector<ProcessSample>& samples) {
  TableCursor& table = tables_.process_samples;
  return table.take_rows(tick, [&]() -> Status {
    const auto key = keys_.find(table.row().integer(2));
    if (key == keys_.end() || table.tick() != tick) {
      return malformed("a sample belongs to no process or to no tick");
    }
    ProcessSample& sample = samples.emplace_back();
    sample.key = key->second;
    return table.load<ProcessSample>(3, sample);
  });
}

Status TickCursor::take_groups(std::int64_t tick, Tick& into) {
  TableCursor& table = tables_.group_samples;
  const auto take_group = [&]() -> Status {
    const std::string_view who = table.row().bytes(2);
    if (who == "tree") {
      return load(table, 3, into.tree);
    }
    RoleSample role;
    if (const auto known = role_from_name(who)) {
      role.role = *known;
    } else {
      note_unknown(who);
    }
    TIDEMARK_TRY(load(table, 3, role.sum));
    into.roles.push_back(role);
    return ok();
  };
  TIDEMARK_TRY(table.take_rows(tick, take_group));
  // The table is sorted by name, a tick by role.
  std::sort(into.roles.begin(), into.roles.end(),
            [](const RoleSample& a, const RoleSample& b) { return a.role < b.role; });
  return ok();
}

Status TickCursor::take_gpus(std::int64_t tick, std::vector<GpuSample>& gpus) {
  TableCursor& samples = tables_.gpu_samples;
  TIDEMARK_TRY(samples.take_rows(tick, [&] {
    GpuSample& gpu = gpus.emplace_back();
    const auto name = gpu_names_.find(samples.row().integer(2));
    gpu.name = name == gpu_names_.end() ? std::string() : name->second;
    return load(samples, 2, gpu);
  }));
  TableCursor& uses = tables_.gpu_process_samples;
  TIDEMARK_TRY(uses.take_rows(tick, [&]() -> Status {
    GpuSample* const gpu = find_gpu(gpus, uses.row().integer(2));
    if (gpu == nullptr) {
      return malformed("a GPU's process belongs to no GPU");
    }
    return load(uses, 3, gpu->processes.emplace_back());
  }));
  TableCursor& states = tables_.gpu_states;
  return states.take_rows(tick, [&]() -> Status {
    GpuSample* const gpu = find_gpu(gpus, states.row().integer(2));
    if (gpu == nullptr) {
      return malformed("the state of a GPU belongs to no GPU");
    }
    return states.load<GpuState>(3, *gpu);
  });
}

Error TickCursor::malformed(std::string_view why) const { return damaged_file(path_, why); }

}  // namespace tidemark::recording
