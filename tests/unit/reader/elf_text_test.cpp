// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/elf_text.h"

#include <gtest/gtest.h>

namespace tidemark::reader {
namespace {

TEST(ElfText, DemanglesWhatIsMangled) {
  EXPECT_EQ(demangled("_ZN2at5emptyEl"), "at::empty(long)");
  EXPECT_EQ(demangled("malloc"), "malloc");
  EXPECT_EQ(demangled("_Znot a name"), "_Znot a name");
  EXPECT_EQ(demangled(("_Z" + std::string(20000, 'P')).c_str()).size(), 20002U);
}

TEST(ElfText, DropsTheVersionOfASymbol) {
  EXPECT_EQ(without_version("_IO_puts@@GLIBC_2.2.5"), "_IO_puts");
  EXPECT_EQ(without_version("memcpy@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(without_version("plain"), "plain");
  EXPECT_EQ(without_version("@strange"), "@strange");
}

TEST(ElfText, MakesPathsAbsoluteWhereItKnowsHow) {
  EXPECT_EQ(joined_path("/src/build/release", "../../lib/a.cpp"), "/src/lib/a.cpp");
  EXPECT_EQ(joined_path("/src", "/usr/include/vector"), "/usr/include/vector");
  EXPECT_EQ(joined_path("./csu", "../csu/libc-start.c"), "../csu/libc-start.c");
  EXPECT_EQ(joined_path("", "a.c"), "a.c");
}

TEST(ElfText, WritesBytesAsTwoDigits) {
  const std::uint8_t bytes[] = {0x00, 0xab, 0x0f};

  EXPECT_EQ(hexadecimal(bytes), "00ab0f");
}

}  // namespace
}  // namespace tidemark::reader
