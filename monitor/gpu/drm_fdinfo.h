// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::monitor {

// The memory lines of a /proc/PID/fdinfo file that belongs to a GPU
// (https://docs.kernel.org/gpu/drm-usage-stats.html).
struct DrmFdinfo {
  std::string driver;                       // "amdgpu", "xe"
  std::string device;                       // PCI address; "" where there is none
  std::optional<std::uint64_t> client;      // one per open of the device; descriptors may share it
  std::optional<std::uint64_t> used_bytes;  // memory of the GPU's own; of the machine where the
                                            // GPU has none
};

// nullopt when the text is of no GPU.
std::optional<DrmFdinfo> parse_drm_fdinfo(std::string_view text);

}  // namespace tidemark::monitor
