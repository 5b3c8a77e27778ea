// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/intervention_records.h"
#include "common/result.h"
#include "profiler/inject/probe.h"
#include "profiler/wire/probe_layout.h"

// What can be done in a process that runs to find out what its memory is not. Nothing here changes
// what the job computes: allocators give back what is free, Python collects garbage, torch empties
// its caches.
namespace tidemark::collect {

// Which of them are wanted.
struct InterventionChoice {
  bool trim = true;  // of all allocators
  bool gc = true;
  bool cuda = true;
  bool page_cache = true;  // by reading only

  bool operator==(const InterventionChoice&) const = default;
};

// One of them, for one process.
struct PlannedIntervention {
  InterventionKind kind = InterventionKind::kTrim;
  std::string how;  // for people: "malloc_trim(0) of libc.so.6"
  // Why it cannot be done; empty: it can.
  std::string problem;
  // With a problem: there is nothing that it could free, so what it asks about is not the cause.
  bool is_absent = false;
  wire::ProbeOrder order = {};  // but for the longest wait

  bool is_reading() const {
    return kind == InterventionKind::kMappedFiles || kind == InterventionKind::kPageCache;
  }
};

// What is only read comes first, as everything after it changes what there is to read; then freed
// memory: what the collector frees later can be told from it.
struct InterventionPlan {
  std::vector<PlannedIntervention> steps;
  Status allowed = ok();  // to load a library; an error is the problem of all that need it
};
// By reading. The error: there is no such process.
Result<InterventionPlan> plan_interventions(pid_t pid, const InterventionChoice& choice);

// The probe in a process, which takes the steps of its plan.
Result<inject::Probe> start_probe(pid_t pid, std::int64_t timeout_ns,
                                  std::function<bool()> is_cancelled);

// What came of one in the process.
struct InterventionAnswer {
  // Why nothing, or not all, was done; empty: it was.
  std::string problem;
  bool is_done = false;
  bool is_absent = false;  // see PlannedIntervention
  double took_s = 0.0;
  double waited_s = 0.0;
  std::optional<std::uint64_t> objects;
  std::optional<std::int64_t> gpu_bytes;
};
// The error: the process has exited, or runs another program.
Result<InterventionAnswer> intervene(inject::Probe& probe, const PlannedIntervention& step,
                                     std::int64_t timeout_ns);

// A part of a size that the kernel could drop.
struct DroppablePart {
  std::uint64_t whole_bytes = 0;
  std::uint64_t part_bytes = 0;
};
// kMappedFiles: of the resident size. kPageCache: of what the control group of the process holds;
// kNotFound: it is in none that counts memory.
Result<DroppablePart> read_droppable(pid_t pid, InterventionKind kind);

}  // namespace tidemark::collect
