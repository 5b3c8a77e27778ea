// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_image.h"

#include <fcntl.h>

#include <algorithm>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kEndOfUserSpace = std::uint64_t{1} << 47U;

// Memory of devices may do something when it is read, and that of the kernel is no memory.
bool is_memory(const Mapping& mapping) {
  const std::string& name = mapping.name;
  const bool is_device =
      name.starts_with("/dev/") && !name.starts_with("/dev/shm/") && !name.starts_with("/dev/zero");
  return mapping.is_readable && !is_device && !name.starts_with("[v");
}

// Whether pages that the process has never touched are nowhere: reading them would make some.
bool is_made_by_touching(const Mapping& mapping) {
  return mapping.name.empty() || mapping.name.starts_with('[');
}

}  // namespace

Result<MemoryImage> MemoryImage::open(pid_t pid, std::uint64_t most_bytes) {
  TIDEMARK_TRY_ASSIGN(auto file, open_file(fmt::format("/proc/{}/mem", pid), O_RDONLY));
  TIDEMARK_TRY_ASSIGN(auto mappings, inject::read_mappings(pid));
  const auto memory = std::make_shared<Fd>(std::move(file));
  MemoryImage image(
      std::move(mappings),
      [memory](std::uint64_t address, std::span<char> into) {
        const auto count = pread_full(memory->get(), into, static_cast<off_t>(address));
        return count && *count == into.size();
      },
      most_bytes);
  if (auto pagemap = open_file(fmt::format("/proc/{}/pagemap", pid), O_RDONLY)) {
    image.pagemap_ = *std::move(pagemap);
  }
  return image;
}

MemoryImage::MemoryImage(std::vector<Mapping> mappings, Read read, std::uint64_t most_bytes)
    : mappings_(std::move(mappings)),
      read_(std::move(read)),
      most_bytes_(std::max(most_bytes, 16 * kBlockBytes)) {
  std::erase_if(mappings_, [](const Mapping& mapping) { return !is_memory(mapping); });
}

MemoryImage::Block* MemoryImage::find_block(std::uint64_t number) {
  Block* block = nullptr;
  if (const auto found = blocks_.find(number); found != blocks_.end()) {
    block = found->second.get();
  } else {
    const std::uint64_t begin = number * kBlockBytes;
    const auto next =
        std::upper_bound(mappings_.begin(), mappings_.end(), begin,
                         [](std::uint64_t at, const Mapping& m) { return at < m.range.end; });
    if (begin >= kEndOfUserSpace || next == mappings_.end() ||
        next->range.begin >= begin + kBlockBytes) {
      return nullptr;
    }
    make_room();
    auto made = std::make_unique<Block>();
    made->number = number;
    made->bytes = std::make_unique_for_overwrite<char[]>(kBlockBytes);
    fill(*made);
    block = made.get();
    blocks_.emplace(number, std::move(made));
    order_.push_back(number);
  }
  recent_[number % kSlots] = block;
  block->was_used = true;
  return block;
}

// A block that was used since the last time goes to the end once more.
void MemoryImage::make_room() {
  while (!order_.empty() && (blocks_.size() + 1) * kBlockBytes > most_bytes_) {
    const std::uint64_t number = order_.front();
    order_.pop_front();
    const auto found = blocks_.find(number);
    if (found->second->was_used) {
      found->second->was_used = false;
      order_.push_back(number);
      continue;
    }
    if (recent_[number % kSlots] == found->second.get()) {
      recent_[number % kSlots] = nullptr;
    }
    blocks_.erase(found);
  }
}

void MemoryImage::fill(Block& block) {
  const AddressRange all{block.number * kBlockBytes, (block.number + 1) * kBlockBytes};
  auto mapping =
      std::upper_bound(mappings_.begin(), mappings_.end(), all.begin,
                       [](std::uint64_t at, const Mapping& m) { return at < m.range.end; });
  for (; mapping != mappings_.end() && mapping->range.begin < all.end; ++mapping) {
    fill_from(block, *mapping,
              {std::max(all.begin, mapping->range.begin), std::min(all.end, mapping->range.end)});
  }
}

void MemoryImage::fill_from(Block& block, const Mapping& mapping, AddressRange range) {
  constexpr std::uint64_t kInMemoryOrSwap = std::uint64_t{3} << 62U;
  const std::uint64_t first_page = range.begin / kPageBytes;
  const std::uint64_t end_page = std::min(range.end / kPageBytes, first_page + kPagesOfBlock);
  std::array<std::uint64_t, kPagesOfBlock> entries;
  entries.fill(kInMemoryOrSwap);
  if (pagemap_ && is_made_by_touching(mapping)) {
    (void)pread_full(pagemap_.get(),
                     {reinterpret_cast<char*>(entries.data()), 8 * (end_page - first_page)},
                     static_cast<off_t>(8 * first_page));
  }
  const auto is_wanted = [&](std::uint64_t page) {
    return (entries[page - first_page] & kInMemoryOrSwap) != 0;
  };
  for (std::uint64_t page = first_page; page < end_page;) {
    std::uint64_t end = page + 1;
    while (end < end_page && is_wanted(end) == is_wanted(page)) {
      ++end;
    }
    const std::uint64_t offset = page * kPageBytes % kBlockBytes;
    const std::uint64_t bytes = (end - page) * kPageBytes;
    const std::span<char> into(block.bytes.get() + offset, bytes);
    const std::uint32_t bits = ((std::uint32_t{1} << (end - page)) - 1U) << (offset / kPageBytes);
    if (!is_wanted(page)) {
      std::fill(into.begin(), into.end(), '\0');
      block.pages |= bits;
    } else if (read_(page * kPageBytes, into)) {
      block.pages |= bits;
      read_bytes_ += bytes;
    } else if (end - page > 1) {  // perhaps only some of them cannot be read
      for (; page < end; ++page) {
        fill_from(block, mapping, {page * kPageBytes, (page + 1) * kPageBytes});
      }
    } else {
      unread_bytes_ += bytes;
    }
    page = end;
  }
}

bool MemoryImage::read(std::uint64_t address, std::span<char> into) {
  if (address >= kEndOfUserSpace || into.size() > kEndOfUserSpace - address) {
    return false;
  }
  while (!into.empty()) {
    const std::uint64_t offset = address % kBlockBytes;
    const std::size_t bytes = std::min<std::size_t>(into.size(), kPageBytes - offset % kPageBytes);
    const Block* const block = block_at(address);
    if (block == nullptr || !block->has(offset)) {
      return false;
    }
    std::memcpy(into.data(), block->bytes.get() + offset, bytes);
    into = into.subspan(bytes);
    address += bytes;
  }
  return true;
}

std::string MemoryImage::text(std::uint64_t address, std::size_t most_bytes) {
  std::string text;
  while (text.size() < most_bytes) {
    char piece[64];  // of which none crosses a page
    const std::size_t bytes =
        std::min(sizeof(piece) - address % sizeof(piece), most_bytes - text.size());
    if (!read(address, {piece, bytes})) {
      break;
    }
    const char* const end = std::find(piece, piece + bytes, '\0');
    text.append(piece, static_cast<std::size_t>(end - piece));
    if (end != piece + bytes) {
      break;
    }
    address += bytes;
  }
  return text;
}

}  // namespace tidemark::heap
