// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/page_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <span>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::reader {

std::uint64_t page_bytes() {
  static const auto kBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return kBytes;
}

Result<PageMap> PageMap::open(pid_t pid, const std::string& proc_root) {
  TIDEMARK_TRY_ASSIGN(auto file, open_file(fmt::format("{}/{}/pagemap", proc_root, pid), O_RDONLY));
  return PageMap(std::move(file));
}

bool PageMap::entry(std::uint64_t page, std::uint64_t& value) {
  const Stretch* const found = stretch(page / kEntriesOfARead);
  if (found == nullptr) {
    return false;
  }
  const std::size_t index = page % kEntriesOfARead;
  value = index < found->filled ? found->entries[index] : 0;
  return true;
}

// nullptr: the file cannot be read.
const PageMap::Stretch* PageMap::stretch(std::uint64_t number) {
  std::unique_ptr<Stretch>& slot = stretches_[number % kStretches];
  if (slot != nullptr && slot->number == number) {
    return slot.get();
  }
  auto read = slot == nullptr ? std::make_unique<Stretch>() : std::move(slot);
  const std::span<char> bytes(reinterpret_cast<char*>(read->entries.data()), sizeof read->entries);
  const auto got =
      pread_full(file_.get(), bytes, static_cast<off_t>(number * sizeof read->entries));
  if (!got) {
    return nullptr;
  }
  read->number = number;
  read->filled = *got / sizeof(std::uint64_t);
  slot = std::move(read);
  return slot.get();
}

bool PageMap::has_page_at(std::uint64_t address) {
  std::uint64_t value = 0;
  return entry(address / page_bytes(), value) && is_present(value);
}

std::uint64_t PageMap::present_bytes(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = (begin + page_bytes() - 1) / page_bytes();
  std::uint64_t pages = 0;
  for (std::uint64_t page = first; page < end / page_bytes(); ++page) {
    std::uint64_t value = 0;
    if (!entry(page, value)) {
      break;
    }
    pages += is_present(value) ? 1U : 0U;
  }
  return pages * page_bytes();
}

}  // namespace tidemark::reader
