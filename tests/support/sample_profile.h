// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "report/profile_model.h"

namespace tidemark::tests {

inline SourceFrame source_frame(std::string function, std::string file, std::uint32_t line,
                                std::uint64_t address, bool inlined = false) {
  SourceFrame frame;
  frame.function = std::move(function);
  frame.file = std::move(file);
  frame.line = line;
  frame.is_inlined = inlined;
  frame.module_path = "/usr/bin/train";
  frame.build_id = "abcd01";
  frame.offset = address;
  return frame;
}

// Two sites of a trainer: one that leaks below an inlined function, and pinned memory that shrank.
inline report::Profile sample_profile() {
  SourceFrame library;
  library.function = "libcudart.so.12+0x20";
  library.module_path = "/usr/lib/libcudart.so.12";
  library.offset = 0x20;

  report::ProfileSite leak;
  leak.frames = {0, 1, 2};
  leak.live_bytes = 4096.4;
  leak.live_blocks = 16.0;
  leak.growth_bytes = 1024.0;
  leak.alloc_bytes = 10000.0;
  leak.alloc_blocks = 50.0;

  report::ProfileSite pinned;
  pinned.kind = AllocationKind::kCudaPinned;
  pinned.truncated = true;
  pinned.frames = {3, 2};
  pinned.live_bytes = 512.0;
  pinned.live_blocks = 1.0;
  pinned.growth_bytes = -100.0;
  pinned.alloc_bytes = 612.0;
  pinned.alloc_blocks = 2.0;

  report::Profile profile;
  profile.process = "trainer 4711";
  profile.start_unix_ns = 1'700'000'000'000'000'000;
  profile.duration_ns = 60'000'000'000;
  profile.sample_every_bytes = 524288;
  profile.frames = {source_frame("std::vector<int, std::allocator<int> >::push_back(int)",
                                 "/usr/include/vector.h", 30, 0x500, true),
                    source_frame("collate(Batch)", "/src/collate.cpp", 42, 0x500),
                    source_frame("main", "/src/main.cpp", 7, 0x900), library};
  profile.sites = {std::move(leak), std::move(pinned)};
  return profile;
}

}  // namespace tidemark::tests
