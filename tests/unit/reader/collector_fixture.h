// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "profiler/reader/collector.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_trace_world.h"
#include "tests/support/temp_tree.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {

// A collector's folder with trace files, and the processes that it believes to see.
class CollectorTest : public testing::Test {
 protected:
  CollectorTest() { dir_.make_directory("run"); }

  CollectorOptions options() const {
    CollectorOptions options;
    options.directory = dir_.path("run");
    return options;
  }
  void write(const std::string& name, tests::TraceBuilder& builder) const {
    dir_.write("run/" + name, builder.bytes());
  }
  bool exists(const std::string& name) const {
    return ::access(dir_.path("run/" + name).c_str(), F_OK) == 0;
  }

  tests::TempTree dir_;
  tests::FakeClock clock_;
  tests::FakeTraceWorld world_;
};

inline std::uint32_t add_site(tests::TraceBuilder& builder, std::uint64_t address,
                              std::uint64_t live_bytes) {
  return builder.add_site(
      {builder.add_stack({address, 0x1}), wire::SiteKind::kHeap, live_bytes, 1});
}

}  // namespace tidemark::reader
