// SPDX-License-Identifier: Apache-2.0
// The map of a process and what its malloc and Python have written into their heaps are a
// stranger's. The input is, up to the first 0 byte, the text of an smaps, and behind it the memory
// of a process that is made up: words that stand at the places where a reader looks. Whatever they
// say, a ledger has what the mappings have, no more and no less.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "profiler/heap/glibc_heaps.h"
#include "profiler/heap/ledger_rows.h"
#include "profiler/heap/python_arenas.h"
#include "profiler/heap/thread_stacks.h"

namespace {

using namespace tidemark;
using namespace tidemark::heap;
using monitor::SmapsMapping;

constexpr std::uint64_t kHeapBytes = 64U << 20U;

// The input again and again, wherever it is read; a word that is odd leads to another place of it.
class RepeatedMemory {
 public:
  explicit RepeatedMemory(std::string_view bytes) : bytes_(bytes) {}

  MemoryQueries queries() const {
    return {[this](std::uint64_t address, std::span<char> into) { return read(address, into); },
            [](std::uint64_t begin, std::uint64_t end) { return end > begin ? end - begin : 0; }};
  }

 private:
  bool read(std::uint64_t address, std::span<char> into) const {
    if (bytes_.size() < 8 || address % 13 == 0) {
      return false;
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      into[i] = bytes_[(address + i) % bytes_.size()];
    }
    return true;
  }

  std::string_view bytes_;
};

inject::Mapping mapping(std::uint64_t begin, std::uint64_t end, const std::string& name) {
  inject::Mapping mapping;
  mapping.range = {begin, end};
  mapping.is_writable = true;
  mapping.name = name;
  return mapping;
}

void check_rows(std::string_view text, std::vector<LedgerRegion> regions) {
  std::vector<SmapsMapping> map;
  monitor::SmapsReader reader([&](const SmapsMapping& each) {
    if (map.size() < 1000 && each.rss_bytes < (1ULL << 50U) && each.pss_bytes <= each.rss_bytes &&
        each.swap_bytes < (1ULL << 50U)) {
      map.push_back(each);
    }
  });
  reader.add(text);
  (void)reader.finish();
  std::uint64_t rss = 0;
  std::uint64_t footprint = 0;
  for (const SmapsMapping& each : map) {
    rss += each.rss_bytes;
    footprint += each.footprint_bytes();
  }
  LedgerRows rows(std::move(regions),
                  [](std::uint64_t begin, std::uint64_t end) { return end - begin; });
  LedgerRow sum;
  for (const LedgerRow& row : rows.take(map, 5)) {
    add_to(sum, row);
  }
  TIDEMARK_CHECK(sum.rss_bytes == rss, "a ledger that adds up");
  TIDEMARK_CHECK(sum.footprint_bytes == footprint, "a footprint that adds up");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(0, end);
  const RepeatedMemory memory(input.substr(std::min(end + 1, input.size())));

  const std::vector<inject::Mapping> mappings{
      mapping(0x10000, 0x14000, "/usr/bin/python3"),  mapping(0x14000, 0x18000, ""),
      mapping(0x20000, 0x24000, "/lib/libc.so.6"),    mapping(0x200000, 0x280000, "[heap]"),
      mapping(kHeapBytes, kHeapBytes + 0x100000, ""), mapping(2 * kHeapBytes, 3 * kHeapBytes, "")};
  int asked = 0;
  const MallocHeaps heaps =
      find_malloc_heaps(mappings, memory.queries(), [&] { return ++asked > 20; });
  PythonRuntime runtime;
  runtime.address = 0x10100;
  runtime.layout.minor = size % 2 == 0 ? 9 : 12;
  const std::vector<PythonArena> arenas = find_python_arenas(mappings, runtime, memory.queries());
  (void)parse_stack_pointer(text);

  std::vector<LedgerRegion> regions;
  for (const MallocHeap& heap : heaps.heaps) {
    TIDEMARK_CHECK(heap.range.begin < heap.range.end, "a heap that is none");
    regions.push_back(
        {heap.range, LedgerKind::kMallocInUse, LedgerKind::kMallocFree, heap.free_bytes});
  }
  check_rows(text, std::move(regions));
  (void)arenas;
  return 0;
}
