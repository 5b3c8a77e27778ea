// SPDX-License-Identifier: Apache-2.0
#include "report/tick_csv.h"

#include <concepts>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "common/record_fields.h"
#include "common/records.h"
#include "common/text.h"
#include "recording/import/csv_line.h"

namespace tidemark::report {
namespace {

// Appends the fields of one row.
class Row {
 public:
  explicit Row(std::string& out) : out_(out) {}
  ~Row() { out_ += '\n'; }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  template <typename T>
  requires std::integral<T> || std::floating_point<T> Row& add(T value) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", value);
    return *this;
  }
  Row& add(char value) { return add(std::string_view(&value, 1)); }
  Row& add(std::string_view text) {
    separate();
    recording::append_csv_text(out_, text);
    return *this;
  }
  template <typename T>
  Row& add(const std::optional<T>& value) {
    return value ? add(*value) : unknown(1);
  }
  Row& unknown(int fields) {
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

void add_process(std::string& out, const Tick& tick, const ProcessSample& sample,
                 const ProcessRecord* record) {
  Row row(out);
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

void add_group(std::string& out, const Tick& tick, std::string_view scope, std::string_view role,
               const GroupSample& sum) {
  Row row(out);
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
    add_process(out, tick, sample, lookup(sample.key));
  }
  for (const RoleSample& role : tick.roles) {
    start_row();
    add_group(out, tick, "role", role_name(role.role), role.sum);
  }
  start_row();
  add_group(out, tick, "tree", "", tick.tree);
}

}  // namespace tidemark::report
