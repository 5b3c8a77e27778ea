// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "monitor/gpu/gpu_source.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {

// The libraries in a process's memory map that tell what it does; empty where there is none.
struct LoadedLibraries {
  std::string framework;  // "libtorch_cpu.so", "libtensorflow_framework.so.2", ...
  std::string gpu;        // "libcuda.so.1", "libcudart.so.12", ...

  bool complete() const { return !framework.empty() && !gpu.empty(); }
};

// Adds what some lines of a /proc/PID/maps show.
void note_libraries(std::string_view maps_lines, LoadedLibraries& libraries);

// What a process shows of being a training job.
struct ProcessEvidence {
  ProcessFacts facts;
  LoadedLibraries libraries;
  std::string gpu_device;  // "/dev/nvidia0", "/dev/kfd", ...; empty when none is open
  std::optional<std::uint64_t> gpu_bytes;  // of GPU memory, where a driver tells
  std::vector<std::string> job_variables;  // names that launchers set: "WORLD_SIZE", ...
};

// Of all processes that could be read.
struct Evidence {
  std::vector<ProcessEvidence> processes;
  std::size_t not_permitted = 0;  // processes of other users, or that refuse to be read
};

struct EvidenceOptions {
  std::string proc_root = "/proc";
  uid_t uid = 0;             // whose processes; 0 means everybody's
  pid_t self = 0;            // left out
  GpuSource* gpu = nullptr;  // optional
};

// Reads what the processes of `source` show. Processes that end meanwhile are left out.
Result<Evidence> collect_evidence(ProcessSource& source, const EvidenceOptions& options);

}  // namespace tidemark::monitor
