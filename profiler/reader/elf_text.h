// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/result.h"

namespace tidemark::reader {

// kMalformed unless the file is a 64-bit ELF program or shared library: keeps elfutils from what it
// would also open, which is archives, object files and compressed images.
Status check_is_program(int fd);

// The name as it is written in C++; names that are not mangled, or absurdly long, stay.
std::string demangled(const char* name);

// The name of a symbol without its version: "name" of "name@@GLIBC_2.2.5".
std::string without_version(const char* symbol);

// An absolute path where the directory is one, without "." and ".." as far as text can tell.
std::string joined_path(const std::string& directory, const std::string& file);

// Lower case, two digits per byte, as build-ids are written.
std::string hexadecimal(std::span<const std::uint8_t> bytes);

}  // namespace tidemark::reader
