// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/python_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

std::string from_hexadecimal(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// One function, compiled by each version (by 3.14 another one of the kind), with comprehensions,
// expressions over several lines, loops and handlers of exceptions: its table, and what that
// version itself says of it, as units in a row with one line. 0: no line.
struct Compiled {
  std::uint16_t minor;
  std::uint32_t first_line;
  const char* table;
  std::vector<std::pair<int, std::uint32_t>> lines;
};

const std::vector<Compiled>& compiled() {
  static const std::vector<Compiled> all = {
      {9,
       100,
       "0002060102ff0604020102ff02ff02030401060208fe06030c0102010c010c010a02",
       {{3, 102},
        {1, 103},
        {3, 102},
        {1, 106},
        {1, 107},
        {1, 106},
        {1, 105},
        {2, 108},
        {3, 109},
        {4, 111},
        {3, 109},
        {6, 112},
        {1, 113},
        {6, 114},
        {6, 115},
        {5, 116},
        {2, 118}}},
      {10,
       100,
       "0602020106ff0204020102ff02ff04030601080206fe0c0302010c010c01020102ff0403",
       {{3, 102},
        {1, 103},
        {3, 102},
        {1, 106},
        {1, 107},
        {1, 106},
        {1, 105},
        {2, 108},
        {3, 109},
        {4, 111},
        {3, 109},
        {6, 112},
        {1, 113},
        {6, 114},
        {6, 115},
        {1, 116},
        {1, 115},
        {2, 118}}},
      {11,
       100,
       "8000f004010915f000010915d81213f003010915f100010915f4000109158041f00800090ad8"
       "0a0bf10301090cf003000506f006000809f00003051bf00202101bf00002101be51013904190"
       "7191099409f00502101bf10002101bf40002101bf00002091bf506000e13903189588c58f000"
       "040512f0000405128801f002030912d80c0d9011894688418841f8dd0f19f000010912f00001"
       "0912f000010912d80c11f003010912f8f8f8f006000c0d8048",
       {{1, 100}, {2, 102}, {1, 103}, {9, 102},  {1, 106}, {1, 107},  {2, 106},
        {1, 105}, {2, 108}, {2, 109}, {15, 111}, {9, 109}, {17, 112}, {1, 113},
        {6, 114}, {1, 0},   {9, 115}, {1, 116},  {1, 115}, {3, 0},    {2, 118}}},
      {12,
       100,
       "8000f006001314f603010915d80d0ef203000a0bf0000109158041f000010915f00800090ad8"
       "0a0bf10301090cf003000506f106000809f406001114904190719309f70502101bd914189041"
       "9071f00300111290319104f30002101bf00002091bf406000e1390318b58f2000405128801f0"
       "02030912d80c0d901189468941f005040512f00c000c0d8048f9f221010915f9f30e02101bf8"
       "f40c00101af200010912d80c11f003010912fa",
       {{1, 100},  {1, 103}, {7, 102}, {1, 103},  {6, 102}, {1, 106}, {1, 107},
        {2, 106},  {1, 105}, {2, 108}, {11, 111}, {8, 109}, {4, 110}, {9, 109},
        {14, 112}, {1, 113}, {6, 114}, {1, 112},  {2, 118}, {2, 0},   {3, 102},
        {2, 0},    {4, 109}, {1, 0},   {8, 115},  {1, 116}, {1, 115}, {3, 0}}},
      {13,
       100,
       "8000f106001314f303010915d912138851f303000a0bd91213f003000506f000010915f00800"
       "090ad80a0bf10301090cf003000506f606000809f40600111490419409f40502101be11019f1"
       "030015199041f0030011129204e11019f20502101bf00002091bf406000e1390318e588801f0"
       "02030912d80c0d89468a41f105000e16f00c000c0d8048f9f221010915f9f30e02101bf8f40c"
       "00101af300010912d80c11f003010912fa",
       {{1, 100}, {2, 103},  {4, 102}, {3, 103},  {4, 102}, {2, 103}, {2, 102}, {1, 106}, {1, 107},
        {2, 106}, {1, 105},  {7, 108}, {11, 111}, {5, 109}, {2, 111}, {3, 110}, {4, 109}, {2, 111},
        {4, 109}, {14, 112}, {1, 113}, {6, 114},  {2, 112}, {2, 118}, {2, 0},   {3, 102}, {2, 0},
        {4, 109}, {1, 0},    {9, 115}, {1, 116},  {1, 115}, {3, 0}}},
      {14,
       100,
       "8000f106001b22f303010c23d91a219006f403000d1090068e4bd91a21f003000509f000010c23"
       "f406000d10d8080cf003020d0fe0090df305020d0f8045f3060011188804d8080d90719527e012"
       "1690719527f50502131af50002091b8a05f103001118f008000b108c2cd8080d90118d0a8a05d8"
       "1115951b8815f008000c11804cf9f221010c23f8f41a000c16f400010515d810148905e00b1080"
       "4cf007010515fa",
       {{1, 100},  {2, 103}, {4, 102},  {3, 103}, {13, 102}, {2, 103}, {2, 102}, {5, 105},
        {1, 106},  {1, 105}, {1, 107},  {5, 105}, {5, 108},  {8, 109}, {8, 111}, {15, 109},
        {2, 108},  {6, 112}, {11, 113}, {8, 114}, {2, 118},  {2, 0},   {3, 102}, {1, 0},
        {10, 115}, {3, 116}, {2, 118},  {1, 115}, {3, 0}}},
  };
  return all;
}

TEST(PythonLine, AgreesWithEveryVersionOnEveryInstruction) {
  for (const Compiled& code : compiled()) {
    const std::string table = from_hexadecimal(code.table);
    std::uint32_t unit = 0;
    for (const auto& [units, line] : code.lines) {
      for (int i = 0; i < units; ++i, ++unit) {
        EXPECT_EQ(python_line(code.minor, code.first_line, table, unit).value_or(0), line)
            << "3." << code.minor << ", unit " << unit;
      }
    }
  }
}

TEST(PythonLine, IsUnknownBehindTheEndOfATable) {
  for (const Compiled& code : compiled()) {
    if (code.minor > 9) {  // the table of 3.9 has no end
      EXPECT_EQ(python_line(code.minor, code.first_line, from_hexadecimal(code.table), 100'000),
                std::nullopt);
    }
  }
}

TEST(PythonLine, SurvivesTablesThatEndTooEarlyOrLeadNowhere) {
  const std::string endless(300, '\x7f');
  for (const std::uint16_t minor : std::initializer_list<std::uint16_t>{9, 10, 11, 14}) {
    EXPECT_EQ(python_line(minor, 0, "", 5), std::nullopt);
    for (const Compiled& code : compiled()) {
      const std::string table = from_hexadecimal(code.table);
      for (std::size_t bytes = 0; bytes < table.size(); ++bytes) {
        python_line(minor, 1, table.substr(0, bytes), 50);
      }
    }
    python_line(minor, 0xffff'ffff, endless, 0xffff'fffe);
  }
}

// A process with a stack of two frames of Python.
TEST(TraceFileOfPython, NamesFramesWithFunctionFileAndLine) {
  tests::TraceBuilder builder;
  const Compiled& code = compiled().back();
  const std::uint32_t inner = builder.add_code("/job/train.py", "Collator.collate",
                                               from_hexadecimal(code.table), 100, code.minor);
  const std::uint32_t outer = builder.add_code("/job/train.py", "main", "", 7, code.minor);
  const std::uint32_t main_node =
      builder.add_node(0, wire::pack_python(outer, 3), wire::NodeKind::kPython);
  const std::uint32_t node =
      builder.add_node(main_node, wire::pack_python(inner, 4), wire::NodeKind::kPython);
  builder.add_site({.node = node, .alloc_bytes = 10, .alloc_blocks = 1});
  auto file = tests::open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  const std::vector<StackFrame> stack = file->stack(node);

  ASSERT_EQ(stack.size(), 2U);
  EXPECT_EQ(stack[0].kind, FrameKind::kPython);
  EXPECT_EQ(stack[0].function, "Collator.collate");
  EXPECT_EQ(stack[0].file, "/job/train.py");
  EXPECT_EQ(stack[0].line, 102U);
  EXPECT_EQ(stack[1].function, "main");
  EXPECT_EQ(stack[1].line, 7U) << "without a table the line of the function";
}

TEST(TraceFileOfPython, LeavesFramesWithDamagedCodesUnnamed) {
  tests::TraceBuilder builder;
  const std::uint32_t beyond = builder.add_code("/job/a.py", "f", "", 1, 12);
  builder.code(beyond).name_offset = 0xffff'0000;
  const std::uint32_t unfinished = builder.add_code("/job/b.py", "g", "", 1, 12);
  builder.code(unfinished).ready = 0;
  std::uint32_t node = 0;
  for (const std::uint32_t code : {beyond, unfinished, 99U, wire::kNoCode}) {
    node = builder.add_node(node, wire::pack_python(code, 0), wire::NodeKind::kPython);
  }
  builder.add_site({.node = node, .alloc_bytes = 10, .alloc_blocks = 1});
  auto file = tests::open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  const std::vector<StackFrame> stack = file->stack(node);

  ASSERT_EQ(stack.size(), 4U);
  for (const StackFrame& frame : stack) {
    EXPECT_EQ(frame.function, "");
    EXPECT_EQ(frame.line, std::nullopt);
  }
}

}  // namespace
}  // namespace tidemark::reader
