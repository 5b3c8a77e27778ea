// SPDX-License-Identifier: Apache-2.0
// usage: reader_cost snapshot SITES | live BLOCKS | symbols MODULE ADDRESSES
// Prints the milliseconds of wall time that one reading of a trace file with so many sites or live
// blocks takes (best of 7), or the naming of so many addresses spread over a module's code.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/io.h"
#include "common/text.h"
#include "profiler/reader/symbolizer.h"
#include "profiler/reader/trace_file.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace {

using tidemark::reader::Symbolizer;
using tidemark::reader::TraceFile;
using tidemark::tests::open_trace;
using tidemark::tests::TraceBuilder;

constexpr int kRounds = 7;

template <typename Work>
double milliseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

template <typename Work>
double best_of_rounds(Work work) {
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    best = std::min(best, milliseconds(work));
  }
  return best;
}

void snapshot_cost(std::uint64_t sites) {
  TraceBuilder builder;
  std::uint32_t parent = builder.add_stack({0x1000, 0x2000, 0x3000});
  for (std::uint64_t i = 0; i < sites; ++i) {
    builder.add_site({builder.add_node(parent, 0x10000 + i), tidemark::wire::SiteKind::kHeap, i});
  }
  auto file = open_trace(builder.bytes());
  TIDEMARK_CHECK(file, "no trace");
  const double first = milliseconds([&file] { TIDEMARK_CHECK(file->snapshot(), "unreadable"); });
  const double next = best_of_rounds([&file] { TIDEMARK_CHECK(file->snapshot(), "unreadable"); });
  std::printf("snapshot of %lu sites: first %.2f ms, then %.2f ms\n", sites, first, next);
}

void live_cost(std::uint64_t blocks) {
  TraceBuilder builder;
  std::size_t buckets = 16;
  while (buckets * tidemark::wire::kSlotsPerBucket * 3 / 4 < blocks) {
    buckets *= 2;
  }
  builder.set_live_buckets(buckets);
  constexpr std::uint32_t kSites = 1000;
  for (std::uint32_t i = 0; i < kSites; ++i) {
    builder.add_site({});
  }
  for (std::uint32_t i = 0; i < blocks; ++i) {
    builder.add_block(0x10000 + std::uint64_t{i} * 64, 48, i % kSites, i / 1000);
  }
  const auto file = open_trace(builder.bytes());
  TIDEMARK_CHECK(file, "no trace");
  const double best =
      best_of_rounds([&file] { TIDEMARK_CHECK(file->live_blocks(), "unreadable"); });
  std::printf("scan of %lu live blocks: %.2f ms\n", blocks, best);
}

// The executable segment of a module.
Elf64_Phdr code_of(const std::string& module) {
  auto file = tidemark::open_file(module, O_RDONLY);
  TIDEMARK_CHECK(file, "no such module");
  Elf64_Ehdr header{};
  TIDEMARK_CHECK(::pread(file->get(), &header, sizeof header, 0) == sizeof header, "no header");
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto offset =
        static_cast<off_t>(header.e_phoff + static_cast<unsigned>(i) * sizeof segment);
    TIDEMARK_CHECK(::pread(file->get(), &segment, sizeof segment, offset) == sizeof segment, "cut");
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      return segment;
    }
  }
  return {};
}

void symbols_cost(const std::string& module, std::uint64_t addresses) {
  const Elf64_Phdr code = code_of(module);
  Symbolizer symbolizer;
  std::uint64_t with_line = 0;
  const double first =
      milliseconds([&] { (void)symbolizer.resolve(module, "", code.p_vaddr + 64); });
  const double all = milliseconds([&] {
    for (std::uint64_t i = 0; i < addresses; ++i) {
      const auto frames =
          symbolizer.resolve(module, "", code.p_vaddr + code.p_memsz / addresses * i);
      with_line += frames.back().line ? 1U : 0U;
    }
  });
  std::printf("%lu addresses of %s: %.1f ms after %.1f ms for the first; with a line %lu\n",
              addresses, module.c_str(), all, first, with_line);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  const auto number = tidemark::parse_number<std::uint64_t>(argc > 2 ? argv[argc - 1] : "");
  if (number && *number > 0 && what == "snapshot") {
    snapshot_cost(*number);
  } else if (number && *number > 0 && what == "live") {
    live_cost(*number);
  } else if (number && *number > 0 && what == "symbols" && argc == 4) {
    symbols_cost(argv[2], *number);
  } else {
    std::fprintf(stderr,
                 "usage: reader_cost snapshot SITES | live BLOCKS | symbols MODULE COUNT\n");
    return 2;
  }
  return 0;
}
