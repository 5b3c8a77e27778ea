// SPDX-License-Identifier: Apache-2.0
#include "report/profile_text.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::RankedLine;
using tracker::TracedProcess;
using tracker::Verdict;

constexpr std::size_t kMostHolders = 3;  // that do not grow

// The fastest line of those that grow; nullptr: none does.
const RankedLine* fastest_line(const ProfileReport& report) {
  const std::vector<const RankedLine*> lines = growing_lines(report);
  return lines.empty() ? nullptr : lines.front();
}

std::size_t slow_lines(const ProfileReport& report) {
  const std::vector<RankedLine>& lines = report.lines();
  return static_cast<std::size_t>(std::count_if(
             lines.begin(), lines.end(),
             [](const RankedLine& line) { return line.grows() && is_seen_long_enough(line); })) -
         growing_lines(report).size();
}

// With fewer samples, of all processes together, no growth could have been told.
bool has_few_samples(const tracker::RunSites& run) {
  constexpr std::size_t kEnough = 6;
  std::set<double> times;
  for (const tracker::TracedProcess& process : run.processes) {
    for (const tracker::Cell& cell : process.live.cells()) {
      times.insert(cell.t_s);
      if (times.size() >= kEnough) {
        return false;
      }
    }
  }
  return true;
}

// Nothing grows as far as was seen, and that was not long enough.
bool is_too_short(const ProfileReport& report) {
  const std::vector<RankedLine>& lines = report.lines();
  return fastest_line(report) == nullptr &&
         (has_few_samples(*report.run) ||
          std::any_of(lines.begin(), lines.end(), [](const RankedLine& line) {
            return line.grows() && !is_seen_long_enough(line);
          }));
}

// What comes first when much is missing.
std::string lost_text(const LostRecords& lost) {
  return fmt::format(
      "RECORDS LOST: {} blocks, stacks or mappings found no place in the tracer's tables, about "
      "{} of all: what follows is about the rest.",
      format_grouped(lost.records), format_percent(lost.share));
}

std::string answer(const ProfileReport& report, const ProfileStyle& style) {
  const std::string unseen = unseen_growth_text(report);
  if (report.run->empty()) {
    return unseen.empty() ? "NO DATA: the tracer was in no process." : unseen;
  }
  const auto lost = lost_records(report);
  const std::string before = lost ? lost_text(*lost) + ' ' : "";
  const std::size_t growing = growing_lines(report).size();
  if (growing == 0) {
    return before + (unseen.empty() ? "" : unseen + ' ') + no_growth_text(report);
  }
  const RankedLine& first = *fastest_line(report);
  const std::string line = line_text(report, first, style.columns - 8);
  const bool is_leak = first.verdict == Verdict::kLeak;
  std::string text = before + fmt::format("{}: {} {} by {}", is_leak ? "LEAK" : "GROWING",
                                          line.empty() ? "a call stack" : line,
                                          is_leak ? "keeps growing" : "grows",
                                          growth_text(first.growth_bytes_per_s));
  if (first.growth_bytes_per_step) {
    text += fmt::format(" ({})", growth_text(*first.growth_bytes_per_step, RateUnit::kStep));
  }
  if (first.sites.size() > 1) {
    text += fmt::format(" through {} call stacks", first.sites.size());
  }
  const std::string share = share_text(report, first);
  text += share.starts_with("in ") ? ' ' + share + '.' : ", " + share + '.';
  if (growing > 1) {
    text += fmt::format(" {}.", format_count(growing - 1, "more line grows", "more lines grow"));
  }
  return unseen.empty() ? text : text + ' ' + unseen;
}

std::string holders_text(const ProfileReport& report, const ProfileStyle& style) {
  std::vector<const RankedLine*> holders;
  for (const RankedLine& line : report.lines()) {
    if ((!line.grows() || !is_seen_long_enough(line)) && line.live_bytes > 0) {
      holders.push_back(&line);
    }
  }
  std::stable_sort(holders.begin(), holders.end(), [](const RankedLine* a, const RankedLine* b) {
    return a->live_bytes > b->live_bytes;
  });
  constexpr std::size_t kBefore = 30;  // columns
  std::string out;
  const std::size_t most = is_too_short(report) ? report.top : kMostHolders;
  const bool is_incomplete = lost_records(report).has_value();
  for (std::size_t i = 0; i < std::min(holders.size(), most); ++i) {
    const RankedLine& line = *holders[i];
    // Too few samples for a verdict, or too few records.
    const bool is_unclear = is_incomplete || line.verdict >= Verdict::kGrowing;
    out += fmt::format("{:<9}{:<9} {:>9}  {}\n", i == 0 ? "holds" : "",
                       is_unclear ? "unclear" : verdict_name(line.verdict),
                       format_bytes(line.live_bytes),
                       line_text(report, line, style.columns - kBefore));
  }
  return out;
}

}  // namespace

std::string no_growth_text(const ProfileReport& report) {
  const std::uint64_t processes = report.run->traced_processes();
  const auto kept = kept_by_allocator(report);
  if (report.shm.grown_bytes >= kShmWorthAWord) {
    return fmt::format("/dev/shm GROWS by {}, and no call stack does: see its segments below.",
                       format_bytes(report.shm.grown_bytes));
  }
  if (lost_records(report)) {
    return "Whether a line grows cannot be told.";
  }
  if (const auto unseen = unseen_memory(report)) {
    return fmt::format(
        "NOT SEEN: the allocations of this job are not seen, its call stacks explain {} of "
        "the memory of {}. Below is why that may be.",
        format_percent(unseen->explained_share, 1),
        process_text(report.run->processes[report.ranking.processes.front().process]));
  }
  if (kept) {
    return fmt::format(
        "NO LINE GROWS, but the allocator keeps {} that was freed, {} of the footprint: see "
        "the remedy below.",
        format_bytes(kept->bytes), format_percent(kept->share));
  }
  if (is_too_short(report)) {
    return fmt::format(
        "TOO SHORT TO TELL what grows: it was over after {}. A shorter --interval looks more "
        "often.",
        format_duration(report.run->end_s));
  }
  if (has_unseen_growth(report)) {
    return fmt::format("No call stack of the {} traced {} keeps growing.",
                       format_grouped(processes), plural(processes, "process", "processes"));
  }
  return fmt::format("NOTHING GROWS: no call stack of {} {} keeps growing.",
                     format_grouped(processes), plural(processes, "process", "processes"));
}

std::string profile_text(const ProfileReport& report, const ProfileStyle& style) {
  std::string out = wrap_text("", answer(report, style), style.columns) + '\n';
  const std::vector<const RankedLine*> growing = growing_lines(report);
  for (std::size_t i = 0; i < std::min(growing.size(), report.top); ++i) {
    out += line_paragraph(report, *growing[i], i + 1, style);
  }
  if (growing.size() > report.top) {
    out += fmt::format("    and {} more that grow: --top {} shows them\n\n",
                       growing.size() - report.top, growing.size());
  }
  out += groups_text(report, style);
  if (const std::size_t slow = slow_lines(report); slow > 0) {
    out += fmt::format("slow     {} by less than a hundredth of the first\n",
                       format_count(slow, "more line grows", "more lines grow"));
  }
  for (const IgnoredOption& ignored : report.ignored) {
    out += wrap_text("note     ", ignored.text, style.columns);
  }
  return out + holders_text(report, style) + untraced_text(report, style) +
         where_text(report, style) + shm_text(report.shm, style) + coverage_text(report, style);
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
  if (const RankedLine* first = fastest_line(report)) {
    line += fmt::format("  {} {}  {}", growth_text(first->growth_bytes_per_s),
                        verdict_name(first->verdict), line_text(report, *first, 60));
  }
  return line + '\n';
}

std::string profile_list(const ProfileReport& report, double t_s, std::size_t columns,
                         std::size_t rows) {
  std::string out = profile_line(report, t_s);
  out.pop_back();
  out = shorten(out, columns) + '\n';
  const std::size_t most =
      std::min({report.top, report.lines().size(), std::max<std::size_t>(rows, 1) - 1});
  for (std::size_t i = 0; i < most; ++i) {
    const RankedLine& line = report.lines()[i];
    const std::string text =
        fmt::format("{:>2}  {:<7} {:>14} {:>9}  {}", i + 1, verdict_name(line.verdict),
                    line.grows() ? growth_text(line.growth_bytes_per_s) : "-",
                    format_bytes(line.live_bytes), line_text(report, line, columns));
    out += shorten(text, columns) + '\n';
  }
  return out;
}

}  // namespace tidemark::report
