// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/untraced_reason.h"

#include <sys/stat.h>

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/proc_files.h"
#include "profiler/reader/needed_libraries.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::collect {
namespace {

constexpr std::size_t kMostEnvironmentBytes = 4U << 20U;

std::optional<UntracedReason> reason_in_program(const std::string& process) {
  const auto loader = reader::loader_of(process + "/exe");
  if (!loader) {
    return std::nullopt;
  }
  if (!loader->is_native) {
    return UntracedReason::kOtherArchitecture;
  }
  if (loader->interpreter.empty()) {
    return UntracedReason::kStatic;
  }
  return basename_of(loader->interpreter).starts_with("ld-linux")
             ? std::nullopt
             : std::optional(UntracedReason::kOtherLibc);
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

bool is_out_of_reach(const std::string& process, const TracerPlace& tracer) {
  const std::string root = process + "/root";
  return !tracer.library.empty() && exists(root + "/.") &&
         !(exists(root + tracer.library) && exists(root + tracer.directory));
}

bool is_of_another_user(const std::string& process, const std::string& directory) {
  struct stat folder {};
  const auto text = read_file(process + "/status");
  const auto status = text ? monitor::parse_status(*text) : text.error();
  return status && ::stat(directory.c_str(), &folder) == 0 && status->uid != folder.st_uid;
}

// nullopt: its environment cannot be read.
std::optional<bool> has_request(const std::string& process) {
  const auto environment = read_file(process + "/environ", kMostEnvironmentBytes);
  if (!environment) {
    return std::nullopt;
  }
  const std::string variable = fmt::format("{}=", wire::kRequestVariable);
  for (const std::string_view entry : split(*environment, '\0')) {
    if (entry.starts_with(variable)) {
      return true;
    }
  }
  return false;
}

}  // namespace

UntracedReason why_untraced(pid_t pid, const TracerPlace& tracer, const std::string& proc) {
  const std::string process = fmt::format("{}/{}", proc, pid);
  if (const auto reason = reason_in_program(process)) {
    return *reason;
  }
  if (monitor::has_raised_privileges(process)) {
    return UntracedReason::kPrivileges;
  }
  if (is_out_of_reach(process, tracer)) {
    return UntracedReason::kOutOfReach;
  }
  if (is_of_another_user(process, tracer.directory)) {
    return UntracedReason::kOtherUser;
  }
  if (has_request(process).value_or(true)) {
    return UntracedReason::kUnknown;
  }
  return tracer.follows_children ? UntracedReason::kNoVariables : UntracedReason::kNotFollowed;
}

}  // namespace tidemark::collect
