// SPDX-License-Identifier: Apache-2.0
#include "report/tick_formats.h"

#include <concepts>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/json_writer.h"
#include "common/record_fields.h"
#include "common/records.h"
#include "common/text.h"
#include "recording/import/csv_line.h"

namespace tidemark::report {
namespace {

constexpr int kSchema = 1;

std::optional<double> seconds(double t_s, bool time_is_steps) {
  return time_is_steps ? std::nullopt : std::optional(t_s);
}

void begin_line(JsonWriter& json, std::string_view kind, std::optional<double> t_s) {
  json.begin_object().field("schema", kSchema).field("kind", kind).field("t_s", t_s);
}

void add_group(JsonWriter& json, std::string_view count_name, const Tick& tick,
               const GroupSample& group) {
  json.begin_object()
      .field(count_name, group.processes)
      .field("rss_bytes", known_rss_bytes(group))
      .field("footprint_bytes", group.footprint_bytes)
      .field("footprint_held", group.footprint_held)
      .field("pss_bytes", group.pss_bytes)
      .field("swap_bytes", known_swap_bytes(tick, group))
      .field("unreadable", group.unreadable)
      .end_object();
}

void add_identity(JsonWriter& json, const ProcessKey& key, const ProcessLookup& lookup) {
  json.field("pid", key.pid).field("start_ticks", key.start_ticks);
  const ProcessRecord* record = lookup(key);
  if (record == nullptr) {
    json.field("ppid", nullptr).field("role", nullptr).field("comm", nullptr);
    return;
  }
  json.field("ppid", record->ppid).field("role", role_name(record->role));
  if (record->rank) {
    json.field("rank", *record->rank);
  }
  json.field("comm", record->comm);
}

template <typename T>
void add_value(JsonWriter& json, std::string_view name, const T& value) {
  json.field(name, value);
}
void add_value(JsonWriter& json, std::string_view name, const char& value) {
  json.field(name, std::string_view(&value, 1));
}

template <typename Record>
void add_fields(JsonWriter& json, const Record& record) {
  visit_output_fields<Record>(
      [&](const auto& field) { add_value(json, field.name, record.*field.member); });
}

void add_process(JsonWriter& json, const ProcessSample& sample, const ProcessLookup& lookup) {
  json.begin_object();
  add_identity(json, sample.key, lookup);
  visit_output_fields<ProcessSample>([&](const auto& field) {
    if (field.name == "pss_bytes") {  // after what /proc/PID/status says, from which it is made
      json.field("footprint_bytes", sample.footprint_bytes());
    }
    add_value(json, field.name, sample.*field.member);
  });
  json.end_object();
}

void add_gpu(JsonWriter& json, const GpuSample& gpu) {
  json.begin_object()
      .field("index", gpu.index)
      .field("label", gpu_label(gpu.index))
      .field("name", gpu.name)
      .field("used_bytes", gpu.used_bytes)
      .field("total_bytes", gpu.total_bytes)
      .field("reserved_bytes", gpu.reserved_bytes)
      .field("busy_percent", gpu.busy_percent)
      .field("age_s", gpu.age_s)
      .field("lost", gpu.is_lost)
      .array("processes", gpu.processes,
             [&](const GpuProcessUse& use) {
               json.begin_object()
                   .field("pid", use.pid)
                   .field("used_bytes", use.used_bytes)
                   .end_object();
             })
      .end_object();
}

void add_marker(JsonWriter& json, const MarkerRecord& marker, bool time_is_steps) {
  json.begin_object()
      .field("t_s", seconds(marker.t_s, time_is_steps))
      .field("marker", marker_name(marker.kind));
  if (marker.key.pid > 0) {
    json.field("pid", marker.key.pid);
  }
  const bool is_count = marker.kind == MarkerKind::kStep || marker.kind == MarkerKind::kEpoch;
  if (!is_count) {
    json.field("name", marker.name);
  }
  if (is_count || marker.kind == MarkerKind::kGauge) {
    json.field("value", marker.value);
  }
  json.end_object();
}

void add_losses(JsonWriter& json, const std::vector<LossRecord>& losses) {
  json.key("losses").begin_object();
  for (const LossRecord& loss : losses) {
    json.field(loss.what.text(), loss.count);
  }
  json.end_object();
}

void add_course(JsonWriter& json, const Course& course, bool time_is_steps) {
  json.field("start_bytes", course.first_bytes)
      .field("end_bytes", course.last_bytes)
      .field("peak_bytes", course.peak_bytes)
      .field("peak_s", seconds(course.peak_s, time_is_steps))
      .field("growth_bytes", course.growth_bytes())
      .field("growth_bytes_per_s", time_is_steps ? std::nullopt : course.growth_bytes_per_s())
      .field("growth_bytes_per_step", course.growth_bytes_per_step());
}

void add_course_or_null(JsonWriter& json, std::string_view name, const Course& course,
                        bool time_is_steps) {
  json.object_or_null(name, course.seen ? &course : nullptr,
                      [&](const Course& seen) { add_course(json, seen, time_is_steps); });
}

// Appends the fields of one row.
class CsvRow {
 public:
  explicit CsvRow(std::string& out) : out_(out) {}
  ~CsvRow() { out_ += '\n'; }
  CsvRow(const CsvRow&) = delete;
  CsvRow& operator=(const CsvRow&) = delete;

  template <typename T>
  requires std::integral<T> || std::floating_point<T> CsvRow& add(T value) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", value);
    return *this;
  }
  CsvRow& add(char value) { return add(std::string_view(&value, 1)); }
  CsvRow& add(std::string_view text) {
    separate();
    recording::append_csv_text(out_, text);
    return *this;
  }
  template <typename T>
  CsvRow& add(const std::optional<T>& value) {
    return value ? add(*value) : unknown(1);
  }
  CsvRow& unknown(int fields) {
    for (int i = 0; i < fields; ++i) {
      separate();
    }
    return *this;
  }

 private:
  void separate() {
    if (!is_first_) {
      out_ += ',';
    }
    is_first_ = false;
  }

  std::string& out_;
  bool is_first_ = true;
};

void add_process_row(std::string& out, const Tick& tick, const ProcessSample& sample,
                     const ProcessRecord* record) {
  CsvRow row(out);
  row.add(tick.step).add(tick.epoch).add("process");
  row.add(sample.key.pid).add(sample.key.start_ticks);
  if (record != nullptr) {
    row.add(record->ppid).add(role_name(record->role)).add(record->rank);
    row.add(escape_text(record->comm));
  } else {
    row.unknown(4);
  }
  row.unknown(1);
  visit_output_fields<ProcessSample>([&](const auto& field) { row.add(sample.*field.member); });
  row.add(sample.footprint_bytes());
}

void add_group_row(std::string& out, const Tick& tick, std::string_view scope,
                   std::string_view role, const GroupSample& sum) {
  CsvRow row(out);
  row.add(tick.step).add(tick.epoch).add(scope);
  row.unknown(3).add(role).unknown(2);
  row.add(sum.processes);
  visit_output_fields<ProcessSample>([&](const auto& field) {
    if (field.name == "rss_bytes") {
      row.add(known_rss_bytes(sum));
    } else if (field.name == "swap_bytes") {
      row.add(known_swap_bytes(tick, sum));
    } else if (field.name == "pss_bytes") {
      row.add(sum.pss_bytes);
    } else {
      row.unknown(1);
    }
  });
  row.add(sum.footprint_bytes);
}

}  // namespace

std::string run_json(const RunInfo& info) {
  JsonWriter json;
  begin_line(json, "run", seconds(0.0, info.time_is_steps));
  add_fields(json, info);
  return json.end_object().take();
}

std::string tick_json(const Tick& tick, const ProcessLookup& lookup, bool time_is_steps) {
  JsonWriter json;
  begin_line(json, "tick", seconds(tick.t_s, time_is_steps));
  json.field("late_s", tick.late_s).field("step", tick.step).field("epoch", tick.epoch);
  json.key("tree");
  add_group(json, "processes", tick, tick.tree);
  json.key("roles").begin_object();
  for (const RoleSample& role : tick.roles) {
    json.key(role_name(role.role));
    add_group(json, "count", tick, role.sum);
  }
  json.end_object()
      .array("processes", tick.processes,
             [&](const ProcessSample& sample) { add_process(json, sample, lookup); })
      .object_or_null("system", tick.system,
                      [&](const SystemSample& system) { add_fields(json, system); })
      .array("gpus", tick.gpus, [&](const GpuSample& gpu) { add_gpu(json, gpu); })
      .array("markers", tick.markers,
             [&](const MarkerRecord& marker) { add_marker(json, marker, time_is_steps); });
  add_losses(json, tick.losses);
  return json.end_object().take();
}

std::string event_json(const EventRecord& event, const ProcessLookup& lookup, bool time_is_steps) {
  JsonWriter json;
  begin_line(json, "event", seconds(event.t_s, time_is_steps));
  json.field("event", event_name(event.kind));
  if (event.key.pid > 0) {
    add_identity(json, event.key, lookup);
  }
  json.field("detail", event.detail);
  if (event.kind == EventKind::kOomKill) {
    json.field("count", event.count);
  }
  return json.end_object().take();
}

std::string summary_json(const RunSummary& summary, bool time_is_steps) {
  JsonWriter json;
  begin_line(json, "summary", seconds(summary.last_s(), time_is_steps));
  json.key("summary")
      .begin_object()
      .field("ticks", summary.ticks())
      .field("worst_late_s", summary.worst_late_s())
      .field("births", summary.starts())
      .field("deaths", summary.exits())
      .field("oom_kills", summary.oom_kills());
  add_course_or_null(json, "footprint", summary.footprint(), time_is_steps);
  add_course_or_null(json, "rss", summary.rss(), time_is_steps);
  json.key("roles").begin_object();
  for (const auto& role : summary.roles()) {
    if (role.memory.seen) {
      json.key(role_name(role.role)).begin_object().field("most_processes", role.most_processes);
      add_course(json, role.memory, time_is_steps);
      json.end_object();
    }
  }
  json.end_object().end_object();
  add_losses(json, summary.losses());
  return json.end_object().take();
}

std::string csv_header(bool time_is_steps) {
  std::string header = time_is_steps ? "" : "t_s,";
  header += "step,epoch,scope,pid,start_ticks,ppid,role,rank,comm,processes,";
  visit_output_fields<ProcessSample>([&](const auto& field) {
    header += field.name;
    header += ',';
  });
  return header + "footprint_bytes\n";
}

void append_tick_csv(std::string& out, const Tick& tick, const ProcessLookup& lookup,
                     bool time_is_steps) {
  const auto start_row = [&] {
    if (!time_is_steps) {
      fmt::format_to(std::back_inserter(out), "{},", tick.t_s);
    }
  };
  for (const ProcessSample& sample : tick.processes) {
    start_row();
    add_process_row(out, tick, sample, lookup(sample.key));
  }
  for (const RoleSample& role : tick.roles) {
    start_row();
    add_group_row(out, tick, "role", role_name(role.role), role.sum);
  }
  start_row();
  add_group_row(out, tick, "tree", "", tick.tree);
}

}  // namespace tidemark::report
