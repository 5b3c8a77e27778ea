// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/process_key.h"

// What `tidemark rule-out` adds to a run: small interventions in a process that runs, one at a
// time, and what its memory did. All text is for people and may hold raw bytes from a stranger.
namespace tidemark {

// What was done, and so which suspect is asked about. The names are written to run files and JSON:
// they never change, and new ones are added at the end.
enum class InterventionKind {
  kTrim,         // glibc gave back what is free: freed memory that it keeps
  kJemalloc,     // likewise of these three, where they are loaded
  kTcmalloc,     //
  kMimalloc,     //
  kGc,           // Python's collector ran: garbage in reference cycles
  kCuda,         // torch gave back what its caches of GPU and pinned memory keep
  kMappedFiles,  // nothing was done: files that are mapped, a part of the resident size
  kPageCache,    // nothing was done: files that were read, a part of what the control group holds
};
inline constexpr int kInterventionKindCount = 8;

enum class InterventionOutcome {
  kRuledOut,    // what there may be of it is too little to matter
  kConfirmed,   // it is a part of the memory that matters
  kCannotTell,  // it was not done, or what it did is not larger than what moves by itself
};

// One intervention in one process. Of kMappedFiles and kPageCache `before` is the size that they
// are a part of, and `after` what is left without them.
struct InterventionRecord {
  ProcessKey key;
  InterventionKind kind = InterventionKind::kTrim;
  InterventionOutcome outcome = InterventionOutcome::kCannotTell;
  double t_s = 0.0;  // when it was done
  // Medians of several samples of the footprint; nullopt: not measured.
  std::optional<std::uint64_t> before_bytes;
  std::optional<std::uint64_t> after_bytes;
  // What it gave back, beside what the footprint did by itself; below 0: it has grown more.
  std::optional<std::int64_t> effect_bytes;
  // How far that may be off, by a control measurement over the same time without an intervention.
  std::optional<std::uint64_t> noise_bytes;
  double took_s = 0.0;                    // the call itself
  double waited_s = 0.0;                  // until the process came to it
  std::optional<std::uint64_t> objects;   // that the collector found
  std::optional<std::int64_t> gpu_bytes;  // that went back to the driver of the GPU
  std::string problem;  // why it cannot tell, or what limits the answer; empty: nothing
};

// "trim", "gc", ...; "ruled_out", "confirmed", "cannot_tell".
std::string_view intervention_kind_name(InterventionKind kind);
std::optional<InterventionKind> intervention_kind_from_name(std::string_view name);
std::string_view intervention_outcome_name(InterventionOutcome outcome);
std::optional<InterventionOutcome> intervention_outcome_from_name(std::string_view name);

}  // namespace tidemark
