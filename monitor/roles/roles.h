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

namespace tidemark::monitor {

// What the role rules read.
struct ProcessFacts {
  ProcessKey key;
  pid_t ppid = 0;
  std::string comm;
  std::vector<std::string> argv;
  std::uint32_t threads = 0;
  std::uint64_t footprint_bytes = 0;
  std::uint64_t cpu_ticks = 0;
  std::optional<int> rank;      // rank_from_environment(), where the environment is readable
  std::string job;              // job_from_environment(), likewise
  Role earlier = Role::kOther;  // the role that it had before, where it was seen before
};

struct RoleAssignment {
  Role role = Role::kOther;
  std::optional<int> rank;  // of Role::kRank, and of a trainer that is the only rank here
  bool inferred = false;    // a guess from its neighbours, not from a name of its own
  std::string reason;       // one clause for people: "argv runs torch/_inductor/compile_worker"
};

// Roles of all processes of a tree, or of several, in the order given. A role depends on the
// neighbours (a wrapper is one because a heavier child does the work; the trainer is who owns the
// workers), so they are assigned together. Pure, and linear in the number of processes but for a
// sort of siblings. Ask again when a process comes, goes, execs or renames itself, and now and
// then while memory moves: before the trainer has outgrown its wrapper the guess is a poor one.
std::vector<RoleAssignment> assign_roles(std::span<const ProcessFacts> tree);

// Splits a process table into the trees that may be jobs: without kernel threads, service managers,
// sessions, interactive shells and editors, which hold many jobs or none. Indices into `table`,
// each tree in the order of the table.
std::vector<std::vector<std::size_t>> job_trees(std::span<const ProcessFacts> table);

// The workers whose trainer has exited, by their names: init or a subreaper, which never trains, is
// their parent now. Indices into `table`.
std::vector<std::size_t> orphaned_workers(std::span<const ProcessFacts> table);

// What the two below read in a process's environment.
const std::vector<std::string>& launcher_variables();

// The global rank (RANK, or the launcher's own variable for it), else the local one. `environment`
// holds "NAME=value" entries.
std::optional<int> rank_from_environment(std::span<const std::string> environment);

// What the ranks of one job share, also where no process of the job has started them all: Slurm's
// step, or the run of torchrun. "" for others.
std::string job_from_environment(std::span<const std::string> environment);

}  // namespace tidemark::monitor
