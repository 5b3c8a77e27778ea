// SPDX-License-Identifier: Apache-2.0
#include "report/profile_text.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/chart_text.h"
#include "report/track_words.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::report {
namespace {

using tracker::HeldMemory;
using tracker::RankedLine;
using tracker::RankedSite;
using tracker::TracedProcess;
using tracker::Verdict;

constexpr std::size_t kIndent = 13;
constexpr std::size_t kMostFrames = 12;  // of one stack; --json has all
constexpr std::size_t kMostStacks = 3;   // of one line

std::string processes_text(const ProfileReport& report, const HeldMemory& held) {
  const TracedProcess* first =
      held.processes.empty() ? nullptr : find_process(*report.run, held.processes.front());
  if (first == nullptr) {
    return "?";
  }
  return held.processes.size() == 1 ? process_text(*first)
                                    : fmt::format("{} x{} (pid {}, ...)", role_name(held.role),
                                                  held.processes.size(), first->key.pid);
}

std::string live_text(const HeldMemory& held) {
  std::string text =
      fmt::format("{} in {} {}", format_bytes(held.live_bytes), format_grouped(held.live_blocks),
                  plural(held.live_blocks, "block"));
  if (held.live_blocks > 1) {
    text += fmt::format(" of about {}", format_bytes(held.live_bytes / held.live_blocks));
  }
  if (held.kind != AllocationKind::kHeap) {
    std::string kind(allocation_kind_name(held.kind));
    std::replace(kind.begin(), kind.end(), '_', ' ');
    text += ", " + kind;
  }
  if (held.resident_bytes && *held.resident_bytes < held.live_bytes / 10 * 9) {
    text += fmt::format(", of which {} resident", format_bytes(*held.resident_bytes));
  }
  text += fmt::format("; peak {}, {} allocated in all", format_bytes(held.peak_bytes),
                      format_bytes(held.alloc_bytes));
  return text;
}

// "+383 KiB/step" where steps are known, else "+12.3 MiB/min".
std::string short_rate(const HeldMemory& held) {
  return held.growth_bytes_per_step ? growth_text(*held.growth_bytes_per_step, RateUnit::kStep)
                                    : growth_text(held.growth_bytes_per_s);
}

// Whether two stacks are the same from their own lines on.
bool have_one_caller(const tracker::ShownStack& a, const tracker::ShownStack& b) {
  if (!a.own_line || !b.own_line) {
    return false;
  }
  const auto text = [](const tracker::ShownFrame& frame) {
    return tracker::frame_text(frame, 200);
  };
  return std::equal(a.frames.begin() + static_cast<std::ptrdiff_t>(*a.own_line), a.frames.end(),
                    b.frames.begin() + static_cast<std::ptrdiff_t>(*b.own_line), b.frames.end(),
                    [&](const tracker::ShownFrame& x, const tracker::ShownFrame& y) {
                      return text(x) == text(y);
                    });
}

// The frames of a stack. `above`: another stack of the line that was shown before.
std::string frames_text(const tracker::ShownStack& stack, std::string_view label,
                        const tracker::ShownStack* above, const ProfileStyle& style) {
  const bool as_above = above != nullptr && have_one_caller(stack, *above);
  const std::size_t end = as_above ? *stack.own_line + 1 : stack.frames.size();
  std::string out;
  std::size_t shown = 0;
  std::size_t next = 0;  // frame
  for (const StackRow& row : stack_rows(stack)) {
    if (row.begin >= end || (!row.is_folded && shown == kMostFrames)) {
      break;
    }
    next = row.end;
    if (row.is_folded) {
      out += fmt::format("             {}\n", folded_text(stack, row));
      continue;
    }
    ++shown;
    const bool is_own = stack.own_line == row.begin;
    const std::string text = tracker::frame_text(stack.frames[row.begin], style.columns - kIndent);
    out += fmt::format("    {:<6}{} {}\n", row.begin == 0 ? label : "", is_own ? "->" : "  ",
                       is_own && style.colour ? "\x1b[1m" + text + "\x1b[0m" : text);
  }
  const std::size_t more = stack.frames.size() - next;
  if (more > 0 && as_above) {
    out += "             (then as above)\n";
  } else if (more > 0) {
    out += fmt::format("             ({}; --json has all)\n", format_count(more, "more frame"));
  }
  return out;
}

// Not those that hardly add to it.
std::size_t shown_stacks(const ProfileReport& report, const RankedLine& line) {
  constexpr double kLeastShare = 0.03;
  std::size_t shown = 1;
  while (shown < std::min(line.sites.size(), kMostStacks) &&
         report.ranking.sites[line.sites[shown]].growth_bytes_per_s >=
             kLeastShare * line.growth_bytes_per_s) {
    ++shown;
  }
  return shown;
}

// Of a stack that has no line of the user's: what `->` is instead.
std::string substitute_text(const tracker::ShownStack& stack) {
  const auto is_of = [](const tracker::ShownFrame& shown, std::string_view function,
                        std::string_view file) {
    return shown.frame->kind == FrameKind::kPython && shown.frame->function == function &&
           shown.frame->file.ends_with(file);
  };
  if (std::any_of(stack.frames.begin(), stack.frames.end(), [&](const tracker::ShownFrame& each) {
        return is_of(each, "reduce_storage", "/torch/multiprocessing/reductions.py");
      })) {
    return "             (torch moves the tensors that a process sends into shared memory: the "
           "line "
           "that\n              made and keeps them shows with num_workers=0)\n";
  }
  return stack.frames[*stack.own_line].frame->kind == FrameKind::kPython
             ? "             (none of it is your code: -> is the innermost line of Python)\n"
             : "             (no line of Python is known: -> is what it calls)\n";
}

std::string stacks_text(const ProfileReport& report, const RankedLine& line,
                        const ProfileStyle& style) {
  std::string out;
  const bool is_one = line.sites.size() == 1;
  tracker::ShownStack first;
  const std::size_t shown = shown_stacks(report, line);
  for (std::size_t i = 0; i < shown; ++i) {
    const RankedSite& site = report.ranking.sites[line.sites[i]];
    tracker::ShownStack stack = tracker::shown_stack(*report.run, site);
    const bool has_own_line = stack.own_line.has_value();
    stack.own_line = tracker::find_line(stack, line.name);
    if (!is_one) {
      out += fmt::format("    stack {}  {}, live {} in {} {}\n", i + 1,
                         site.grows() ? short_rate(site) : "does not grow",
                         format_bytes(site.live_bytes), format_grouped(site.live_blocks),
                         plural(site.live_blocks, "block"));
    }
    out += stack.frames.empty()
               ? std::string("    stack    not known\n")
               : frames_text(stack, is_one ? "stack" : "", i == 0 ? nullptr : &first, style);
    if (!has_own_line && stack.own_line && i + 1 == shown) {
      out += substitute_text(stack);
    }
    if (site.is_truncated) {
      out += "             (the stack goes deeper than the tracer walks)\n";
    }
    if (i == 0) {
      first = std::move(stack);
    }
  }
  if (line.sites.size() > shown) {
    const std::size_t more = line.sites.size() - shown;
    out += fmt::format("    and {} through this line; --json has {}\n",
                       format_count(more, "more call stack"), plural(more, "it", "them"));
  }
  return out;
}

}  // namespace

std::string growth_text(double bytes, RateUnit unit) {
  return format_rate(bytes, unit, {.has_sign = true, .has_fixed_unit = true});
}

std::string process_text(const TracedProcess& process) {
  return process_text(process, process.key);
}

std::string process_text(const tracker::ProcessLabel& label, const ProcessKey& key) {
  return process_label(label.role, label.rank, key.pid,
                       label.program.empty() ? label.comm : label.program, 30);
}

std::string share_text(const ProfileReport& report, const HeldMemory& held) {
  constexpr double kAll = 0.995;
  constexpr double kMoreThanAll = 1.1;  // below: noise of two measurements
  const std::string who = processes_text(report, held);
  if (!held.share_of_growth) {
    return "in " + who;
  }
  if (*held.share_of_growth > kMoreThanAll) {
    return fmt::format(
        "more than the whole growth of {}, which freed other memory or has not yet used all of "
        "this",
        who);
  }
  return fmt::format("{} of the growth of {}",
                     *held.share_of_growth >= kAll ? "all" : format_percent(*held.share_of_growth),
                     who);
}

std::string age_text(std::span<const SiteAges::Interval> ages, Glyphs glyphs) {
  // Steps come in leaps, a few a second: finer columns would show gaps that are none.
  constexpr std::size_t kColumns = 12;
  std::vector<double> bytes(std::min(ages.size(), kColumns));
  for (std::size_t i = 0; i < ages.size(); ++i) {
    bytes[i * bytes.size() / ages.size()] += static_cast<double>(ages[i].bytes);
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
  const SiteAges::Interval& first = ages.front();
  const SiteAges::Interval& last = ages.back();
  const auto place = [](const SiteAges::Interval& interval) {
    return format_place(interval.from, interval.in_steps ? RateUnit::kStep : RateUnit::kSecond);
  };
  return fmt::format("{}  {}, {} to {}", sparkline_text(bytes, glyphs), words, place(first),
                     place(last));
}

std::string line_paragraph(const ProfileReport& report, const RankedLine& line, std::size_t rank,
                           const ProfileStyle& style) {
  std::string head = growth_text(line.growth_bytes_per_s);
  if (line.growth_bytes_per_step) {
    head += "  " + growth_text(*line.growth_bytes_per_step, RateUnit::kStep);
  }
  if (line.since.step || line.since.t_s) {
    head += "  since " + place_text(line.since, tracker::Axis::kSteps);
  }
  head += line.came_at_once ? "  once so far" : "";
  const std::string front = fmt::format("{:>2}  {:<7}  ", rank, verdict_name(line.verdict));
  std::string out = wrap_text(front, head, style.columns);
  if (style.colour) {
    out.insert(out.size() - 1, "\x1b[0m");
    out.insert(0, "\x1b[1m");
  }
  out += wrap_text("    share    ", share_text(report, line), style.columns);
  if (line.sites.size() > 1) {
    out += fmt::format("    line     {}\n             through {} call stacks\n",
                       line_text(report, line, style.columns - kIndent), line.sites.size());
  }
  out += wrap_text("    live     ", live_text(line), style.columns);
  if (const std::string born = age_text(line.ages, style.glyphs); !born.empty()) {
    out += "    born     " + born + '\n';
  }
  if (line.needs && line.verdict == Verdict::kGrowing) {
    if (const std::string needs = needs_text(*line.needs); !needs.empty()) {
      const std::string hint = needs_hint(*line.needs);
      out += wrap_text(
          "    needs    ",
          fmt::format("{} to tell a leak from warm-up{}{}", needs, hint.empty() ? "" : "; ", hint),
          style.columns);
    }
  }
  return out + stacks_text(report, line, style) + '\n';
}

}  // namespace tidemark::report
