// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/outline.h"
#include "cli/profile_frames.h"
#include "cli/track_words.h"
#include "cli/wrap_text.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

using tracker::ProcessGrowth;
using tracker::RankedSite;
using tracker::TracedProcess;
using tracker::Verdict;

constexpr std::size_t kFrameColumns = 92;
constexpr std::size_t kMostFrames = 12;           // of one stack; --json has all
constexpr std::size_t kMostHolders = 3;           // that do not grow
constexpr std::uint64_t kWorthAWord = 1U << 20U;  // of /dev/shm, which others use as well

std::string signed_size(double bytes) {
  return bytes < 0.0 ? "-" + size_text(-bytes) : "+" + size_text(bytes);
}

std::string process_text(const TracedProcess& process) {
  std::string text(role_name(process.role));
  if (process.rank) {
    text += fmt::format(" {}", *process.rank);
  }
  text += fmt::format(", pid {}", process.key.pid);
  if (!process.comm.empty()) {
    text += fmt::format(" ({})", shorten(escape_text(process.comm), 30));
  }
  return text;
}

std::string processes_text(const ProfileReport& report, const RankedSite& site) {
  const TracedProcess* first =
      site.processes.empty() ? nullptr : find_process(*report.run, site.processes.front());
  if (first == nullptr) {
    return "?";
  }
  return site.processes.size() == 1 ? process_text(*first)
                                    : fmt::format("{} x{} (pid {}, ...)", role_name(site.role),
                                                  site.processes.size(), first->key.pid);
}

std::string since_text(const tracker::Moment& since) {
  if (since.step) {
    return fmt::format("since step {:.0f}", *since.step);
  }
  return since.t_s ? "since " + format_clock(*since.t_s) : "";
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
  return digits;
}

std::string live_text(const RankedSite& site) {
  std::string text =
      fmt::format("{} in {} {}", format_bytes(site.live_bytes), grouped(site.live_blocks),
                  site.live_blocks == 1 ? "block" : "blocks");
  if (site.live_blocks > 1) {
    text += fmt::format(" of about {}", format_bytes(site.live_bytes / site.live_blocks));
  }
  if (site.kind != AllocationKind::kHeap) {
    std::string kind(allocation_kind_name(site.kind));
    std::replace(kind.begin(), kind.end(), '_', ' ');
    text += ", " + kind;
  }
  if (site.resident_bytes && *site.resident_bytes < site.live_bytes / 10 * 9) {
    text += fmt::format(", of which {} resident", format_bytes(*site.resident_bytes));
  }
  text += fmt::format("; peak {}, {} allocated in all", format_bytes(site.peak_bytes),
                      format_bytes(site.alloc_bytes));
  return text;
}

// Of a long way from the allocation to the user's own line, the beginning and the end: frames
// [0, first) and from `second` on are shown.
std::pair<std::size_t, std::size_t> shown_parts(const ShownStack& stack) {
  constexpr std::size_t kHead = 2;
  constexpr std::size_t kBefore = 1;  // the user's own line
  const std::size_t own = stack.own_line.value_or(0);
  if (own <= kHead + kBefore + 1) {
    return {kHead, kHead};
  }
  return {kHead, own - kBefore};
}

std::string stack_text(const ProfileReport& report, const RankedSite& site, bool colour) {
  const ShownStack stack = shown_stack(*report.run, site.frames);
  if (stack.frames.empty()) {
    return "    stack    not known\n";
  }
  const auto parts = shown_parts(stack);
  const std::size_t head = std::min(parts.first, stack.frames.size());
  const std::size_t tail = std::max(head, std::min(parts.second, stack.frames.size()));
  std::string out;
  const auto add = [&](std::size_t i) {
    const bool is_own = stack.own_line == i;
    const std::string text = frame_text(stack.frames[i], kFrameColumns);
    out += fmt::format("    {:<6}{} {}\n", i == 0 ? "stack" : "", is_own ? "->" : "  ",
                       is_own && colour ? "\x1b[1m" + text + "\x1b[0m" : text);
  };
  for (std::size_t i = 0; i < head; ++i) {
    add(i);
  }
  if (tail > head) {
    out += fmt::format("             ... {} frames of {}\n", tail - head,
                       escape_text(basename_of(stack.frames[tail - 1].module)));
  }
  const std::size_t end = std::min(stack.frames.size(), tail + (kMostFrames - head));
  for (std::size_t i = tail; i < end; ++i) {
    add(i);
  }
  if (end < stack.frames.size()) {
    const std::size_t more = stack.frames.size() - end;
    out += fmt::format("             ({} more {}; --json has all)\n", more,
                       more == 1 ? "frame" : "frames");
  }
  if (site.is_truncated) {
    out += "             (the stack goes deeper than the tracer walks)\n";
  }
  return out;
}

std::string site_text(const ProfileReport& report, const RankedSite& site, std::size_t rank,
                      const ProfileStyle& style) {
  std::string head = fmt::format("{:>2}  {:<7}  {}", rank, verdict_name(site.verdict),
                                 growth_text(site.growth_bytes_per_s));
  if (site.growth_bytes_per_step) {
    head += fmt::format("  {}/step", signed_size(*site.growth_bytes_per_step));
  }
  if (const std::string since = since_text(site.since); !since.empty()) {
    head += "  " + since;
  }
  const std::string who = processes_text(report, site);
  head += site.share_of_growth
              ? fmt::format("  {:.0f} % of the growth of {}", *site.share_of_growth * 100.0, who)
              : "  in " + who;
  std::string out = style.colour ? "\x1b[1m" + head + "\x1b[0m\n" : head + '\n';
  out += wrap_text("    live     ", live_text(site), 100);
  if (const std::string born = birth_text(site.births, style.glyphs); !born.empty()) {
    out += "    born     " + born + '\n';
  }
  if (site.needs && site.verdict == Verdict::kGrowing) {
    if (const std::string needs = needs_text(*site.needs); !needs.empty()) {
      out += "    needs    " + needs + " to tell a leak from warm-up\n";
    }
  }
  return out + stack_text(report, site, style.colour) + '\n';
}

// Of those that grow, the ones worth a paragraph: a hundredth of the fastest.
bool is_worth_showing(const ProfileReport& report, const RankedSite& site) {
  constexpr double kShare = 0.01;
  return site.grows() && site.growth_bytes_per_s > 0.0 &&
         site.growth_bytes_per_s >= kShare * report.ranking.sites.front().growth_bytes_per_s;
}

std::size_t growing_sites(const ProfileReport& report) {
  return static_cast<std::size_t>(
      std::count_if(report.ranking.sites.begin(), report.ranking.sites.end(),
                    [&](const RankedSite& site) { return is_worth_showing(report, site); }));
}

std::size_t slow_sites(const ProfileReport& report) {
  return static_cast<std::size_t>(
             std::count_if(report.ranking.sites.begin(), report.ranking.sites.end(),
                           [](const RankedSite& site) {
                             return site.grows() && site.growth_bytes_per_s > 0.0;
                           })) -
         growing_sites(report);
}

std::string answer(const ProfileReport& report) {
  if (report.run->empty()) {
    return "NO DATA: the tracer was in no process.";
  }
  const std::size_t growing = growing_sites(report);
  if (growing == 0 && report.shm.grown_bytes >= kWorthAWord) {
    return fmt::format("/dev/shm GROWS by {}, and no call stack does: see its segments below.",
                       format_bytes(report.shm.grown_bytes));
  }
  if (growing == 0) {
    return fmt::format("NOTHING GROWS: no call stack of {} {} keeps growing.",
                       report.run->processes.size(),
                       report.run->processes.size() == 1 ? "process" : "processes");
  }
  const RankedSite& first = report.ranking.sites.front();
  const std::string line = headline(shown_stack(*report.run, first.frames), kFrameColumns);
  std::string text =
      fmt::format("{}: {} {} by {}", first.verdict == Verdict::kLeak ? "LEAK" : "GROWING",
                  line.empty() ? "a call stack" : line,
                  first.verdict == Verdict::kLeak ? "keeps growing" : "grows",
                  growth_text(first.growth_bytes_per_s));
  if (first.growth_bytes_per_step) {
    text += fmt::format(" ({}/step)", signed_size(*first.growth_bytes_per_step));
  }
  text += first.share_of_growth
              ? fmt::format(", {:.0f} % of the growth of {}.", *first.share_of_growth * 100.0,
                            processes_text(report, first))
              : fmt::format(" in {}.", processes_text(report, first));
  if (growing > 1) {
    text +=
        fmt::format(" {} more call {}.", growing - 1, growing == 2 ? "stack grows" : "stacks grow");
  }
  return text;
}

std::string holders_text(const ProfileReport& report) {
  std::vector<const RankedSite*> holders;
  for (const RankedSite& site : report.ranking.sites) {
    if (!site.grows() && site.live_bytes > 0) {
      holders.push_back(&site);
    }
  }
  std::stable_sort(holders.begin(), holders.end(), [](const RankedSite* a, const RankedSite* b) {
    return a->live_bytes > b->live_bytes;
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(holders.size(), kMostHolders); ++i) {
    const RankedSite& site = *holders[i];
    out += fmt::format("{:<9}{:<9} {:>9}  {}\n", i == 0 ? "holds" : "", verdict_name(site.verdict),
                       format_bytes(site.live_bytes),
                       headline(shown_stack(*report.run, site.frames), 70));
  }
  return out;
}

std::string process_growth_text(const ProfileReport& report, const ProcessGrowth& growth) {
  const TracedProcess& process = report.run->processes[growth.process];
  if (!growth.footprint_bytes) {
    return "";
  }
  const double footprint = *growth.footprint_bytes;
  std::string text = fmt::format("{}: {} since {}, of which sites {}", process_text(process),
                                 signed_size(footprint), format_clock(growth.from_s),
                                 signed_size(growth.sites_bytes));
  std::string out = wrap_text("growth   ", text, 100);
  const double rest = footprint - growth.sites_bytes;
  text = rest >= 0.0
             ? fmt::format("{} in no site: allocator slack, memory that is not hooked",
                           signed_size(rest))
             : fmt::format(
                   "sites hold {} more than that: reserved and not touched, or freed by the "
                   "kernel's measure later",
                   size_text(-rest));
  if (growth.shared_bytes) {
    text += fmt::format("; shared memory {}", signed_size(*growth.shared_bytes));
  }
  if (growth.file_bytes) {
    text += fmt::format("; beside it, pages of files {}", signed_size(*growth.file_bytes));
  }
  return out + wrap_text("rest     ", text, 100);
}

std::string shm_text(const ShmGrowthReport& shm) {
  if (shm.grown_bytes < kWorthAWord) {
    return "";
  }
  std::string out =
      wrap_text("/dev/shm ", fmt::format("grew by {} in {} {}", format_bytes(shm.grown_bytes),
                                         shm.segments, shm.segments == 1 ? "segment" : "segments"));
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(shm.largest.size(), kMost); ++i) {
    const GrowingSegment& segment = shm.largest[i];
    out += fmt::format("         +{} {}{}\n", format_bytes(segment.grown_bytes),
                       shorten(escape_text(segment.path), 60),
                       segment.held && !*segment.held ? ", held by no process" : "");
  }
  if (shm.segments > kMost) {
    out += fmt::format("         and {} more\n", shm.segments - kMost);
  }
  return out;
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", *share * 100.0) : "unknown";
}

std::string coverage_text(const ProfileCoverage& coverage) {
  std::vector<std::string> modes;
  for (const TraceMode mode : coverage.modes) {
    modes.emplace_back(trace_mode_name(mode));
  }
  std::string text = fmt::format("{}", fmt::join(modes, " and "));
  if (coverage.sample_every_bytes) {
    text += fmt::format(", one sample in {}", format_bytes(*coverage.sample_every_bytes));
  }
  text +=
      fmt::format("; frees known {}; RSS explained {}; records dropped {}; stacks cut off {}",
                  share_text(coverage.frees_known_share), share_text(coverage.rss_explained_share),
                  grouped(coverage.dropped_records), grouped(coverage.truncated_stacks));
  if (coverage.empty_stacks > 0) {
    text += fmt::format("; stacks not walked {}", grouped(coverage.empty_stacks));
  }
  if (coverage.rest_bytes > 0) {
    text += fmt::format("; in small sites {}", format_bytes(coverage.rest_bytes));
  }
  text += fmt::format("; tracer's own memory {}", format_bytes(coverage.tracer_bytes));
  return wrap_text("coverage ", text, 100);
}

std::string problems_text(const ProfileCoverage& coverage) {
  std::string out;
  for (const std::string& problem : coverage.problems) {
    out += wrap_text("problem  ", escape_text(problem), 100);
  }
  return out;
}

std::string losses_text(const ProfileReport& report) {
  std::string out;
  for (const auto& [what, count] : report.losses) {
    out += fmt::format("{:<9}{} x {}\n", out.empty() ? "not seen" : "", count, escape_text(what));
  }
  return out;
}

}  // namespace

std::string growth_text(double bytes_per_s) { return signed_size(bytes_per_s * 60.0) + "/min"; }

std::string birth_text(std::span<const SiteBirths::Birth> births, Glyphs glyphs) {
  // Steps come in leaps, a few a second: finer columns would show gaps that are none.
  constexpr std::size_t kColumns = 12;
  std::vector<double> bytes(std::min(births.size(), kColumns));
  for (std::size_t i = 0; i < births.size(); ++i) {
    bytes[i * bytes.size() / births.size()] += static_cast<double>(births[i].bytes);
  }
  const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  if (bytes.size() < 4 || total <= 0.0) {
    return "";
  }
  const auto share_of = [&](std::size_t from, std::size_t to) {
    return std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                           bytes.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
           total;
  };
  const std::size_t quarter = std::max<std::size_t>(1, bytes.size() / 4);
  std::string_view words = "at different times";
  if (share_of(0, quarter) > 0.8) {
    words = "nearly all at the beginning";
  } else if (share_of(bytes.size() - quarter, bytes.size()) > 0.8) {
    words = "nearly all of it young";
  } else if (std::count_if(bytes.begin(), bytes.end(),
                           [&](double each) {
                             return each > 0.2 * total / static_cast<double>(bytes.size());
                           }) *
                 10 >=
             static_cast<std::ptrdiff_t>(bytes.size()) * 7) {
    words = "in every part of the run";
  }
  const SiteBirths::Birth& first = births.front();
  const SiteBirths::Birth& last = births.back();
  const auto place = [](const SiteBirths::Birth& birth) {
    return birth.in_steps ? fmt::format("step {:.0f}", birth.from) : format_clock(birth.from);
  };
  return fmt::format("{}  {}, {} to {}", outline_text(bytes, glyphs), words, place(first),
                     place(last));
}

std::string profile_text(const ProfileReport& report, const ProfileStyle& style) {
  std::string out = wrap_text("", answer(report), 100) + '\n';
  const std::size_t growing = growing_sites(report);
  for (std::size_t i = 0; i < std::min(growing, report.top); ++i) {
    out += site_text(report, report.ranking.sites[i], i + 1, style);
  }
  if (growing > report.top) {
    out += fmt::format("    and {} more that grow: --top shows them\n\n", growing - report.top);
  }
  if (const std::size_t slow = slow_sites(report); slow > 0) {
    out += fmt::format("slow     {} more {} by less than a hundredth of the first\n", slow,
                       slow == 1 ? "call stack grows" : "call stacks grow");
  }
  out += holders_text(report);
  if (!report.ranking.processes.empty()) {
    out += process_growth_text(report, report.ranking.processes.front());
  }
  out += shm_text(report.shm);
  if (!report.run->empty()) {
    out += coverage_text(report.coverage);
  }
  return out + problems_text(report.coverage) + losses_text(report);
}

std::string profile_line(const ProfileReport& report, double t_s) {
  std::uint64_t live = 0;
  std::size_t traced = 0;
  for (const TracedProcess& process : report.run->processes) {
    if (!process.last.has_ended) {
      live += process.last.live_bytes;
      ++traced;
    }
  }
  std::string line = format_clock(t_s);
  if (report.run->last_step) {
    line += fmt::format("  step {}", *report.run->last_step);
  }
  line += fmt::format("  {} traced  sites {}", traced, format_bytes(live));
  if (growing_sites(report) > 0) {
    const RankedSite& first = report.ranking.sites.front();
    line += fmt::format("  {} {}  {}", growth_text(first.growth_bytes_per_s),
                        verdict_name(first.verdict),
                        headline(shown_stack(*report.run, first.frames), 60));
  }
  return line + '\n';
}

std::string profile_list(const ProfileReport& report, double t_s, std::size_t columns) {
  std::string out = profile_line(report, t_s);
  out.pop_back();
  out = shorten(out, columns) + '\n';
  const std::size_t most = std::min(report.top, report.ranking.sites.size());
  for (std::size_t i = 0; i < most; ++i) {
    const RankedSite& site = report.ranking.sites[i];
    const std::string line =
        fmt::format("{:>2}  {:<7} {:>14} {:>9}  {}", i + 1, verdict_name(site.verdict),
                    growth_text(site.growth_bytes_per_s), format_bytes(site.live_bytes),
                    headline(shown_stack(*report.run, site.frames), columns));
    out += shorten(line, columns) + '\n';
  }
  return out;
}

}  // namespace tidemark::cli
