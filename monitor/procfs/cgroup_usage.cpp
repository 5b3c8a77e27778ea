// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/cgroup_usage.h"

#include <algorithm>

#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

std::optional<std::uint64_t> used_bytes(std::optional<std::uint64_t> anon,
                                        std::optional<std::uint64_t> shmem,
                                        std::optional<std::uint64_t> swap,
                                        std::optional<std::uint64_t> swap_cached) {
  if (!anon || !shmem) {
    return std::nullopt;
  }
  const std::uint64_t swapped = swap.value_or(0);
  return *anon + *shmem + swapped - std::min(swapped, swap_cached.value_or(0));
}

}  // namespace

std::optional<std::uint64_t> cgroup_v2_used_bytes(std::string_view stat,
                                                  std::string_view swap_current) {
  return used_bytes(keyed_number(stat, "anon"), keyed_number(stat, "shmem"),
                    leading_number(swap_current), keyed_number(stat, "swapcached"));
}

std::optional<std::uint64_t> cgroup_v1_used_bytes(std::string_view stat) {
  return used_bytes(keyed_number(stat, "total_rss"), keyed_number(stat, "total_shmem"),
                    keyed_number(stat, "total_swap"), keyed_number(stat, "total_swapcached"));
}

}  // namespace tidemark::monitor
