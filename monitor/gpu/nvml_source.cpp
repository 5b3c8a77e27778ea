// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "monitor/gpu/gpu_source.h"
#include "monitor/gpu/nvml_api.h"

namespace tidemark::monitor {
namespace {

constexpr unsigned kMaxDevices = kMigIndexBase;  // more would be taken for MIG instances

struct DeviceEntry {
  nvml::Device handle = nullptr;
  std::uint32_t index = 0;
};

class NvmlSource final : public GpuSource {
 public:
  NvmlSource(nvml::Library library, GpuPidMap pid_map)
      : library_(std::move(library)), pid_map_(std::move(pid_map)) {}
  ~NvmlSource() override { functions().shutdown(); }
  NvmlSource(const NvmlSource&) = delete;
  NvmlSource& operator=(const NvmlSource&) = delete;

  Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) override;
  const GpuLosses& losses() const override { return losses_; }

 private:
  const nvml::Functions& functions() const { return library_.functions(); }
  void count_failure(const char* what, GpuSample& sample, nvml::Return code);
  std::vector<DeviceEntry> mig_instances(const DeviceEntry& device) const;
  GpuSample sample_device(const DeviceEntry& device, std::span<const pid_t> pids);
  void add_name(const DeviceEntry& device, GpuSample& sample);
  void add_memory(const DeviceEntry& device, GpuSample& sample);
  void add_utilization(const DeviceEntry& device, GpuSample& sample);
  void add_processes(const DeviceEntry& device, std::span<const pid_t> pids, GpuSample& sample);

  nvml::Library library_;
  GpuPidMap pid_map_;
  std::map<std::uint32_t, std::string> names_;  // a lost device no longer tells its own
  GpuLosses losses_;
};

void NvmlSource::count_failure(const char* what, GpuSample& sample, nvml::Return code) {
  sample.is_lost = sample.is_lost || code == nvml::kGpuIsLost || code == nvml::kResetRequired;
  ++losses_.failed_queries;
  losses_.last_failure =
      fmt::format("{} of {}: {}", what, gpu_label(sample.index), library_.describe(code));
}

Result<std::vector<GpuSample>> NvmlSource::sample(std::span<const pid_t> pids) {
  losses_ = {};
  unsigned count = 0;
  if (const nvml::Return code = functions().device_count(&count); code != nvml::kSuccess) {
    return Error{Errc::kIo, fmt::format("cannot count the GPUs: {}", library_.describe(code))};
  }
  std::vector<GpuSample> samples;
  for (unsigned index = 0; index < std::min(count, kMaxDevices); ++index) {
    DeviceEntry device{nullptr, index};
    const nvml::Return code = functions().device_by_index(index, &device.handle);
    if (code != nvml::kSuccess) {
      GpuSample unreachable;
      unreachable.index = index;
      unreachable.name = names_[index];
      count_failure("handle", unreachable, code);
      samples.push_back(std::move(unreachable));
      continue;
    }
    const std::vector<DeviceEntry> instances = mig_instances(device);
    for (const DeviceEntry& instance : instances) {
      samples.push_back(sample_device(instance, pids));
    }
    if (instances.empty()) {
      samples.push_back(sample_device(device, pids));
    }
  }
  return samples;
}

// The memory of a partitioned GPU belongs to its instances; the GPU as a whole answers for them to
// administrators only.
std::vector<DeviceEntry> NvmlSource::mig_instances(const DeviceEntry& device) const {
  const nvml::Functions& f = functions();
  unsigned current = 0;
  unsigned pending = 0;
  unsigned slots = 0;
  if (f.mig_mode == nullptr || f.max_mig_devices == nullptr || f.mig_device_by_index == nullptr ||
      f.mig_mode(device.handle, &current, &pending) != nvml::kSuccess || current == 0 ||
      f.max_mig_devices(device.handle, &slots) != nvml::kSuccess) {
    return {};
  }
  std::vector<DeviceEntry> instances;
  for (unsigned slot = 0; slot < std::min(slots, kMigIndexBase); ++slot) {
    DeviceEntry instance{nullptr, mig_index(device.index, slot)};
    if (f.mig_device_by_index(device.handle, slot, &instance.handle) == nvml::kSuccess) {
      instances.push_back(instance);
    }
  }
  return instances;
}

GpuSample NvmlSource::sample_device(const DeviceEntry& device, std::span<const pid_t> pids) {
  GpuSample sample;
  sample.index = device.index;
  add_name(device, sample);
  add_memory(device, sample);
  add_utilization(device, sample);
  add_processes(device, pids, sample);
  return sample;
}

void NvmlSource::add_name(const DeviceEntry& device, GpuSample& sample) {
  std::array<char, nvml::kNameBytes> name{};
  if (functions().device_name == nullptr) {
    return;
  }
  const nvml::Return code = functions().device_name(device.handle, name.data(), name.size());
  if (code == nvml::kSuccess) {
    names_[device.index] = std::string(name.data(), ::strnlen(name.data(), name.size()));
  } else {
    count_failure("name", sample, code);
  }
  sample.name = names_[device.index];
}

void NvmlSource::add_memory(const DeviceEntry& device, GpuSample& sample) {
  nvml::MemoryV2 v2{};
  v2.version = nvml::kMemoryV2;
  if (functions().memory_v2 != nullptr &&
      functions().memory_v2(device.handle, &v2) == nvml::kSuccess) {
    sample.total_bytes = v2.total_bytes;
    sample.used_bytes = v2.used_bytes;
    sample.reserved_bytes = v2.reserved_bytes;
    return;
  }
  nvml::Memory v1{};
  const nvml::Return code =
      functions().memory != nullptr ? functions().memory(device.handle, &v1) : nvml::kNotSupported;
  if (code == nvml::kSuccess) {
    sample.total_bytes = v1.total_bytes;
    sample.used_bytes = v1.used_bytes;
  } else {
    count_failure("memory", sample, code);
  }
}

void NvmlSource::add_utilization(const DeviceEntry& device, GpuSample& sample) {
  nvml::Utilization utilization{};
  if (functions().utilization == nullptr) {
    return;
  }
  const nvml::Return code = functions().utilization(device.handle, &utilization);
  if (code == nvml::kSuccess) {
    sample.busy_percent = std::min(utilization.gpu_percent, 100U);
  } else if (code != nvml::kNotSupported) {  // old cards and MIG instances
    count_failure("utilization", sample, code);
  }
}

void NvmlSource::add_processes(const DeviceEntry& device, std::span<const pid_t> pids,
                               GpuSample& sample) {
  // A process that computes and draws is in two lists, with the same figure.
  std::map<pid_t, std::optional<std::uint64_t>> used;
  const nvml::RunningProcessesVersions& compute = functions().compute_processes;
  for (const nvml::RunningProcessesVersions* list :
       {&compute, &functions().graphics_processes, &functions().mps_processes}) {
    const nvml::ProcessList answer = nvml::running_processes(*list, device.handle);
    if (answer.code != nvml::kSuccess) {
      // Compute-only cards and MIG instances have no list of graphics processes; old libraries none
      // of those behind a server.
      if (list == &compute || answer.code != nvml::kNotSupported) {
        count_failure("processes", sample, answer.code);
      }
      continue;
    }
    for (const nvml::Process& process : answer.processes) {
      const bool known = process.used_bytes != nvml::kValueNotAvailable;
      auto& bytes = used[static_cast<pid_t>(process.pid)];
      bytes = known ? std::max(bytes.value_or(0), process.used_bytes) : bytes;
    }
  }
  for (const auto& [reported, bytes] : used) {
    const auto pid = pid_map_.translate(reported);
    if (!pid) {
      ++losses_.unmapped_processes;
    } else if (std::find(pids.begin(), pids.end(), *pid) != pids.end()) {
      sample.processes.push_back({*pid, bytes});
    }
  }
}

Error init_error(const nvml::Library& library, nvml::Return code) {
  const std::string what = library.describe(code);
  switch (code) {
    case nvml::kDriverNotLoaded:
      return {Errc::kUnsupported, fmt::format("the NVIDIA driver is not loaded: {}", what)};
    case nvml::kVersionMismatch:
      return {Errc::kUnsupported,
              fmt::format("the NVIDIA driver in the kernel and its library are of different "
                          "versions (after an update: reboot): {}",
                          what)};
    case nvml::kNoPermission:
      return {Errc::kPermission, fmt::format("may not use the NVIDIA driver: {}", what)};
    default:
      return {Errc::kIo, fmt::format("the NVIDIA driver does not start: {}", what)};
  }
}

}  // namespace

Result<std::unique_ptr<GpuSource>> open_nvml(const NvmlOptions& options) {
  TIDEMARK_TRY_ASSIGN(auto library, nvml::Library::load(options.library));
  if (const nvml::Return code = library.functions().init(); code != nvml::kSuccess) {
    return init_error(library, code);
  }
  return std::unique_ptr<GpuSource>(std::make_unique<NvmlSource>(
      std::move(library), GpuPidMap(options.proc_root, options.host_proc_root)));
}

}  // namespace tidemark::monitor
