// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/gpu_source.h"

#include <cstdlib>

#include <fmt/format.h>

namespace tidemark::monitor {

Result<std::unique_ptr<GpuSource>> open_gpu_source() {
  NvmlOptions options;
  // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* host_proc = std::getenv("TIDEMARK_HOST_PROC"); host_proc != nullptr) {
    options.host_proc_root = host_proc;
  }
  auto nvml = open_nvml(options);
  if (nvml || nvml.error().code != Errc::kUnsupported) {
    return nvml;
  }
  auto drm = open_drm_fdinfo();
  if (!drm && drm.error().code == Errc::kUnsupported) {
    return Error{Errc::kUnsupported,
                 fmt::format("no GPU figures: {}, {}", nvml.error().what, drm.error().what)};
  }
  return drm;
}

}  // namespace tidemark::monitor
