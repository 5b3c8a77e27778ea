// SPDX-License-Identifier: Apache-2.0
#include "report/owners_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::report {
namespace {

using tracker::JudgedOwner;
using tracker::OwnerEvidence;
using tracker::OwnerEvidenceKind;
using tracker::RankedOwner;
using tracker::Verdict;

constexpr std::size_t kPathColumns = 160;
constexpr std::size_t kMostHolds = 3;
constexpr std::size_t kMostSites = 3;
constexpr std::size_t kMostConstant = 4;
constexpr std::uint64_t kWorthNaming = kMiB;

std::string owner_label(std::string_view name) { return fmt::format("  {:<9}", name); }

std::string verdict_word(Verdict verdict) {
  std::string word(verdict_name(verdict));
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return word;
}

// "0.50 to 2.00 MiB/step": between the slowest and the fastest time, where they differ.
std::string owner_range_text(const RankedOwner& owner) {
  constexpr double kSame = 0.05;
  const tracker::GrowthRate& rate = owner.rate;
  const bool on_steps = rate.bytes_per_step.has_value();
  const auto low = on_steps ? rate.low_bytes_per_step : rate.low_bytes_per_s;
  const auto high = on_steps ? rate.high_bytes_per_step : rate.high_bytes_per_s;
  const double mean = on_steps ? *rate.bytes_per_step : rate.bytes_per_s.value_or(0.0);
  if (!low || !high || *high - *low <= kSame * std::abs(mean)) {
    return "";
  }
  const RateUnit unit = on_steps ? RateUnit::kStep : RateUnit::kSecond;
  const RateFormat format{.has_sign = true, .has_fixed_unit = true};
  return fmt::format("{} to {}", format_rate(*low, unit, format), format_rate(*high, unit, format));
}

std::string owner_share_text(const RankedOwner& owner) {
  constexpr double kAll = 0.995;
  constexpr double kMoreThanAll = 1.1;  // below: the two are not read in the same moment
  if (!owner.share_of_growth) {
    return "held by";
  }
  if (*owner.share_of_growth > kMoreThanAll) {
    return "more than all of it, in memory that was free before, is held by";
  }
  return fmt::format("{} of it is held by", *owner.share_of_growth >= kAll
                                                ? "100 %"
                                                : format_percent(*owner.share_of_growth));
}

std::string per_minute_text(double per_s) {
  constexpr double kWhole = 100.0;
  const double per_minute = 60.0 * per_s;
  return per_minute < kWhole ? fmt::format("{:.1f}", per_minute)
                             : format_grouped(static_cast<std::uint64_t>(per_minute));
}

// Without the module that every script is.
std::string short_path(const OwnerRecord& owner) {
  constexpr std::string_view kMain = "__main__.";
  const std::string path = owner_path(owner);
  return path.starts_with(kMain) ? path.substr(kMain.size()) : path;
}

std::string_view what_to_do(OwnerKind kind) {
  switch (kind) {
    case OwnerKind::kVariable:
      return "let go of the old value of";
    case OwnerKind::kGarbage:
      return "let the garbage collector run, or break the cycle of";
    case OwnerKind::kNativeHold:
      return "look at what native code keeps of";
    case OwnerKind::kNative:
      return "find the native code that keeps";
    case OwnerKind::kContainer:
    case OwnerKind::kName:
      break;
  }
  return "drop or bound";
}

std::string holds_rows(const RankedOwner& owner, const ProfileStyle& style) {
  constexpr std::size_t kBytesColumns = 11;
  const std::size_t indent = owner_label("").size();
  std::string out;
  for (std::size_t i = 0; i < std::min(owner.holds.size(), kMostHolds); ++i) {
    const HeldObjects& held = owner.holds[i];
    const std::string_view sign = owner.record().kind == OwnerKind::kName ? "" : "+";
    const std::size_t room =
        std::max<std::size_t>(style.columns, indent + kBytesColumns + 20) - indent - kBytesColumns;
    out += fmt::format("{}{:<{}}{:>{}}\n", owner_label(i == 0 ? "holds" : ""),
                       shorten(fmt::format("{}{}", sign, held_objects_text(held)), room - 1), room,
                       fmt::format("{}{}", sign, format_bytes(held.bytes)), kBytesColumns);
  }
  return out;
}

std::string made_at_rows(const OwnersReport& report, const RankedOwner& owner,
                         const ProfileStyle& style) {
  if (report.sites == nullptr) {
    return "";
  }
  std::string out;
  std::size_t shown = 0;
  for (const OwnerSite& made : owner.sites) {
    const auto& sites = report.sites->sites;
    const auto track = std::find_if(sites.begin(), sites.end(), [&](const auto& site) {
      return site.record.site == made.site;
    });
    if (track == sites.end() || shown == kMostSites) {
      continue;
    }
    const auto stack = tracker::shown_stack(*report.sites, track->record.frames);
    const std::string line = tracker::headline(stack, "", style.columns - 24);
    if (!line.empty()) {
      out += wrap_text(owner_label(shown++ == 0 ? "made at" : ""),
                       fmt::format("{}  {}", line, format_bytes(made.bytes)), style.columns);
    }
  }
  return out;
}

std::string in_row(const OwnersReport& report, const RankedOwner& owner,
                   const ProfileStyle& style) {
  if (report.run->processes.size() < 2) {
    return "";
  }
  if (owner.members.size() == 1) {
    return wrap_text(owner_label("in"), owner_process_text(*owner.first().process), style.columns);
  }
  std::vector<std::string> pids;
  for (const JudgedOwner& member : owner.members) {
    pids.push_back(fmt::format("{}", member.process->key.pid));
  }
  return wrap_text(owner_label("in"),
                   fmt::format("{} processes of role {}: pid {}", pids.size(),
                               role_name(owner.first().process->role), fmt::join(pids, ", ")),
                   style.columns);
}

std::string strong(std::string line, const ProfileStyle& style) {
  if (style.colour) {
    line.insert(line.find('\n'), "\x1b[0m");
    line.insert(0, "\x1b[1m");
  }
  return line;
}

std::string needs_row(const RankedOwner& owner, const ProfileStyle& style) {
  if (!owner.undetermined || !owner.needs) {
    return "";
  }
  const std::size_t looks = owner.first().looks;
  std::string text = needs_text(*owner.needs);
  if (owner.needs->more_points) {
    const auto more = static_cast<std::uint64_t>(std::ceil(*owner.needs->more_points));
    text =
        fmt::format("{} (--looks {}){}", format_count(more, "more look"), looks + more,
                    text.empty() || text.find("sample") != std::string::npos ? "" : " and " + text);
  }
  return text.empty() ? ""
                      : wrap_text(owner_label("needs"), text + " to tell a leak from a warm-up",
                                  style.columns);
}

// What leads to an owner that grows has a part in it.
bool leads_to_growth(const OwnersReport& report, const RankedOwner& name) {
  const std::string& path = name.record().path;
  return std::any_of(report.ranking.owners.begin(), report.ranking.owners.end(),
                     [&](const RankedOwner& owner) {
                       const std::string& longer = owner.record().path;
                       return owner.grows() && longer.starts_with(path) &&
                              (longer.size() == path.size() || longer[path.size()] == '.' ||
                               longer[path.size()] == '[' || longer[path.size()] == ' ');
                     });
}

std::string owner_paragraph(const OwnersReport& report, const RankedOwner& owner,
                            const ProfileStyle& style, bool is_first) {
  const std::string range = owner_range_text(owner);
  const std::string head =
      fmt::format("{} {}{}: {}  {}", verdict_word(owner.verdict), owner_rate_text(owner.rate),
                  range.empty() ? "" : fmt::format(" ({})", range), owner_share_text(owner),
                  owner_path(owner.record()));
  const std::string state = owner_state_text(owner);
  const bool is_one_line = head.size() + 3 + state.size() <= style.columns;
  std::string out = strong(
      is_one_line ? fmt::format("{}   {}\n", head, state) : wrap_text("", head, style.columns),
      style);
  out += is_one_line ? "" : wrap_text(owner_label("is"), state, style.columns);
  out += in_row(report, owner, style);
  out += holds_rows(owner, style);
  if (owner.record().steps.size() > 1) {  // else it says no more than the first line
    out += wrap_text(owner_label("path"), owner_path_text(owner.record()), style.columns);
  }
  out += made_at_rows(report, owner, style);
  out += wrap_text(owner_label("cut here"), cut_text(owner), style.columns);
  if (const std::string why = owner_evidence_text(owner.first()); !why.empty()) {
    out += wrap_text(owner_label("because"), why, style.columns);
  }
  out += needs_row(owner, style);
  if (const std::string rest = is_first ? not_it_text(report) : ""; !rest.empty()) {
    out += wrap_text(owner_label("not it"), rest, style.columns);
  }
  return out + '\n';
}

std::string owner_row(const RankedOwner& owner, const ProfileStyle& style) {
  constexpr std::size_t kBefore = 34;
  const std::string held = format_bytes(owner.held_bytes());
  return fmt::format(
      "  {:<8}{:>10}  {:>12}  {}\n", verdict_name(owner.verdict), held,
      owner.grows() ? owner_rate_text(owner.rate) : "-",
      shorten(fmt::format("{}   {}", owner_path(owner.record()), owner_state_text(owner)),
              std::max<std::size_t>(style.columns, kBefore + 20) - kBefore));
}

// A line for each of those that `is_listed`.
template <typename IsListed>
std::string owner_rows(const OwnersReport& report, std::string_view title,
                       const ProfileStyle& style, std::size_t most, IsListed is_listed) {
  std::string out;
  std::size_t listed = 0;
  for (const RankedOwner& owner : report.ranking.owners) {
    if (is_listed(owner) && listed++ < most) {
      out += owner_row(owner, style);
    }
  }
  if (listed == 0) {
    return "";
  }
  if (listed > most) {
    out += fmt::format("  and {} more: --all shows them\n", listed - most);
  }
  return fmt::format("{}\n{}\n", title, out);
}

}  // namespace

OwnersReport make_owners_report(const tracker::RunOwners& run, const tracker::RunSites* sites,
                                const tracker::JudgeOptions& judge) {
  OwnersReport report;
  report.run = &run;
  report.sites = sites;
  tracker::Options options = tracker::series_options(judge);
  options.epoch_steps = run.epoch_steps;
  options.epoch_seconds = run.epoch_seconds;
  report.ranking = tracker::rank_owners(run, options);
  report.advice = tracker::owner_advice(run, report.ranking);
  return report;
}

bool has_looks(const OwnersReport& report) {
  return std::any_of(report.run->processes.begin(), report.run->processes.end(),
                     [](const tracker::LookedProcess& process) { return !process.looks.empty(); });
}

bool has_unexplained_growth(const OwnersReport& report) {
  constexpr double kHalf = 0.5;
  return std::any_of(report.ranking.processes.begin(), report.ranking.processes.end(),
                     [](const tracker::OwnerCoverage& coverage) {
                       return coverage.explained_share && *coverage.explained_share < kHalf;
                     });
}

std::string owner_rate_text(const tracker::GrowthRate& rate) {
  const RateFormat format{.has_sign = true, .has_fixed_unit = true};
  if (rate.bytes_per_step) {
    return format_rate(*rate.bytes_per_step, RateUnit::kStep, format);
  }
  return format_rate(rate.bytes_per_s.value_or(0.0), RateUnit::kSecond, format);
}

std::string owner_state_text(const RankedOwner& owner) {
  std::string text = shorten(escape_text(owner.record().type), 80);
  if (owner.entries) {
    text += fmt::format(", {} {}", format_grouped(*owner.entries),
                        plural(*owner.entries, "entry", "entries"));
  }
  if (owner.grows() && owner.entries_per_step && *owner.entries_per_step > 0.0) {
    text += fmt::format(", +{:.2f} per step", *owner.entries_per_step);
  } else if (owner.grows() && owner.entries_per_s && *owner.entries_per_s > 0.0) {
    text += fmt::format(", +{} per minute", per_minute_text(*owner.entries_per_s));
  }
  const JudgedOwner& first = owner.first();
  if (owner.grows()) {
    text += fmt::format(" in {} of {}", first.grown_looks, format_count(first.looks, "look"));
  }
  return text;
}

std::string owner_path(const OwnerRecord& owner) {
  return owner.path.empty() ? "(no name)" : shorten(escape_text(owner.path), kPathColumns);
}

std::string owner_name(const OwnerRecord& owner) {
  constexpr std::string_view kWhat[] = {"local ", "locals ", "closure ", "default "};
  std::string_view name;
  for (const PathStep& step : owner.steps) {
    if (!step.label.starts_with('[') && !step.label.starts_with(' ')) {
      name = step.label;
    }
  }
  if (name.empty()) {
    name = owner.path;
  }
  if (const std::size_t at = name.find("() locals: "); at != std::string_view::npos) {
    name.remove_prefix(name.find(": ", at) + 2);  // a variable of a running function
  }
  if (name.starts_with('.')) {
    name.remove_prefix(1);
  }
  for (const std::string_view what : kWhat) {
    name.remove_prefix(name.starts_with(what) ? what.size() : 0);
  }
  return shorten(escape_text(name), 60);
}

std::string cut_text(const RankedOwner& owner) {
  constexpr std::string_view kNoLine = "; tidemark profile names the line that allocates them";
  const std::uint64_t bytes = owner.retained_bytes.value_or(owner.grown_bytes);
  std::string text = fmt::format(
      "{} `{}`: {} {}", what_to_do(owner.record().kind), owner_name(owner.record()),
      format_bytes(bytes), owner.retained_bytes ? "go free" : "have come since the first look");
  if (owner.record().kind == OwnerKind::kNative) {  // what leads to it is not known
    return owner.sites.empty() ? text.append(kNoLine) : text;
  }
  if (owner.grown_bytes == 0) {
    return text;
  }
  constexpr double kAll = 0.9995;
  const double alone =
      static_cast<double>(owner.grown_bytes_alone) / static_cast<double>(owner.grown_bytes);
  text += fmt::format(" (nothing else reaches {} of it",
                      alone >= kAll ? "100 %" : format_percent(alone, 1));
  const std::string& other = owner.first().track->last.shared_with;
  if (alone < kAll && !other.empty()) {
    text += "; the rest is reached from " + shorten(escape_text(other), kPathColumns) + " as well";
  }
  return text + ")";
}

std::string not_it_text(const OwnersReport& report) {
  std::vector<std::string> texts;
  for (const RankedOwner& owner : report.ranking.owners) {
    if (owner.grows() || owner.record().is_library || owner.record().path.empty() ||
        owner.held_bytes() < kWorthNaming || texts.size() == kMostConstant ||
        leads_to_growth(report, owner)) {
      continue;
    }
    const std::string_view word = owner.verdict == Verdict::kStable   ? "constant"
                                  : owner.verdict == Verdict::kWarmup ? "stands still now"
                                                                      : "comes and goes";
    texts.push_back(fmt::format("{} {} {}", shorten(short_path(owner.record()), 60),
                                format_bytes(owner.held_bytes()), word));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string no_owner_text(const OwnersReport& report) {
  if (!has_looks(report)) {
    return "NO DATA: the heap of no process could be read.";
  }
  std::size_t looks = 0;
  for (const tracker::LookedProcess& process : report.run->processes) {
    looks = std::max(looks, process.looks.size());
  }
  if (looks < 2) {
    return "ONE LOOK: this is what is held now. What grows takes two looks or more.";
  }
  if (has_unexplained_growth(report)) {
    return "NO OWNER GROWS, but the memory does: see `growth` below for what that may be.";
  }
  return fmt::format("NOTHING KEEPS GROWING: no owner holds more and more over {}.",
                     format_count(looks, "look"));
}

std::string held_objects_text(const HeldObjects& held) {
  std::string text =
      fmt::format("{} x {}", format_grouped(held.count), shorten(escape_text(held.type), 80));
  if (!held.dtype.empty()) {
    text += ' ' + shorten(escape_text(held.dtype), 20);
  }
  if (!held.dtype.empty() || !held.shape.empty()) {
    text += fmt::format(" [{}]", fmt::join(held.shape, ", "));
  }
  return held.device.empty() ? text : text + ' ' + shorten(escape_text(held.device), 20);
}

std::string owner_path_text(const OwnerRecord& owner) {
  constexpr std::size_t kMostSteps = 24;
  constexpr std::string_view kPlain[] = {"", "module", "dict", "list", "tuple", "cell"};
  std::string text;
  for (std::size_t i = 0; i < owner.steps.size(); ++i) {
    const PathStep& step = owner.steps[i];
    if (i + 1 < owner.steps.size() && i >= kMostSteps) {
      text += i == kMostSteps ? " -> ..." : "";
      continue;
    }
    text += (i == 0 ? "" : " -> ") + shorten(escape_text(trim(step.label)), 60);
    const bool is_plain =
        std::find(std::begin(kPlain), std::end(kPlain), step.type) != std::end(kPlain);
    if (!is_plain && i > 0 && i + 1 < owner.steps.size() && !step.label.starts_with('[')) {
      text += fmt::format(" ({})", shorten(escape_text(step.type), 60));
    }
  }
  return text;
}

namespace {

std::string evidence_words(const OwnerEvidence& evidence, std::string_view type) {
  switch (evidence.kind) {
    case OwnerEvidenceKind::kEntriesPerStep:
      return fmt::format("it gets {:.2f} entries each step all the time", evidence.value);
    case OwnerEvidenceKind::kEntriesPerSecond:
      return fmt::format("it gets {} entries a minute all the time",
                         per_minute_text(evidence.value));
    case OwnerEvidenceKind::kAppended:
      return fmt::format("nothing is looked up by a key in a {}", type);
    case OwnerEvidenceKind::kPastEpoch:
      return fmt::format("it kept its rate for {:.1f} epochs, in which every sample has come",
                         evidence.value);
    case OwnerEvidenceKind::kKeyed:
      return fmt::format("a {} may be a cache, which stops growing once each key has come", type);
    case OwnerEvidenceKind::kWithinFirstEpoch:
      return fmt::format("only {} of an epoch has been watched: a cache by sample grows like this",
                         format_percent(evidence.value));
    case OwnerEvidenceKind::kSlowing:
      return fmt::format("it grows ever more slowly: at the end at {} of its rate at first",
                         format_percent(evidence.value));
    case OwnerEvidenceKind::kStopped:
      return "it has stopped growing";
  }
  return "";
}

}  // namespace

std::string owner_evidence_text(const JudgedOwner& owner) {
  std::vector<std::string> leak;
  std::vector<std::string> warmup;
  const std::string type = shorten(escape_text(owner.track->record.type), 40);
  for (const OwnerEvidence& evidence : owner.evidence) {
    (evidence.speaks_for_warmup() ? warmup : leak).push_back(evidence_words(evidence, type));
  }
  std::string text;
  if (!leak.empty()) {
    text = fmt::format("for a leak: {}", fmt::join(leak, ", and "));
  }
  if (!warmup.empty()) {
    text +=
        fmt::format("{}for a warm-up: {}", text.empty() ? "" : "; ", fmt::join(warmup, ", and "));
  }
  return text;
}

std::string owner_process_text(const tracker::LookedProcess& process) {
  return process_label(process.role, process.rank, process.key.pid,
                       process.program.empty() ? process.comm : process.program, 30);
}

std::string owners_text(const OwnersReport& report, const ProfileStyle& style) {
  std::string out;
  std::size_t shown = 0;
  for (const RankedOwner& owner : report.ranking.owners) {
    const bool is_shown = owner.grows() && (!owner.record().is_library || report.with_all);
    if (is_shown && shown < report.top) {
      out += owner_paragraph(report, owner, style, shown == 0);
      ++shown;
    }
  }
  if (shown == 0) {
    out += wrap_text("", no_owner_text(report), style.columns) + '\n';
  }
  const std::size_t most = report.with_all ? 1'000 : report.top;
  const bool nothing_grows = shown == 0;
  out += owner_rows(report, "in libraries", style, most, [&](const RankedOwner& owner) {
    return owner.record().is_library && owner.grows() && !report.with_all;
  });
  out += owner_rows(report, "held, not growing", style, most, [&](const RankedOwner& owner) {
    return !owner.grows() && owner.held_bytes() >= kWorthNaming &&
           (report.with_all || (nothing_grows && !owner.record().is_library));
  });
  if (report.with_types) {
    out += types_text(report);
  }
  if (report.with_tensors) {
    out += tensors_text(report);
  }
  for (const tracker::Advice& advice : report.advice) {
    out += wrap_text("seen     ", advice.seen, style.columns) +
           wrap_text("likely   ", advice.cause, style.columns) +
           wrap_text("do       ", advice.remedy, style.columns) + '\n';
  }
  return out + owners_coverage_text(report, style);
}

}  // namespace tidemark::report
