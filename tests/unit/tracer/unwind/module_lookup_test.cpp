// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/module_lookup.h"

#include <gtest/gtest.h>
#include <math.h>

#include <cstdint>

#include "profiler/tracer/unwind/cfi.h"

namespace tidemark::tracer {
namespace {

TEST(ModuleLookup, FindsLoadedObjectsAndTheirTables) {
  if (!resolve_module_lookup()) {
    GTEST_SKIP() << "glibc before 2.35 has no _dl_find_object";
  }
  const auto own = reinterpret_cast<std::uint64_t>(&testing::Test::HasFailure);
  const auto other = reinterpret_cast<std::uint64_t>(static_cast<double (*)(double)>(&::cos));

  for (const std::uint64_t pc : {own, other}) {
    LoadedModule module;
    CfiEntry entry;
    ASSERT_TRUE(find_module(pc, module));
    ASSERT_TRUE(find_cfi_entry(module, pc, entry));
    EXPECT_LE(entry.pc_begin, pc);
    EXPECT_GT(entry.pc_end, pc);
  }
  LoadedModule none;
  EXPECT_FALSE(find_module(0x1000, none));
}

}  // namespace
}  // namespace tidemark::tracer
