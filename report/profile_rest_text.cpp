// SPDX-License-Identifier: Apache-2.0
#include "report/profile_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::MemoryParts;
using tracker::ProcessGrowth;
using tracker::TracedProcess;

constexpr double kOldAccountS = 1.5;
constexpr std::size_t kWhatColumns = 42;
constexpr std::size_t kGrownColumns = 15;
constexpr std::size_t kNowColumns = 11;

std::string cell(const std::optional<double>& bytes, bool with_sign) {
  if (!bytes) {
    return "?";
  }
  return with_sign ? format_bytes_delta(*bytes) : format_bytes(std::max(0.0, *bytes));
}

std::string row(std::string_view what, const std::optional<double>& grown,
                const std::optional<double>& now) {
  return fmt::format("         {:<{}}{:>{}}{:>{}}\n", what, kWhatColumns, cell(grown, true),
                     kGrownColumns, cell(now, false), kNowColumns);
}

// What the parts do not add up to: `grown` beyond noise, else nothing.
std::string remainder_row(const MemoryParts& growth) {
  if (!growth.footprint) {
    return "";
  }
  double rest = *growth.footprint;
  for (const auto& part : {growth.sites, growth.slack, growth.unhooked, growth.shared}) {
    rest -= part.value_or(0.0);
  }
  const double least = std::max(2.0 * kMiB, 0.1 * std::abs(*growth.footprint));
  if (std::abs(rest) < least) {
    return "";
  }
  const bool is_known = growth.slack && growth.unhooked;
  return fmt::format("         {:<{}}{:>{}}\n",
                     rest < 0.0 ? "not touched, or estimated too high"
                     : is_known ? "estimated too low, or at another moment"
                                : "in no site: allocator slack, or not hooked",
                     kWhatColumns, format_bytes_delta(rest), kGrownColumns);
}

std::string remedy_text(const KeptByAllocator& kept, const ProfileStyle& style) {
  return wrap_text(
      "remedy   ",
      fmt::format("the allocator keeps {} that no live block uses, {} of the footprint: "
                  "freed memory that it has not given back (fragmentation), not a leak of a line. "
                  "With glibc call malloc_trim(0) after large frees, or set "
                  "MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=131072, and "
                  "MALLOC_ARENA_MAX=2 with many threads; or preload jemalloc, which returns unused "
                  "pages (LD_PRELOAD=libjemalloc.so.2).",
                  format_bytes(kept.bytes), format_percent(kept.share)),
      style.columns);
}

std::string unseen_text(const UnseenMemory& unseen, const ProfileStyle& style) {
  return wrap_text(
      "unseen   ",
      fmt::format("{} of this process were allocated where the tracer does not look, so nothing is "
                  "said about its lines, and what is called slack above may be in use. The program "
                  "may have an allocator of its own in it (a static jemalloc or tcmalloc, Go), may "
                  "allocate by system calls of its own, or may be linked with tcmalloc, jemalloc "
                  "or mimalloc and be started by a script: then give tidemark the program itself, "
                  "or preload the allocator as well.",
                  format_bytes(unseen.bytes)),
      style.columns);
}

// The most that the tracer knows to have been allocated in a process.
double seen_bytes(const tracker::RunSites& run, const TracedProcess& process) {
  double most_live = 0.0;
  for (const tracker::Cell& cell : process.live.cells()) {
    most_live = std::max(most_live, cell.max_bytes);
  }
  double allocated = 0.0;
  for (const std::size_t i : process.sites) {
    const tracker::SiteTrack& site = run.sites[i];
    if (!is_counted_elsewhere(site.record.kind) &&
        site.record.kind != AllocationKind::kCudaDevice) {
      allocated += static_cast<double>(site.last.alloc_bytes);
    }
  }
  return std::max(most_live, allocated);
}

std::string losses_text(const ProfileReport& report) {
  std::string out;
  for (const auto& [what, count] : report.losses) {
    out += fmt::format("{:<9}{} x {}\n", out.empty() ? "not seen" : "", count, escape_text(what));
  }
  return out;
}

// "torch_4711_*" of segments whose names begin alike; "" otherwise.
std::string common_name(const ShmGrowthReport& shm) {
  constexpr std::size_t kShortest = 4;
  if (shm.largest.size() < 2) {
    return "";
  }
  std::string_view common = shm.largest.front().path;
  for (const GrowingSegment& segment : shm.largest) {
    const auto differs =
        std::mismatch(common.begin(), common.end(), segment.path.begin(), segment.path.end()).first;
    common = common.substr(0, static_cast<std::size_t>(differs - common.begin()));
  }
  // Numbers that begin alike are not a name.
  common = common.substr(0, common.find_last_not_of("0123456789") + 1);
  return common.size() < kShortest ? "" : escape_text(common) + '*';
}

}  // namespace

std::optional<KeptByAllocator> kept_by_allocator(const ProfileReport& report) {
  constexpr double kLeastBytes = 16.0 * kMiB;
  constexpr double kLeastShare = 0.25;
  if (report.ranking.processes.empty()) {
    return std::nullopt;
  }
  const ProcessGrowth& growth = report.ranking.processes.front();
  if (!growth.now.slack || !growth.now.footprint || *growth.now.footprint <= 0.0 ||
      unseen_memory(report) || lost_records(report)) {
    return std::nullopt;
  }
  KeptByAllocator kept;
  kept.bytes = *growth.now.slack;
  kept.share = std::min(1.0, kept.bytes / *growth.now.footprint);
  const double grown = growth.growth.slack.value_or(0.0);
  kept.is_most_of_the_growth =
      grown >= kLeastBytes && grown >= 0.5 * growth.growth.footprint.value_or(0.0);
  const bool is_much = kept.bytes >= 4.0 * kLeastBytes && kept.share >= kLeastShare;
  return is_much || kept.is_most_of_the_growth ? std::optional(kept) : std::nullopt;
}

std::optional<UnseenMemory> unseen_memory(const ProfileReport& report) {
  constexpr double kLeastBytes = 16.0 * kMiB;
  constexpr double kNextToNothing = 0.1;
  if (report.ranking.processes.empty()) {
    return std::nullopt;
  }
  const ProcessGrowth& growth = report.ranking.processes.front();
  const tracker::MemoryParts& now = growth.now;
  // Of processes with blocks from before tracing there is no account: that is another story.
  // Blocks that were seen and found no place are not those of another allocator.
  if (!now.slack || !now.footprint || lost_records(report)) {
    return std::nullopt;
  }
  UnseenMemory unseen;
  unseen.bytes = *now.footprint - now.sites.value_or(0.0) - now.shared.value_or(0.0);
  unseen.explained_share = growth.explained_share.value_or(0.0);
  const bool is_most =
      unseen.bytes >= kLeastBytes && unseen.bytes >= (1.0 - kNextToNothing) * *now.footprint;
  const bool is_unknown =
      seen_bytes(*report.run, report.run->processes[growth.process]) < 0.5 * unseen.bytes;
  return is_most && is_unknown && unseen.explained_share < kNextToNothing ? std::optional(unseen)
                                                                          : std::nullopt;
}

std::string where_text(const ProfileReport& report, const ProfileStyle& style) {
  if (report.ranking.processes.empty() || !report.ranking.processes.front().growth.footprint) {
    return "";
  }
  const ProcessGrowth& where = report.ranking.processes.front();
  const TracedProcess& process = report.run->processes[where.process];
  std::string out =
      fmt::format("{:<9}{:<{}}{:>{}}{:>{}}\n", "where",
                  shorten("of " + process_text(process), kWhatColumns - 1), kWhatColumns,
                  "since " + format_clock(where.from_s), kGrownColumns, "now", kNowColumns);
  out += row("live blocks of call stacks", where.growth.sites, where.now.sites);
  if (where.now.slack) {
    out += row(lost_records(report) ? "not recorded, or allocator slack"
                                    : "allocator slack (freed and kept, or lost)",
               where.growth.slack, where.now.slack);
    out +=
        row("not hooked (data, stacks, system calls)", where.growth.unhooked, where.now.unhooked);
  }
  out += row("shared memory", where.growth.shared, where.now.shared);
  out += remainder_row(where.growth);
  out += row("footprint", where.growth.footprint, where.now.footprint);
  out += row("beside it, pages of files", where.growth.file, where.now.file);
  if (where.account_age_s.value_or(0.0) > kOldAccountS) {
    out += wrap_text("         ",
                     fmt::format("Slack and not hooked are {:.0f} s older than the rest: they are "
                                 "looked up every few seconds.",
                                 *where.account_age_s),
                     style.columns);
  }
  if (const auto unseen = unseen_memory(report)) {
    out += unseen_text(*unseen, style);
  } else if (const auto kept = kept_by_allocator(report)) {
    out += remedy_text(*kept, style);
  }
  return out;
}

std::string shm_text(const ShmGrowthReport& shm, const ProfileStyle& style) {
  if (shm.grown_bytes < kShmWorthAWord) {
    return "";
  }
  const std::string names = common_name(shm);
  std::string out =
      wrap_text("/dev/shm ", fmt::format("grew by {} in {}{}", format_bytes(shm.grown_bytes),
                                         format_count(shm.segments, "segment"),
                                         names.empty() ? "" : " named " + names));
  constexpr std::size_t kMost = 5;
  constexpr std::size_t kRoom = 40;  // for the figures
  for (std::size_t i = 0; i < std::min(shm.largest.size(), kMost); ++i) {
    const GrowingSegment& segment = shm.largest[i];
    out += fmt::format("         +{} {}{}\n", format_bytes(segment.grown_bytes),
                       shorten(escape_text(segment.path), style.columns - kRoom),
                       segment.held && !*segment.held ? ", held by no process" : "");
  }
  if (shm.segments > kMost) {
    out += fmt::format("         and {} more\n", shm.segments - kMost);
  }
  return out;
}

std::string coverage_text(const ProfileReport& report, const ProfileStyle& style) {
  const ProfileCoverage& coverage = report.coverage;
  std::vector<std::string> modes;
  for (const TraceMode mode : coverage.modes) {
    modes.emplace_back(trace_mode_name(mode));
  }
  std::string text = fmt::format("{}", fmt::join(modes, " and "));
  if (coverage.sample_every_bytes) {
    text += fmt::format(", one sample in {}", format_bytes(*coverage.sample_every_bytes));
  }
  if (report.run->traced_processes() > 1) {
    text += fmt::format("; {} processes", format_grouped(report.run->traced_processes()));
  }
  if (coverage.frees_known_share) {
    text += "; frees known " + format_percent(*coverage.frees_known_share, 1);
  }
  text += fmt::format("; RSS explained {}", coverage.rss_explained_share
                                                ? format_percent(*coverage.rss_explained_share, 1)
                                                : "unknown");
  if (coverage.growth_explained_share) {
    text += fmt::format(
        ", {} of its growth since the tracer came (what was allocated before is in no line)",
        format_percent(*coverage.growth_explained_share, 1));
  }
  text += fmt::format("; records dropped {}; stacks cut off {}",
                      format_grouped(coverage.dropped_records),
                      format_grouped(coverage.truncated_stacks));
  if (coverage.empty_stacks > 0) {
    text += fmt::format("; stacks not walked {}", format_grouped(coverage.empty_stacks));
  }
  if (coverage.rest_bytes > 0) {
    text += fmt::format("; in small sites {}", format_bytes(coverage.rest_bytes));
  }
  text += fmt::format("; tracer's own memory {}", format_bytes(coverage.tracer_bytes));
  if (report.run->traced_processes() > 1) {
    text += fmt::format(" at most, {} in all", format_bytes(coverage.tracer_sum_bytes));
  }
  std::string out = report.run->empty() ? "" : wrap_text("coverage ", text, style.columns);
  for (const std::string& problem : coverage.problems) {
    out += wrap_text("problem  ", escape_text(problem), style.columns);
  }
  return out + losses_text(report);
}

}  // namespace tidemark::report
