// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/output.h"
#include "tracker/owners/owner_ranking.h"
#include "tracker/run/judged_run.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::report {

// All that a report of `tidemark owners` says. What it points to outlives it.
struct OwnersReport {
  const tracker::RunOwners* run = nullptr;
  const tracker::RunSites* sites = nullptr;  // of the same run; nullptr: nobody traced it
  std::string command;
  tracker::OwnerRanking ranking;
  std::vector<tracker::Advice> advice;
  std::size_t top = 10;
  bool with_all = false;  // libraries, and what does not grow, like the rest
  bool with_types = false;
  bool with_tensors = false;
  // Why processes of the job were not looked at, and the like: a sentence each, raw bytes.
  std::vector<std::string> notes;
};

OwnersReport make_owners_report(const tracker::RunOwners& run, const tracker::RunSites* sites,
                                const tracker::JudgeOptions& judge);

// A process grew by enough to be compared, and owners explain less than half of it.
bool has_unexplained_growth(const OwnersReport& report);
// There is at least one look that found something.
bool has_looks(const OwnersReport& report);

// What holds the growth first. Everything in it is escaped.
std::string owners_text(const OwnersReport& report, const ProfileStyle& style);
// One object, as docs/output.md has it; without a line end.
std::string owners_json(const OwnersReport& report);

// Its parts. All of it is escaped.

// "1,204 x torch.Tensor float32 [256, 1024] cpu".
std::string held_objects_text(const HeldObjects& held);
// "module __main__ -> collator (VisionCollator) -> .cache -> [*]".
std::string owner_path_text(const OwnerRecord& owner);
// "__main__.collator.cache"; "(no name)".
std::string owner_path(const OwnerRecord& owner);
// What a programmer would look for: `cache` of "__main__.collator.cache", `seen` of
// "step() closure: seen".
std::string owner_name(const OwnerRecord& owner);
// "+1.00 MiB/step", or per second where no steps are known.
std::string owner_rate_text(const tracker::GrowthRate& rate);
// "dict, 1,204 entries, +1.00 per step in 3 of 3 looks".
std::string owner_state_text(const tracker::RankedOwner& owner);
// "drop or bound `cache`: 1.18 GiB go free (nothing else reaches 99.8 % of it)".
std::string cut_text(const tracker::RankedOwner& owner);
// "optimizer.state 8.00 MiB constant; model 4.00 MiB constant"; "" where nothing large is.
std::string not_it_text(const OwnersReport& report);
// Of the whole run, in a sentence, where no owner leads the report.
std::string no_owner_text(const OwnersReport& report);
// What speaks for a leak or for a warm-up, in words: a sentence; "" where nothing does.
std::string owner_evidence_text(const tracker::JudgedOwner& owner);
std::string owner_process_text(const tracker::LookedProcess& process);

// Objects by type, and tensors that look the same, of each process.
std::string types_text(const OwnersReport& report);
std::string tensors_text(const OwnersReport& report);
// The growth that owners do not explain, how it was looked at, and what went wrong.
std::string owners_coverage_text(const OwnersReport& report, const ProfileStyle& style);

}  // namespace tidemark::report
