// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/result.h"

namespace tidemark::recording {

// Follows symbolic links.
bool file_exists(const std::string& path);

// Copies a whole file. `to` is created, 0600.
Status copy_file(const std::string& from, const std::string& to);

// The same error, told of the file `name`: "name: what".
Error named(const std::string& name, const Error& error);

}  // namespace tidemark::recording
