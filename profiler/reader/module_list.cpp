// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/module_list.h"

#include <algorithm>
#include <string>
#include <utility>

#include "profiler/reader/elf_text.h"
#include "profiler/reader/trace_image.h"

namespace tidemark::reader {
namespace {

constexpr std::uint32_t kMostPathBytes = 4096;  // PATH_MAX

}  // namespace

void ModuleList::extend(int fd, const TraceHeader& header) {
  const TableView& table = header.table(wire::Table::kModules);
  const std::uint64_t now =
      bounded(header.used(wire::Table::kModules), readable_end(table), kMostModules).end;
  std::vector<std::uint32_t> wanted = std::move(unfinished_);
  unfinished_.clear();
  for (std::uint64_t i = modules_.size(); i < now; ++i) {
    wanted.push_back(static_cast<std::uint32_t>(i));
  }
  if (wanted.empty()) {
    return;
  }
  modules_.resize(std::max(modules_.size(), static_cast<std::size_t>(now)));
  for (const std::uint32_t index : wanted) {
    wire::Module raw{};
    read_items(fd, table, index, 1, &raw);
    if (!take(fd, header, raw, modules_[index])) {
      unfinished_.push_back(index);
    }
  }
  sort();
}

bool ModuleList::take(int fd, const TraceHeader& header, const wire::Module& raw,
                      TraceModule& module) {
  if (raw.ready == 0) {
    return false;
  }
  const TableView& strings = header.table(wire::Table::kStrings);
  const std::uint64_t path_end = std::uint64_t{raw.path_offset} + raw.path_bytes;
  if (raw.ready != 1 || raw.begin >= raw.end || raw.build_id_bytes > sizeof raw.build_id ||
      raw.path_bytes > kMostPathBytes || path_end > strings.capacity()) {
    ++damaged_;
    return true;
  }
  std::string path(raw.path_bytes, '\0');
  if (read_items(fd, strings, raw.path_offset, raw.path_bytes, path.data()) != 0) {
    ++damaged_;
    return true;
  }
  module.begin = raw.begin;
  module.end = raw.end;
  module.load_bias = raw.load_bias;
  module.path = std::move(path);
  module.build_id = hexadecimal({raw.build_id, raw.build_id_bytes});
  return true;
}

void ModuleList::sort() {
  places_.clear();
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i].begin < modules_[i].end) {
      places_.push_back({modules_[i].begin, modules_[i].end, static_cast<std::uint32_t>(i)});
    }
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < places_.size(); ++i) {
    places_[i].most_end = std::max(places_[i].most_end, places_[i - 1].most_end);
  }
}

std::optional<std::uint32_t> ModuleList::find(std::uint64_t address, std::uint32_t listed) const {
  auto place = std::upper_bound(
      places_.begin(), places_.end(), address,
      [](std::uint64_t value, const Place& candidate) { return value < candidate.begin; });
  std::optional<std::uint32_t> found;
  while (place != places_.begin()) {
    --place;
    if (place->most_end <= address) {
      break;
    }
    const TraceModule& module = modules_[place->module];
    if (address < module.end && place->module < listed && (!found || place->module > *found)) {
      found = place->module;
    }
  }
  return found;
}

}  // namespace tidemark::reader
