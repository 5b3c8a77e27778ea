// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace tidemark {

// What a process is in a training job. The names are written to run files and JSON: they never
// change their meaning, and new ones are added at the end.
enum class Role {
  kOther,
  kTrainer,
  kRank,
  kCompileWorker,
  kDataloaderWorker,
  kWrapper,
  kLauncher,
  kResourceTracker,
  kShmManager,
  kForkserver,
  kRay,
  kInference,  // vLLM engine and workers
};
inline constexpr int kRoleCount = 12;

// "compile_worker", "other", ...
std::string_view role_name(Role role);
// Also understands "main" for the trainer, as other tools' files write it.
std::optional<Role> role_from_name(std::string_view name);

}  // namespace tidemark
