// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tidemark::tests {

// The directory in which processes of this user keep their marker files.
std::string marker_directory();

// Names of the marker files of a process, sorted.
std::vector<std::string> marker_files(pid_t pid);

// One line per published record in all marker files of a process: "c: step 7", "py: begin eval".
// Reads the layout of api/tidemark.h directly, with none of the reader's code.
std::string dump_markers(pid_t pid);

}  // namespace tidemark::tests
