// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/residency.h"

#include <algorithm>
#include <vector>

#include "profiler/reader/page_map.h"

namespace tidemark::reader {
namespace {

// No process has addresses beyond; five levels of page tables end here.
constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 56U;
// Pages that lie further apart than the stretch below take a system call each: a process that says
// that its blocks fill the address space must not keep us busy for seconds. As a sample they will
// do.
constexpr std::uint64_t kMostReads = std::uint64_t{1} << 14U;
// Whatever the ranges say: far enough from the end of the type to add a stride.
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 62U;

struct Pages {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t count() const { return last - first + 1; }
};

// Ranges that are empty or go beyond the address space have none.
bool has_pages(const MemoryRange& range) {
  return range.size_bytes > 0 && range.weight > 0.0 && range.size_bytes <= kAddressSpaceBytes &&
         range.begin <= kAddressSpaceBytes - range.size_bytes;
}

Pages pages_of(const MemoryRange& range) {
  return {range.begin / page_bytes(), (range.begin + range.size_bytes - 1) / page_bytes()};
}

double bytes_within(const MemoryRange& range, std::uint64_t page) {
  const std::uint64_t begin = std::max(range.begin, page * page_bytes());
  const std::uint64_t last =
      std::min(range.begin + range.size_bytes - 1, page * page_bytes() + (page_bytes() - 1));
  return range.weight * static_cast<double>(last - begin + 1);
}

struct Sums {
  double all = 0.0;
  double resident = 0.0;
  double swapped = 0.0;
};

}  // namespace

std::optional<Residency> residency_of(pid_t pid, std::span<const MemoryRange> ranges,
                                      const ResidencyOptions& options) {
  auto pagemap = PageMap::open(pid, options.proc);
  if (!pagemap) {
    return std::nullopt;
  }
  std::vector<MemoryRange> sorted;
  Residency result;
  for (const MemoryRange& range : ranges) {
    if (has_pages(range)) {
      sorted.push_back(range);
      result.pages = std::min(result.pages + pages_of(range).count(), kMostPages);
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.begin < b.begin; });
  const std::uint64_t asked = std::max<std::uint64_t>(options.most_pages, 1);
  const std::uint64_t most =
      result.pages / PageMap::kEntriesOfARead > kMostReads ? std::min(asked, kMostReads) : asked;
  const std::uint64_t stride =
      std::max<std::uint64_t>(result.pages / most + (result.pages % most != 0 ? 1 : 0), 1);
  Sums sums;
  std::uint64_t skip = stride / 2;  // the middle one of every `stride` pages
  for (const MemoryRange& range : sorted) {
    const Pages pages = pages_of(range);
    std::uint64_t offset = skip;
    for (; offset < pages.count(); offset += stride) {
      std::uint64_t entry = 0;
      if (!pagemap->entry(pages.first + offset, entry)) {
        return std::nullopt;
      }
      const double bytes = bytes_within(range, pages.first + offset);
      sums.all += bytes;
      sums.resident += PageMap::is_present(entry) ? bytes : 0.0;
      sums.swapped += PageMap::is_swapped(entry) ? bytes : 0.0;
      ++result.pages_looked_at;
    }
    skip = offset - pages.count();
  }
  if (sums.all <= 0.0) {
    return std::nullopt;
  }
  result.resident_share = sums.resident / sums.all;
  result.swapped_share = sums.swapped / sums.all;
  return result;
}

}  // namespace tidemark::reader
