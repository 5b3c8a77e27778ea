// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

// The part of NVIDIA's management library that we call, declared by ourselves: the library is
// loaded at run time and its header is not needed to build. Names follow our own rules; layouts
// follow https://docs.nvidia.com/deploy/nvml-api.
namespace tidemark::monitor::nvml {

using Device = void*;
using Return = int;

inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kArgumentVersionMismatch = 25;

inline constexpr std::uint64_t kValueNotAvailable = ~0ULL;
inline constexpr std::size_t kNameBytes = 96;

struct Memory {
  std::uint64_t total_bytes;
  std::uint64_t free_bytes;
  std::uint64_t used_bytes;
};

// Does not count what the driver reserves as used.
struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total_bytes;
  std::uint64_t reserved_bytes;
  std::uint64_t free_bytes;
  std::uint64_t used_bytes;
};
inline constexpr std::uint32_t kMemoryV2 = sizeof(MemoryV2) | 2U << 24U;

// The head that all versions of a process entry share. What follows it, and with it the distance
// from one entry to the next, differs: see running_processes().
struct Process {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};

struct Utilization {
  unsigned gpu_percent;
  unsigned memory_percent;
};

using RunningProcesses = Return(Device, unsigned* count, void* entries);
// Newest first; null where the library has none.
using RunningProcessesVersions = std::array<RunningProcesses*, 3>;

// What the library exports. Optional functions are null in old versions.
struct Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  // Optional from here on.
  Return (*device_name)(Device, char*, unsigned) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  RunningProcessesVersions compute_processes{};
  RunningProcessesVersions graphics_processes{};
  RunningProcessesVersions mps_processes{};  // those that compute through a multi-process server
  Return (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  Return (*max_mig_devices)(Device, unsigned*) = nullptr;
  Return (*mig_device_by_index)(Device, unsigned, Device*) = nullptr;
};

// A loaded library. Unloaded at the end.
class Library {
 public:
  // kUnsupported when it cannot be loaded or lacks what every version has.
  static Result<Library> load(const std::string& path);

  const Functions& functions() const { return functions_; }
  // "GPU is lost (15)".
  std::string describe(Return code) const;

 private:
  struct Unload {
    void operator()(void* handle) const;
  };
  explicit Library(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Unload> handle_;
  Functions functions_;
};

// The error is a Return.
struct ProcessList {
  Return code = kSuccess;
  std::vector<Process> processes;
};
// Asks the newest version that the driver behind the library understands, until its answer fits.
// kNotSupported when there is none.
ProcessList running_processes(std::span<RunningProcesses* const> versions, Device device);

}  // namespace tidemark::monitor::nvml
