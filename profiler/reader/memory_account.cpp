// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/memory_account.h"

#include <algorithm>
#include <cmath>

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

// A mapping that holds a block of which nothing was recorded may be that block alone. From this
// many sampling distances on that does not happen.
constexpr std::uint64_t kSurelySampled = 8;

std::uint64_t whole(double bytes) {
  return bytes > 0.0 ? static_cast<std::uint64_t>(std::llround(std::min(bytes, 0x1p62))) : 0;
}

// Which of the areas hold something that was recorded; by index.
class Marks {
 public:
  explicit Marks(std::span<const MemoryArea> areas) : areas_(areas), marked_(areas.size()) {}

  void mark(std::uint64_t begin, std::uint64_t bytes) {
    auto area = std::upper_bound(
        areas_.begin(), areas_.end(), begin,
        [](std::uint64_t address, const MemoryArea& each) { return address < each.end; });
    for (; area != areas_.end() && area->begin < begin + bytes; ++area) {
      marked_[static_cast<std::size_t>(area - areas_.begin())] = true;
    }
  }
  bool has(std::size_t index) const { return marked_[index]; }

 private:
  std::span<const MemoryArea> areas_;
  std::vector<bool> marked_;
};

// The resident part of blocks; all of it where nobody knows.
double resident_bytes(const AccountInput& input, const std::vector<MemoryRange>& ranges) {
  double bytes = 0.0;
  for (const MemoryRange& range : ranges) {
    bytes += range.weight * static_cast<double>(range.size_bytes);
  }
  if (ranges.empty()) {
    return 0.0;
  }
  const auto residency = input.residency_of(ranges);
  return residency ? bytes * (residency->resident_share + residency->swapped_share) : bytes;
}

bool is_heap(AllocationKind kind) { return kind == AllocationKind::kHeap; }

}  // namespace

AreaKind area_kind(std::string_view name) {
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

std::vector<MemoryArea> parse_memory_areas(std::string_view smaps) {
  std::vector<MemoryArea> areas;
  std::string_view line;
  while (monitor::take_line(smaps, line)) {
    if (const auto head = monitor::parse_mapping_head(line)) {
      areas.push_back({head->begin, head->end, area_kind(trim(head->name))});
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

MemoryAccount make_account(const AccountInput& input) {
  Marks marks(input.areas);
  std::vector<MemoryRange> large;
  std::vector<MemoryRange> mapped;
  double small_bytes = 0.0;
  for (const LiveSite& site : input.scan->sites) {
    small_bytes += is_heap(input.kind_of(site.site)) ? site.bytes : 0.0;
  }
  for (const LiveBlock& block : input.scan->blocks) {
    const AllocationKind kind = input.kind_of(block.site);
    const MemoryRange range{block.address, block.size_bytes, block.weight};
    if (is_heap(kind) || kind == AllocationKind::kAnonymousMap ||
        kind == AllocationKind::kAllocatorMap) {
      marks.mark(block.address, std::max<std::uint64_t>(block.size_bytes, 1));
    }
    if (kind == AllocationKind::kAnonymousMap) {
      mapped.push_back(range);
    } else if (is_heap(kind) && block.size_bytes >= kLargeBlockBytes) {
      large.push_back(range);
      small_bytes -= block.weight * static_cast<double>(block.size_bytes);
    }
  }
  double in_use = 0.0;  // in mappings where recorded memory is, or may be
  double elsewhere = 0.0;
  MemoryAccount account;
  for (std::size_t i = 0; i < input.areas.size(); ++i) {
    const MemoryArea& area = input.areas[i];
    // What has no name right behind a file is the data of that program or library.
    const bool is_data = i > 0 && input.areas[i - 1].kind == AreaKind::kOther &&
                         input.areas[i - 1].end == area.begin;
    const bool may_be_a_block = area.kind == AreaKind::kAnonymous && !is_data &&
                                area.end - area.begin < kSurelySampled * input.sample_every_bytes;
    const auto bytes = static_cast<double>(area.anonymous_bytes);
    if (area.kind == AreaKind::kTrace) {
      account.tracer_bytes += area.resident_bytes;
    } else if (area.kind == AreaKind::kHeap || marks.has(i) || may_be_a_block) {
      in_use += bytes;
    } else {
      elsewhere += bytes;
    }
  }
  const double blocks =
      std::max(0.0, small_bytes) + resident_bytes(input, large) + resident_bytes(input, mapped);
  account.blocks_bytes = whole(std::min(blocks, in_use));
  account.slack_bytes = whole(in_use - blocks);
  account.unhooked_bytes = whole(elsewhere - static_cast<double>(input.tracer_private_bytes));
  return account;
}

}  // namespace tidemark::reader
