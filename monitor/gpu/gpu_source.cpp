// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/gpu_source.h"

#include <fcntl.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {
namespace {

// The kernel's first pid namespace has a fixed number (PROC_PID_INIT_INO in linux/proc_ns.h).
constexpr std::string_view kInitialPidNamespace = "pid:[4026531836]";

// "" when it cannot be read.
std::string pid_namespace(const std::string& directory) {
  auto link = read_link_at(AT_FDCWD, directory + "/ns/pid");
  return link ? std::move(*link) : std::string();
}

}  // namespace

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

GpuPidMap::GpuPidMap(std::string proc_root, std::string host_proc_root)
    : proc_root_(std::move(proc_root)),
      host_proc_root_(std::move(host_proc_root)),
      own_namespace_(pid_namespace(proc_root_ + "/self")),
      on_the_host_(own_namespace_ == kInitialPidNamespace) {}

std::optional<pid_t> GpuPidMap::translate(pid_t reported) const {
  if (on_the_host_) {
    return reported;
  }
  if (const auto pid = through_host(reported)) {
    return pid;
  }
  // Some drivers translate by themselves. A coincidence of numbers is told apart by the open
  // device.
  return has_gpu_open(reported) ? std::optional(reported) : std::nullopt;
}

std::optional<pid_t> GpuPidMap::through_host(pid_t reported) const {
  const std::string directory = fmt::format("{}/{}", host_proc_root_, reported);
  if (own_namespace_.empty() || pid_namespace(directory) != own_namespace_) {
    return std::nullopt;  // of another container
  }
  const auto text = read_file(directory + "/status");
  const auto status = text ? parse_status(*text) : Result<StatusFields>(text.error());
  return status ? status->innermost_pid : std::nullopt;
}

bool GpuPidMap::has_gpu_open(pid_t pid) const {
  auto stream = DirectoryStream::open_at(AT_FDCWD, fmt::format("{}/{}/fd", proc_root_, pid));
  if (!stream) {
    return false;
  }
  while (const dirent* entry = stream->next()) {
    const auto target = read_link_at(stream->fd(), entry->d_name);
    if (target && target->starts_with("/dev/nvidia")) {
      return true;
    }
  }
  return false;
}

}  // namespace tidemark::monitor
