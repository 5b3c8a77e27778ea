// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/output.h"
#include "report/profile_report.h"

// What a report of `tidemark profile` says after its lines of code. All of it is escaped.
namespace tidemark::report {

// What others use /dev/shm for is not worth a word.
inline constexpr std::uint64_t kShmWorthAWord = 1U << 20U;

// The allocator of the process that grew most holds much that no live block needs.
struct KeptByAllocator {
  double bytes = 0.0;
  double share = 0.0;  // of the footprint
  bool is_most_of_the_growth = false;
};
std::optional<KeptByAllocator> kept_by_allocator(const ProfileReport& report);

// The tracer saw next to nothing of the memory of the process that grew most, now or ever: what it
// says about lines and about the allocator is worth nothing there.
struct UnseenMemory {
  double bytes = 0.0;
  double explained_share = 0.0;  // of the footprint
};
std::optional<UnseenMemory> unseen_memory(const ProfileReport& report);

// Where the growth of the process that grew most is, and what to do when the allocator keeps it.
std::string where_text(const ProfileReport& report, const ProfileStyle& style);
std::string shm_text(const ShmGrowthReport& shm, const ProfileStyle& style);
// How far to trust the figures, and what went wrong.
std::string coverage_text(const ProfileReport& report, const ProfileStyle& style);

}  // namespace tidemark::report
