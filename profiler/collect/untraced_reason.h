// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "common/site_records.h"

namespace tidemark::collect {

// What a process needs to be traced.
struct TracerPlace {
  std::string library;    // "": it is in there already, or nobody knows where it is
  std::string directory;  // where its file would be; its owner is who may write there
  bool follows_children = true;
};

// Why a process that has no trace file has none, from its files below `proc`: the program that it
// runs, its privileges, user, root folder and first environment. What cannot be read, as it
// belongs to somebody else or the process has just exited, gives no reason.
UntracedReason why_untraced(pid_t pid, const TracerPlace& tracer,
                            const std::string& proc = "/proc");

}  // namespace tidemark::collect
