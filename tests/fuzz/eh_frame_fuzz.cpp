// SPDX-License-Identifier: Apache-2.0
// Unwind tables of any bytes: nothing outside of them is read, and what comes out is a rule.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/check.h"
#include "profiler/tracer/unwind/cfi.h"
#include "tests/unit/tracer/unwind/eh_frame_builder.h"

namespace {

using namespace tidemark::tracer;
using tidemark::tests::Bytes;
using tidemark::tests::EhFrameBuilder;

void check_rule(const Rule& rule) {
  TIDEMARK_CHECK(rule.kind != RuleKind::kNone, "tables always answer");
  if (const std::uint32_t packed = pack_rule(rule); packed != 0) {
    TIDEMARK_CHECK(unpack_rule(packed) == rule, "packing keeps a rule");
  }
}

// In a block of its own, so that the sanitizer sees the first byte behind it.
void read_tables(const Bytes& bytes) {
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto begin = reinterpret_cast<std::uint64_t>(exact.get());
  const LoadedModule module = {begin, begin + bytes.size(), begin};
  for (const std::uint64_t offset : {0x0U, 0x1000U, 0x1007U, 0x1014U, 0x10ffU, 0x7fffffffU}) {
    check_rule(rule_from_tables(module, begin + offset));
  }
}

EhFrameBuilder usual_tables() {
  EhFrameBuilder builder;
  builder.functions = {{0x1000, 0x10, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}},
                       {0x1010, 0xf0, {0x44, 0x0a, 0x0e, 24, 0x41, 0x0b}}};
  return builder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  Bytes rest(data + 1, data + size);
  EhFrameBuilder builder = usual_tables();
  switch (data[0] % 5) {
    case 0:  // the tables themselves
      read_tables(rest);
      break;
    case 1:  // the program of a function
      builder.functions[0].program = rest;
      read_tables(builder.build());
      break;
    case 2:  // what all functions have in common
      builder.common_program = rest;
      read_tables(builder.build());
      break;
    case 3: {  // a few wrong bytes
      Bytes bytes = builder.build();
      for (std::size_t i = 0; i + 1 < rest.size(); i += 2) {
        bytes[rest[i] % bytes.size()] = rest[i + 1];
      }
      read_tables(bytes);
      break;
    }
    default: {  // an expression
      const auto begin = reinterpret_cast<std::uint64_t>(rest.data());
      (void)evaluate_expression({begin, begin + rest.size()}, 0x1234, rest.size() % 2 == 0);
    }
  }
  return 0;
}
