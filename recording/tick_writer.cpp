// SPDX-License-Identifier: Apache-2.0
#include "recording/tick_writer.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "recording/statements.h"

namespace tidemark::recording {

Result<TickWriter> TickWriter::prepare(Database& database) {
  Preparer prepare(database);
  // "OR REPLACE": should a tick ever name a process twice, the last word counts.
  auto tick = prepare("INSERT INTO ticks VALUES(?,?,?,?,?,NULL)");
  auto lateness = prepare("UPDATE ticks SET write_late_s = ?1 WHERE tick = ?2");
  auto process = prepare("INSERT INTO processes VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  auto process_end =
      prepare("UPDATE processes SET died_s = ?1, exit_status = ?2 WHERE process = ?3");
  auto process_sample =
      prepare("INSERT OR REPLACE INTO process_samples VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  auto group = prepare("INSERT OR REPLACE INTO group_samples VALUES(?,?,?,?,?,?,?,?,?)");
  auto system = prepare("INSERT INTO system_samples VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  auto gpu = prepare("INSERT OR REPLACE INTO gpus VALUES(?,?)");
  auto gpu_sample = prepare("INSERT OR REPLACE INTO gpu_samples VALUES(?,?,?,?)");
  auto gpu_process = prepare("INSERT OR REPLACE INTO gpu_process_samples VALUES(?,?,?,?)");
  auto gpu_state = prepare("INSERT OR REPLACE INTO gpu_states VALUES(?,?,?,?,?,?)");
  auto marker = prepare("INSERT INTO markers VALUES(NULL,?,?,?,?,?,?,?)");
  auto event = prepare("INSERT INTO events VALUES(NULL,?,?,?,?,?,?,?)");
  auto loss = prepare("INSERT INTO losses VALUES(NULL,?,?,?,?)");
  auto sites = SiteWriter::prepare(database);
  if (prepare.error() || !sites) {
    return prepare.error() ? *prepare.error() : sites.error();
  }
  return TickWriter(
      Statements{std::move(*tick), std::move(*lateness), std::move(*process),
                 std::move(*process_end), std::move(*process_sample), std::move(*group),
                 std::move(*system), std::move(*gpu), std::move(*gpu_sample),
                 std::move(*gpu_process), std::move(*gpu_state), std::move(*marker),
                 std::move(*event), std::move(*loss)},
      std::move(*sites));
}

Status TickWriter::write(const Tick& tick) {
  ++tick_;
  t_s_ = tick.t_s;
  Status status = insert(statements_.tick, tick, tick_);
  // Each step runs only when all before it succeeded.
  const auto then = [&status](auto&& step) {
    if (status) {
      status = step();
    }
  };
  then([&] { return write_group("tree", tick.tree); });
  then([&] {
    return for_each(tick.roles,
                    [&](const auto& role) { return write_group(role_name(role.role), role.sum); });
  });
  then([&] {
    return for_each(tick.new_processes,
                    [&](const auto& process) { return write_process(process); });
  });
  then([&] {
    return for_each(tick.processes, [&](const auto& sample) { return write_sample(sample); });
  });
  then([&] { return tick.system ? insert(statements_.system_sample, *tick.system, tick_) : ok(); });
  then([&] { return for_each(tick.gpus, [&](const auto& gpu) { return write_gpu(gpu); }); });
  const auto append = [&](Statement& statement, const auto& records) {
    then([&] {
      return for_each(records,
                      [&](const auto& record) { return insert(statement, record, tick_); });
    });
  };
  append(statements_.marker, tick.markers);
  append(statements_.event, tick.events);
  append(statements_.loss, tick.losses);
  then([&] {
    return sites_.write(tick.allocations, tick_,
                        [this](const ProcessKey& key) { return traced_number_of(key); });
  });
  for (const TraceSample& trace : tick.allocations.traces) {
    if (trace.has_ended) {
      traced_numbers_.erase(trace.key);
    }
  }
  return status;
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
  const auto number = number_of(process.key);
  if (!number) {
    return number.error();
  }
  RowBinder bind(statements_.process_end);
  bind(process.died_s);
  bind(process.exit_status);
  bind(*number);
  process_numbers_.erase(process.key);
  return statements_.process_end.run();
}

Status TickWriter::write_sample(const ProcessSample& sample) {
  const auto number = number_of(sample.key);
  if (!number) {
    return number.error();
  }
  return insert(statements_.process_sample, sample, tick_, *number);
}

Status TickWriter::write_group(std::string_view who, const GroupSample& sum) {
  return insert(statements_.group_sample, sum, tick_, who);
}

Status TickWriter::write_gpu(const GpuSample& gpu) {
  const auto known = gpu_names_.find(gpu.index);
  if (known == gpu_names_.end() || known->second != gpu.name) {
    RowBinder bind(statements_.gpu);
    bind(gpu.index);
    bind(gpu.name);
    if (Status status = statements_.gpu.run(); !status) {
      return status;
    }
    gpu_names_[gpu.index] = gpu.name;
  }
  if (Status status = insert(statements_.gpu_sample, gpu, tick_); !status) {
    return status;
  }
  RowBinder bind_state(statements_.gpu_state);
  bind_state(tick_);
  bind_state(gpu.index);
  visit_state_columns(bind_state, gpu);
  if (Status status = statements_.gpu_state.run(); !status) {
    return status;
  }
  return for_each(gpu.processes, [&](const auto& use) {
    return insert(statements_.gpu_process_sample, use, tick_, gpu.index);
  });
}

// A process that nobody introduced (its tick was dropped) still gets a row, so that every sample
// has a process.
Result<std::int64_t> TickWriter::number_of(const ProcessKey& key) {
  const auto known = process_numbers_.find(key);
  if (known != process_numbers_.end()) {
    return known->second;
  }
  ProcessRecord process;
  process.key = key;
  process.born_s = t_s_;
  if (const Status status = write_process(process); !status) {
    return status.error();
  }
  return last_process_;
}

// The last look at a traced process comes after its end.
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
