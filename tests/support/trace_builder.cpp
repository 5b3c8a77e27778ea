// SPDX-License-Identifier: Apache-2.0
#include "tests/support/trace_builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/check.h"

namespace tidemark::tests {
namespace {

using wire::Table;

template <typename Row>
std::string bytes_of(const std::deque<Row>& rows) {
  std::string bytes;
  bytes.reserve(rows.size() * sizeof(Row));
  for (const Row& row : rows) {
    bytes.append(reinterpret_cast<const char*>(&row), sizeof row);
  }
  return bytes;
}

bool put_into(wire::LiveBucket& bucket, std::uint64_t address, const wire::LiveRecord& record) {
  for (std::size_t i = 0; i < wire::kSlotsPerBucket; ++i) {
    if (bucket.address[i] == wire::kEmptySlot) {
      bucket.address[i] = address;
      bucket.record[i] = record;
      return true;
    }
  }
  return false;
}

}  // namespace

TraceBuilder::TraceBuilder() : header_(std::make_unique<wire::Header>()) {
  header_->magic = wire::kMagic;
  header_->format_version = wire::kFormatVersion;
  header_->header_bytes = wire::kHeaderBytes;
  header_->pid = 100;
  header_->parent_pid = 99;
  header_->start_ticks = 5000;
  header_->pid_namespace = 4026531836;
  header_->created_ns = 1'000'000'000;
  header_->stage = static_cast<std::uint32_t>(wire::Stage::kRecording);
  header_->control.mode = static_cast<std::uint32_t>(wire::Mode::kExact);
  header_->period_count = 1;
  nodes_.emplace_back();
  set_live_buckets(16);
}

std::uint8_t TraceBuilder::add_period(std::uint64_t bytes) {
  const std::uint32_t index = header_->period_count++;
  header_->periods[index] = bytes;
  return static_cast<std::uint8_t>(index);
}

std::uint32_t TraceBuilder::add_module(std::string_view path, std::uint64_t begin,
                                       std::uint64_t end, std::uint64_t load_bias,
                                       std::string_view build_id_bytes) {
  wire::Module& module = modules_.emplace_back();
  module.begin = begin;
  module.end = end;
  module.load_bias = load_bias;
  module.path_offset = add_string(path);
  module.path_bytes = static_cast<std::uint32_t>(path.size());
  module.build_id_bytes = static_cast<std::uint32_t>(build_id_bytes.size());
  std::copy_n(build_id_bytes.begin(), std::min(build_id_bytes.size(), sizeof module.build_id),
              module.build_id);
  module.ready = 1;
  return static_cast<std::uint32_t>(modules_.size() - 1);
}

std::uint32_t TraceBuilder::add_node(std::uint32_t parent, std::uint64_t value,
                                     wire::NodeKind kind) {
  nodes_.push_back({value, parent, static_cast<std::uint16_t>(kind),
                    static_cast<std::uint16_t>(modules_.size()), 1, 0});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t TraceBuilder::add_string(std::string_view text) {
  strings_ += text;
  return static_cast<std::uint32_t>(strings_.size() - text.size());
}

std::uint32_t TraceBuilder::add_code(std::string_view file, std::string_view name,
                                     std::string_view lines, std::uint32_t first_line,
                                     std::uint16_t minor) {
  wire::PythonCode& code = codes_.emplace_back();
  code.file_offset = add_string(file);
  code.file_bytes = static_cast<std::uint32_t>(file.size());
  code.name_offset = add_string(name);
  code.name_bytes = static_cast<std::uint32_t>(name.size());
  code.lines_offset = add_string(lines);
  code.lines_bytes = static_cast<std::uint32_t>(lines.size());
  code.first_line = first_line;
  code.minor = minor;
  code.ready = 1;
  return static_cast<std::uint32_t>(codes_.size() - 1);
}

std::uint32_t TraceBuilder::add_stack(std::initializer_list<std::uint64_t> innermost_first) {
  std::uint32_t node = 0;
  const std::vector<std::uint64_t> values(innermost_first);
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    node = add_node(node, *value);
  }
  return node;
}

std::uint32_t TraceBuilder::add_site(const TraceSite& site) {
  wire::Site& row = sites_.emplace_back();
  row.alloc_bytes = site.alloc_bytes;
  row.alloc_block_units = site.alloc_blocks * wire::kBlockUnit;
  row.free_bytes = site.free_bytes;
  row.free_block_units = site.free_blocks * wire::kBlockUnit;
  row.peak_live_bytes = site.peak_live_bytes;
  row.temporary_block_units = site.temporary_blocks * wire::kBlockUnit;
  row.node = site.node;
  row.kind = site.kind;
  row.ready = 1;
  return static_cast<std::uint32_t>(sites_.size() - 1);
}

void TraceBuilder::add_block(std::uint64_t address, std::uint64_t size_bytes, std::uint32_t site,
                             std::uint32_t epoch, std::uint8_t period) {
  const wire::LiveRecord record{wire::pack_size(size_bytes, period), site, epoch};
  if (put_into(buckets_[wire::bucket_of(address, buckets_.size(), false)], address, record) ||
      put_into(buckets_[wire::bucket_of(address, buckets_.size(), true)], address, record)) {
    return;
  }
  const bool placed = std::any_of(buckets_.begin(), buckets_.end(), [&](wire::LiveBucket& bucket) {
    return put_into(bucket, address, record);
  });
  TIDEMARK_CHECK(placed, "the live table of the test is too small");
}

void TraceBuilder::add_range(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
                             std::uint32_t epoch) {
  wire::MapRange& range = ranges_.emplace_back();
  range.begin = begin;
  range.bytes = bytes;
  range.site = site;
  range.epoch = epoch;
}

void TraceBuilder::set_live_buckets(std::size_t buckets) {
  buckets_.clear();
  for (std::size_t i = 0; i < buckets; ++i) {
    buckets_.emplace_back();
  }
}

std::string TraceBuilder::table_bytes(Table table) const {
  switch (table) {
    case Table::kStrings:
      return strings_;
    case Table::kModules:
      return bytes_of(modules_);
    case Table::kNodes:
      return bytes_of(nodes_);
    case Table::kSites:
      return bytes_of(sites_);
    case Table::kLive:
      return bytes_of(buckets_);
    case Table::kRanges:
      return bytes_of(ranges_);
    case Table::kCodes:
      return bytes_of(codes_);
  }
  return {};
}

std::string TraceBuilder::bytes() {
  std::string file(wire::kHeaderBytes, '\0');
  std::array<std::string, wire::kTables> left;
  for (std::size_t i = 0; i < wire::kTables; ++i) {
    const auto table = static_cast<Table>(i);
    left[i] = table_bytes(table);
    wire::TableDirectory& directory = header_->table[i];
    directory.used = table == Table::kLive ? 0 : left[i].size() / wire::item_bytes(table);
    directory.extents = 0;
  }
  for (std::size_t round = 0; round < extents_; ++round) {
    for (std::size_t i = 0; i < wire::kTables; ++i) {
      const std::size_t item_bytes = wire::item_bytes(static_cast<Table>(i));
      const std::size_t items = left[i].size() / item_bytes;
      const std::size_t now = round + 1 == extents_ ? items : items / (extents_ - round);
      if (now == 0) {
        continue;
      }
      file.resize((file.size() + 63) / 64 * 64);
      wire::TableDirectory& directory = header_->table[i];
      directory.extent[directory.extents++] = {file.size(), now};
      file += left[i].substr(0, now * item_bytes);
      left[i].erase(0, now * item_bytes);
    }
  }
  header_->file_bytes = file.size();
  if (damage_) {
    damage_(*header_);
  }
  std::memcpy(file.data(), header_.get(), sizeof(wire::Header));
  return file;
}

}  // namespace tidemark::tests
