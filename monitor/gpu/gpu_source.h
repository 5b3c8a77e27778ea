// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "common/result.h"

namespace tidemark::monitor {

// What the last sample of the GPUs lacks; for the losses of a report.
struct GpuLosses {
  std::uint64_t unmapped_processes = 0;  // the driver names pids that mean nothing in our namespace
  std::uint64_t failed_queries = 0;      // of a device: its figures are unknown
  std::string last_failure;              // of those, for people
};

// Where GPU figures come from: NVML, the kernel's DRM statistics, or a script in tests. Not
// thread-safe.
class GpuSource {
 public:
  virtual ~GpuSource() = default;
  // One sample per GPU, or per MIG instance of a GPU that is partitioned; of the processes, only
  // those of `pids`.
  virtual Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) = 0;
  // Of the last sample.
  virtual const GpuLosses& losses() const = 0;
};

struct NvmlOptions {
  std::string library = "libnvidia-ml.so.1";
  std::string proc_root = "/proc";
  std::string host_proc_root = "/host/proc";  // where monitoring containers mount the host's
};

// kUnsupported when there is no such library or driver: no NVIDIA GPU is no error to shout about.
Result<std::unique_ptr<GpuSource>> open_nvml(const NvmlOptions& options = {});

// GPUs of other makers, by the drm-* lines of /proc/PID/fdinfo. `root` is "" but for tests.
// kUnsupported when the machine has no DRM render node.
Result<std::unique_ptr<GpuSource>> open_drm_fdinfo(const std::string& root = "");

// NVML where there is an NVIDIA driver, else DRM. kUnsupported when there is neither. The variable
// TIDEMARK_HOST_PROC names the place of the host's /proc, where that is not the usual one.
Result<std::unique_ptr<GpuSource>> open_gpu_source();

// Translates the pids that a GPU driver reports. It counts as the host does; inside a container
// these numbers mean nothing or, worse, some other process.
class GpuPidMap {
 public:
  // `host_proc_root` may not exist.
  GpuPidMap(std::string proc_root, std::string host_proc_root);

  // The pid in our namespace; nullopt when the process is not ours to see.
  std::optional<pid_t> translate(pid_t reported) const;

 private:
  std::optional<pid_t> through_host(pid_t reported) const;
  bool has_gpu_open(pid_t pid) const;

  std::string proc_root_;
  std::string host_proc_root_;
  std::string own_namespace_;  // "pid:[4026531836]"
  bool on_the_host_ = false;
};

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
