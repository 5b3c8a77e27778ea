// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_image.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/support/child_process.h"

namespace tidemark::heap {
namespace {

using tests::ChildProcess;

constexpr std::uint64_t kPage = MemoryImage::kPageBytes;
constexpr std::uint64_t kBlock = MemoryImage::kBlockBytes;
constexpr std::uint64_t kBegin = 16 * kBlock;

Mapping mapping(std::uint64_t begin, std::uint64_t end, const std::string& name = "") {
  Mapping mapping;
  mapping.range = {begin, end};
  mapping.is_writable = true;
  mapping.name = name;
  return mapping;
}

// Memory in which each word is its address, except pages that cannot be read.
class NumberedMemory {
 public:
  MemoryImage image(std::vector<Mapping> mappings, std::uint64_t most_bytes = 64U << 20U) {
    return MemoryImage(
        std::move(mappings),
        [this](std::uint64_t address, std::span<char> into) {
          ++reads;
          read_bytes += into.size();
          for (std::uint64_t i = 0; i < into.size(); i += 8) {
            const std::uint64_t value = address + i;
            if (value / kPage * kPage == unreadable) {
              return false;
            }
            std::memcpy(into.data() + i, &value, 8);
          }
          return true;
        },
        most_bytes);
  }

  std::uint64_t unreadable = 0;  // the address of a page
  std::size_t reads = 0;
  std::size_t read_bytes = 0;
};

TEST(MemoryImage, ReadsABlockOnce) {
  NumberedMemory memory;
  MemoryImage image = memory.image({mapping(kBegin, kBegin + 4 * kBlock)});

  for (std::uint64_t address = kBegin; address < kBegin + kBlock; address += 8) {
    ASSERT_EQ(image.word(address), address);
  }

  EXPECT_EQ(memory.reads, 1U);
  EXPECT_EQ(image.read_bytes(), kBlock);
  EXPECT_EQ(image.unread_bytes(), 0U);
}

TEST(MemoryImage, ReadsAcrossPagesAndBlocks) {
  NumberedMemory memory;
  MemoryImage image = memory.image({mapping(kBegin, kBegin + 4 * kBlock)});
  std::vector<std::uint64_t> words(kBlock / 4);

  ASSERT_TRUE(image.read_array(kBegin + kBlock - 8, std::span(words)));

  for (std::size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(words[i], kBegin + kBlock - 8 + 8 * i);
  }
  // The last bytes of one word, and the first of the next.
  EXPECT_EQ(image.load<std::uint32_t>(kBegin + kPage - 2), ((kBegin + kPage) & 0xffffU) << 16U);
}

TEST(MemoryImage, HasNothingInHoles) {
  NumberedMemory memory;
  MemoryImage image = memory.image({mapping(kBegin, kBegin + kPage),
                                    mapping(kBegin + 3 * kPage, kBegin + 4 * kPage),
                                    mapping(kBegin + 5 * kBlock, kBegin + 6 * kBlock)});
  std::array<char, 16> bytes = {};

  EXPECT_EQ(image.word(kBegin + kPage - 8), kBegin + kPage - 8);
  EXPECT_EQ(image.word(kBegin + kPage), 0U);
  EXPECT_EQ(image.word(kBegin + 3 * kPage), kBegin + 3 * kPage);
  EXPECT_EQ(image.word(kBegin + 2 * kBlock), 0U);
  EXPECT_EQ(image.word(0), 0U);
  EXPECT_EQ(image.word(8), 0U);
  EXPECT_EQ(image.word(~std::uint64_t{7}), 0U);
  EXPECT_FALSE(image.read(kBegin + kPage - 8, bytes));
  EXPECT_FALSE(image.read(~std::uint64_t{3}, bytes));
  EXPECT_EQ(image.mapping_at(kBegin + kPage), nullptr);
  EXPECT_EQ(image.unread_bytes(), 0U);
}

TEST(MemoryImage, CountsWhatItCannotReadAndHasTheRest) {
  NumberedMemory memory;
  memory.unreadable = kBegin + 5 * kPage;
  MemoryImage image = memory.image({mapping(kBegin, kBegin + kBlock)});

  EXPECT_EQ(image.word(kBegin + 4 * kPage), kBegin + 4 * kPage);
  EXPECT_EQ(image.word(kBegin + 5 * kPage), 0U);
  EXPECT_EQ(image.word(kBegin + 6 * kPage), kBegin + 6 * kPage);
  EXPECT_EQ(image.unread_bytes(), kPage);
}

TEST(MemoryImage, KeepsNoMoreThanItMay) {
  constexpr std::uint64_t kBlocks = 1000;
  NumberedMemory memory;
  MemoryImage image = memory.image({mapping(kBegin, kBegin + kBlocks * kBlock)}, 32 * kBlock);
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      ASSERT_EQ(image.word(kBegin + i * kBlock), kBegin + i * kBlock);
      ASSERT_EQ(image.word(kBegin + 8), kBegin + 8);  // what is used all the time stays
    }
  }

  EXPECT_GE(memory.reads, 2 * kBlocks - 64);
  EXPECT_LE(memory.reads, 2 * kBlocks);
}

TEST(MemoryImage, LeavesDevicesAndTheKernelAlone) {
  NumberedMemory memory;
  MemoryImage image =
      memory.image({mapping(kBegin, kBegin + kBlock, "/dev/nvidia0"),
                    mapping(kBegin + kBlock, kBegin + 2 * kBlock, "[vvar]"),
                    mapping(kBegin + 2 * kBlock, kBegin + 3 * kBlock, "/dev/shm/a")});

  EXPECT_EQ(image.word(kBegin), 0U);
  EXPECT_EQ(image.word(kBegin + kBlock), 0U);
  EXPECT_EQ(image.word(kBegin + 2 * kBlock), kBegin + 2 * kBlock);
  EXPECT_EQ(memory.reads, 1U);
}

TEST(MemoryImage, EndsTextsWhereTheyEnd) {
  const std::string text = std::string(100, 'x') + std::string("\0rest", 5);
  MemoryImage image(
      {mapping(kBegin, kBegin + kPage)},
      [&](std::uint64_t address, std::span<char> into) {
        std::fill(into.begin(), into.end(), 'y');
        if (address == kBegin) {
          std::copy(text.begin(), text.end(), into.begin() + 30);
        }
        return true;
      },
      kBlock);

  EXPECT_EQ(image.text(kBegin + 30, 1000), std::string(100, 'x'));
  EXPECT_EQ(image.text(kBegin + 30, 7), "xxxxxxx");
  EXPECT_EQ(image.text(kBegin + kPage - 3, 1000), "yyy");
  EXPECT_EQ(image.text(0x123, 1000), "");
}

std::uint64_t page_table_kb(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = text ? text->find("VmPTE:") : std::string::npos;
  return at == std::string::npos ? 0 : std::stoull(text->substr(at + 6));
}

// Reading them from outside would make page tables for the process.
TEST(MemoryImage, DoesNotReadPagesThatWereNeverTouched) {
  constexpr std::uint64_t kBytes = 256U << 20U;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const bytes = static_cast<char*>(mapped);
  ASSERT_EQ(::madvise(mapped, kBytes, MADV_NOHUGEPAGE), 0);
  const ChildProcess child([&](const ChildProcess::Link& link) {
    bytes[kBytes / 2] = 'x';
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(child.wait_ready());
  const std::uint64_t before_kb = page_table_kb(child.pid());
  ASSERT_GT(before_kb, 0U);
  auto image = MemoryImage::open(child.pid(), 16U << 20U);
  ASSERT_TRUE(image) << image.error().what;

  const auto begin = reinterpret_cast<std::uint64_t>(bytes);
  std::vector<char> some(1U << 20U);
  const std::vector<char> zeros(some.size());
  std::size_t with_others = 0;
  for (std::uint64_t at = 0; at < kBytes; at += some.size()) {
    ASSERT_TRUE(image->read(begin + at, some));
    with_others += some == zeros ? 0U : 1U;
  }

  EXPECT_EQ(with_others, 1U);
  EXPECT_EQ(image->load<char>(begin + kBytes / 2), 'x');
  EXPECT_LT(image->read_bytes(), 2 * kBlock);
  EXPECT_LE(page_table_kb(child.pid()), before_kb + 16);
  ::munmap(mapped, kBytes);
}

TEST(MemoryImage, SaysWhyItCannotBeOpened) {
  EXPECT_FALSE(MemoryImage::open(1'999'999'999, kBlock));
}

}  // namespace
}  // namespace tidemark::heap
