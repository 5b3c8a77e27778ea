// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/drm_fdinfo.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

// What a driver says about one region. Resident is what it takes now; "memory" is the older word
// for it; total includes what was never touched or has been moved out.
struct Region {
  std::optional<std::uint64_t> resident_bytes;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> total_bytes;

  std::optional<std::uint64_t> used_bytes() const {
    return resident_bytes ? resident_bytes : memory_bytes ? memory_bytes : total_bytes;
  }
};

bool is_gpus_own(std::string_view region) {
  constexpr std::array<std::string_view, 4> kOwn{"vram", "local", "lmem", "stolen-local"};
  return std::any_of(kOwn.begin(), kOwn.end(),
                     [&](std::string_view name) { return region.starts_with(name); });
}

// "123 KiB", "4 MiB", "4096".
std::optional<std::uint64_t> size_bytes(std::string_view value) {
  const auto number = parse_number<std::uint64_t>(take_word(value));
  const std::string_view unit = take_word(value);
  unsigned shift = 0;
  if (unit == "KiB") {
    shift = 10;
  } else if (unit == "MiB") {
    shift = 20;
  } else if (unit == "GiB") {
    shift = 30;
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return std::nullopt;
  }
  return *number << shift;
}

using Regions = std::map<std::string_view, Region>;

void apply_memory(Regions& regions, std::string_view key, std::string_view value) {
  struct Kind {
    std::string_view prefix;
    std::optional<std::uint64_t> Region::*field;
  };
  constexpr std::array<Kind, 3> kKinds{{{"resident-", &Region::resident_bytes},
                                        {"memory-", &Region::memory_bytes},
                                        {"total-", &Region::total_bytes}}};
  for (const Kind& kind : kKinds) {
    if (key.starts_with(kind.prefix)) {
      regions[key.substr(kind.prefix.size())].*kind.field = size_bytes(value);
    }
  }
}

std::optional<std::uint64_t> sum(const Regions& regions, bool gpus_own) {
  std::optional<std::uint64_t> bytes;
  for (const auto& [name, region] : regions) {
    const auto used = region.used_bytes();
    if (used && is_gpus_own(name) == gpus_own) {
      bytes = bytes.value_or(0) + *used;
    }
  }
  return bytes;
}

}  // namespace

std::optional<DrmFdinfo> parse_drm_fdinfo(std::string_view text) {
  DrmFdinfo info;
  Regions regions;
  std::string_view line;
  while (take_line(text, line)) {
    constexpr std::string_view kPrefix = "drm-";
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(kPrefix)) {
      continue;
    }
    const std::string_view key = line.substr(kPrefix.size(), colon - kPrefix.size());
    const std::string_view value = line.substr(colon + 1);
    if (key == "driver") {
      info.driver = std::string(trim(value));
    } else if (key == "pdev") {
      info.device = std::string(trim(value));
    } else if (key == "client-id") {
      info.client = leading_number(value);
    } else {
      apply_memory(regions, key, value);
    }
  }
  if (info.driver.empty()) {
    return std::nullopt;
  }
  const auto own = sum(regions, /*gpus_own=*/true);
  info.used_bytes = own ? own : sum(regions, /*gpus_own=*/false);
  return info;
}

}  // namespace tidemark::monitor
