// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_names.h"

#include <array>
#include <charconv>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

struct NameRule {
  std::string_view prefix;
  std::string_view maker;
  bool pid_follows;
};

// The first match counts.
constexpr std::array<NameRule, 16> kRules{{
    {"torch_", "torch", true},                         // torch_PID_RANDOM_N (file_system strategy)
    {"pym-", "multiprocessing heap", true},            // pym-PID-RANDOM
    {"joblib_memmapping_folder_", "joblib", true},     // joblib_memmapping_folder_PID_HASH_HASH/
    {"sem.loky-", "loky semaphore", true},             // sem.loky-PID-RANDOM
    {"loky-", "loky", true},                           // loky-PID-RANDOM
    {"psm_", "multiprocessing.shared_memory", false},  // psm_RANDOM
    {"sem.mp-", "multiprocessing semaphore", false},
    {"sem.", "semaphore", false},
    {"nccl-", "nccl", false},
    {"plasma", "ray", false},
    {"vader_segment.", "openmpi", false},
    {"sm_segment.", "openmpi", false},
    {"ucx_shm_", "ucx", false},
    {"cuda.shm.", "cuda", false},
    {"pulse-shm-", "pulseaudio", false},
    {".org.chromium.", "chromium", false},
}};

// The number up to the next '_' or '-'.
std::optional<pid_t> leading_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  const auto length = static_cast<std::size_t>(end - text.data());
  const bool ends_well = length < text.size() && (text[length] == '_' || text[length] == '-');
  return error == std::errc{} && ends_well && pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace

ShmName read_shm_name(std::string_view path) {
  const std::string_view name = path.substr(0, path.find('/'));
  for (const NameRule& rule : kRules) {
    if (!name.starts_with(rule.prefix)) {
      continue;
    }
    if (!rule.pid_follows) {
      return {rule.maker, std::nullopt};
    }
    if (const auto pid = leading_pid(name.substr(rule.prefix.size()))) {
      return {rule.maker, pid};
    }
  }
  return {};
}

bool is_own_shm_file(std::string_view path) {
  constexpr std::string_view kPrefix = "tidemark-";  // a folder for each user: tidemark-UID
  if (!path.starts_with(kPrefix)) {
    return false;
  }
  path.remove_prefix(kPrefix.size());
  return parse_number<uid_t>(path.substr(0, path.find('/'))).has_value();
}

}  // namespace tidemark::monitor
