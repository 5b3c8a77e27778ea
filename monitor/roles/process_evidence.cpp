// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/process_evidence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/roles/command.h"
#include "monitor/roles/role_rules.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMapsLimitBytes = 32U << 20U;  // torch has 2000 lines, 0.3 MB
constexpr std::size_t kDescriptorLimit = 4096;

struct LibraryName {
  std::string_view prefix;
  std::string LoadedLibraries::*kind;
};

constexpr LibraryName kKnownLibraries[] = {
    {"libtorch", &LoadedLibraries::framework},
    {"libtensorflow", &LoadedLibraries::framework},
    {"_pywrap_tensorflow", &LoadedLibraries::framework},
    {"libjax", &LoadedLibraries::framework},
    {"xla_extension", &LoadedLibraries::framework},
    {"libmxnet", &LoadedLibraries::framework},
    {"libpaddle", &LoadedLibraries::framework},
    {"libmlx", &LoadedLibraries::framework},
    {"libcuda.so", &LoadedLibraries::gpu},
    {"libcudart", &LoadedLibraries::gpu},
    {"libamdhip64", &LoadedLibraries::gpu},
    {"libhsa-runtime64", &LoadedLibraries::gpu},
    {"libze_intel_gpu", &LoadedLibraries::gpu},
};

const std::vector<std::string>& wanted_variables() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all = launcher_variables();
    all.insert(all.end(), {"WORLD_SIZE", "MASTER_ADDR"});
    return all;
  }();
  return kNames;
}

// Workers and helpers prove something of their owner, not of themselves; shells and editors prove
// nothing. All others may be a training process, whatever their name.
bool may_train(const ProcessFacts& facts) {
  const std::string_view argv0 = facts.argv.empty() ? "" : std::string_view(facts.argv[0]);
  const RoleRule* const rule = match_rule(parse_command(facts.argv), argv0, facts.comm);
  return !facts.argv.empty() && (rule == nullptr || rule->scope == Scope::kBelowJob ||
                                 rule->role == Role::kRay || rule->role == Role::kLauncher);
}

Status read_libraries(const std::string& directory, LoadedLibraries& libraries) {
  TIDEMARK_TRY_ASSIGN(const auto fd, open_file(directory + "/maps", O_RDONLY));
  return read_whole_lines(
      fd.get(),
      [&](std::string_view lines) {
        note_libraries(lines, libraries);
        return !libraries.complete();
      },
      kMapsLimitBytes);
}

std::string open_gpu_device(const std::string& directory) {
  auto stream = DirectoryStream::open_at(AT_FDCWD, directory + "/fd");
  if (!stream) {
    return {};
  }
  std::size_t descriptors = 0;
  while (const dirent* entry = stream->next()) {
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(stream->fd(), entry->d_name, target.data(), target.size());
    const std::string_view path(target.data(),
                                static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    for (const std::string_view device : {"/dev/nvidia", "/dev/kfd", "/dev/dri/render"}) {
      if (path.starts_with(device)) {
        return std::string(path);
      }
    }
    if (++descriptors == kDescriptorLimit) {
      break;
    }
  }
  return {};
}

std::uint64_t footprint_of(const StatusFields& status) {
  return status.rss_anon_bytes.value_or(0) + status.rss_shmem_bytes.value_or(0) +
         status.swap_bytes.value_or(0);
}

// kPartly: the process is known, what it has mapped is not.
enum class ReadOutcome { kRead, kPartly, kGone, kRefused };

ReadOutcome outcome_of(const Error& error) {
  return error.code == Errc::kPermission ? ReadOutcome::kRefused : ReadOutcome::kGone;
}

void read_environment(const ProcessHandle& handle, ProcessEvidence& evidence) {
  const auto entries = handle.environment(wanted_variables());
  if (!entries) {
    return;
  }
  evidence.facts.rank = rank_from_environment(*entries);
  evidence.facts.job = job_from_environment(*entries);
  for (const std::string& entry : *entries) {
    evidence.job_variables.push_back(entry.substr(0, entry.find('=')));
  }
}

ReadOutcome read_process(const ProcessEntry& entry, const std::string& proc_root,
                         ProcessEvidence& evidence) {
  const auto handle = ProcessHandle::open(proc_root, entry.key);
  if (!handle) {
    return outcome_of(handle.error());
  }
  const auto status = handle->status();
  auto argv = handle->argv();
  if (!status || !argv) {
    return outcome_of(!status ? status.error() : argv.error());
  }
  evidence.facts = {.key = entry.key,
                    .ppid = entry.ppid,
                    .comm = entry.comm,
                    .argv = std::move(*argv),
                    .threads = entry.threads,
                    .footprint_bytes = footprint_of(*status),
                    .cpu_ticks = entry.cpu_ticks,
                    .rank = std::nullopt,
                    .job = {}};
  read_environment(*handle, evidence);
  if (!may_train(evidence.facts)) {
    return ReadOutcome::kRead;
  }
  const std::string directory = fmt::format("{}/{}", proc_root, entry.key.pid);
  const auto libraries = read_libraries(directory, evidence.libraries);
  evidence.gpu_device = open_gpu_device(directory);
  return libraries ? ReadOutcome::kRead : ReadOutcome::kPartly;
}

void add_gpu_use(GpuSource& gpu, std::vector<ProcessEvidence>& processes) {
  std::vector<pid_t> pids;
  pids.reserve(processes.size());
  for (const ProcessEvidence& process : processes) {
    pids.push_back(process.facts.key.pid);
  }
  const auto samples = gpu.sample(pids);
  if (!samples) {
    return;  // the other evidence stands
  }
  std::unordered_map<pid_t, std::uint64_t> used_bytes;
  for (const GpuSample& sample : *samples) {
    for (const GpuProcessUse& use : sample.processes) {
      used_bytes[use.pid] += use.used_bytes.value_or(0);
    }
  }
  for (ProcessEvidence& process : processes) {
    if (const auto found = used_bytes.find(process.facts.key.pid); found != used_bytes.end()) {
      process.gpu_bytes = found->second;
    }
  }
}

}  // namespace

void note_libraries(std::string_view maps_lines, LoadedLibraries& libraries) {
  std::string_view line;
  while (take_line(maps_lines, line)) {
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) {
      continue;
    }
    std::string_view name = basename_of(line.substr(slash));
    constexpr std::string_view kDeleted = " (deleted)";
    if (name.ends_with(kDeleted)) {
      name.remove_suffix(kDeleted.size());
    }
    for (const LibraryName& known : kKnownLibraries) {
      // A model file may carry such a name too; a library has ".so" in it.
      if (name.starts_with(known.prefix) && name.find(".so") != std::string_view::npos &&
          (libraries.*known.kind).empty()) {
        libraries.*known.kind = std::string(name);
      }
    }
  }
}

Result<Evidence> collect_evidence(ProcessSource& source, const EvidenceOptions& options) {
  TIDEMARK_TRY_ASSIGN(const auto table, source.snapshot());
  Evidence evidence;
  for (const ProcessEntry& entry : table) {
    if (entry.key.pid == options.self || entry.state == 'Z') {
      continue;
    }
    ProcessEvidence process;
    const bool ours = options.uid == 0 || entry.uid == options.uid;
    const ReadOutcome outcome =
        ours ? read_process(entry, options.proc_root, process) : ReadOutcome::kRefused;
    if (outcome == ReadOutcome::kRefused || outcome == ReadOutcome::kPartly) {
      ++evidence.not_permitted;
    }
    if (outcome == ReadOutcome::kRead || outcome == ReadOutcome::kPartly) {
      evidence.processes.push_back(std::move(process));
    }
  }
  if (options.gpu != nullptr) {
    add_gpu_use(*options.gpu, evidence.processes);
  }
  return evidence;
}

}  // namespace tidemark::monitor
