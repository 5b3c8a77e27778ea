// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/block_sites.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "monitor/procfs/kernel_text.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

constexpr std::int64_t kNamingBudgetNs = kNsPerSecond / 2;
constexpr std::size_t kMostNamed = 1U << 16U;  // stacks, in the whole run

struct Wanted {
  std::uint64_t address = 0;
  std::size_t group = 0;
};

std::vector<Wanted> by_address(std::span<const std::vector<std::uint64_t>> groups) {
  std::vector<Wanted> all;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::uint64_t address : groups[group]) {
      all.push_back({address, group});
    }
  }
  const auto order = [](const Wanted& wanted) { return std::pair(wanted.address, wanted.group); };
  std::sort(all.begin(), all.end(),
            [&](const Wanted& a, const Wanted& b) { return order(a) < order(b); });
  const auto last = std::unique(all.begin(), all.end(), [&](const Wanted& a, const Wanted& b) {
    return order(a) == order(b);
  });
  all.erase(last, all.end());
  return all;
}

std::vector<Wanted>::const_iterator first_at(const std::vector<Wanted>& wanted,
                                             std::uint64_t address) {
  return std::lower_bound(wanted.begin(), wanted.end(), address,
                          [](const Wanted& each, std::uint64_t at) { return each.address < at; });
}

// The bytes of each group by site of the file.
using BytesBySite = std::map<std::uint32_t, double>;

std::vector<BytesBySite> add_up(const LiveScan& scan, const std::vector<Wanted>& wanted,
                                std::size_t groups) {
  std::vector<BytesBySite> bytes(groups);
  for (const LiveBlock& block : scan.blocks) {
    for (auto each = first_at(wanted, block.address);
         each != wanted.end() && each->address == block.address; ++each) {
      bytes[each->group][block.site] += block.weight * static_cast<double>(block.size_bytes);
    }
  }
  return bytes;
}

std::optional<LiveScan> scan_for(const TraceFile& file, const std::vector<Wanted>& wanted) {
  LiveScanOptions options;
  options.keep_all_blocks = true;
  options.keeps_address = [&](std::uint64_t address) {
    const auto first = first_at(wanted, address);
    return first != wanted.end() && first->address == address;
  };
  options.with_ages = [](std::uint32_t) { return false; };
  auto scan = file.live_blocks(options);
  return scan ? std::optional(*std::move(scan)) : std::nullopt;
}

// Several sites may have one stack: the largest ones, each with one of its sites.
using StackBytes = std::pair<double, const SiteCounts*>;
std::vector<StackBytes> largest_stacks(const TraceSnapshot& snapshot, const BytesBySite& bytes) {
  std::map<std::pair<std::uint64_t, AllocationKind>, StackBytes> by_stack;
  for (const SiteCounts& site : snapshot.sites) {
    if (const auto own = bytes.find(site.index); own != bytes.end()) {
      auto& [sum, of] = by_stack[{site.stack, site.kind}];
      sum += own->second;
      of = &site;
    }
  }
  std::vector<StackBytes> largest;
  largest.reserve(by_stack.size());
  for (const auto& [stack, sum] : by_stack) {
    largest.push_back(sum);
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const StackBytes& a, const StackBytes& b) { return a.first > b.first; });
  largest.resize(std::min(largest.size(), BlockSites::kMostSites));
  return largest;
}

// The tracer was not there when the process started: somebody has attached it.
bool came_later(const TraceIdentity& identity, const ProcessKey& key) {
  constexpr double kLoading = 5.0;
  const double started_s =
      static_cast<double>(key.start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(identity.created_ns) / 1e9 - started_s > kLoading;
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

BlockSites::BlockSites(std::unique_ptr<TraceWorld> world, std::vector<std::string> bases)
    : world_(std::move(world)), bases_(std::move(bases)) {}

// A process that has called exec has a file of each program: the last one counts. What a tracer
// that rests has recorded may have been freed since.
std::optional<TraceFile> BlockSites::open(const ProcessKey& key) {
  const auto folder = find_trace_of(key.pid, bases_);
  if (!folder || trace_folder_is_left(*folder)) {
    return std::nullopt;
  }
  auto entries = monitor::DirectoryStream::open_at(AT_FDCWD, *folder);
  std::optional<TraceFile> newest;
  while (const dirent* entry = entries ? entries->next() : nullptr) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(wire::kTraceSuffix)) {
      continue;
    }
    auto file = TraceFile::open(*folder + '/' + std::string(name));
    if (file && world_->find(file->identity()) == key &&
        (!newest || newest->identity().created_ns < file->identity().created_ns)) {
      newest = *std::move(file);
    }
  }
  return newest;
}

std::vector<std::vector<OwnerSite>> BlockSites::find(
    const ProcessKey& key, std::span<const std::vector<std::uint64_t>> groups) {
  std::vector<std::vector<OwnerSite>> found(groups.size());
  const std::vector<Wanted> wanted = by_address(groups);
  auto file = wanted.empty() ? std::nullopt : open(key);
  const auto scan = file ? scan_for(*file, wanted) : std::nullopt;
  if (!scan) {
    return found;
  }
  const std::vector<BytesBySite> bytes = add_up(*scan, wanted, groups.size());
  const auto snapshot = file->snapshot([&](const SiteCounts& site) {
    return std::any_of(bytes.begin(), bytes.end(),
                       [&](const BytesBySite& each) { return each.contains(site.index); });
  });
  if (!snapshot || snapshot->mode == TraceMode::kDormant) {
    return found;
  }
  world_->wait_until(SystemClock().monotonic_ns() + kNamingBudgetNs);
  AllocationFacts facts;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const auto& [sum, site] : largest_stacks(*snapshot, bytes[group])) {
      if (const auto number = number_of(key, *file, *site, facts)) {
        found[group].push_back(
            {*number, static_cast<std::uint64_t>(std::llround(std::min(sum, 0x1p62)))});
      }
    }
  }
  const std::lock_guard lock(mutex_);
  append(facts_.modules, std::move(facts.modules));
  append(facts_.frames, std::move(facts.frames));
  append(facts_.sites, std::move(facts.sites));
  return found;
}

// As the collector does it.
std::optional<MemoryAccount> BlockSites::account(const ProcessKey& key,
                                                 std::span<const MemoryArea> areas) {
  auto file = open(key);
  if (!file || file->identity().forked || came_later(file->identity(), key)) {
    return std::nullopt;  // older blocks are not known
  }
  const auto snapshot = file->snapshot();
  if (!snapshot || snapshot->mode == TraceMode::kDormant || !snapshot->reason.empty()) {
    return std::nullopt;
  }
  std::map<std::uint32_t, AllocationKind> kinds;
  for (const SiteCounts& site : snapshot->sites) {
    kinds.emplace(site.index, site.kind);
  }
  LiveScanOptions options;
  options.keep_all_blocks = true;
  options.most_kept_blocks = 1U << 16U;
  options.small_below_bytes = kLargeBlockBytes;
  options.most_small_blocks = 1U << 14U;
  options.with_ages = [](std::uint32_t) { return false; };
  const auto scan = file->live_blocks(options);
  if (!scan) {
    return std::nullopt;
  }
  AccountInput input;
  input.areas = areas;
  input.scan = &*scan;
  input.kind_of = [&](std::uint32_t site) {
    const auto kind = kinds.find(site);
    return kind == kinds.end() ? AllocationKind::kHeap : kind->second;
  };
  input.residency_of = [&](std::span<const MemoryRange> ranges) {
    return world_->residency(key, ranges);
  };
  input.sample_every_bytes =
      snapshot->mode == TraceMode::kSampled ? snapshot->sample_every_bytes : 0;
  input.tracer_private_bytes = snapshot->private_bytes;
  MemoryAccount account = make_account(input);
  account.key = key;
  return account;
}

std::optional<std::uint32_t> BlockSites::number_of(const ProcessKey& key, const TraceFile& file,
                                                   const SiteCounts& site, AllocationFacts& facts) {
  const StackKey stack{key, file.identity().created_ns, site.stack, site.kind};
  if (const auto known = numbers_.find(stack); known != numbers_.end()) {
    return known->second;
  }
  const auto frames = file.stack(site.node);
  if (numbers_.size() >= kMostNamed || !file.is_same(site)) {
    return std::nullopt;
  }
  const auto number = static_cast<std::uint32_t>(kNumberBefore + numbers_.size() + 1);
  SiteRecord record{number, key, site.kind, site.truncated, {}};
  record.frames = frames_.number(world_->name(key, frames, file.modules()), facts);
  facts.sites.push_back(std::move(record));
  numbers_.emplace(stack, number);
  return number;
}

AllocationFacts BlockSites::take_facts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(facts_, {});
}

}  // namespace tidemark::reader
