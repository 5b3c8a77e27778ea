// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/nvml_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor::nvml {
namespace {

constexpr unsigned kMaxProcesses = 16384;
constexpr unsigned char kUntouched = 0xA5;
// pid, used | + GPU and compute instance | + protected memory.
constexpr std::size_t kSmallestEntry = 16;
constexpr std::size_t kUsualEntry = 24;
constexpr std::size_t kLargestEntry = 32;

// The newest version of a function that the library has.
template <typename Function>
Function* find(void* handle, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* const symbol = ::dlsym(handle, name)) {
      return reinterpret_cast<Function*>(symbol);
    }
  }
  return nullptr;
}

template <typename Function>
void load_into(Function*& target, void* handle, std::initializer_list<const char*> names) {
  target = find<Function>(handle, names);
}

RunningProcessesVersions process_lists(void* handle, const std::string& name) {
  RunningProcessesVersions versions{};
  load_into(versions[0], handle, {(name + "_v3").c_str()});
  load_into(versions[1], handle, {(name + "_v2").c_str()});
  load_into(versions[2], handle, {name.c_str()});
  return versions;
}

// Drivers disagree about the layout behind one and the same function name: 535.43 to 535.86 write
// 32 bytes per entry for _v3, others 24, some 16 (github.com/XuehaiPan/nvitop/pull/89, /226). Every
// layout writes its last bytes, so how far the answer reaches tells which one it is.
std::size_t entry_bytes(const std::vector<unsigned char>& buffer, std::size_t count) {
  const auto last =
      std::find_if(buffer.rbegin(), buffer.rend(), [](unsigned char b) { return b != kUntouched; });
  const auto written = static_cast<std::size_t>(buffer.rend() - last);
  for (const std::size_t size : {kSmallestEntry, kUsualEntry, kLargestEntry}) {
    if (written == count * size) {
      return size;
    }
  }
  return kUsualEntry;
}

}  // namespace

void Library::Unload::operator()(void* handle) const { ::dlclose(handle); }

Result<Library> Library::load(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string why = ::dlerror();
    return Error{Errc::kUnsupported, why.find("No such file") != std::string::npos
                                         ? fmt::format("no NVIDIA driver ({})", path)
                                         : fmt::format("cannot load {}: {}", path, why)};
  }
  Library library(handle);
  Functions& f = library.functions_;
  load_into(f.init, handle, {"nvmlInit_v2", "nvmlInit"});
  load_into(f.shutdown, handle, {"nvmlShutdown"});
  load_into(f.error_string, handle, {"nvmlErrorString"});
  load_into(f.device_count, handle, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  load_into(f.device_by_index, handle,
            {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  load_into(f.device_name, handle, {"nvmlDeviceGetName"});
  load_into(f.memory, handle, {"nvmlDeviceGetMemoryInfo"});
  load_into(f.memory_v2, handle, {"nvmlDeviceGetMemoryInfo_v2"});
  load_into(f.utilization, handle, {"nvmlDeviceGetUtilizationRates"});
  f.compute_processes = process_lists(handle, "nvmlDeviceGetComputeRunningProcesses");
  f.graphics_processes = process_lists(handle, "nvmlDeviceGetGraphicsRunningProcesses");
  f.mps_processes = process_lists(handle, "nvmlDeviceGetMPSComputeRunningProcesses");
  load_into(f.mig_mode, handle, {"nvmlDeviceGetMigMode"});
  load_into(f.max_mig_devices, handle, {"nvmlDeviceGetMaxMigDeviceCount"});
  load_into(f.mig_device_by_index, handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  if (f.init == nullptr || f.shutdown == nullptr || f.device_count == nullptr ||
      f.device_by_index == nullptr) {
    return Error{Errc::kUnsupported, fmt::format("{} is not NVIDIA's management library", path)};
  }
  return library;
}

std::string Library::describe(Return code) const {
  const char* const text = functions_.error_string ? functions_.error_string(code) : nullptr;
  return fmt::format("{} ({})", text != nullptr ? text : "NVML error", code);
}

namespace {

ProcessList ask(RunningProcesses* list, Device device) {
  unsigned capacity = 64;
  while (true) {
    std::vector<unsigned char> buffer(capacity * kLargestEntry, kUntouched);
    unsigned count = capacity;
    const Return code = list(device, &count, buffer.data());
    if (code == kInsufficientSize && capacity < kMaxProcesses) {
      // `count` is what was needed a moment ago: some more may have started.
      capacity = std::min(kMaxProcesses, std::max(capacity * 2, count + count / 4));
      continue;
    }
    if (code != kSuccess) {
      return {code, {}};
    }
    count = std::min(count, capacity);
    const std::size_t step = count > 0 ? entry_bytes(buffer, count) : kUsualEntry;
    std::vector<Process> processes(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&processes[i], buffer.data() + i * step, sizeof(Process));
    }
    return {kSuccess, std::move(processes)};
  }
}

}  // namespace

ProcessList running_processes(std::span<RunningProcesses* const> versions, Device device) {
  for (RunningProcesses* const list : versions) {
    if (list == nullptr) {
      continue;
    }
    ProcessList answer = ask(list, device);
    if (answer.code != kFunctionNotFound && answer.code != kArgumentVersionMismatch) {
      return answer;
    }
  }
  return {kNotSupported, {}};
}

}  // namespace tidemark::monitor::nvml
