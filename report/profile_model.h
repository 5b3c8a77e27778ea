// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/site_records.h"

namespace tidemark::report {

// "heap", "anonymous map", "shared map", "allocator map", "CUDA device", ...
std::string_view allocation_kind_label(AllocationKind kind);

// One call stack and what it allocated, between two times or since the start.
struct ProfileSite {
  AllocationKind kind = AllocationKind::kHeap;
  // Into Profile::frames, innermost first; empty: the stack is not known.
  std::vector<std::uint32_t> frames;
  bool truncated = false;  // the outermost frames are missing
  double live_bytes = 0.0;
  double live_blocks = 0.0;
  double growth_bytes = 0.0;  // of live bytes over the profile's time; may be negative
  double alloc_bytes = 0.0;
  double alloc_blocks = 0.0;
};

// The value that exports and reports share: sites of one process or of several together.
struct Profile {
  std::string process;                   // label, raw bytes: "trainer 4711"
  std::int64_t start_unix_ns = 0;        // 0: unknown
  std::int64_t duration_ns = 0;          // 0: unknown
  std::uint64_t sample_every_bytes = 0;  // 0: exact
  std::vector<SourceFrame> frames;       // of all sites, each of them once
  std::vector<ProfileSite> sites;
};

// What the width of a frame means in formats that have one number per stack.
enum class ProfileMeasure { kLiveBytes, kLiveBlocks, kGrowthBytes, kAllocBytes, kAllocBlocks };

// The number itself, rounded; negative growth is 0: these formats show parts of a whole.
std::uint64_t measure_of(const ProfileSite& site, ProfileMeasure measure);

// Folded stacks as flame graph tools read them: "process;outermost;...;innermost 123" per line,
// what is not heap with its kind behind the innermost frame ("[shared map]"); equal stacks added
// up, in the order of their names. Python has its line in its name ("f (a.py:3)"). ';' in a name
// becomes ':', what is not printable is escaped. Sites whose measure is 0 are left out. `add` gets
// one line at a time: all of them may be far larger than the profile. Its first error ends it.
Status export_folded(const Profile& profile, ProfileMeasure measure,
                     const std::function<Status(const std::string& line)>& add);

// A speedscope file (https://www.speedscope.app/file-format-schema.json) with one profile of type
// "sampled" per measure; sites whose measure is 0 are left out of it.
std::string export_speedscope(const Profile& profile, const std::vector<ProfileMeasure>& measures);

// An uncompressed profile.proto (`go tool pprof FILE`; compress it to save space). Each sample has
// inuse_space, inuse_objects, alloc_space, alloc_objects and growth_space; inuse_space is the
// default. Sites carry the label "kind".
std::string export_pprof(const Profile& profile);

}  // namespace tidemark::report
