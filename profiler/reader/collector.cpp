// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/collector.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "profiler/reader/memory_account.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

// A key without ambiguity: each part with its length in front.
void add_part(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key += ':';
  key += part;
}

// A folder full of rubbish is not worth more.
constexpr std::size_t kMostNames = 1U << 16U;
constexpr std::size_t kMostProblems = 50;
constexpr std::size_t kMostResidencySites = 32;

}  // namespace

std::vector<std::uint32_t> FrameNumbers::number(const std::vector<SourceFrame>& stack,
                                                AllocationFacts& facts) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(stack.size());
  for (const SourceFrame& frame : stack) {
    numbers.push_back(number_of_frame(frame, facts));
  }
  return numbers;
}

std::uint32_t FrameNumbers::number_of_module(const SourceFrame& frame, AllocationFacts& facts) {
  std::string key;
  add_part(key, frame.module_path);
  add_part(key, frame.build_id);
  const auto next = static_cast<std::uint32_t>(before_ + modules_.size() + 1);
  const auto [it, is_new] = modules_.try_emplace(std::move(key), next);
  if (is_new) {
    facts.modules.push_back({next, frame.module_path, frame.build_id});
  }
  return it->second;
}

std::uint32_t FrameNumbers::number_of_frame(const SourceFrame& frame, AllocationFacts& facts) {
  FrameRecord record = static_cast<const FrameRecord&>(frame);
  bound_names(record);
  if (!frame.module_path.empty()) {
    record.module = number_of_module(frame, facts);
  }
  std::string key;
  add_part(key, std::to_string(record.module.value_or(0)));
  add_part(key, std::to_string(record.offset));
  add_part(key, record.function);
  add_part(key, record.file);
  add_part(key, std::to_string(record.line.value_or(0)));
  key += frame.is_inlined ? 'i' : 'f';
  key += frame.kind == FrameKind::kPython ? 'p' : 'n';
  const auto next = static_cast<std::uint32_t>(before_ + frames_.size() + 1);
  const auto [it, is_new] = frames_.try_emplace(std::move(key), next);
  if (is_new) {
    record.frame = next;
    facts.frames.push_back(std::move(record));
  }
  return it->second;
}

Collector::Collector(CollectorOptions options, TraceWorld& world, const Clock& clock)
    : options_(std::move(options)), world_(world), clock_(clock), begun_ns_(clock.monotonic_ns()) {}

void Collector::set_epoch(std::optional<std::uint32_t> step) {
  find_new_files();  // a new process learns the time at once
  if (options_.read_only) {
    return;
  }
  const std::int64_t now_ns = clock_.monotonic_ns();
  for (const auto& open : files_) {
    open->traced.set_epoch(now_ns, step);
  }
}

void Collector::collect(AllocationFacts& facts) {
  find_new_files();
  read_files();
  choose_sites(facts);
  name_sites(facts, options_.naming_budget_ns);
  scan(facts);
  for (const auto& open : files_) {
    open->traced.add_samples(facts);
  }
  add_summaries(facts);
  drop_ended();
}

void Collector::finish(AllocationFacts& facts, std::int64_t naming_budget_ns) {
  constexpr int kMostImages = 16;  // of one process, since the last pass
  options_.naming_budget_ns = naming_budget_ns;
  int passes = 0;
  do {
    next_scan_ns_ = 0;
    collect(facts);
  } while (has_waiting_files_ && ++passes < kMostImages);
}

void Collector::put_to_sleep() {
  for (const auto& open : files_) {
    // A process that has just gone cannot be told, and need not be.
    static_cast<void>(open->traced.file().set_mode(open->mode_after));
  }
}

void Collector::find_new_files() {
  has_waiting_files_ = false;
  DIR* directory = ::opendir(options_.directory.c_str());
  if (directory == nullptr) {
    return;  // nobody has been traced yet, or somebody has tidied up
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(wire::kTraceSuffix) && !name.starts_with('.') && names.size() < kMostNames) {
      names.emplace_back(name);
    }
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const bool is_known =
        done_.contains(name) || std::any_of(files_.begin(), files_.end(), [&](const auto& open) {
          return open->traced.name() == name;
        });
    if (!is_known && files_.size() < options_.most_files) {
      open_file(name);
    }
  }
}

void Collector::open_file(const std::string& name) {
  TraceOpenOptions options;
  options.owner = options_.owner;
  options.access =
      options_.read_only ? TraceOpenOptions::Access::kRead : TraceOpenOptions::Access::kControl;
  auto file = TraceFile::open(options_.directory + '/' + name, options);
  if (!file) {
    if (file.error().code != Errc::kNotFound) {  // else it is not ready yet, or gone
      note_problem(name, file.error().what);
    }
    return;
  }
  const auto key = world_.find(file->identity());
  if (!key) {
    note_problem(name, "it belongs to a process that cannot be seen from here");
    return;
  }
  const auto is_below = [&](pid_t root) { return world_.is_in_tree(*key, root); };
  if (options_.wake_as &&
      !(world_.is_alive(*key) &&
        std::any_of(options_.wake_below.begin(), options_.wake_below.end(), is_below))) {
    if (done_.size() < kMostNames) {
      done_.insert(name);  // the folder is for many: this one is somebody else's
    }
    return;
  }
  if (must_wait(*key)) {
    has_waiting_files_ = true;
    return;
  }
  TraceMode mode_after = TraceMode::kDormant;
  if (options_.wake_as) {
    const auto mode_before = wake(*file);
    if (!mode_before) {
      note_problem(name, mode_before.error().what);
      return;
    }
    // Who came later has the mode that a parent of its had from us.
    const bool was_there = file->identity().created_ns < static_cast<std::uint64_t>(begun_ns_);
    mode_after = was_there ? *mode_before : mode_after;
  }
  ++files_seen_;
  files_.push_back(
      std::make_unique<Open>(Open{TracedFile(name, *key, *std::move(file)), mode_after}));
}

// The mode that it was in.
Result<TraceMode> Collector::wake(TraceFile& file) const {
  TIDEMARK_TRY_ASSIGN(const auto before, file.snapshot());
  if (options_.sample_every_bytes > 0) {
    static_cast<void>(file.set_sample_every(options_.sample_every_bytes));
  }
  TIDEMARK_TRY(file.set_mode(*options_.wake_as));
  return before.mode;
}

// The images that a process has had by exec are told apart by time alone: one has ended, and all
// has been said about it, before the next one begins.
bool Collector::must_wait(const ProcessKey& key) {
  const auto earlier = std::find_if(files_.begin(), files_.end(),
                                    [&](const auto& open) { return open->traced.key() == key; });
  if (earlier == files_.end()) {
    return false;
  }
  (*earlier)->has_successor = true;
  return true;
}

// Whether a process lives is asked before its file is read: what it did until its death is then in
// the file.
void Collector::read_files() {
  for (const auto& open : files_) {
    TracedFile& traced = open->traced;
    const bool is_alive = world_.is_alive(traced.key());
    read_ns_ = clock_.monotonic_ns();
    if (const Status status = traced.read(live_bytes_); !status) {
      note_problem(traced.name(), status.error().what);
      open->has_ended = true;
      continue;
    }
    if (traced.last().read_losses.damaged_items > 0) {
      ++damaged_passes_;
    }
    open->has_ended = !is_alive || open->has_successor || is_replaced(*open);
  }
}

// The stage is set before exec, and taken back when that fails: by itself it proves nothing. The
// new image has other mappings. Where they cannot be read, a stage that stays has to do.
bool Collector::is_replaced(Open& open) {
  if (open.traced.last().stage != wire::Stage::kReplaced) {
    open.seemed_replaced = false;
    return false;
  }
  const auto is_mapped = world_.is_mapped(open.traced.key(), open.traced.name());
  const bool seemed_so = std::exchange(open.seemed_replaced, true);
  return is_mapped ? !*is_mapped : seemed_so;
}

// Sites that are among the largest, or among those that grew most, are followed from then on. Small
// ones are left out, so that a thousand compilers do not use up the room of the one that leaks.
void Collector::choose_sites(AllocationFacts& facts) {
  struct Candidate {
    std::uint64_t bytes;
    TracedFile* file;
    const SiteCounts* site;
  };
  std::vector<Candidate> largest;
  std::vector<Candidate> growing;
  live_bytes_ = 0;
  for (const auto& open : files_) {
    live_bytes_ += open->traced.live_bytes();
  }
  const auto total = static_cast<double>(live_bytes_);
  for (const auto& open : files_) {
    for (const SiteCounts& site : open->traced.last().sites) {
      if (open->traced.state(site).number != 0) {
        continue;
      }
      const std::uint64_t grown = open->traced.grown_bytes(site);
      if (static_cast<double>(site.live_bytes()) >= options_.least_share * total) {
        largest.push_back({site.live_bytes(), &open->traced, &site});
      }
      if (static_cast<double>(grown) >= options_.least_grown_share * total) {
        growing.push_back({grown, &open->traced, &site});
      }
    }
  }
  const auto follow_most = [&](std::vector<Candidate>& all, std::size_t most) {
    const std::size_t count = std::min(all.size(), most);
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                      [](const Candidate& a, const Candidate& b) { return a.bytes > b.bytes; });
    for (std::size_t i = 0; i < count && all[i].bytes > 0; ++i) {
      follow(*all[i].file, *all[i].site, facts);
    }
  };
  follow_most(growing, options_.most_new_by_growth);
  follow_most(largest, options_.most_new_by_size);
}

void Collector::follow(TracedFile& file, const SiteCounts& site, AllocationFacts& facts) {
  TracedFile::SiteState& state = file.state(site);
  if (state.number != 0 || last_site_ >= options_.most_sites) {
    return;
  }
  state.number = ++last_site_;
  facts.sites.push_back({state.number, file.key(), site.kind, site.truncated, {}});
}

// The largest first; what finds no time in this pass is named in a later one.
void Collector::name_sites(AllocationFacts& facts, std::int64_t budget_ns) {
  struct Unnamed {
    std::uint64_t bytes;
    TracedFile* file;
    const SiteCounts* site;
  };
  std::vector<Unnamed> all;
  for (const auto& open : files_) {
    for (const SiteCounts& site : open->traced.last().sites) {
      const TracedFile::SiteState& state = open->traced.state(site);
      if (state.number != 0 && !open->traced.is_named(state)) {
        all.push_back({site.live_bytes(), &open->traced, &site});
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Unnamed& a, const Unnamed& b) { return a.bytes > b.bytes; });
  const std::int64_t begin_ns = clock_.monotonic_ns();
  for (const Unnamed& unnamed : all) {
    if (clock_.monotonic_ns() - begin_ns > budget_ns) {
      return;
    }
    TracedFile& file = *unnamed.file;
    TracedFile::SiteState& state = file.state(*unnamed.site);
    const auto stack = file.file().stack(unnamed.site->node);
    if (!file.file().is_same(*unnamed.site)) {
      continue;  // it has freed all, and its stack is lost unless it comes again
    }
    SiteRecord record{state.number, file.key(), unnamed.site->kind, unnamed.site->truncated, {}};
    record.frames = numbers_.number(world_.name(file.key(), stack, file.file().modules()), facts);
    file.set_named(state);
    // Introduced in this very pass: complete it; else it comes once more, with its frames.
    const auto own = std::find_if(facts.sites.begin(), facts.sites.end(),
                                  [&](const SiteRecord& s) { return s.site == record.site; });
    if (own != facts.sites.end()) {
      *own = std::move(record);
    } else {
      facts.sites.push_back(std::move(record));
    }
  }
}

void Collector::scan(AllocationFacts& facts) {
  const std::int64_t begin_ns = clock_.monotonic_ns();
  const bool is_due = begin_ns >= next_scan_ns_;
  for (const auto& open : files_) {
    if (!is_due && !open->has_ended) {
      continue;
    }
    TracedFile& traced = open->traced;
    LiveScanOptions options;
    options.keep_all_blocks = !open->has_ended;
    options.most_kept_blocks = 1U << 16U;
    options.small_below_bytes = kLargeBlockBytes;
    options.most_small_blocks = 1U << 14U;
    options.with_ages = [&traced](std::uint32_t site) { return traced.is_followed(site); };
    options.lists = [&traced](std::uint32_t site) {
      return traced.is_followed(site) || traced.kind_of(site) != AllocationKind::kHeap;
    };
    const auto found = traced.file().live_blocks(options);
    if (!found) {
      continue;  // the counters were read; only the ages are missing
    }
    const double created_s = to_seconds(static_cast<std::int64_t>(std::min<std::uint64_t>(
                                            traced.last().identity.created_ns, INT64_MAX)) -
                                        options_.start_ns);
    traced.add_ages(*found, created_s, facts);
    if (!open->has_ended) {
      measure_residency(traced, *found);
      add_account(traced, *found, facts);
    }
  }
  const std::int64_t now_ns = clock_.monotonic_ns();
  if (is_due) {
    const auto pause_ns =
        static_cast<std::int64_t>(static_cast<double>(now_ns - begin_ns) / options_.scan_share);
    const std::int64_t young_ns = std::max(kNsPerSecond, (now_ns - begun_ns_) / 8);
    next_scan_ns_ = now_ns + std::max(std::min(options_.scan_interval_ns, young_ns), pause_ns);
  }
}

// Of followed sites whose blocks are so large that they may be untouched: those that grew most, as
// the report leads with growth, then the largest.
void Collector::measure_residency(TracedFile& file, const LiveScan& scan) {
  std::vector<const SiteCounts*> large;
  for (const SiteCounts& site : file.last().sites) {
    const bool is_large =
        site.live_blocks() > 0.0 &&
        static_cast<double>(site.live_bytes()) / site.live_blocks() > kLargeBlockBytes;
    if (is_large && file.state(site).number != 0) {
      large.push_back(&site);
    }
  }
  const std::size_t count = std::min(large.size(), kMostResidencySites);
  std::partial_sort(large.begin(), large.begin() + static_cast<std::ptrdiff_t>(count), large.end(),
                    [&](const SiteCounts* a, const SiteCounts* b) {
                      return std::pair(file.grown_bytes(*a), a->live_bytes()) >
                             std::pair(file.grown_bytes(*b), b->live_bytes());
                    });
  std::vector<std::pair<const SiteCounts*, std::vector<MemoryRange>>> by_site;
  for (std::size_t i = 0; i < count; ++i) {
    by_site.emplace_back(large[i], std::vector<MemoryRange>());
  }
  for (const LiveBlock& block : scan.blocks) {
    const auto it = std::find_if(by_site.begin(), by_site.end(), [&](const auto& each) {
      return each.first->index == file.leader_of(block.site);
    });
    if (it != by_site.end()) {
      it->second.push_back({block.address, block.size_bytes, block.weight});
    }
  }
  for (const auto& [site, ranges] : by_site) {
    const auto residency = ranges.empty() ? std::nullopt : world_.residency(file.key(), ranges);
    if (residency) {
      file.set_resident_share(*site, residency->resident_share + residency->swapped_share);
    }
  }
}

// Not of processes that hold blocks which nobody could see: those of the parent from before a fork,
// those from before the tracer came or was woken, those of an allocator that it is not asked by.
void Collector::add_account(const TracedFile& file, const LiveScan& scan, AllocationFacts& facts) {
  const TraceSnapshot& last = file.last();
  if (last.identity.forked || options_.attached || options_.wake_as ||
      last.mode == TraceMode::kDormant || !last.reason.empty()) {
    return;
  }
  const auto areas = world_.areas(file.key());
  if (!areas) {
    return;
  }
  AccountInput input;
  input.areas = *areas;
  input.scan = &scan;
  input.kind_of = [&file](std::uint32_t site) { return file.kind_of(site); };
  input.residency_of = [&](std::span<const MemoryRange> ranges) {
    return world_.residency(file.key(), ranges);
  };
  input.sample_every_bytes = last.mode == TraceMode::kSampled ? last.sample_every_bytes : 0;
  input.tracer_private_bytes = last.private_bytes;
  MemoryAccount account = make_account(input);
  account.key = file.key();
  account.t_s = to_seconds(clock_.monotonic_ns() - options_.start_ns);
  facts.accounts.push_back(account);
}

void Collector::add_summaries(AllocationFacts& facts) {
  for (const auto& open : files_) {
    TraceSample sum = open->traced.summary(to_seconds(read_ns_ - options_.start_ns));
    sum.has_ended = open->has_ended;
    facts.traces.push_back(std::move(sum));
  }
}

void Collector::drop_ended() {
  for (const auto& open : files_) {
    if (!open->has_ended) {
      continue;
    }
    const std::string path = options_.directory + '/' + open->traced.name();
    const bool is_removed =
        options_.remove_files && !options_.read_only && ::unlink(path.c_str()) == 0;
    if (!is_removed && done_.size() < kMostNames) {
      done_.insert(open->traced.name());
    }
  }
  std::erase_if(files_, [](const auto& open) { return open->has_ended; });
}

void Collector::note_problem(const std::string& name, const std::string& what) {
  if (done_.size() < kMostNames && done_.insert(name).second) {
    ++unreadable_files_;
    if (problems_.size() < kMostProblems) {
      problems_.push_back(fmt::format("{} is not used: {}", shorten(escape_text(name), 80), what));
    }
  }
}

std::vector<std::string> Collector::take_problems() {
  std::vector<std::string> problems = std::exchange(problems_, {});
  for (std::string& problem : world_.take_problems()) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<LossRecord> Collector::take_losses() {
  std::vector<LossRecord> losses;
  if (const auto count = std::exchange(unreadable_files_, std::uint64_t{0}); count > 0) {
    losses.push_back({0.0, LossKind::kTraceFilesUnreadable, count});
  }
  if (const auto count = std::exchange(damaged_passes_, std::uint64_t{0}); count > 0) {
    losses.push_back({0.0, LossKind::kTraceLooksDamaged, count});
  }
  return losses;
}

}  // namespace tidemark::reader
