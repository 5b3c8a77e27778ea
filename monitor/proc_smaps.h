// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// Memory of a process with shared pages divided among those that map them.
struct PssFields {
  std::uint64_t rss_bytes = 0;
  std::uint64_t pss_bytes = 0;
  std::uint64_t pss_anon_bytes = 0;
  std::uint64_t pss_file_bytes = 0;
  std::uint64_t pss_shmem_bytes = 0;
  std::uint64_t swap_pss_bytes = 0;
  std::uint64_t private_clean_bytes = 0;
  std::uint64_t private_dirty_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t anon_huge_pages_bytes = 0;
  bool split_estimated = false;  // the kernel gave no Pss_Anon/Pss_Shmem; derived per mapping

  std::uint64_t uss_bytes() const { return private_clean_bytes + private_dirty_bytes; }
  // Immune to neighbours that map the same libraries; each shared page counts once in a sum.
  std::uint64_t footprint_bytes() const {
    return pss_anon_bytes + pss_shmem_bytes + swap_pss_bytes;
  }
};

// /proc/PID/smaps_rollup (kernel 4.14+; Pss_Anon since 5.9).
Result<PssFields> parse_smaps_rollup(std::string_view text);
// /proc/PID/smaps: the same sums, mapping by mapping.
Result<PssFields> parse_smaps(std::string_view text);

}  // namespace tidemark::monitor
