// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/needed_libraries.h"

#include <elf.h>
#include <fcntl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::reader {
namespace {

constexpr std::size_t kMostSegments = 128;
constexpr std::size_t kMostEntries = 4096;
constexpr std::size_t kMostNeeded = 256;
constexpr std::size_t kMostNameBytes = 256;
#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    if (auto file = open_file(path, O_RDONLY | O_NONBLOCK)) {
      file_ = *std::move(file);
    }
  }

  template <typename T>
  std::optional<T> read(std::uint64_t offset) const {
    std::array<char, sizeof(T)> bytes{};
    if (!file_ || offset > INT64_MAX) {
      return std::nullopt;
    }
    const auto count = pread_full(file_.get(), bytes, static_cast<off_t>(offset));
    if (!count || *count != bytes.size()) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::string name_at(std::uint64_t offset) const {
    std::array<char, kMostNameBytes> bytes{};
    if (offset > INT64_MAX) {
      return "";
    }
    const auto count = pread_full(file_.get(), bytes, static_cast<off_t>(offset));
    const std::string_view text(bytes.data(), count ? *count : 0);
    const std::size_t end = text.find('\0');
    return end == std::string_view::npos ? "" : std::string(text.substr(0, end));
  }

 private:
  Fd file_;
};

// Where an address of the program lies in its file.
std::optional<std::uint64_t> offset_of(std::uint64_t address,
                                       const std::vector<Elf64_Phdr>& segments) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<Elf64_Phdr> segments_of(const ElfFile& file) {
  const auto header = file.read<Elf64_Ehdr>(0);
  constexpr unsigned char kData =
      __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != kData) {
    return {};
  }
  std::vector<Elf64_Phdr> segments;
  for (std::size_t i = 0; i < header->e_phnum && i < kMostSegments; ++i) {
    const auto segment = file.read<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) {
      break;
    }
    segments.push_back(*segment);
  }
  return segments;
}

}  // namespace

std::vector<std::string> needed_libraries(const std::string& path) {
  const ElfFile file(path);
  const std::vector<Elf64_Phdr> segments = segments_of(file);
  std::vector<std::uint64_t> needed;  // offsets into the strings
  std::optional<std::uint64_t> strings;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) {
      continue;
    }
    for (std::size_t i = 0; i < kMostEntries && i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = file.read<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) {
        break;
      }
      if (entry->d_tag == DT_STRTAB) {
        strings = offset_of(entry->d_un.d_ptr, segments);
      } else if (entry->d_tag == DT_NEEDED && needed.size() < kMostNeeded) {
        needed.push_back(entry->d_un.d_val);
      }
    }
  }
  std::vector<std::string> names;
  for (const std::uint64_t offset : needed) {
    if (strings && offset < (std::uint64_t{1} << 40U)) {
      names.push_back(file.name_at(*strings + offset));
    }
  }
  return names;
}

std::optional<ProgramLoader> loader_of(const std::string& path) {
  const ElfFile file(path);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  ProgramLoader loader;
  const std::vector<Elf64_Phdr> segments = segments_of(file);
  loader.is_native = !segments.empty() && header->e_machine == kMachine;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) {
      loader.interpreter = file.name_at(segment.p_offset);
    }
  }
  return loader;
}

bool is_other_allocator(std::string_view library) {
  const std::string_view name = basename_of(library);
  for (const std::string_view known : {"jemalloc", "tcmalloc", "mimalloc"}) {
    if (name.find(known) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace tidemark::reader
