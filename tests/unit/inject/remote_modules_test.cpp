// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_modules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "profiler/inject/got_slots.h"

namespace tidemark::inject {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// This process, as another one would see it.
class OwnProcess : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_) << memory_.error().what;
    auto space = read_address_space(::getpid(), *memory_);
    ASSERT_TRUE(space) << space.error().what;
    space_ = *std::move(space);
  }

  Result<RemoteMemory> memory_ = RemoteMemory::open(::getpid());
  AddressSpace space_;
};

TEST(ParseMappings, ReadsRangeRightsOffsetAndName) {
  const auto mappings = parse_mappings(
      "55d0000-55e0000 r-xp 00001000 fd:00 12  /opt/a\\040b.so\n"
      "7f00000-7f10000 rw-p 00000000 00:00 0\n"
      "nonsense\n"
      "7fff000-8000000 rw-p 00000000 00:00 0    [stack]\n");

  ASSERT_EQ(mappings.size(), 3U);
  EXPECT_EQ(mappings[0].range, (AddressRange{0x55d0000, 0x55e0000}));
  EXPECT_FALSE(mappings[0].is_writable);
  EXPECT_EQ(mappings[0].offset, 0x1000U);
  EXPECT_EQ(mappings[0].name, "/opt/a b.so");
  EXPECT_TRUE(mappings[1].is_writable);
  EXPECT_EQ(mappings[2].name, "[stack]");
}

TEST_F(OwnProcess, HasTheProgramFirstAndLibcWithItsFunctions) {
  ASSERT_FALSE(space_.modules.empty());
  EXPECT_TRUE(space_.modules.front().has_code_at(reinterpret_cast<std::uint64_t>(&address)));
  const RemoteModule* const libc = space_.find("libc.so.6");
  ASSERT_NE(libc, nullptr);
  const auto symbols = exported_symbols(*libc, *memory_);

  void* const handle = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  const std::uint64_t expected = address(::dlsym(handle, "pthread_cond_wait"));
  EXPECT_EQ(address_of(symbols, "poll"), address(::dlsym(handle, "poll")));
  EXPECT_EQ(address_of(symbols, "no_such_function"), 0U);
  EXPECT_EQ(find_exported(*libc, *memory_, "poll"), address_of(symbols, "poll"));
  EXPECT_EQ(find_exported(*libc, *memory_, "environ"), address_of(symbols, "environ"));
  EXPECT_EQ(find_exported(*libc, *memory_, "no_such_function"), 0U);
  EXPECT_TRUE(libc->has_code_at(expected));
  EXPECT_EQ(space_.module_at(expected), libc);
  EXPECT_EQ(symbol_at(symbols, address(::dlsym(handle, "getpid")) + 1), "getpid");
  ::dlclose(handle);
}

// Symbolizers map files to read them: such a copy is no module.
TEST_F(OwnProcess, LeavesOutFilesThatAreMappedToBeRead) {
  const std::string libc = space_.find("libc.so.6")->path;
  const auto file = open_file(libc, O_RDONLY);
  ASSERT_TRUE(file);
  constexpr std::size_t kBytes = 1U << 20U;
  void* const copy = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file->get(), 0);
  ASSERT_NE(copy, MAP_FAILED);

  const auto space = read_address_space(::getpid(), *memory_);

  ASSERT_TRUE(space);
  EXPECT_TRUE(std::any_of(space->mappings.begin(), space->mappings.end(), [&](const Mapping& each) {
    return each.range.begin == address(copy) && each.name == libc;
  }));
  EXPECT_EQ(std::count_if(space->modules.begin(), space->modules.end(),
                          [&](const RemoteModule& each) { return each.path == libc; }),
            1);
  ::munmap(copy, kBytes);
}

TEST_F(OwnProcess, ReadsOnlyWhatIsThere) {
  std::uint64_t value = 42;

  EXPECT_EQ(memory_->load<std::uint64_t>(address(&value)), 42U);
  EXPECT_EQ(memory_->load<std::uint64_t>(8), std::nullopt);
  EXPECT_EQ(memory_->load<std::uint64_t>(~std::uint64_t{0} - 4), std::nullopt);
  EXPECT_EQ(memory_->text(address("some text"), 100), "some text");
  EXPECT_EQ(memory_->text(address("some text"), 4), "some");
  EXPECT_EQ(memory_->text(16, 100), "");
}

TEST_F(OwnProcess, FindsTheSlotsOfLibcThatLeadToMalloc) {
  std::free(std::malloc(1));  // so that it is bound
  const RemoteModule* const libc = space_.find("libc.so.6");
  ASSERT_NE(libc, nullptr);
  HookAddresses real = {};
  real[0] = address(::dlsym(RTLD_DEFAULT, "malloc"));  // a sanitizer's, where there is one
  real[1] = address(::dlsym(RTLD_DEFAULT, "free"));
  ASSERT_STREQ(wire::kHookNames[0], "malloc");
  ASSERT_STREQ(wire::kHookNames[1], "free");

  const ModuleSlots slots =
      read_slots(*libc, *memory_, real, AddressRange{}, space_.modules.front());

  ASSERT_FALSE(slots.real.empty());  // libc itself calls malloc as others may replace it
  for (const GotSlot& slot : slots.real) {
    EXPECT_LT(slot.hook, 2U);
    EXPECT_EQ(memory_->load<std::uint64_t>(slot.address), slot.value);
  }
  EXPECT_TRUE(slots.hooked.empty());
}

TEST_F(OwnProcess, WritesOnlyToSlotsThatHoldWhatTheyDid) {
  std::uint64_t slots[2] = {100, 200};
  HookAddresses to = {};
  to[0] = 7;

  const auto written =
      write_slots({{address(&slots[0]), 100, 0}, {address(&slots[1]), 999, 0}}, to, *memory_);

  ASSERT_TRUE(written);
  EXPECT_EQ(*written, 1U);
  EXPECT_EQ(slots[0], 7U);
  EXPECT_EQ(slots[1], 200U);
}

}  // namespace
}  // namespace tidemark::inject
