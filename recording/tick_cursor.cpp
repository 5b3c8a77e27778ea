// SPDX-License-Identifier: Apache-2.0
#include "recording/tick_cursor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "recording/columns.h"

namespace tidemark::recording {
namespace {

// Names that a hostile file makes up are kept up to here.
constexpr std::size_t kMaxUnknownNames = 20;
constexpr std::int32_t kGpuStatesSinceVersion = 3;  // of the schema

Result<std::map<std::int64_t, std::string>> load_gpu_names(Database& database) {
  auto query = database.prepare("SELECT gpu, name FROM gpus");
  if (!query) {
    return query.error();
  }
  std::map<std::int64_t, std::string> names;
  while (true) {
    const auto row = query->step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      return names;
    }
    names[query->integer(0)] = query->bytes(1);
  }
}

GpuSample* find_gpu(std::vector<GpuSample>& gpus, std::int64_t index) {
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const GpuSample& candidate) {
    return std::int64_t{candidate.index} == index;
  });
  return gpu == gpus.end() ? nullptr : &*gpu;
}

}  // namespace

Result<TickCursor> TickCursor::open(Database& database, std::int32_t version) {
  CursorOpener open(database);
  auto ticks = open("ticks", "tick");
  auto processes = open("processes", "process");
  auto process_samples = open("process_samples", "tick, process");
  auto group_samples = open("group_samples", "tick, who");
  auto system_samples = open("system_samples", "tick");
  auto gpu_samples = open("gpu_samples", "tick, gpu");
  auto gpu_process_samples = open("gpu_process_samples", "tick, gpu, pid");
  auto markers = open("markers", "marker");
  auto events = open("events", "event");
  auto losses = open("losses", "loss");
  auto ended = open.open(
      "SELECT process, * FROM processes WHERE died_s IS NOT NULL ORDER BY died_s, process");
  if (open.error()) {
    return *open.error();
  }
  auto gpu_names = load_gpu_names(database);
  if (!gpu_names) {
    return gpu_names.error();
  }
  TickCursor cursor(
      Tables{std::move(*ticks), std::move(*processes), std::move(*process_samples),
             std::move(*group_samples), std::move(*system_samples), std::move(*gpu_samples),
             std::move(*gpu_process_samples), std::move(*markers), std::move(*events),
             std::move(*losses), std::move(*ended)},
      std::move(*gpu_names), database.path());
  if (version >= SiteCursor::kSinceVersion) {
    auto sites = SiteCursor::open(database, version);
    if (!sites) {
      return sites.error();
    }
    cursor.sites_ = *std::move(sites);
  }
  if (version >= kGpuStatesSinceVersion) {
    cursor.gpu_states_ = open("gpu_states", "tick, gpu");
    if (open.error()) {
      return *open.error();
    }
  }
  return cursor;
}

Result<bool> TickCursor::next(Tick& tick) {
  if (tables_.ticks.at_end()) {
    tick_ = std::numeric_limits<std::int64_t>::max();
    return false;
  }
  tick = Tick{};
  const std::int64_t number = tables_.ticks.tick();
  tick_ = number;
  Status status = load(tables_.ticks, 2, tick);
  if (status && last_t_s_ && tick.t_s < *last_t_s_) {
    status = malformed("its ticks are not in the order of time");
  }
  // Each step runs only when all before it succeeded.
  const auto then = [&status](auto&& step) {
    if (status) {
      status = step();
    }
  };
  then([&] { return take_groups(number, tick); });
  then([&] { return take_processes(number, tick.new_processes); });
  then([&] { return take_samples(number, tick.processes); });
  then([&] { return take_system(number, tick.system); });
  then([&] { return take_gpus(number, tick.gpus); });
  then([&] { return take_facts(tables_.markers, number, tick.markers); });
  then([&] { return take_facts(tables_.events, number, tick.events); });
  then([&] { return take_facts(tables_.losses, number, tick.losses); });
  then([&] { return take_sites(number, tick.allocations); });
  then([&] { return tables_.ticks.advance(); });
  if (!status) {
    return status.error();
  }
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
  if (const Status status = load(table, 3, process); !status) {
    return status.error();
  }
  if (!(process.died_s.value_or(0.0) < before_s)) {
    return std::optional<ProcessRecord>();
  }
  if (const Status status = table.advance(); !status) {
    return status.error();
  }
  return std::optional(std::move(process));
}

// False: a role or kind is not known to us; the record has the default in its place.
template <typename Record>
Result<bool> TickCursor::load_names(const TableCursor& table, int first_column, Record& record) {
  RowLoader loader(table.row(), first_column);
  visit_columns(loader, record);
  if (!loader.is_valid()) {
    return malformed("a column holds a value of the wrong type");
  }
  if (!loader.unknown_name()) {
    return true;
  }
  note_unknown(*loader.unknown_name());
  return false;
}

template <typename Record>
Status TickCursor::load(const TableCursor& table, int first_column, Record& record) {
  const auto known = load_names(table, first_column, record);
  return known ? ok() : Status(known.error());
}

void TickCursor::note_unknown(std::string_view name) {
  if (unknown_names_.size() < kMaxUnknownNames) {
    unknown_names_.insert(shorten(escape_text(name), 40));
  }
}

template <typename Record>
Status TickCursor::take_facts(TableCursor& table, std::int64_t tick, std::vector<Record>& records) {
  return table.take_rows(tick, [&](const Statement&) -> Status {
    Record record;
    const auto known = load_names(table, 3, record);
    if (!known) {
      return known.error();
    }
    if (*known) {  // an event whose kind we do not know would only mislead
      records.push_back(std::move(record));
    }
    return ok();
  });
}

Status TickCursor::take_processes(std::int64_t tick, std::vector<ProcessRecord>& processes) {
  return tables_.processes.take_rows(tick, [&](const Statement& row) {
    ProcessRecord& process = processes.emplace_back();
    Status status = load(tables_.processes, 3, process);
    keys_[row.integer(1)] = process.key;
    process.died_s.reset();  // comes when its time comes: next_ended()
    process.exit_status.reset();
    return status;
  });
}

Status TickCursor::take_samples(std::int64_t tick, std::vector<ProcessSample>& samples) {
  return tables_.process_samples.take_rows(tick, [&](const Statement& row) -> Status {
    const auto key = keys_.find(row.integer(2));
    if (key == keys_.end() || tables_.process_samples.tick() != tick) {
      return malformed("a sample belongs to no process or to no tick");
    }
    ProcessSample& sample = samples.emplace_back();
    sample.key = key->second;
    return load(tables_.process_samples, 3, sample);
  });
}

Status TickCursor::take_groups(std::int64_t tick, Tick& into) {
  Status status = tables_.group_samples.take_rows(tick, [&](const Statement& row) -> Status {
    const std::string_view who = row.bytes(2);
    if (who == "tree") {
      return load(tables_.group_samples, 3, into.tree);
    }
    RoleSample role;
    if (const auto known = role_from_name(who)) {
      role.role = *known;
    } else {
      note_unknown(who);
    }
    Status loaded = load(tables_.group_samples, 3, role.sum);
    into.roles.push_back(role);
    return loaded;
  });
  // The table is sorted by name; the world sorts by role.
  std::sort(into.roles.begin(), into.roles.end(),
            [](const RoleSample& a, const RoleSample& b) { return a.role < b.role; });
  return status;
}

Status TickCursor::take_system(std::int64_t tick, std::optional<SystemSample>& system) {
  return tables_.system_samples.take_rows(
      tick, [&](const Statement&) { return load(tables_.system_samples, 2, system.emplace()); });
}

Status TickCursor::take_gpus(std::int64_t tick, std::vector<GpuSample>& gpus) {
  Status status = tables_.gpu_samples.take_rows(tick, [&](const Statement& row) {
    GpuSample& gpu = gpus.emplace_back();
    const auto name = gpu_names_.find(row.integer(2));
    gpu.name = name == gpu_names_.end() ? std::string() : name->second;
    return load(tables_.gpu_samples, 2, gpu);
  });
  if (!status) {
    return status;
  }
  status = tables_.gpu_process_samples.take_rows(tick, [&](const Statement& row) -> Status {
    GpuSample* const gpu = find_gpu(gpus, row.integer(2));
    if (gpu == nullptr) {
      return malformed("a GPU's process belongs to no GPU");
    }
    return load(tables_.gpu_process_samples, 3, gpu->processes.emplace_back());
  });
  return status ? take_gpu_states(tick, gpus) : status;
}

Status TickCursor::take_gpu_states(std::int64_t tick, std::vector<GpuSample>& gpus) {
  if (!gpu_states_) {
    return ok();
  }
  return gpu_states_->take_rows(tick, [&](const Statement& row) -> Status {
    GpuSample* const gpu = find_gpu(gpus, row.integer(2));
    if (gpu == nullptr) {
      return malformed("the state of a GPU belongs to no GPU");
    }
    RowLoader loader(row, 3);
    visit_state_columns(loader, *gpu);
    return loader.is_valid() ? ok() : Status(malformed("a column holds a value of the wrong type"));
  });
}

Status TickCursor::take_sites(std::int64_t tick, AllocationFacts& facts) {
  if (!sites_) {
    return ok();
  }
  return sites_->take(tick, facts, [this](std::int64_t process) -> const ProcessKey* {
    const auto key = keys_.find(process);
    return key == keys_.end() ? nullptr : &key->second;
  });
}

Error TickCursor::malformed(std::string_view why) const {
  return Error{Errc::kMalformed, fmt::format("{} is damaged: {}", path_, why)};
}

}  // namespace tidemark::recording
