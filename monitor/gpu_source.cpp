// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu_source.h"

#include <fmt/format.h>

namespace tidemark::monitor {

Result<std::unique_ptr<GpuSource>> open_gpu_source() {
  auto nvml = open_nvml();
  if (nvml || nvml.error().code != Errc::kUnsupported) {
    return nvml;
  }
  auto drm = open_drm_fdinfo();
  if (!drm && drm.error().code == Errc::kUnsupported) {
    return Error{Errc::kUnsupported,
                 fmt::format("no GPU: {}; {}", nvml.error().what, drm.error().what)};
  }
  return drm;
}

}  // namespace tidemark::monitor
