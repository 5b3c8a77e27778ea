// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/inject/remote_modules.h"

namespace tidemark::heap {

// The stack pointer in the text of /proc/PID/task/TID/syscall; nullopt: the thread runs.
std::optional<std::uint64_t> parse_stack_pointer(std::string_view text);
// Of the threads of a process that wait; those of others cannot be read.
std::vector<std::uint64_t> stack_pointers_of(const std::string& proc_root, pid_t pid);

// The stacks of threads but the main one: what a stack pointer leads to, and, for up to `threads`
// in all, memory that looks the same: no larger than `stack_bytes`, with a page below it that
// nobody may touch. By address.
std::vector<inject::AddressRange> find_thread_stacks(const std::vector<inject::Mapping>& mappings,
                                                     const std::vector<std::uint64_t>& pointers,
                                                     std::size_t threads,
                                                     std::uint64_t stack_bytes);

}  // namespace tidemark::heap
