// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace tidemark::monitor {

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

}  // namespace tidemark::monitor
