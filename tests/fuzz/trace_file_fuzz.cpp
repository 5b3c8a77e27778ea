// SPDX-License-Identifier: Apache-2.0
// A trace file is what the target wrote, or what somebody made of it. The input is either the whole
// file, or patches (offset in 2 bytes, length in 1, content) that are laid over a valid one before
// and between readings. Nothing may make the reader crash, hang, read out of bounds or take more
// memory than its limits allow.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "profiler/reader/collector.h"
#include "profiler/reader/trace_file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_trace_world.h"
#include "tests/support/temp_tree.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_dump.h"

namespace {

using tidemark::Fd;
using tidemark::reader::LiveScan;
using tidemark::reader::TraceFile;
using tidemark::reader::TraceSnapshot;
using tidemark::tests::TraceBuilder;

// A line of Python that calls another one, in each format of line tables.
void add_python(TraceBuilder& builder) {
  for (const std::uint16_t minor : std::initializer_list<std::uint16_t>{9, 10, 14}) {
    const std::string_view lines =
        minor == 14 ? "\x80\x05\xd9\x01\xe8\x01\x01\x02\x03" : "\x04\x01\x06\xff";
    const auto inner = builder.add_code("/job/train.py", "Collator.collate", lines, 100, minor);
    const auto outer = builder.add_code("/job/train.py", "main", "", 7, minor);
    auto node = builder.add_node(0, tidemark::wire::pack_python(outer, tidemark::wire::kNoUnit),
                                 tidemark::wire::NodeKind::kPython);
    node = builder.add_node(node, tidemark::wire::pack_python(inner, 2),
                            tidemark::wire::NodeKind::kPython);
    node = builder.add_node(node, 0x1010);
    builder.add_site({node, tidemark::wire::SiteKind::kHeap, 100, 2});
  }
}

const std::string& valid_file() {
  static const std::string kBytes = [] {
    TraceBuilder builder;
    builder.set_live_buckets(2);
    builder.set_extents(2);
    const auto period = builder.add_period(4096);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::uint64_t begin = 0x1000 + i * 0x1000;
      builder.add_module("/lib/module.so", begin, begin + 0x1000, begin, "\x01\x02\x03");
      const auto node = builder.add_stack({begin + 0x10, begin + 0x20, 0x9000});
      const auto site = builder.add_site({node, tidemark::wire::SiteKind::kHeap, 100, 2});
      builder.add_block(0x10000 + i * 64, 64, site, i, period);
      builder.add_range(0x7f0000000000 + i * 0x10000, 4096, site, i);
    }
    add_python(builder);
    return builder.bytes();
  }();
  return kBytes;
}

void put(int fd, std::string_view bytes, std::size_t offset) {
  TIDEMARK_CHECK(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
                     static_cast<ssize_t>(bytes.size()),
                 "cannot write the trace");
}

// Takes one patch off the front of the input; false when there is none.
bool patch(int fd, std::string_view& input) {
  constexpr std::size_t kHead = 3;
  if (input.size() < kHead) {
    return false;
  }
  const auto at = [&input](std::size_t i) { return static_cast<unsigned char>(input[i]); };
  const std::size_t offset = (at(0) | (std::size_t{at(1)} << 8U)) % valid_file().size();
  const std::size_t length = std::min<std::size_t>(at(2) % 64, input.size() - kHead);
  put(fd, input.substr(kHead, length), offset);
  input.remove_prefix(kHead + length);
  return true;
}

void read_all(TraceFile& file) {
  const auto snapshot = file.snapshot();
  if (!snapshot) {
    return;
  }
  for (const auto& site : snapshot->sites) {
    const auto frames = file.stack(site.node);
    TIDEMARK_CHECK(frames.size() <= 256, "a stack without an end");
    for (const auto& frame : frames) {
      TIDEMARK_CHECK(!frame.module || *frame.module < file.modules().size(), "no such module");
    }
  }
  const auto live = file.live_blocks({true, {}, 64});
  TIDEMARK_CHECK(!live || live->blocks.size() <= 64, "more blocks than asked for");
  TIDEMARK_CHECK(!tidemark::tests::dump_text(*snapshot, file.modules()).empty(), "no text");
  if (live) {
    tidemark::tests::dump_text(*live);
  }
}

// What the tool does with a file that it finds in its folder.
void collect(const std::string& folder) {
  tidemark::tests::FakeClock clock;
  tidemark::tests::FakeTraceWorld world;
  world.has_our_pages = true;
  world.mappings = {{{0x10000, 0x20000, tidemark::reader::AreaKind::kHeap, 4096, 4096}}};
  tidemark::reader::CollectorOptions options;
  options.directory = folder;
  options.remove_files = false;
  tidemark::reader::Collector collector(options, world, clock);
  tidemark::AllocationFacts facts;
  collector.collect(facts);
  collector.finish(facts, options.naming_budget_ns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tidemark::tests::TempTree tree;
  static const int fd = ::open(tree.path("100.trace").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  std::string_view input(reinterpret_cast<const char*>(data), size);
  TIDEMARK_CHECK(::ftruncate(fd, 0) == 0, "cannot empty the file");
  const bool whole = !input.empty() && input.front() == 'w';
  if (!input.empty()) {
    input.remove_prefix(1);
  }
  put(fd, whole ? input : std::string_view(valid_file()), 0);
  if (!whole) {
    patch(fd, input);
  }
  auto file = TraceFile::adopt(Fd(::dup(fd)));
  if (!file) {
    return 0;
  }
  read_all(*file);
  collect(tree.path());
  for (int readings = 0; readings < 3 && !whole && patch(fd, input); ++readings) {
    for (int more = 0; more < 16 && patch(fd, input); ++more) {
    }
    read_all(*file);
  }
  TIDEMARK_CHECK(::ftruncate(fd, static_cast<off_t>(valid_file().size() / 2)) == 0, "cannot cut");
  read_all(*file);
  return 0;
}
