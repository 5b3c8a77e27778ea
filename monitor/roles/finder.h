// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/roles/process_evidence.h"

namespace tidemark::monitor {

// How much the evidence for a candidate says.
enum class Confidence {
  kWeak,     // a big python, nothing more
  kLikely,   // a framework is loaded, or a name and arguments like those of a training script
  kCertain,  // workers, ranks, or a framework at work on a GPU or under a training script's name
};

struct RankProcess {
  pid_t pid = 0;
  std::optional<int> rank;
};

// One training job: a trainer, or the ranks that one launcher started.
struct Candidate {
  ProcessKey key;  // the trainer; of several ranks the lowest
  Role role = Role::kTrainer;
  Confidence confidence = Confidence::kWeak;
  int score = 0;
  std::vector<std::string> argv;
  std::uint64_t footprint_bytes = 0;  // of all ranks together
  std::size_t compile_workers = 0;    // below it
  std::size_t dataloader_workers = 0;
  std::vector<pid_t> wrappers;     // wrappers and launchers above it, the nearest first
  std::vector<RankProcess> ranks;  // of a job with several, by rank; else empty
  std::vector<pid_t> watch;        // what to give to --pid to see all of the job
  std::vector<std::string> reasons;
};

// A worker whose trainer has exited.
struct Orphan {
  ProcessKey key;
  Role role = Role::kDataloaderWorker;
  std::vector<std::string> argv;  // of the trainer, where it was forked
  std::uint64_t footprint_bytes = 0;
};

struct FindResult {
  std::vector<Candidate> candidates;  // best first
  std::vector<Orphan> orphans;        // of jobs that have ended, the heaviest first
  // Set when exactly one candidate is better than weak and better than all others.
  std::optional<std::size_t> picked;
  std::size_t processes = 0;      // read
  std::size_t not_permitted = 0;  // could not be read
  bool is_root = false;           // who looked: sudo would show no more
};

// Pure: the same evidence gives the same result.
FindResult rank_candidates(const Evidence& evidence);

// Why nothing was picked and what to do, for people. Command lines in it are redacted and escaped.
struct NoPick {
  std::string what;                  // one line
  std::vector<std::string> details;  // what was looked for, or the jobs to choose from
  std::string hint;                  // what to try next

  std::string one_line() const;  // what and details, without the hint
};
// Only for a result in which nothing was picked.
NoPick explain_no_pick(const FindResult& result);

}  // namespace tidemark::monitor
