// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark {

// What a path means once symbolic links at its end are followed. A link that belongs to neither us
// nor root is an error: whoever may write into a shared folder must not choose what we replace.
// (The kernel refuses such links in sticky folders only to whoever opens them, not to rename(2).)
Result<std::string> follow_own_links(const std::string& path);

// Replaces a file at once: a reader sees the old or the new text, never a part, and a failure or a
// crash leaves the old one. A file that was there keeps its mode and owner; a new one is readable
// as the umask has it. A symbolic link stays, and what it points to is replaced: see above. What is
// no regular file (/dev/stdout, a pipe) is written to.
Status write_file_atomically(const std::string& path, std::string_view text);

// Whether write_file_atomically() could work, asked before there is something to write. Creates
// nothing.
Status can_write_file(const std::string& path);

}  // namespace tidemark
