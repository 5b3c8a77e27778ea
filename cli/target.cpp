// SPDX-License-Identifier: Apache-2.0
#include "cli/target.h"

#include <unistd.h>

#include <fmt/format.h>

#include "monitor/finder.h"
#include "monitor/process_handle.h"

namespace tidemark::cli {
namespace {

Status add_root(monitor::TreeRoots& roots, pid_t pid) {
  const auto key = monitor::process_key_of("/proc", pid);
  if (!key) {
    return Error{key.error().code, fmt::format("there is no process {}", pid),
                 key.error().sys_errno};
  }
  roots.keys.push_back(*key);
  return ok();
}

}  // namespace

Result<ResolvedTarget> resolve_target(const TargetOptions& target, monitor::ProcessSource& source) {
  ResolvedTarget resolved;
  resolved.roots.everything = target.system;
  for (const pid_t pid : target.pids) {
    if (auto added = add_root(resolved.roots, pid); !added) {
      return added.error();
    }
  }
  if (target.find_training) {
    const auto found = monitor::find_training(source, {.uid = ::geteuid(), .self = ::getpid()});
    if (!found) {
      return found.error();
    }
    for (const pid_t pid : found->watch) {
      if (auto added = add_root(resolved.roots, pid); !added) {
        return added.error();
      }
    }
    resolved.note =
        fmt::format("found the training job: pid {} (tidemark find says why)", found->pid);
  }
  return resolved;
}

}  // namespace tidemark::cli
