// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/records.h"
#include "recording/sqlite.h"

// How the fields of each record map to the columns of its table: one list per record, walked by
// RowBinder on the way in and by RowLoader on the way out. The order is that of schema.cpp.
namespace tidemark::recording {

template <typename Row, typename Record>
concept RowOf = std::same_as<std::remove_const_t<Row>, Record>;

template <typename Visitor, RowOf<RunInfo> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.tool_version), visit(row.host), visit(row.kernel), visit(row.command);
  visit(row.format), visit(row.start_wall_ns), visit(row.physical_bytes), visit(row.limit_bytes);
  visit(row.limit_source), visit(row.interval_s), visit(row.time_is_steps);
}

template <typename Visitor, RowOf<Tick> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.late_s), visit(row.step), visit(row.epoch);
}

template <typename Visitor, RowOf<ProcessRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.key.pid), visit(row.key.start_ticks), visit(row.ppid), visit(row.role);
  visit(row.rank), visit(row.comm), visit(row.argv), visit(row.born_s), visit(row.died_s);
  visit(row.exit_status);
}

template <typename Visitor, RowOf<ProcessSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.rss_bytes), visit(row.rss_anon_bytes), visit(row.rss_file_bytes);
  visit(row.rss_shmem_bytes), visit(row.swap_bytes), visit(row.hwm_bytes), visit(row.pss_bytes);
  visit(row.pss_footprint_bytes), visit(row.uss_bytes), visit(row.pss_age_s), visit(row.threads);
  visit(row.state);
}

template <typename Visitor, RowOf<GroupSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.processes), visit(row.rss_bytes), visit(row.swap_bytes), visit(row.footprint_bytes);
  visit(row.footprint_held), visit(row.pss_bytes), visit(row.unreadable);
}

template <typename Visitor, RowOf<SystemSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.total_bytes), visit(row.available_bytes), visit(row.swap_total_bytes);
  visit(row.swap_free_bytes), visit(row.shmem_bytes), visit(row.psi_some_avg10);
  visit(row.psi_full_avg10), visit(row.cgroup_used_bytes), visit(row.cgroup_limit_bytes);
  visit(row.cgroup_psi_some_avg10), visit(row.cgroup_psi_full_avg10);
  visit(row.dev_shm_bytes), visit(row.dev_shm_unheld_bytes), visit(row.dev_shm_segments);
}

template <typename Visitor, RowOf<GpuSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.index), visit(row.used_bytes), visit(row.total_bytes);
}

// The table gpu_states, which came later than gpu_samples.
template <typename Visitor, RowOf<GpuSample> Row>
void visit_state_columns(Visitor& visit, Row& row) {
  visit(row.reserved_bytes), visit(row.busy_percent), visit(row.age_s), visit(row.is_lost);
}

template <typename Visitor, RowOf<GpuProcessUse> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.pid), visit(row.used_bytes);
}

template <typename Visitor, RowOf<MarkerRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.key.pid), visit(row.key.start_ticks), visit(row.kind);
  visit(row.value), visit(row.name);
}

template <typename Visitor, RowOf<EventRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.kind), visit(row.key.pid), visit(row.key.start_ticks);
  visit(row.detail), visit(row.count);
}

template <typename Visitor, RowOf<LossRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.what), visit(row.count);
}

template <typename Visitor, RowOf<ModuleRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.path), visit(row.build_id);
}

template <typename Visitor, RowOf<FrameRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.kind), visit(row.module), visit(row.offset), visit(row.function), visit(row.file);
  visit(row.line), visit(row.is_inlined);
}

template <typename Visitor, RowOf<SiteRecord> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.kind), visit(row.is_truncated);
}

template <typename Visitor, RowOf<SiteSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.live_bytes), visit(row.live_blocks), visit(row.alloc_bytes), visit(row.alloc_blocks);
  visit(row.peak_bytes), visit(row.temporary_blocks), visit(row.resident_bytes);
}

template <typename Visitor, RowOf<SiteBirths::Birth> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.in_steps), visit(row.from), visit(row.bytes);
}

template <typename Visitor, RowOf<TraceSample> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.mode), visit(row.sample_every_bytes), visit(row.sites);
  visit(row.live_bytes), visit(row.live_blocks), visit(row.rest_bytes), visit(row.rest_blocks);
  visit(row.freed_blocks), visit(row.unknown_frees), visit(row.dropped_records);
  visit(row.truncated_stacks), visit(row.empty_stacks), visit(row.file_bytes);
  visit(row.private_bytes), visit(row.has_ended), visit(row.problem);
}

template <typename Visitor, RowOf<MemoryAccount> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.t_s), visit(row.blocks_bytes), visit(row.slack_bytes), visit(row.unhooked_bytes);
  visit(row.tracer_bytes);
}

template <typename Visitor, RowOf<ShmGrowthReport> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.grown_bytes), visit(row.segments);
}

template <typename Visitor, RowOf<GrowingSegment> Row>
void visit_columns(Visitor& visit, Row& row) {
  visit(row.path), visit(row.bytes), visit(row.grown_bytes), visit(row.held), visit(row.maker);
}

// Binds values to consecutive parameters of a statement.
class RowBinder {
 public:
  explicit RowBinder(Statement& statement) : statement_(statement) {}

  template <std::integral T>
  void operator()(T value) {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    // SQLite's integers are signed: what does not fit is kept as the largest that does.
    const bool fits = std::cmp_less_equal(value, kLargest);
    statement_.bind(++index_, fits ? static_cast<std::int64_t>(value) : kLargest);
  }
  void operator()(bool value) { statement_.bind(++index_, std::int64_t{value}); }
  void operator()(double value) { statement_.bind(++index_, value); }
  void operator()(char value) { statement_.bind_bytes(++index_, std::string_view(&value, 1)); }
  void operator()(std::string_view value) { statement_.bind_bytes(++index_, value); }
  void operator()(const std::string& value) { statement_.bind_bytes(++index_, value); }
  void operator()(Role value) { (*this)(role_name(value)); }
  void operator()(MarkerKind value) { (*this)(marker_name(value)); }
  void operator()(EventKind value) { (*this)(event_name(value)); }
  void operator()(AllocationKind value) { (*this)(allocation_kind_name(value)); }
  void operator()(FrameKind value) { (*this)(frame_kind_name(value)); }
  void operator()(TraceMode value) { (*this)(trace_mode_name(value)); }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    if (value) {
      (*this)(*value);
    } else {
      statement_.bind_null(++index_);
    }
  }

 private:
  Statement& statement_;
  int index_ = 0;
};

// Loads consecutive columns of the current row. The file is a stranger's: a value of the wrong
// type or out of range makes is_valid() false, an unknown name is kept in unknown_name().
class RowLoader {
 public:
  RowLoader(const Statement& statement, int first_column)
      : statement_(statement), column_(first_column) {}

  template <std::integral T>
  void operator()(T& value) {
    const std::int64_t stored = statement_.integer(column_);
    check(statement_.is_integer(column_++) && std::in_range<T>(stored));
    value = static_cast<T>(stored);
  }
  void operator()(bool& value) {
    check(statement_.is_integer(column_));
    value = statement_.integer(column_++) != 0;
  }
  void operator()(double& value) {
    value = statement_.real(column_);
    check(statement_.is_number(column_++) && std::isfinite(value));
  }
  void operator()(char& value) {
    const std::string_view text = statement_.bytes(column_++);
    check(text.size() == 1);
    value = text.empty() ? '?' : text.front();
  }
  void operator()(std::string& value) {
    check(!statement_.is_null(column_));
    value = statement_.bytes(column_++);
  }
  void operator()(Role& value) { named(value, role_from_name(statement_.bytes(column_))); }
  void operator()(MarkerKind& value) { named(value, marker_from_name(statement_.bytes(column_))); }
  void operator()(EventKind& value) { named(value, event_from_name(statement_.bytes(column_))); }
  void operator()(AllocationKind& value) {
    named(value, allocation_kind_from_name(statement_.bytes(column_)));
  }
  void operator()(FrameKind& value) {
    named(value, frame_kind_from_name(statement_.bytes(column_)));
  }
  void operator()(TraceMode& value) {
    named(value, trace_mode_from_name(statement_.bytes(column_)));
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    if (statement_.is_null(column_)) {
      value.reset();
      ++column_;
    } else {
      (*this)(value.emplace());
    }
  }

  bool is_valid() const { return is_valid_; }
  const std::optional<std::string>& unknown_name() const { return unknown_name_; }

 private:
  void check(bool condition) { is_valid_ = is_valid_ && condition; }
  template <typename Enum>
  void named(Enum& value, std::optional<Enum> found) {
    if (found) {
      value = *found;
    } else {
      unknown_name_ = statement_.bytes(column_);
    }
    ++column_;
  }

  const Statement& statement_;
  int column_;
  bool is_valid_ = true;
  std::optional<std::string> unknown_name_;
};

}  // namespace tidemark::recording
