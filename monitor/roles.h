// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "common/role.h"

namespace tidemark::monitor {

// What the role rules look at.
struct ProcessFacts {
  ProcessKey key;
  pid_t ppid = 0;
  std::string comm;
  std::vector<std::string> argv;
  std::uint32_t threads = 0;
  std::uint64_t footprint_bytes = 0;
  std::uint64_t cpu_ticks = 0;
  std::optional<int> rank;  // RANK or LOCAL_RANK of its environment, where readable
};

struct RoleAssignment {
  Role role = Role::kOther;
  std::optional<int> rank;
  std::string reason;  // one clause for people: "argv runs torch/_inductor/compile_worker"
};

// Roles of all processes of a tree, in the order given. A role depends on the neighbours (a wrapper
// is one because a heavier child does the work; the trainer is who owns the workers), so they are
// assigned together. Pure.
std::vector<RoleAssignment> assign_roles(std::span<const ProcessFacts> tree);

}  // namespace tidemark::monitor
