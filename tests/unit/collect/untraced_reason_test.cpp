// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/untraced_reason.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "tests/support/paths.h"
#include "tests/support/temp_tree.h"

namespace tidemark::collect {
namespace {

// A process that could be traced, in a /proc of our own.
class UntracedReasonTest : public testing::Test {
 protected:
  UntracedReasonTest() {
    dir_.make_directory("trace");
    dir_.write("lib/tracer.so", "");
    dir_.link("proc/7/exe", "/bin/sh");
    dir_.link("proc/7/root", "/");
    write_status(::geteuid());
    write_privileges(0);
    dir_.write("proc/7/environ", std::string("A=b\0TIDEMARK_TRACE=1:exact\0", 26));
  }

  UntracedReason reason(bool follows_children = true) const {
    return why_untraced(7, {dir_.path("lib/tracer.so"), dir_.path("trace"), follows_children},
                        dir_.path("proc"));
  }
  void write_status(uid_t uid) const {
    dir_.write("proc/7/status", fmt::format("Name:\tjob\nState:\tS (sleeping)\nPPid:\t1\n"
                                            "Uid:\t{0}\t{0}\t{0}\t{0}\n",
                                            uid));
  }
  void write_privileges(std::uint64_t is_secure) const {
    const std::array<std::uint64_t, 6> vector = {AT_PAGESZ, 4096, AT_SECURE, is_secure, AT_NULL, 0};
    dir_.write("proc/7/auxv", {reinterpret_cast<const char*>(vector.data()), sizeof vector});
  }
  void run_program(const std::string& bytes) const {
    dir_.write("program", bytes);
    dir_.remove("proc/7/exe");
    dir_.link("proc/7/exe", dir_.path("program"));
  }

  tests::TempTree dir_;
};

// An ELF file of one segment: the name of its interpreter.
std::string program_with(std::string_view interpreter, Elf64_Half machine = EM_X86_64,
                         unsigned char bits = ELFCLASS64) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = bits;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof header + sizeof segment;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  bytes += interpreter;
  return bytes + std::string(300, '\0');
}

TEST_F(UntracedReasonTest, IsNotKnownOfAProcessThatCouldBeTraced) {
  EXPECT_EQ(reason(), UntracedReason::kUnknown);
}

TEST_F(UntracedReasonTest, IsNotKnownOfAProcessThatIsGone) {
  EXPECT_EQ(why_untraced(8, {dir_.path("lib/tracer.so"), dir_.path("trace")}, dir_.path("proc")),
            UntracedReason::kUnknown);
}

TEST_F(UntracedReasonTest, IsTheProgram) {
  dir_.remove("proc/7/exe");
  dir_.link("proc/7/exe", tests::victim_path("leak_static"));
  const UntracedReason of_static = reason();
  run_program(program_with("/lib/ld-musl-x86_64.so.1"));
  const UntracedReason of_musl = reason();
  run_program(program_with("/lib/ld-linux-armhf.so.3", EM_ARM, ELFCLASS32));
  const UntracedReason of_arm = reason();

  EXPECT_EQ(of_static, UntracedReason::kStatic);
#if defined(__x86_64__)
  EXPECT_EQ(of_musl, UntracedReason::kOtherLibc);
#endif
  EXPECT_EQ(of_arm, UntracedReason::kOtherArchitecture);
}

TEST_F(UntracedReasonTest, IsRaisedPrivileges) {
  write_privileges(1);

  EXPECT_EQ(reason(), UntracedReason::kPrivileges);
}

TEST_F(UntracedReasonTest, IsAnotherUser) {
  write_status(::geteuid() + 1);

  EXPECT_EQ(reason(), UntracedReason::kOtherUser);
}

TEST_F(UntracedReasonTest, IsARootFolderWithoutTheTracer) {
  dir_.make_directory("other_root");
  dir_.remove("proc/7/root");
  dir_.link("proc/7/root", dir_.path("other_root"));
  dir_.write("proc/7/environ", "");  // nothing there to load: nothing was asked for

  EXPECT_EQ(reason(), UntracedReason::kOutOfReach);
}

TEST_F(UntracedReasonTest, IsAnEnvironmentWithoutTheRequest) {
  dir_.write("proc/7/environ", std::string("A=b\0B=TIDEMARK_TRACE=1\0", 22));

  EXPECT_EQ(reason(), UntracedReason::kNoVariables);
  EXPECT_EQ(reason(/*follows_children=*/false), UntracedReason::kNotFollowed);
}

}  // namespace
}  // namespace tidemark::collect
