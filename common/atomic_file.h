// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark {

// Replaces a file at once: a reader sees the old or the new text, never a part, and a failure
// leaves the old one. Readable as the umask has it. A symbolic link stays, and what it points to is
// replaced. What is no regular file (/dev/stdout, a pipe) is written to.
Status write_file_atomically(const std::string& path, std::string_view text);

// Whether write_file_atomically() could work, asked before there is something to write. Creates
// nothing.
Status can_write_file(const std::string& path);

}  // namespace tidemark
