// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_stack.h"

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/support/temp_tree.h"

namespace tidemark::inject {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kProgram = 0x1000000;
constexpr std::uint64_t kLibc = 0x2000000;
constexpr std::uint64_t kLinker = 0x3000000;
constexpr std::uint64_t kJemalloc = 0x4000000;
constexpr std::uint64_t kMalloc = kLibc + 0x100;
constexpr std::uint64_t kPoll = kLibc + 0x200;
constexpr std::uint64_t kLookUp = kLibc + 0x300;
constexpr std::uint64_t kStart = kLibc + 0x900;  // of a thread: not exported

RemoteModule module_named(const char* path, std::uint64_t begin) {
  const AddressRange range{begin, begin + 0x10000};
  return {path, begin, range, {range}, {}};
}

class WhyUnsafe : public testing::Test {
 protected:
  WhyUnsafe() {
    space_.modules = {module_named("/usr/bin/job", kProgram), module_named("/lib/libc.so.6", kLibc),
                      module_named("/lib64/ld-linux-x86-64.so.2", kLinker),
                      module_named("/lib/libjemalloc.so.2", kJemalloc)};
    safety_.space = &space_;
    safety_.libc = space_.find("libc.so.6");
    safety_.linker = space_.find("ld-linux");
    safety_.libc_symbols = {{"malloc", {kMalloc, kMalloc + 0x80}},
                            {"poll", {kPoll, kPoll + 0x80}},
                            {"getaddrinfo", {kLookUp, kLookUp + 0x80}}};
  }

  std::string of(const std::vector<std::uint64_t>& stack, bool is_in_call = false) const {
    Registers registers = {};
    registers.rip = stack.front();
    registers.orig_rax = is_in_call ? 7 : ~std::uint64_t{0};
    return why_unsafe(safety_, stack, registers);
  }

  AddressSpace space_;
  CallSafety safety_;
};

TEST_F(WhyUnsafe, AllowsCodeOfTheProgram) {
  EXPECT_EQ(of({kProgram + 8, kProgram + 16, kStart + 8, kStart + 99}), "");
  // The first thread begins in the program itself.
  EXPECT_EQ(of({kProgram + 8, kStart + 8, kStart + 99, kProgram + 64}), "");
}

TEST_F(WhyUnsafe, AllowsAWaitThatHoldsNothing) {
  EXPECT_EQ(of({kPoll + 8, kProgram + 16, kStart + 8}, /*is_in_call=*/true), "");
  EXPECT_EQ(of({kStart + 50, kPoll + 8, kProgram + 16, kStart + 8}, /*is_in_call=*/true), "");
}

// sem_wait ends with a jump to a function without a name.
TEST_F(WhyUnsafe, KnowsAWaitByItsCallWhereItsFrameIsGone) {
  constexpr std::uint64_t kStub = 0x40;  // of the PLT
  constexpr std::uint64_t kSlot = 0x80;
  const auto at = [](std::string& code, std::size_t place, const std::string& bytes) {
    code.replace(place, bytes.size(), bytes);
  };
  const auto wait_called_by = [&](const std::string& call, std::uint64_t function) {
    std::string code(0x100, '\0');
    at(code, 0x20 - call.size(), call);
    at(code, kStub, "\xf3\x0f\x1e\xfa\xf2\xff\x25" + std::string("\x35\0\0\0", 4));
    at(code, kSlot, std::string(reinterpret_cast<const char*>(&function), sizeof(function)));
    tests::TempTree folder;
    auto file = open_file(folder.path("memory"), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::pwrite(file->get(), code.data(), code.size(), kProgram), std::ssize(code));
    const RemoteMemory memory = RemoteMemory::over(*std::move(file));
    safety_.memory = &memory;
    std::string why = of({kStart + 50, kProgram + 0x20, kStart + 8}, /*is_in_call=*/true);
    safety_.memory = nullptr;
    return why;
  };
  const std::string direct = std::string("\xe8\x20\0\0\0", 5);  // to the stub
  const std::string by_slot = std::string("\xff\x15\x60\0\0\0", 6);

  EXPECT_EQ(wait_called_by(direct, kPoll), "");
  EXPECT_EQ(wait_called_by(by_slot, kPoll), "");
  EXPECT_THAT(wait_called_by(direct, kLookUp), HasSubstr("getaddrinfo"));
  EXPECT_THAT(wait_called_by("\xff\xd0", kPoll), HasSubstr("a function of libc"));  // call *%rax
}

TEST_F(WhyUnsafe, RefusesOtherFunctionsOfLibc) {
  EXPECT_THAT(of({kMalloc + 8, kProgram + 16, kStart + 8}), HasSubstr("malloc"));
  EXPECT_THAT(of({kPoll + 8, kProgram + 16, kStart + 8}), HasSubstr("poll"));  // not waiting yet
  EXPECT_THAT(of({kPoll + 8, kLookUp + 8, kProgram + 16, kStart + 8}, /*is_in_call=*/true),
              HasSubstr("getaddrinfo"));
  EXPECT_THAT(of({kMalloc + 8, kProgram + 16, kStart + 8}, /*is_in_call=*/true),
              HasSubstr("malloc"));
}

TEST_F(WhyUnsafe, RefusesACallThroughTheLinkerAnAllocatorOrLibc) {
  EXPECT_THAT(of({kProgram + 8, kLinker + 8, kProgram + 16, kStart + 8}), HasSubstr("ld-linux"));
  EXPECT_THAT(of({kJemalloc + 8, kProgram + 16, kStart + 8}), HasSubstr("libjemalloc"));
  EXPECT_THAT(of({kProgram + 8, kLookUp + 8, kProgram + 16, kStart + 8}), HasSubstr("libc.so.6"));
}

TEST_F(WhyUnsafe, RefusesAModuleThatHasAMalloc) {
  space_.modules.push_back(module_named("/lib/libhoard.so", 0x5000000));
  safety_.libc = space_.find("libc.so.6");
  safety_.linker = space_.find("ld-linux");
  safety_.allocators = {&space_.modules.back()};

  EXPECT_THAT(of({0x5000008, kProgram + 16, kStart + 8}), HasSubstr("libhoard"));
}

TEST_F(WhyUnsafe, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(of({0x9999999, kProgram + 16, kStart + 8}), HasSubstr("in no file"));
  EXPECT_THAT(of({kStart + 8, kStart + 16}), HasSubstr("no frame outside libc"));
}

}  // namespace
}  // namespace tidemark::inject
