// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_ledger.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"
#include "monitor/procfs/proc_smaps.h"
#include "monitor/procfs/process_handle.h"
#include "profiler/heap/glibc_heaps.h"
#include "profiler/heap/ledger_rows.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/memory_queries.h"
#include "profiler/heap/python_arenas.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/heap/thread_stacks.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/reader/memory_account.h"
#include "profiler/reader/page_map.h"

namespace tidemark::heap {
namespace {

using inject::AddressRange;
using inject::Mapping;
using monitor::SmapsMapping;

constexpr std::uint64_t kImageBytes = 64U << 20U;  // of what find_python() reads
constexpr std::uint64_t kUsualStackBytes = 8U << 20U;

std::int64_t now_ns() { return SystemClock().monotonic_ns(); }

// Files on these are shared memory, wherever they are mounted: "00:19".
std::unordered_set<std::string> tmpfs_devices(std::string_view mountinfo) {
  std::unordered_set<std::string> devices;
  std::string_view line;
  while (monitor::take_line(mountinfo, line)) {
    monitor::take_word(line);  // mount id
    monitor::take_word(line);  // parent id
    const std::vector<std::string_view> device = split(monitor::take_word(line), ':');
    const bool is_tmpfs = line.find(" - tmpfs ") != std::string_view::npos;
    const auto major = device.size() == 2 ? parse_number<unsigned>(device[0]) : std::nullopt;
    const auto minor = device.size() == 2 ? parse_number<unsigned>(device[1]) : std::nullopt;
    if (is_tmpfs && major && minor) {
      devices.insert(fmt::format("{:02x}:{:02x}", *major, *minor));
    }
  }
  return devices;
}

Mapping plain(const SmapsMapping& mapping) {
  Mapping plain;
  plain.range = {mapping.begin, mapping.end};
  plain.is_writable = mapping.is_writable();
  plain.is_executable = mapping.is_executable();
  plain.is_readable = mapping.is_readable();
  plain.is_shared = mapping.permissions.ends_with('s');
  plain.name = mapping.name;
  return plain;
}

reader::MemoryArea area_of(const SmapsMapping& mapping) {
  return {mapping.begin, mapping.end, reader::area_kind(mapping.name), mapping.rss_bytes,
          mapping.anonymous_bytes + mapping.swap_bytes};
}

// One process while its ledger is made.
class LedgerReader {
 public:
  LedgerReader(const ProcessKey& key, const LedgerOptions& options)
      : key_(key), options_(options) {}

  Result<MemoryLedger> read(double t_s) {
    const std::int64_t begin_ns = now_ns();
    TIDEMARK_TRY_ASSIGN(auto handle, monitor::ProcessHandle::open(options_.proc_root, key_));
    TIDEMARK_TRY_ASSIGN(const auto before, handle.status());
    TIDEMARK_TRY(read_map(handle));
    TIDEMARK_TRY_ASSIGN(const auto after, handle.status());
    ledger_.key = key_;
    ledger_.t_s = t_s;
    ledger_.threads = after.threads;
    find_regions();
    LedgerRows rows(std::move(regions_), [this](std::uint64_t begin, std::uint64_t end) {
      return pages_ ? pages_->present_bytes(begin, end) : 0;
    });
    ledger_.rows = rows.take(map_, options_.most_named);
    add_sums(before, after);
    add_trace();
    ledger_.took_s = to_seconds(now_ns() - begin_ns);
    return std::move(ledger_);
  }

 private:
  // The process runs on meanwhile: what it had before or after, whichever is nearer to the rows.
  void add_sums(const monitor::StatusFields& before, const monitor::StatusFields& after) {
    const auto signed_rss = [](const monitor::StatusFields& status) {
      return static_cast<std::int64_t>(status.rss_bytes.value_or(0));
    };
    const auto rows = static_cast<std::int64_t>(ledger_.sum().rss_bytes);
    const bool is_before = std::abs(signed_rss(before) - rows) < std::abs(signed_rss(after) - rows);
    const monitor::StatusFields& status = is_before ? before : after;
    ledger_.rss_bytes = status.rss_bytes.value_or(0);
    ledger_.swap_bytes = status.swap_bytes.value_or(0);
    ledger_.footprint_bytes =
        status.rss_anon_bytes.value_or(0) + status.rss_shmem_bytes.value_or(0) + ledger_.swap_bytes;
    ledger_.moved_bytes = signed_rss(after) - signed_rss(before);
  }

  Status read_map(monitor::ProcessHandle& handle) {
    const auto mounts = read_file(fmt::format("{}/{}/mountinfo", options_.proc_root, key_.pid));
    const auto tmpfs = tmpfs_devices(mounts ? std::string_view(*mounts) : std::string_view());
    monitor::SmapsReader reader([&](const SmapsMapping& mapping) {
      map_.push_back(mapping);
      if (mapping.backing == SmapsMapping::Backing::kFile && tmpfs.contains(mapping.device)) {
        map_.back().backing = SmapsMapping::Backing::kShmem;
      }
      ledger_.hugetlb_bytes += mapping.hugetlb_bytes;
      mappings_.push_back(plain(mapping));
    });
    TIDEMARK_TRY(handle.smaps([&](std::string_view piece) { reader.add(piece); }));
    return reader.finish();
  }

  // What is known first keeps its place: of a heap, an arena or a stack.
  void add_region(LedgerRegion region) {
    const auto next = std::lower_bound(
        regions_.begin(), regions_.end(), region.range.begin,
        [](const LedgerRegion& each, std::uint64_t at) { return each.range.end <= at; });
    if (next == regions_.end() || next->range.begin >= region.range.end) {
      regions_.insert(next, region);
    }
  }

  void find_regions() {
    if (auto pages = reader::PageMap::open(key_.pid, options_.proc_root)) {
      pages_ = *std::move(pages);
    }
    auto memory = options_.proc_root == "/proc" && pages_
                      ? inject::RemoteMemory::open(key_.pid)
                      : Result<inject::RemoteMemory>(
                            Error{Errc::kPermission, "its page table cannot be read"});
    if (memory) {
      const MemoryQueries queries{[&](std::uint64_t address, std::span<char> into) {
                                    return !into.empty() && pages_->has_page_at(address) &&
                                           pages_->has_page_at(address + into.size() - 1) &&
                                           memory->read(address, into);
                                  },
                                  [&](std::uint64_t begin, std::uint64_t end) {
                                    return pages_->present_bytes(begin, end);
                                  }};
      add_malloc(queries);
      add_python(queries, *memory);
    } else {
      add_problem("what is free in its heaps, and what Python has of it, is not known: " +
                  memory.error().what);
      add_heaps(guess_malloc_heaps(mappings_));
    }
    add_stacks();
  }

  void add_malloc(const MemoryQueries& queries) {
    const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(options_.most_seconds * 1e9);
    add_heaps(find_malloc_heaps(mappings_, queries, [end_ns] { return now_ns() > end_ns; }));
  }

  void add_heaps(const MallocHeaps& heaps) {
    ledger_.is_partial = heaps.is_partial;
    ledger_.malloc_heaps = 0;
    for (const MallocHeap& heap : heaps.heaps) {
      *ledger_.malloc_heaps += heap.is_main ? 0U : 1U;
      LedgerRegion region{heap.range, LedgerKind::kMalloc, std::nullopt, 0};
      if (heaps.knows_free) {
        region.kind = LedgerKind::kMallocInUse;
        region.free_kind = LedgerKind::kMallocFree;
        region.free_bytes = heap.free_bytes;
      }
      add_region(region);
    }
  }

  // The program, its library or a module of it says so by its name. To look for one in a program
  // that has none, its files would have to be read, which makes its RSS grow.
  bool may_be_python() const {
    return std::any_of(mappings_.begin(), mappings_.end(), [](const Mapping& mapping) {
      return basename_of(mapping.name).find("python") != std::string_view::npos;
    });
  }

  void add_python(const MemoryQueries& queries, const inject::RemoteMemory& memory) {
    if (!may_be_python()) {
      return;
    }
    auto image = MemoryImage::open(key_.pid, kImageBytes);
    if (!image) {
      return;
    }
    const auto runtime = find_python(*image, memory);
    if (!runtime) {
      if (runtime.error().code == Errc::kUnsupported) {
        add_problem("arenas of Python are among the anonymous memory: " + runtime.error().what);
      }
      return;
    }
    if (runtime->layout.is_free_threaded) {
      add_problem("a free-threaded Python has no arenas: its objects are anonymous memory");
      return;
    }
    for (const PythonArena& arena : find_python_arenas(mappings_, *runtime, queries)) {
      const std::uint64_t present = queries.present_bytes(arena.range.begin, arena.range.end);
      add_region({arena.range, LedgerKind::kPythonInUse, LedgerKind::kPythonFree,
                  present - std::min(present, arena.used_bytes)});
    }
  }

  void add_stacks() {
    const auto limits = read_file(fmt::format("{}/{}/limits", options_.proc_root, key_.pid));
    const std::uint64_t stack_bytes =
        (limits ? monitor::parse_soft_limit(*limits, "Max stack size") : std::nullopt)
            .value_or(kUsualStackBytes);
    const std::uint64_t threads = ledger_.threads.value_or(1);
    for (const AddressRange& stack :
         find_thread_stacks(mappings_, stack_pointers_of(options_.proc_root, key_.pid),
                            threads > 0 ? threads - 1 : 0, stack_bytes)) {
      add_region({stack, LedgerKind::kThreadStacks, std::nullopt, 0});
    }
  }

  void add_trace() {
    if (!options_.traces || !options_.traces->is_traced(key_)) {
      return;
    }
    std::vector<reader::MemoryArea> areas;
    areas.reserve(map_.size());
    for (const SmapsMapping& mapping : map_) {
      areas.push_back(area_of(mapping));
    }
    if (const auto account = options_.traces->account(key_, areas)) {
      ledger_.traced_live_bytes = account->blocks_bytes;
      ledger_.traced_slack_bytes = account->slack_bytes;
      ledger_.traced_unhooked_bytes = account->unhooked_bytes;
    }
  }

  void add_problem(const std::string& text) {
    ledger_.problem += (ledger_.problem.empty() ? "" : "; ") + text;
  }

  const ProcessKey& key_;
  const LedgerOptions& options_;
  std::vector<SmapsMapping> map_;
  std::vector<Mapping> mappings_;      // the same
  std::vector<LedgerRegion> regions_;  // by address
  std::optional<reader::PageMap> pages_;
  MemoryLedger ledger_;
};

}  // namespace

Result<MemoryLedger> read_ledger(const ProcessKey& key, double t_s, const LedgerOptions& options) {
  return LedgerReader(key, options).read(t_s);
}

}  // namespace tidemark::heap
