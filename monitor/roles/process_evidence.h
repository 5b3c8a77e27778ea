// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "monitor/gpu/gpu_source.h"
#include "monitor/procfs/loaded_libraries.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {

// What a process shows of being a training job.
struct ProcessEvidence {
  ProcessFacts facts;
  LoadedLibraries libraries;
  std::string gpu_device;  // "/dev/nvidia0", "/dev/kfd", ...; empty when none is open
  std::optional<std::uint64_t> gpu_bytes;  // of GPU memory, where a driver tells
  std::vector<std::string> job_variables;  // names that launchers set: "WORLD_SIZE", ...
};

// A look at the machine.
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
