// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracker/owners/owner_ranking.h"
#include "tracker/run/judged_run.h"
#include "tracker/sites/site_ranking.h"

// What people suspect first when a training job grows, and what a run says of each.
namespace tidemark::tracker {

// The names are in JSON: they never change.
enum class Suspect {
  kDatasetLoading,
  kGradientAccumulation,  // gradients, and graphs that are kept for them
  kLogHistory,            // of the Trainer of Hugging Face
  kProcessorCaches,       // of tokenizers and image processors
  kGarbage,               // cycles that no collection has freed
  kOptimizerState,
  kCompileWorkers,
  kMetricsLists,
  kCollator,
};
inline constexpr std::size_t kSuspectCount = 9;

enum class SuspectState { kThisIsIt, kNotIt, kCannotTell };

// What a row rests on. The names are in JSON: they never change.
enum class SuspectRule {
  // This is it.
  kOwnerGrows,        // an owner of its sort holds a good part of the growth
  kGraphTensorsGrow,  // tensors that are kept for their gradients do
  kGarbageGrows,      // objects that only refer to each other do
  kProcessesGrow,     // its processes do
  kLineGrows,         // a line of its sort allocates it
  kCauseFits,         // the run has the signature of a known cause
  kConfirmedByTrial,  // an intervention in the process freed it
  // Not it.
  kOwnerConstant,         // its owner is there, and held the same at all looks
  kOwnerStopped,          // its owner grew, and stands still now
  kOwnerSmall,            // its owner grows, by a small part of the growth
  kGraphTensorsConstant,  // tensors that are kept for their gradients became no more
  kNoGarbage,             // the looks found none, or as much as at first
  kProcessesConstant,     // its processes hold the same all the time
  kNoProcesses,           // there were none
  kOthersHoldIt,          // owners of other sorts hold nearly all of the growth
  kPastEpoch,             // growth went on when every sample had come
  kNothingGrows,          // the run does not grow
  kRuledOutByTrial,       // an intervention in the process freed nothing
  // Cannot tell.
  kNoLooks,       // nobody looked at the objects
  kOneLook,       // once only
  kPartialLooks,  // not all of them were reached
  kNotFound,      // the looks do not explain the growth, and none of its sort was seen
  kUnnamedOwner,  // what holds the growth has a name that does not say what it is for
  kNotWatched,    // nobody watched the processes
  kTooEarly,      // for a verdict on its processes
};

// What a run says of a suspect, and the figures of its rule.
struct SuspectRow {
  Suspect suspect = Suspect::kDatasetLoading;
  SuspectState state = SuspectState::kCannotTell;
  SuspectRule rule = SuspectRule::kNoLooks;
  std::string what;                    // path of an owner, name of a line, id of a cause; raw bytes
  std::optional<double> bytes;         // that it holds
  std::optional<double> growth_bytes;  // of it
  std::optional<double> share;         // of the growth of its process, or of the run
  std::optional<std::uint64_t> processes;
  std::optional<double> epochs;
  std::size_t looks = 0;
};

// An intervention in the process against one suspect.
struct SuspectTrial {
  bool is_confirmed = false;
  double effect_bytes = 0.0;  // that were freed
};

// What is known of a run; whatever is not known is left out.
struct SuspectInputs {
  const JudgedRun* run = nullptr;
  const RunOwners* owners = nullptr;  // these two together
  const OwnerRanking* ranking = nullptr;
  const SiteRanking* lines = nullptr;
  std::array<std::optional<SuspectTrial>, kSuspectCount> trials{};
};

using SuspectRows = std::array<SuspectRow, kSuspectCount>;
// All of them, in the order of the enumeration.
SuspectRows judge_suspects(const SuspectInputs& inputs);

// Whose an owner is by the names and types on its path, the last one first; nullopt: they do not
// say.
std::optional<Suspect> suspect_of(const OwnerRecord& owner);
// Of a line of code: "train.py:41 in collate".
std::optional<Suspect> suspect_of_line(std::string_view name);

// "dataset_loading", ...; "this_is_it", ...; "owner_grows", ...
std::string_view suspect_name(Suspect suspect);
std::string_view suspect_state_name(SuspectState state);
std::string_view suspect_rule_name(SuspectRule rule);

}  // namespace tidemark::tracker
