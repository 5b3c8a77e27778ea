// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/memory_areas.h"

#include <charconv>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

// A process with a hundred thousand mappings is still read; more is cut off.
constexpr std::size_t kMostBytes = 128U << 20U;

bool take_hex(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, /*base=*/16);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

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

// "55d0-55e0 rw-p 00000000 00:00 0      [heap]"; nullopt: not the first line of a mapping.
std::optional<MemoryArea> parse_head(std::string_view line) {
  MemoryArea area;
  if (!take_hex(line, area.begin) || !line.starts_with('-')) {
    return std::nullopt;
  }
  line.remove_prefix(1);
  if (!take_hex(line, area.end) || area.end <= area.begin || !line.starts_with(' ')) {
    return std::nullopt;
  }
  constexpr int kFieldsBetween = 4;  // permissions, offset, device, inode
  for (int i = 0; i < kFieldsBetween; ++i) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    line.remove_prefix(std::min(line.find(' '), line.size()));
  }
  area.kind = kind_of(trim(line));
  return area;
}

// "Rss:      132 kB"
std::optional<std::uint64_t> bytes_after(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) {
    return std::nullopt;
  }
  line = trim(line.substr(name.size()));
  const auto kib = parse_number<std::uint64_t>(line.substr(0, line.find(' ')));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace

std::vector<MemoryArea> parse_memory_areas(std::string_view smaps) {
  std::vector<MemoryArea> areas;
  while (const auto line = next_line(smaps)) {
    if (const auto area = parse_head(*line)) {
      areas.push_back(*area);
    } else if (areas.empty()) {
      continue;
    } else if (const auto resident = bytes_after(*line, "Rss:")) {
      areas.back().resident_bytes = *resident;
    } else if (const auto anonymous = bytes_after(*line, "Anonymous:")) {
      areas.back().anonymous_bytes += *anonymous;
    } else if (const auto swapped = bytes_after(*line, "Swap:")) {
      areas.back().anonymous_bytes += *swapped;
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
