// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis_parts.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.h"
#include "common/units.h"
#include "report/ledger_words.h"
#include "report/profile_text.h"
#include "tracker/ledgers/ledgers.h"
#include "tracker/owners/cache_bound.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::report {
namespace {

using tracker::OwnerEvidence;
using tracker::OwnerEvidenceKind;
using tracker::RankedLine;
using tracker::RankedOwner;
using tracker::SeriesVerdict;
using tracker::Verdict;

// The call stack of a site of an owner; nullptr: it is not known.
const tracker::SiteTrack* site_track(const Diagnosis& diagnosis, const OwnerSite& made) {
  const auto& sites = diagnosis.lines.run->sites;
  const auto track = std::find_if(sites.begin(), sites.end(), [&](const tracker::SiteTrack& site) {
    return site.record.site == made.site;
  });
  return track == sites.end() ? nullptr : &*track;
}

// Most of what is known of it comes through this line.
bool is_made_by(const Diagnosis& diagnosis, const RankedOwner& owner, const RankedLine& line) {
  constexpr double kMost = 0.5;
  double all = 0.0;
  double through = 0.0;
  for (const OwnerSite& made : owner.sites) {
    const tracker::SiteTrack* const track = site_track(diagnosis, made);
    if (track == nullptr) {
      continue;
    }
    const auto bytes = static_cast<double>(made.bytes);
    const auto lines = tracker::own_lines(*diagnosis.lines.run, track->record.frames);
    all += bytes;
    through += std::find(lines.begin(), lines.end(), line.name) != lines.end() ? bytes : 0.0;
  }
  return all > 0.0 && through > kMost * all;
}

bool is_by_key(const RankedOwner& owner) {
  const auto& evidence = owner.first().evidence;
  return std::any_of(evidence.begin(), evidence.end(), [](const OwnerEvidence& each) {
    return each.kind == OwnerEvidenceKind::kKeyed;
  });
}

// What a programmer does about an owner.
std::string owner_remedy(const RankedOwner& owner) {
  const std::string name = owner_name(owner.record());
  switch (owner.record().kind) {
    case OwnerKind::kVariable:
      return fmt::format("Let go of the old value of `{}` before it is assigned anew.", name);
    case OwnerKind::kGarbage:
      return "Break the cycle of references, or call gc.collect() every few steps.";
    case OwnerKind::kNativeHold:
      return "Look at what the native code keeps references to.";
    case OwnerKind::kNative:
      return "Keep numbers instead of tensors: loss.item(), or tensor.detach().";
    case OwnerKind::kContainer:
    case OwnerKind::kName:
      break;
  }
  return is_by_key(owner)
             ? fmt::format("Bound `{}`: keep only what is used again, or clear it each epoch.",
                           name)
             : fmt::format(
                   "Bound `{}`: clear it once it was used, and keep numbers in it rather "
                   "than tensors (loss.item(), tensor.detach()).",
                   name);
}

std::vector<tracker::Advice> all_advice(const Diagnosis& diagnosis) {
  std::vector<tracker::Advice> all = diagnosis.run.verdict->advice;
  all.insert(all.end(), diagnosis.owners.advice.begin(), diagnosis.owners.advice.end());
  return all;
}

// Where the owner that grows most ends, if it is a cache.
std::optional<tracker::CacheBound> bound_of_first(const Diagnosis& diagnosis) {
  const auto owners = growing_owners(diagnosis);
  return owners.empty() ? std::nullopt
                        : tracker::cache_bound(*owners.front(), diagnosis.owners.ranking,
                                               *diagnosis.owners.run);
}

// The commands for a job that runs on and grows.
std::vector<std::string> commands_for_growth(const Diagnosis& diagnosis) {
  const std::string& target = diagnosis.target.running;
  const SeriesVerdict& reading = diagnosis.run.verdict->answer().series;
  const bool is_leak = diagnosis.run.verdict->verdict == Verdict::kLeak;
  std::vector<std::string> commands;
  if (is_leak || fills_soon(reading)) {
    commands.push_back(
        fmt::format("tidemark guard {} stops it with a checkpoint before memory is full.", target));
  }
  constexpr double kSoonS = 1800.0;
  const auto bound = bound_of_first(diagnosis);
  if (!is_leak && bound && bound->in_s.value_or(kSoonS) < kSoonS) {
    commands.push_back(fmt::format("Ask again in {}: tidemark diagnose {}",
                                   format_duration(*bound->in_s), target));
  } else if (!is_leak) {
    commands.push_back(fmt::format("tidemark track {} --duration {} decides whether it leaks.",
                                   target, duration_needed(reading)));
  }
  if (named_lines(diagnosis).empty() && growing_owners(diagnosis).empty()) {
    if (diagnosis.interventions.processes.empty()) {
      commands.push_back(fmt::format(
          "tidemark rule-out {} shows whether it is freed memory that the allocator keeps.",
          target));
    }
    commands.push_back(fmt::format("tidemark profile {} shows which line allocates it.",
                                   target.substr(0, target.find(" --pid"))));
  }
  return commands;
}

std::string looks_sentence(const Diagnosis& diagnosis) {
  std::vector<std::string> texts;
  double paused_s = 0.0;
  std::size_t looks = 0;
  for (const tracker::LookedProcess& process : diagnosis.owners.run->processes) {
    looks = std::max(looks, process.looks.size());
    for (const HeapLook& look : process.looks) {
      paused_s = std::max(paused_s, look.paused_s);
    }
  }
  if (looks == 0) {
    return "";
  }
  std::string text = fmt::format(
      "{} at the objects of {}, which stood still for {:.1f} ms at most",
      format_count(looks, "look"),
      format_count(diagnosis.owners.run->processes.size(), "process", "processes"), 1e3 * paused_s);
  const auto& coverage = diagnosis.owners.ranking.processes;
  if (!coverage.empty() && coverage.front().explained_share) {
    text += fmt::format("; owners explain {} of the growth",
                        format_percent(std::min(1.0, *coverage.front().explained_share)));
  }
  return text + '.';
}

std::string stacks_sentence(const Diagnosis& diagnosis) {
  const ProfileReport& lines = diagnosis.lines;
  if (lines.run->empty()) {
    return "";
  }
  std::string text = fmt::format(
      "Call stacks of {}", format_count(lines.run->traced_processes(), "process", "processes"));
  if (lines.coverage.sample_every_bytes) {
    text += fmt::format(", one sample in {}", format_bytes(*lines.coverage.sample_every_bytes));
  }
  if (const auto& share = lines.coverage.growth_explained_share) {
    text += fmt::format("; they explain {} of the growth since", format_percent(*share));
  }
  if (const auto lost = lost_records(lines)) {
    text += fmt::format("; {} of the records were lost", format_percent(lost->share));
  }
  return text + '.';
}

// Of the process that carries the growth.
const tracker::ProcessLedgers* ledgers_of_grower(const Diagnosis& diagnosis) {
  const tracker::RunVerdict& verdict = *diagnosis.run.verdict;
  const tracker::TrackVerdict& answer = verdict.tracks[verdict.carrier.value_or(verdict.where)];
  const tracker::Ledgers& ledgers = *diagnosis.ledger.ledgers;
  const tracker::ProcessLedgers* const known =
      ledgers.of(diagnosis.run.run.tracks[answer.track].key);
  return known != nullptr || ledgers.processes().size() != 1 ? known : &ledgers.processes().front();
}

// What a container of samples says about growth that may end.
std::string bound_sentence(const RankedOwner& owner, const tracker::CacheBound& bound) {
  const std::string name = owner_name(owner.record());
  const std::string when =
      bound.in_s ? fmt::format(": in about {}", format_duration(*bound.in_s)) : "";
  if (bound.data_set == nullptr) {
    return fmt::format(
        "If `{}` stops growing once a whole epoch of {} steps was watched, it is warm-up{}.", name,
        format_grouped(bound.samples), when);
  }
  const std::string data_set = owner_name(bound.data_set->record());
  return bound.is_exceeded
             ? fmt::format("`{}` has more entries than `{}` ({}): it is no cache by sample.", name,
                           data_set, format_grouped(bound.samples))
             : fmt::format("If `{}` stops at {} entries, as many as `{}` has, it is warm-up{}.",
                           name, format_grouped(bound.samples), data_set, when);
}

}  // namespace

bool is_growing(const Diagnosis& diagnosis) {
  return diagnosis.run.verdict && diagnosis.run.verdict->verdict >= Verdict::kGrowing;
}

std::string grower_text(const Diagnosis& diagnosis) {
  const tracker::RunVerdict& verdict = *diagnosis.run.verdict;
  const tracker::TrackVerdict& answer = verdict.tracks[verdict.carrier.value_or(verdict.where)];
  const tracker::Track& track = diagnosis.run.run.tracks[answer.track];
  if (track.kind == tracker::TrackKind::kShm) {
    return "memory in /dev/shm that no process holds";
  }
  return answer.metric == tracker::Metric::kFootprint ? who_text(track)
                                                      : curve_text(answer.metric, track);
}

std::string share_of_growth_text(const std::optional<double>& share) {
  constexpr double kAll = 0.995;
  constexpr double kMoreThanAll = 1.1;  // below: two measurements of different moments
  if (!share) {
    return "";
  }
  return *share > kMoreThanAll ? "more than all of the growth"
         : *share >= kAll      ? "all of the growth"
                               : format_percent(*share) + " of the growth";
}

bool has_compared_looks(const Diagnosis& diagnosis) {
  const auto& processes = diagnosis.owners.run->processes;
  return std::any_of(processes.begin(), processes.end(), [](const tracker::LookedProcess& process) {
    return process.looks.size() > 1;
  });
}

std::vector<const RankedOwner*> growing_owners(const Diagnosis& diagnosis) {
  std::vector<const RankedOwner*> own;
  std::vector<const RankedOwner*> of_libraries;
  for (const RankedOwner& owner : diagnosis.owners.ranking.owners) {
    if (owner.grows()) {
      (owner.record().is_library ? of_libraries : own).push_back(&owner);
    }
  }
  return own.empty() ? of_libraries : own;
}

std::vector<const RankedLine*> named_lines(const Diagnosis& diagnosis) {
  std::vector<const RankedLine*> lines = growing_lines(diagnosis.lines);
  std::erase_if(lines, [](const RankedLine* line) { return line->name.empty(); });
  return lines;
}

std::string owner_made_by(const Diagnosis& diagnosis, const RankedLine& line) {
  for (const RankedOwner* owner : growing_owners(diagnosis)) {
    if (is_made_by(diagnosis, *owner, line)) {
      return owner_name(owner->record());
    }
  }
  return "";
}

std::optional<MadeElsewhere> made_elsewhere(const Diagnosis& diagnosis) {
  const auto owners = growing_owners(diagnosis);
  const auto lines = named_lines(diagnosis);
  if (owners.empty() || std::any_of(lines.begin(), lines.end(), [&](const RankedLine* line) {
        return is_made_by(diagnosis, *owners.front(), *line);
      })) {
    return std::nullopt;
  }
  for (const OwnerSite& made : owners.front()->sites) {
    const tracker::SiteTrack* const track = site_track(diagnosis, made);
    if (track == nullptr) {
      continue;
    }
    constexpr std::size_t kLineOfCodeColumns = 120;
    const auto stack = tracker::shown_stack(*diagnosis.lines.run, track->record.frames);
    if (std::string line = tracker::headline(stack, "", kLineOfCodeColumns); !line.empty()) {
      return MadeElsewhere{owner_name(owners.front()->record()), std::move(line)};
    }
  }
  return std::nullopt;
}

std::string ledger_text(const Diagnosis& diagnosis) {
  constexpr std::size_t kMostRows = 3;
  constexpr double kLeastShare = 0.1;
  const tracker::ProcessLedgers* const process = ledgers_of_grower(diagnosis);
  if (process == nullptr || process->looks < 2) {
    return "";
  }
  std::vector<tracker::LedgerChange> changes = tracker::add_up(std::span(process, 1));
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return a.footprint_growth_bytes() > b.footprint_growth_bytes();
  });
  std::vector<std::string> rows;
  for (const tracker::LedgerChange& change : changes) {
    const auto growth = static_cast<double>(change.footprint_growth_bytes());
    const auto most = static_cast<double>(changes.front().footprint_growth_bytes());
    if (growth >= static_cast<double>(kMiB) && growth >= kLeastShare * most &&
        rows.size() < kMostRows) {
      constexpr std::size_t kRowColumns = 60;
      rows.push_back(fmt::format("{} {}", ledger_row_text(change.now, kRowColumns),
                                 format_bytes_delta(growth)));
    }
  }
  return rows.empty() ? ""
                      : fmt::format("In its memory map, over {}: {}.",
                                    format_duration(process->seconds()), fmt::join(rows, "; "));
}

std::string no_owner_sentence(const Diagnosis& diagnosis) {
  return has_unexplained_growth(diagnosis.owners) ? "No object of Python grows, but the memory "
                                                    "does: it belongs to native code, or it is "
                                                    "free and the allocator keeps it."
                                                  : no_owner_text(diagnosis.owners);
}

std::string unexplained_sentence(const Diagnosis& diagnosis) {
  for (const tracker::OwnerCoverage& coverage : diagnosis.owners.ranking.processes) {
    if (coverage.explained_share) {
      return fmt::format(
          "They explain {} of the growth; the rest belongs to native code, or is free and the "
          "allocator keeps it.",
          format_percent(std::clamp(*coverage.explained_share, 0.0, 1.0)));
    }
  }
  return "";
}

std::vector<std::string> remedy_texts(const Diagnosis& diagnosis) {
  constexpr std::size_t kMostAdvice = 2;
  std::vector<std::string> texts;
  const auto owners = growing_owners(diagnosis);
  if (is_growing(diagnosis) && !owners.empty()) {
    texts.push_back(owner_remedy(*owners.front()));
  }
  for (const tracker::Advice& advice : all_advice(diagnosis)) {
    if (texts.size() <= kMostAdvice) {
      texts.push_back(fmt::format("Likely: {} {}", advice.cause, advice.remedy));
    }
  }
  if (is_growing(diagnosis) && !diagnosis.target.running.empty()) {
    for (std::string& command : commands_for_growth(diagnosis)) {
      texts.push_back(std::move(command));
    }
  } else if (std::string next = next_text(diagnosis.run, diagnosis.target); !next.empty()) {
    texts.push_back(next + '.');
  }
  return texts;
}

std::vector<std::string> seen_texts(const Diagnosis& diagnosis) {
  const SeriesVerdict& reading = diagnosis.run.verdict->answer().series;
  std::vector<std::string> texts = {fmt::format(
      "{} in {}.", format_count(reading.samples, "sample"), format_duration(diagnosis.watched_s))};
  for (std::string text : {looks_sentence(diagnosis), stacks_sentence(diagnosis)}) {
    if (!text.empty()) {
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

std::string deciding_text(const Diagnosis& diagnosis) {
  const SeriesVerdict& reading = diagnosis.run.verdict->answer().series;
  if (!is_growing(diagnosis) || !reading.undetermined) {
    return "";
  }
  std::string text;
  const auto owners = growing_owners(diagnosis);
  if (!owners.empty()) {
    const RankedOwner& owner = *owners.front();
    if (const auto bound = bound_of_first(diagnosis)) {
      text = bound_sentence(owner, *bound);
    } else if (const std::string why = owner_evidence_text(owner.first()); !why.empty()) {
      text = fmt::format("What speaks {}.", why);
    }
  }
  const std::string needs = reading.needs ? needs_text(*reading.needs) : "";
  if (!needs.empty()) {
    text += fmt::format("{}The curve alone needs {} to tell a leak from warm-up.",
                        text.empty() ? "" : " ", needs);
  }
  return text;
}

std::string diagnosis_answer(const Diagnosis& diagnosis) {
  const bool has_own_words =
      !is_growing(diagnosis) ||
      is_bounded_copying(diagnosis.run.verdict->answer(), diagnosis.run.verdict->verdict);
  if (has_own_words) {
    return answer_text(diagnosis.run);
  }
  const tracker::RunVerdict& verdict = *diagnosis.run.verdict;
  const SeriesVerdict& reading = verdict.answer().series;
  const std::string forecast = short_forecast(reading);
  std::string text =
      fmt::format("{}: {} {}{}.", short_verdict(reading, verdict.verdict), grower_text(diagnosis),
                  grows_text(reading, verdict.verdict), forecast.empty() ? "" : "; " + forecast);
  const auto owners = growing_owners(diagnosis);
  const auto lines = named_lines(diagnosis);
  const auto made = made_elsewhere(diagnosis);
  const std::string line = !lines.empty() ? line_text(diagnosis.lines, *lines.front(), 100)
                           : made         ? made->line
                                          : "";
  if (!owners.empty()) {
    const std::string share = share_of_growth_text(owners.front()->share_of_growth);
    text += fmt::format(" {} holds {}", owner_path(owners.front()->record()),
                        share.empty() ? "what is new" : share);
    text += line.empty() ? "." : fmt::format("; it is made at {}.", line);
  } else if (!line.empty()) {
    text += fmt::format(" It is made at {}.", line);
  }
  return text;
}

}  // namespace tidemark::report
