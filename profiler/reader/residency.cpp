// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/residency.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "common/fd.h"
#include "common/io.h"

namespace tidemark::reader {
namespace {

// Documentation/admin-guide/mm/pagemap.rst of the kernel.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;

// No process has addresses beyond; five levels of page tables end here.
constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 56U;
// Pages that lie further apart than the stretch below take a system call each: a process that says
// that its blocks fill the address space must not keep us busy for seconds. As a sample they will
// do.
constexpr std::uint64_t kMostReads = std::uint64_t{1} << 14U;
constexpr std::size_t kEntriesOfARead = 512;
// Whatever the ranges say: far enough from the end of the type to add a stride.
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 62U;

std::uint64_t page_bytes() {
  static const auto kBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return kBytes;
}

// Entries of the pagemap, read a stretch at a time: small blocks lie side by side.
class Pagemap {
 public:
  explicit Pagemap(Fd file) : file_(std::move(file)) {}

  // 0 for a page that nothing is mapped at. False when the file cannot be read.
  bool entry(std::uint64_t page, std::uint64_t& value) {
    if (page < first_ || page >= first_ + known_ || known_ == 0) {
      if (!load(page - page % entries_.size())) {
        return false;
      }
    }
    const std::uint64_t index = page - first_;
    value = index < filled_ ? entries_[static_cast<std::size_t>(index)] : 0;
    return true;
  }

 private:
  bool load(std::uint64_t first) {
    const std::span<char> bytes(reinterpret_cast<char*>(entries_.data()), sizeof entries_);
    const auto got =
        pread_full(file_.get(), bytes, static_cast<off_t>(first * sizeof(std::uint64_t)));
    if (!got) {
      return false;
    }
    first_ = first;
    known_ = entries_.size();
    filled_ = *got / sizeof(std::uint64_t);
    return true;
  }

  Fd file_;
  std::array<std::uint64_t, kEntriesOfARead> entries_{};
  std::uint64_t first_ = 0;
  std::uint64_t known_ = 0;   // pages that the buffer stands for
  std::uint64_t filled_ = 0;  // of them, those that the file has; it ends with the address space
};

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
  auto file = open_file(options.proc + "/" + std::to_string(pid) + "/pagemap", O_RDONLY);
  if (!file) {
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
      result.pages / kEntriesOfARead > kMostReads ? std::min(asked, kMostReads) : asked;
  const std::uint64_t stride =
      std::max<std::uint64_t>(result.pages / most + (result.pages % most != 0 ? 1 : 0), 1);
  Pagemap pagemap(std::move(*file));
  Sums sums;
  std::uint64_t skip = stride / 2;  // the middle one of every `stride` pages
  for (const MemoryRange& range : sorted) {
    const Pages pages = pages_of(range);
    std::uint64_t offset = skip;
    for (; offset < pages.count(); offset += stride) {
      std::uint64_t entry = 0;
      if (!pagemap.entry(pages.first + offset, entry)) {
        return std::nullopt;
      }
      const double bytes = bytes_within(range, pages.first + offset);
      sums.all += bytes;
      sums.resident += (entry & kPresent) != 0 ? bytes : 0.0;
      sums.swapped += (entry & kSwapped) != 0 ? bytes : 0.0;
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
