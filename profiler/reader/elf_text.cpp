// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/elf_text.h"

#include <cxxabi.h>
#include <elf.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common/io.h"

namespace tidemark::reader {
namespace {

constexpr std::size_t kMostMangledBytes = 16384;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

Status check_is_program(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("object file", errno);
  }
  Elf64_Ehdr header{};
  const std::span<char> bytes(reinterpret_cast<char*>(&header), sizeof header);
  const auto got = S_ISREG(status.st_mode) ? pread_full(fd, bytes) : Result<std::size_t>(0);
  if (!got || *got != sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
    return Error{Errc::kMalformed, "not a 64-bit program or library"};
  }
  return ok();
}

std::string demangled(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0 || ::strnlen(name, kMostMangledBytes) == kMostMangledBytes) {
    return name;
  }
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 && text ? std::string(text.get()) : std::string(name);
}

std::string without_version(const char* symbol) {
  const std::string name(symbol);
  const std::size_t version = name.find('@');
  return version == 0 ? name : name.substr(0, version);
}

std::string joined_path(const std::string& directory, const std::string& file) {
  if (file.empty() || file.front() == '/' || directory.empty() || directory.front() != '/') {
    return file;
  }
  return (std::filesystem::path(directory) / file).lexically_normal().string();
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace tidemark::reader
