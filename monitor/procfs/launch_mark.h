// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

// How the orphans of a command that we started are told from other children of this process: a
// shell may have started some before it became us, and pid 1 of a container is given those of
// others. The command has a variable in its environment, and what it starts inherits it.
namespace tidemark::monitor {

inline constexpr const char* kLaunchVariable = "TIDEMARK_LAUNCH";

// The part that belongs to this process and to no other, now or later.
std::string launch_mark();
// The value of the variable: what we were started with ourselves, and our own mark.
std::string launch_value();

// Whether the mark is in the environment of a process; false where that cannot be read. Allocates
// nothing.
bool has_launch_mark(int proc_directory, pid_t pid, std::string_view mark);

}  // namespace tidemark::monitor
