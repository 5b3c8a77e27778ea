// SPDX-License-Identifier: Apache-2.0
// The page of `tidemark diagnose`, and the line while it runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/diagnosis.h"
#include "report/diagnosis_parts.h"
#include "report/document.h"
#include "report/profile_text.h"
#include "report/suspects_text.h"
#include "report/track_text.h"

namespace tidemark::report {
namespace {

using tracker::RankedLine;
using tracker::RankedOwner;
using tracker::SeriesVerdict;
using tracker::TrackVerdict;

constexpr std::size_t kPageLabelColumns = 15;
constexpr std::size_t kPageTextColumns = kLineColumns - kPageLabelColumns;
constexpr std::size_t kMostOwnersShown = 3;
constexpr std::size_t kMostLinesShown = 3;

std::string_view kind_of_memory(tracker::HeldAs held_as) {
  static constexpr std::array<std::string_view, 8> kTexts{
      "private memory",
      "shared pages that become private (copy-on-write)",
      "shared memory",
      "one shared segment that several processes see",
      "memory in swap",
      "file cache, which the kernel takes back when it needs it",
      "segments in /dev/shm that no process holds",
      "ever more processes"};
  return kTexts[static_cast<std::size_t>(held_as)];
}

std::vector<std::string> growth_rows(const Diagnosis& diagnosis) {
  const tracker::RunVerdict& verdict = *diagnosis.run.verdict;
  const SeriesVerdict& reading = verdict.answer().series;
  if (!is_growing(diagnosis)) {
    return {};
  }
  std::string rate = short_growth(reading, verdict.verdict);
  std::vector<std::string> rows = {
      fmt::format("{}: {}{}", grower_text(diagnosis), rate,
                  verdict.held_as ? fmt::format(", {}", kind_of_memory(*verdict.held_as)) : "")};
  std::string row =
      fmt::format("{} -> {} while we watched", format_bytes(reading.first_floor_bytes),
                  format_bytes(reading.last_floor_bytes));
  constexpr double kNearlyAll = 0.9;  // of one process in a tree of wrappers
  if (verdict.carrier && *verdict.carrier != verdict.where && verdict.carrier_share < kNearlyAll) {
    const tracker::Track& whole = diagnosis.run.run.tracks[verdict.answer().track];
    row +=
        fmt::format("; that is {} of what {} grew by",
                    format_percent(std::clamp(verdict.carrier_share, 0.0, 1.0)), who_text(whole));
  }
  rows.push_back(row + '.');
  if (std::string ledger = ledger_text(diagnosis); !ledger.empty()) {
    rows.push_back(std::move(ledger));
  }
  return rows;
}

std::string holds_text(const RankedOwner& owner) {
  if (owner.holds.empty()) {
    return "";
  }
  const HeldObjects& held = owner.holds.front();
  const std::string_view sign = owner.record().kind == OwnerKind::kName ? "" : "+";
  return fmt::format("holds {}{}, {}{}", sign, held_objects_text(held), sign,
                     format_bytes(held.bytes));
}

std::string owner_head(const Diagnosis& diagnosis, const RankedOwner& owner) {
  std::string text = fmt::format("{}: {}", owner_path(owner.record()), owner_rate_text(owner.rate));
  if (const std::string share = share_of_growth_text(owner.share_of_growth); !share.empty()) {
    text += ", " + share;
  }
  text += "; " + owner_state_text(owner);
  return diagnosis.owners.run->processes.size() > 1
             ? fmt::format("{}, in {}", text, owner_process_text(*owner.first().process))
             : text;
}

std::vector<std::string> owner_rows(const Diagnosis& diagnosis) {
  if (!has_looks(diagnosis.owners)) {
    return {};
  }
  const std::vector<const RankedOwner*> growing = growing_owners(diagnosis);
  if (growing.empty()) {
    return {no_owner_sentence(diagnosis)};
  }
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < std::min(growing.size(), kMostOwnersShown); ++i) {
    const RankedOwner& owner = *growing[i];
    rows.push_back(owner_head(diagnosis, owner));
    if (i > 0) {
      continue;
    }
    if (const std::string holds = holds_text(owner); !holds.empty()) {
      rows.push_back(holds);
    }
    // That nothing else leads to it is what one expects.
    const std::string cut = cut_text(owner);
    const bool is_alone = owner.grown_bytes_alone >= owner.grown_bytes;
    rows.push_back("cut here: " + (is_alone ? cut.substr(0, cut.rfind(" (")) : cut));
  }
  if (growing.size() > kMostOwnersShown) {
    rows.push_back(
        fmt::format("and {}", format_count(growing.size() - kMostOwnersShown,
                                           "owner that grows less", "owners that grow less")));
  }
  if (has_unexplained_growth(diagnosis.owners)) {
    rows.push_back(unexplained_sentence(diagnosis));
  }
  for (const tracker::SuspectRow& row : diagnosis.suspects) {
    if (row.state == tracker::SuspectState::kThisIsIt) {
      rows.push_back(fmt::format("of the usual suspects it is: {}", suspect_text(row.suspect)));
    }
  }
  return rows;
}

std::string line_row(const Diagnosis& diagnosis, const RankedLine& line) {
  const bool on_steps = line.growth_bytes_per_step.has_value();
  std::string text =
      fmt::format("{}: {}", line_text(diagnosis.lines, line, 2 * kPageTextColumns),
                  growth_text(on_steps ? *line.growth_bytes_per_step : line.growth_bytes_per_s,
                              on_steps ? RateUnit::kStep : RateUnit::kSecond));
  if (const std::string share = share_of_growth_text(line.share_of_growth); !share.empty()) {
    text += ", " + share;
  }
  if (const std::string owner = owner_made_by(diagnosis, line); !owner.empty()) {
    text += fmt::format("; it makes what `{}` holds", owner);
  }
  return text;
}

std::vector<std::string> line_rows(const Diagnosis& diagnosis) {
  std::vector<std::string> rows;
  const std::vector<const RankedLine*> lines = named_lines(diagnosis);
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLinesShown); ++i) {
    rows.push_back(line_row(diagnosis, *lines[i]));
  }
  if (const auto made = made_elsewhere(diagnosis)) {
    rows.push_back(fmt::format("what `{}` holds was made at {}", made->owner, made->line));
  }
  if (rows.empty() && !diagnosis.lines.run->empty() && is_growing(diagnosis)) {
    rows.push_back(no_growth_text(diagnosis.lines));
  }
  if (lines.size() > kMostLinesShown) {
    rows.push_back(
        fmt::format("and {}", format_count(lines.size() - kMostLinesShown, "line that grows less",
                                           "lines that grow less")));
  }
  if (std::string unseen = unseen_growth_text(diagnosis.lines);
      !unseen.empty() && !diagnosis.lines.run->empty()) {
    rows.push_back(std::move(unseen));
  }
  return rows;
}

std::vector<std::string> not_it_rows(const Diagnosis& diagnosis) {
  std::vector<std::string> rows;
  std::string text = is_growing(diagnosis) ? excluded_suspects_text(diagnosis.suspects) : "";
  if (text.empty() && has_compared_looks(diagnosis)) {
    text = not_it_text(diagnosis.owners);
  }
  if (!text.empty()) {
    rows.push_back(std::move(text));
  }
  for (std::string& overhead : overhead_texts(*diagnosis.run.verdict)) {
    rows.push_back(std::move(overhead));
  }
  return rows;
}

std::vector<std::string> trial_rows(const Diagnosis& diagnosis) {
  std::vector<std::string> rows;
  for (const RuleOutReport::Process& process : diagnosis.interventions.processes) {
    for (std::string& sentence : conclusions(process)) {
      rows.push_back(std::move(sentence));
    }
  }
  return rows;
}

std::vector<std::string> until_rows(const Diagnosis& diagnosis) {
  const SeriesVerdict& reading = diagnosis.run.verdict->answer().series;
  std::vector<std::string> rows;
  if (is_growing(diagnosis)) {
    std::string text = forecast_text(reading, diagnosis.run.run.limit_source);
    rows.push_back(text.empty() ? "No limit is known, or it is too far to be told." : text);
  }
  if (std::string text = deciding_text(diagnosis); !text.empty()) {
    rows.push_back(std::move(text));
  }
  return rows;
}

// Of what the operating system and the tool lost, and what it was refused.
std::vector<std::string> unseen_rows(const Diagnosis& diagnosis) {
  std::vector<std::string> rows;
  for (const RefusedDepth& refused : diagnosis.refused) {
    rows.push_back(fmt::format("{}: {}", escape_text(refused.what), escape_text(refused.why)));
  }
  for (const std::string& note : diagnosis.owners.notes) {
    rows.push_back(escape_text(note));
  }
  for (const std::string& problem : diagnosis.lines.coverage.problems) {
    rows.push_back(escape_text(problem));
  }
  for (std::string& loss : loss_texts(diagnosis.run.run)) {
    rows.push_back(std::move(loss));
  }
  constexpr std::size_t kMostRows = 6;
  if (rows.size() > kMostRows) {
    const std::size_t more = rows.size() - kMostRows;
    rows.resize(kMostRows);
    rows.push_back(fmt::format("and {} more: --json has all", more));
  }
  return rows;
}

std::string in_bold_to_the_first_line_end(const std::string& text) {
  const std::size_t end = std::min(text.find("\n\n"), text.size());
  return "\x1b[1m" + text.substr(0, end) + "\x1b[0m" + text.substr(end);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, const ProfileStyle& style) {
  Document page;
  page.paragraph(diagnosis_answer(diagnosis));
  if (!diagnosis.run.verdict) {
    page.rows("not seen", unseen_rows(diagnosis));
    return to_text(page, {kLineColumns, kPageLabelColumns});
  }
  for (const std::string& ignored : ignored_options(diagnosis.run)) {
    page.paragraph(ignored, "note: ");
  }
  page.empty_line()
      .rows("what grows", growth_rows(diagnosis))
      .rows("who holds it", owner_rows(diagnosis))
      .rows("which line", line_rows(diagnosis))
      .rows("what it is not", not_it_rows(diagnosis))
      .rows("what was tried", trial_rows(diagnosis))
      .rows("how long", until_rows(diagnosis))
      .empty_line()
      .rows("what to do", remedy_texts(diagnosis))
      .empty_line()
      .rows("seen", seen_texts(diagnosis))
      .rows("not seen", unseen_rows(diagnosis));
  std::string text = to_text(page, {kLineColumns, kPageLabelColumns});
  return style.colour ? in_bold_to_the_first_line_end(text) : text;
}

std::string diagnosis_line(const Diagnosis& diagnosis, double t_s) {
  std::string line = format_clock(t_s);
  if (!diagnosis.run.verdict) {
    return line + "  nothing to judge yet";
  }
  const TrackVerdict& answer = diagnosis.run.verdict->answer();
  if (answer.series.end.step) {
    line += fmt::format("  step {:.0f}", *answer.series.end.step);
  }
  line += fmt::format("  {}", short_verdict(answer.series, diagnosis.run.verdict->verdict));
  if (is_growing(diagnosis)) {
    line += ' ' + short_growth(answer.series, diagnosis.run.verdict->verdict);
  } else {
    line += fmt::format(", {}", format_bytes(answer.series.last_floor_bytes));
  }
  const auto owners = growing_owners(diagnosis);
  line += owners.empty() ? "" : fmt::format("; {}", owner_path(owners.front()->record()));
  const auto lines = named_lines(diagnosis);
  return lines.empty()
             ? line
             : fmt::format("{}; {}", line, line_text(diagnosis.lines, *lines.front(), 60));
}

}  // namespace tidemark::report
