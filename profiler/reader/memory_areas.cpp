// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/memory_areas.h"

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_smaps.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

// A process with a hundred thousand mappings is still read; more is cut off.
constexpr std::size_t kMostBytes = 128U << 20U;

AreaKind kind_of(std::string_view name) {
  if (name.empty() || name.starts_with("[anon")) {
    return AreaKind::kAnonymous;
  }
  if (name == "[heap]") {
    return AreaKind::kHeap;
  }
  if (name.starts_with("[stack")) {
    return AreaKind::kStack;
  }
  if (name.ends_with(" (deleted)")) {
    name.remove_suffix(std::string_view(" (deleted)").size());
  }
  return name.ends_with(wire::kTraceSuffix) ? AreaKind::kTrace : AreaKind::kOther;
}

}  // namespace

std::vector<MemoryArea> parse_memory_areas(std::string_view smaps) {
  std::vector<MemoryArea> areas;
  std::string_view line;
  while (monitor::take_line(smaps, line)) {
    if (const auto head = monitor::parse_mapping_head(line)) {
      areas.push_back({head->begin, head->end, kind_of(trim(head->name))});
      continue;
    }
    const auto field = monitor::parse_smaps_field(line);
    if (!field || areas.empty()) {
      continue;
    }
    if (field->key == "Rss") {
      areas.back().resident_bytes = field->bytes;
    } else if (field->key == "Anonymous" || field->key == "Swap") {
      areas.back().anonymous_bytes += field->bytes;
    }
  }
  return areas;
}

std::optional<std::vector<MemoryArea>> memory_areas_of(pid_t pid, const std::string& proc_root) {
  const auto text = read_file(fmt::format("{}/{}/smaps", proc_root, pid), kMostBytes);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  return parse_memory_areas(*text);
}

}  // namespace tidemark::reader
