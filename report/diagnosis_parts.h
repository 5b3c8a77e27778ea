// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/diagnosis.h"
#include "tracker/owners/owner_ranking.h"
#include "tracker/sites/site_ranking.h"

// What the page of a diagnosis is made of. All text is escaped.
namespace tidemark::report {

bool is_growing(const Diagnosis& diagnosis);
// Who carries the growth: "trainer, pid 1240 (train.py)".
std::string grower_text(const Diagnosis& diagnosis);
// "98 % of the growth"; "" when that is not known.
std::string share_of_growth_text(const std::optional<double>& share);

// There are two looks at a process or more: what stands still is known.
bool has_compared_looks(const Diagnosis& diagnosis);
// Those of the job's own code; of libraries only where no other grows.
std::vector<const tracker::RankedOwner*> growing_owners(const Diagnosis& diagnosis);
// Those that can be named, the fastest first.
std::vector<const tracker::RankedLine*> named_lines(const Diagnosis& diagnosis);

// The name of the owner, of those that grow, that holds what a line allocates; "" when that is not
// known. Which line has allocated a block is known by its address.
std::string owner_made_by(const Diagnosis& diagnosis, const tracker::RankedLine& line);
// The line that allocates what the first owner holds, where it is none of named_lines().
struct MadeElsewhere {
  std::string owner;
  std::string line;
};
std::optional<MadeElsewhere> made_elsewhere(const Diagnosis& diagnosis);

// Which rows of its memory map the grower has grown in: a sentence; "" where that is not known.
std::string ledger_text(const Diagnosis& diagnosis);
// Why no owner is named, and what owners do not explain: sentences.
std::string no_owner_sentence(const Diagnosis& diagnosis);
std::string unexplained_sentence(const Diagnosis& diagnosis);
// What to change, and the commands that help.
std::vector<std::string> remedy_texts(const Diagnosis& diagnosis);
// How long and how closely it was watched.
std::vector<std::string> seen_texts(const Diagnosis& diagnosis);

}  // namespace tidemark::report
