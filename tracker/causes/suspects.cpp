// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/suspects.h"

#include <algorithm>
#include <utility>

namespace tidemark::tracker {
namespace {

// Of the growth: less is no answer to where it comes from, and nearly all leaves no room for
// others.
constexpr double kGoodPart = 0.1;
constexpr double kMostOfIt = 0.8;
constexpr double kNearlyAll = 0.9;
// A leak that went on for so much longer than the first epoch has another cause than new samples.
constexpr double kSurelyPastEpoch = 1.25;

struct CauseOfSuspect {
  std::string_view advice;
  Suspect suspect;
};
constexpr CauseOfSuspect kCauses[] = {
    {"dataloader_copy_on_write", Suspect::kDatasetLoading},
    {"graph_kept_until_epoch_end", Suspect::kGradientAccumulation},
    {"autograd_function_cycle", Suspect::kGradientAccumulation},
    {"tokenizer_cache", Suspect::kProcessorCaches},
    {"collector_sawtooth", Suspect::kGarbage},
    {"incremental_collector", Suspect::kGarbage},
    {"collector_off", Suspect::kGarbage},
    {"collector_frozen", Suspect::kGarbage},
    {"collector_rare", Suspect::kGarbage},
    {"checkpoint_cycle", Suspect::kGarbage},
    {"optimizer_state", Suspect::kOptimizerState},
    {"recompilation", Suspect::kCompileWorkers},
    {"logging_lists", Suspect::kMetricsLists},
};

// Whose owners have names and types of libraries, or are told by their kind. What a job calls its
// own lists, data sets and collators is up to it.
bool is_surely_recognised(Suspect suspect) {
  return suspect != Suspect::kDatasetLoading && suspect != Suspect::kMetricsLists &&
         suspect != Suspect::kCollator;
}

// Then garbage was not looked for: see HeapOptions::only_reads.
bool ran_while_it_was_read(const HeapLook& look) {
  return look.reading == HeapReading::kRunning && !look.detour.empty();
}

class Examination {
 public:
  explicit Examination(const SuspectInputs& inputs) : inputs_(inputs) {
    if (inputs_.ranking != nullptr && !inputs_.ranking->processes.empty()) {
      coverage_ = &inputs_.ranking->processes.front();
      looks_ = coverage_->process->looks.size();
    }
  }

  SuspectRow row_of(Suspect suspect) const {
    using Rule = std::optional<SuspectRow> (Examination::*)(Suspect) const;
    // What was seen to grow counts before what speaks for standing still.
    constexpr Rule kExaminations[] = {
        &Examination::by_trial,   &Examination::by_growing_owner, &Examination::by_graphs,
        &Examination::by_garbage, &Examination::by_processes,     &Examination::by_line,
        &Examination::by_cause,   &Examination::by_standstill,    &Examination::by_constant,
        &Examination::by_epochs,  &Examination::by_other_owners,  &Examination::by_nothing};
    for (const Rule rule : kExaminations) {
      if (auto row = (this->*rule)(suspect)) {
        row->looks = looks_;
        return *std::move(row);
      }
    }
    return row(suspect, SuspectState::kCannotTell, SuspectRule::kNotFound);
  }

 private:
  static SuspectRow row(Suspect suspect, SuspectState state, SuspectRule rule) {
    SuspectRow row;
    row.suspect = suspect;
    row.state = state;
    row.rule = rule;
    return row;
  }

  bool has_growth() const { return looks_ >= 2; }
  // Every look reached all that there is.
  bool is_whole() const {
    const auto& looks = coverage_->process->looks;
    return std::none_of(looks.begin(), looks.end(),
                        [](const HeapLook& look) { return look.is_partial; });
  }
  // What the growth of objects is measured against.
  std::optional<double> growth_bytes() const {
    if (coverage_ == nullptr) {
      return std::nullopt;
    }
    const double grown = coverage_->footprint_growth_bytes.value_or(coverage_->heap_growth_bytes);
    return grown >= kLeastSharedGrowth ? std::optional(grown) : std::nullopt;
  }
  std::optional<double> share_of(double bytes) const {
    const auto all = growth_bytes();
    return all ? std::optional(bytes / *all) : std::nullopt;
  }
  bool is_of_process(const RankedOwner& owner) const {
    return std::any_of(owner.members.begin(), owner.members.end(), [&](const JudgedOwner& member) {
      return member.process == coverage_->process;
    });
  }
  template <typename Visit>
  void for_each_owner(Visit visit) const {
    if (inputs_.ranking == nullptr) {
      return;
    }
    for (const RankedOwner& owner : inputs_.ranking->owners) {
      if (is_of_process(owner)) {
        visit(owner, suspect_of(owner.record()));
      }
    }
  }

  std::optional<SuspectRow> by_trial(Suspect suspect) const {
    const auto& trial = inputs_.trials[static_cast<std::size_t>(suspect)];
    if (!trial) {
      return std::nullopt;
    }
    SuspectRow made = trial->is_confirmed
                          ? row(suspect, SuspectState::kThisIsIt, SuspectRule::kConfirmedByTrial)
                          : row(suspect, SuspectState::kNotIt, SuspectRule::kRuledOutByTrial);
    made.bytes = trial->effect_bytes;
    return made;
  }

  // All of its sort together, with the name of the largest.
  std::optional<SuspectRow> by_growing_owner(Suspect suspect) const {
    double grown = 0.0;
    const RankedOwner* first = nullptr;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> of) {
      if (of == suspect && owner.grows() && owner.record().kind != OwnerKind::kGarbage) {
        grown += owner.growth_bytes;
        first = first == nullptr ? &owner : first;
      }
    });
    if (first == nullptr || !has_growth()) {
      return std::nullopt;
    }
    const auto share = share_of(grown);
    SuspectRow made = share.value_or(1.0) >= kGoodPart
                          ? row(suspect, SuspectState::kThisIsIt, SuspectRule::kOwnerGrows)
                          : row(suspect, SuspectState::kNotIt, SuspectRule::kOwnerSmall);
    made.what = first->record().path;
    made.bytes = static_cast<double>(first->held_bytes());
    made.growth_bytes = grown;
    made.share = share;
    return made;
  }

  std::optional<SuspectRow> by_graphs(Suspect suspect) const {
    if (suspect != Suspect::kGradientAccumulation || !has_growth()) {
      return std::nullopt;
    }
    double held = 0.0;
    double grown = 0.0;
    bool is_known = false;
    for (const TensorGrowth& tensor : tensor_growth(*coverage_->process)) {
      is_known = true;
      const bool is_of_host = tensor.now.device.empty() || tensor.now.device == "cpu";
      if (tensor.now.is_graph && is_of_host) {
        held += static_cast<double>(tensor.now.bytes);
        grown += tensor.growth_bytes.value_or(0.0);
      }
    }
    const auto share = share_of(grown);
    if (!is_known || !is_whole()) {
      return std::nullopt;
    }
    const bool is_more = grown > 0.0 && share.value_or(0.0) >= kGoodPart;
    // A look in the middle of a step finds the graph of that step.
    const bool is_it = is_more && owned_growth() >= kMostOfIt * grown;
    if (is_more != is_it || !growth_bytes()) {
      return std::nullopt;
    }
    SuspectRow made = is_it
                          ? row(suspect, SuspectState::kThisIsIt, SuspectRule::kGraphTensorsGrow)
                          : row(suspect, SuspectState::kNotIt, SuspectRule::kGraphTensorsConstant);
    made.bytes = held;
    made.growth_bytes = grown;
    made.share = share;
    return made;
  }

  double owned_growth() const {
    double grown = 0.0;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> /*of*/) {
      grown += owner.grows() ? owner.growth_bytes : 0.0;
    });
    return grown;
  }

  std::optional<SuspectRow> by_garbage(Suspect suspect) const {
    if (suspect != Suspect::kGarbage || !has_growth() || !is_whole()) {
      return std::nullopt;
    }
    const auto& looks = coverage_->process->looks;
    if (std::any_of(looks.begin(), looks.end(), ran_while_it_was_read)) {
      return std::nullopt;
    }
    const InterpreterFacts& facts = coverage_->process->looks.back().interpreter;
    // Without the lists of the collector nobody knows what is garbage.
    if (!facts.gc_enabled || facts.is_free_threaded) {
      return std::nullopt;
    }
    double held = 0.0;
    double grown = 0.0;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> of) {
      if (of == Suspect::kGarbage) {
        held += static_cast<double>(owner.held_bytes());
        grown += owner.grows() ? owner.growth_bytes : 0.0;
      }
    });
    const auto share = share_of(grown);
    const bool is_it = grown > 0.0 && share.value_or(1.0) >= kGoodPart;
    SuspectRow made = is_it ? row(suspect, SuspectState::kThisIsIt, SuspectRule::kGarbageGrows)
                            : row(suspect, SuspectState::kNotIt, SuspectRule::kNoGarbage);
    made.bytes = held;
    made.growth_bytes = grown;
    made.share = share;
    return made;
  }

  // Of the role of compile workers, in the run.
  std::optional<SuspectRow> by_processes(Suspect suspect) const {
    if (suspect != Suspect::kCompileWorkers || inputs_.run == nullptr || !inputs_.run->verdict) {
      return std::nullopt;
    }
    const RunVerdict& verdict = *inputs_.run->verdict;
    for (const TrackVerdict& each : verdict.tracks) {
      const Track& track = inputs_.run->run.tracks[each.track];
      if (track.kind == TrackKind::kRole && track.role == Role::kCompileWorker) {
        return by_role(suspect, track, each.series);
      }
    }
    return has_role(Role::kCompileWorker)
               ? row(suspect, SuspectState::kCannotTell, SuspectRule::kTooEarly)
               : row(suspect, SuspectState::kNotIt, SuspectRule::kNoProcesses);
  }
  bool has_role(Role role) const {
    const auto& tracks = inputs_.run->run.tracks;
    return std::any_of(tracks.begin(), tracks.end(), [&](const Track& track) {
      return track.kind == TrackKind::kRole && track.role == role;
    });
  }
  SuspectRow by_role(Suspect suspect, const Track& track, const SeriesVerdict& series) const {
    const SeriesVerdict& answer = inputs_.run->verdict->answer().series;
    const double grown = series.last_floor_bytes - series.first_floor_bytes;
    const double all = answer.last_floor_bytes - answer.first_floor_bytes;
    SuspectRow made = row(suspect, SuspectState::kCannotTell, SuspectRule::kTooEarly);
    made.processes = track.most_processes;
    made.bytes = series.last_floor_bytes;
    made.growth_bytes = grown;
    if (all >= kLeastSharedGrowth) {
      made.share = grown / all;
    }
    if (series.verdict >= Verdict::kGrowing && made.share.value_or(1.0) >= kGoodPart) {
      made.state = SuspectState::kThisIsIt;
      made.rule = SuspectRule::kProcessesGrow;
    } else if (!series.undetermined || made.share.value_or(1.0) < kGoodPart) {
      made.state = SuspectState::kNotIt;
      made.rule = SuspectRule::kProcessesConstant;
    }
    return made;
  }

  std::optional<SuspectRow> by_line(Suspect suspect) const {
    if (inputs_.lines == nullptr) {
      return std::nullopt;
    }
    for (const RankedLine& line : inputs_.lines->lines) {
      if (line.grows() && suspect_of_line(line.name) == suspect &&
          line.share_of_growth.value_or(0.0) >= kGoodPart) {
        SuspectRow made = row(suspect, SuspectState::kThisIsIt, SuspectRule::kLineGrows);
        made.what = line.name;
        made.growth_bytes = line.growth_bytes;
        made.share = line.share_of_growth;
        return made;
      }
    }
    return std::nullopt;
  }

  std::optional<SuspectRow> by_cause(Suspect suspect) const {
    if (inputs_.run == nullptr || !inputs_.run->verdict) {
      return std::nullopt;
    }
    for (const Advice& advice : inputs_.run->verdict->advice) {
      for (const CauseOfSuspect& cause : kCauses) {
        if (cause.advice == advice.id && cause.suspect == suspect) {
          SuspectRow made = row(suspect, SuspectState::kThisIsIt, SuspectRule::kCauseFits);
          made.what = advice.id;
          return made;
        }
      }
    }
    return std::nullopt;
  }

  std::optional<SuspectRow> by_standstill(Suspect suspect) const {
    const bool stands_still = inputs_.run != nullptr && inputs_.run->verdict &&
                              (inputs_.run->verdict->verdict == Verdict::kStable ||
                               inputs_.run->verdict->verdict == Verdict::kSpikes) &&
                              !inputs_.run->verdict->answer().series.undetermined;
    return stands_still
               ? std::optional(row(suspect, SuspectState::kNotIt, SuspectRule::kNothingGrows))
               : std::nullopt;
  }

  // What has a name and does not grow. What leads to an owner that grows is none of these.
  std::optional<SuspectRow> by_constant(Suspect suspect) const {
    if (!has_growth() || !is_whole()) {
      return std::nullopt;
    }
    const RankedOwner* largest = nullptr;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> of) {
      // Named at one look only: whether it held the same at others is not known.
      const bool is_known = owner.first().track->points.size() >= 2;
      if (of == suspect && is_known && !owner.grows() && !leads_to_growth(owner.record().path) &&
          (largest == nullptr || owner.held_bytes() > largest->held_bytes())) {
        largest = &owner;
      }
    });
    if (largest == nullptr) {
      return std::nullopt;
    }
    const auto grown = static_cast<double>(largest->grown_bytes);
    const bool has_grown =
        grown >= kLeastSharedGrowth && share_of(grown).value_or(1.0) >= kGoodPart;
    SuspectRow made = row(suspect, SuspectState::kNotIt,
                          has_grown ? SuspectRule::kOwnerStopped : SuspectRule::kOwnerConstant);
    made.what = largest->record().path;
    made.growth_bytes = grown;
    made.bytes = static_cast<double>(largest->held_bytes());
    return made;
  }
  bool leads_to_growth(std::string_view path) const {
    bool leads = false;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> /*of*/) {
      const std::string_view longer = owner.record().path;
      leads = leads || (owner.grows() && longer.size() > path.size() && longer.starts_with(path) &&
                        (longer[path.size()] == '.' || longer[path.size()] == '['));
    });
    return leads;
  }

  std::optional<SuspectRow> by_epochs(Suspect suspect) const {
    if (suspect != Suspect::kDatasetLoading || inputs_.run == nullptr || !inputs_.run->verdict ||
        inputs_.run->verdict->verdict != Verdict::kLeak) {
      return std::nullopt;
    }
    const Pattern* const leak = inputs_.run->verdict->answer().series.find(PatternKind::kLeak);
    const auto epochs = leak == nullptr ? std::nullopt : epochs_of(*leak);
    if (epochs.value_or(0.0) < kSurelyPastEpoch) {
      return std::nullopt;
    }
    SuspectRow made = row(suspect, SuspectState::kNotIt, SuspectRule::kPastEpoch);
    made.epochs = epochs;
    return made;
  }
  std::optional<double> epochs_of(const Pattern& pattern) const {
    const RunTracks& run = inputs_.run->run;
    if (run.epoch_steps.value_or(0.0) > 0.0 && pattern.from.step && pattern.to.step) {
      return (*pattern.to.step - *pattern.from.step) / *run.epoch_steps;
    }
    if (run.epoch_seconds.value_or(0.0) > 0.0 && pattern.from.t_s && pattern.to.t_s) {
      return (*pattern.to.t_s - *pattern.from.t_s) / *run.epoch_seconds;
    }
    return std::nullopt;
  }

  // Nearly all of the growth is held by what is something else.
  std::optional<SuspectRow> by_other_owners(Suspect suspect) const {
    if (suspect == Suspect::kCompileWorkers || !has_growth() || !is_whole() || !growth_bytes()) {
      return std::nullopt;
    }
    double known = 0.0;
    double unnamed = 0.0;
    const RankedOwner* first = nullptr;
    const RankedOwner* first_unnamed = nullptr;
    for_each_owner([&](const RankedOwner& owner, std::optional<Suspect> of) {
      if (!owner.grows()) {
        return;
      }
      (of ? known : unnamed) += owner.growth_bytes;
      const RankedOwner*& named = of ? first : first_unnamed;
      named = named == nullptr ? &owner : named;
    });
    const bool counts_unnamed = is_surely_recognised(suspect);
    const double others = known + (counts_unnamed ? unnamed : 0.0);
    const double share = *share_of(others);
    if (share >= kNearlyAll) {
      const RankedOwner* const holder =
          first == nullptr || (counts_unnamed && unnamed > known) ? first_unnamed : first;
      SuspectRow made = row(suspect, SuspectState::kNotIt, SuspectRule::kOthersHoldIt);
      made.what = holder->record().path;
      made.share = share;
      return made;
    }
    if (first_unnamed != nullptr && *share_of(known + unnamed) >= kNearlyAll) {
      SuspectRow made = row(suspect, SuspectState::kCannotTell, SuspectRule::kUnnamedOwner);
      made.what = first_unnamed->record().path;
      made.share = share_of(unnamed);
      return made;
    }
    return std::nullopt;
  }

  std::optional<SuspectRow> by_nothing(Suspect suspect) const {
    const SuspectRule rule = suspect == Suspect::kCompileWorkers ? SuspectRule::kNotWatched
                             : looks_ == 0                       ? SuspectRule::kNoLooks
                             : looks_ == 1                       ? SuspectRule::kOneLook
                             : !is_whole()                       ? SuspectRule::kPartialLooks
                                                                 : SuspectRule::kNotFound;
    return row(suspect, SuspectState::kCannotTell, rule);
  }

  const SuspectInputs& inputs_;
  const OwnerCoverage* coverage_ = nullptr;  // of the process that grew most
  std::size_t looks_ = 0;
};

}  // namespace

SuspectRows judge_suspects(const SuspectInputs& inputs) {
  const Examination examination(inputs);
  SuspectRows rows;
  for (std::size_t i = 0; i < kSuspectCount; ++i) {
    rows[i] = examination.row_of(static_cast<Suspect>(i));
  }
  return rows;
}

std::string_view suspect_name(Suspect suspect) {
  constexpr std::array<std::string_view, kSuspectCount> kNames{
      "dataset_loading", "gradient_accumulation", "log_history",   "processor_caches", "garbage",
      "optimizer_state", "compile_workers",       "metrics_lists", "collator"};
  return kNames[static_cast<std::size_t>(suspect)];
}

std::string_view suspect_state_name(SuspectState state) {
  constexpr std::array<std::string_view, 3> kNames{"this_is_it", "not_it", "cannot_tell"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view suspect_rule_name(SuspectRule rule) {
  constexpr std::array<std::string_view, 25> kNames{"owner_grows",
                                                    "graph_tensors_grow",
                                                    "garbage_grows",
                                                    "processes_grow",
                                                    "line_grows",
                                                    "cause_fits",
                                                    "confirmed_by_trial",
                                                    "owner_constant",
                                                    "owner_stopped",
                                                    "owner_small",
                                                    "graph_tensors_constant",
                                                    "no_garbage",
                                                    "processes_constant",
                                                    "no_processes",
                                                    "others_hold_it",
                                                    "past_epoch",
                                                    "nothing_grows",
                                                    "ruled_out_by_trial",
                                                    "no_looks",
                                                    "one_look",
                                                    "partial_looks",
                                                    "not_found",
                                                    "unnamed_owner",
                                                    "not_watched",
                                                    "too_early"};
  return kNames[static_cast<std::size_t>(rule)];
}

}  // namespace tidemark::tracker
