// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/thread_stacks.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/heap/made_up_memory.h"

namespace tidemark::heap {
namespace {

using tests::made_up_mapping;

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kLimit = 8 * kMiB;

inject::Mapping guard(std::uint64_t end) {
  inject::Mapping mapping = made_up_mapping(end - 4096, end);
  mapping.is_writable = false;
  mapping.is_readable = false;
  return mapping;
}

TEST(ParseStackPointer, ReadsThatOfAThreadThatWaits) {
  EXPECT_EQ(parse_stack_pointer("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe0010 0x7f001234\n"),
            0x7ffe0010U);
  EXPECT_EQ(parse_stack_pointer("-1 0x7ffe0020 0x7f001234"), 0x7ffe0020U);
}

TEST(ParseStackPointer, KnowsNoneOfAThreadThatRuns) {
  for (const char* text : {"running\n", "", "1 2 3", "0 0xzz 0x1", "-1 0xfffffffffffffffff 0x1"}) {
    EXPECT_EQ(parse_stack_pointer(text), std::nullopt) << text;
  }
}

TEST(ThreadStacks, AreWhereTheirPointersLead) {
  const std::vector<inject::Mapping> mappings{
      guard(16 * kMiB), made_up_mapping(16 * kMiB, 24 * kMiB), guard(32 * kMiB),
      made_up_mapping(32 * kMiB, 33 * kMiB)};

  const auto stacks = find_thread_stacks(mappings, {24 * kMiB - 512, 33 * kMiB - 8}, 2, kLimit);

  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0], (inject::AddressRange{16 * kMiB, 24 * kMiB}));
  EXPECT_EQ(stacks[1], (inject::AddressRange{32 * kMiB, 33 * kMiB}));
}

TEST(ThreadStacks, EndWhereMemoryAboveBegins) {
  const std::vector<inject::Mapping> mappings{guard(16 * kMiB),
                                              made_up_mapping(16 * kMiB, 100 * kMiB)};

  const auto stacks = find_thread_stacks(mappings, {24 * kMiB - 512}, 1, kLimit);

  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0], (inject::AddressRange{16 * kMiB, 24 * kMiB}));
}

TEST(ThreadStacks, OfThreadsThatRunAreToldByTheirGuards) {
  const std::vector<inject::Mapping> mappings{
      guard(16 * kMiB), made_up_mapping(16 * kMiB, 24 * kMiB), guard(32 * kMiB),
      made_up_mapping(32 * kMiB, 40 * kMiB),
      made_up_mapping(48 * kMiB, 56 * kMiB)};  // nothing guards it

  EXPECT_EQ(find_thread_stacks(mappings, {24 * kMiB - 512}, 2, kLimit).size(), 2U);
  EXPECT_EQ(find_thread_stacks(mappings, {24 * kMiB - 512}, 1, kLimit).size(), 1U);
  EXPECT_TRUE(find_thread_stacks(mappings, {}, 0, kLimit).empty());
}

TEST(ThreadStacks, AreNotFilesOrSharedMemory) {
  std::vector<inject::Mapping> mappings{guard(16 * kMiB),
                                        made_up_mapping(16 * kMiB, 24 * kMiB, "/data/file")};

  EXPECT_TRUE(find_thread_stacks(mappings, {24 * kMiB - 512}, 5, kLimit).empty());
}

}  // namespace
}  // namespace tidemark::heap
