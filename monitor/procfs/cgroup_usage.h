// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::monitor {

// What of a control group's memory counts: anonymous and shared memory, in RAM or in swap. Page
// cache does not, the kernel gives it up before it kills. Of the fields of memory.stat only these
// do not overlap: "shmem" is also in "file" and "cache", "unevictable" cuts across all of them.
// What is in the swap cache is in RAM and in swap; it counts once.

// `stat` is memory.stat, `swap_current` the text of memory.swap.current (empty without swap
// accounting).
std::optional<std::uint64_t> cgroup_v2_used_bytes(std::string_view stat,
                                                  std::string_view swap_current);
// nullopt on kernels before 4.11, whose memory.stat does not tell shared memory from page cache.
std::optional<std::uint64_t> cgroup_v1_used_bytes(std::string_view stat);

}  // namespace tidemark::monitor
