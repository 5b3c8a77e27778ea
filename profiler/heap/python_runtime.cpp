// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_runtime.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy" in little endian
constexpr std::uint64_t kVersionAt = 8;
constexpr std::uint64_t kFreeThreadedAt = 16;
constexpr std::size_t kMostInterpreters = 256;
constexpr std::uint64_t kMostScannedBytes = 64U << 20U;

// Takes what the interpreter says of itself in place of what its headers said when we were built.
// The table differs by one word between 3.13 and 3.14, and by more in its later parts.
void take_published(MemoryImage& image, std::uint64_t runtime, PythonLayout& layout) {
  constexpr std::uint32_t kLargest = 1U << 20U;
  const auto take = [&](std::uint64_t at, std::uint32_t& offset) {
    const std::uint64_t value = image.word(runtime + at);
    if (value < kLargest) {
      offset = static_cast<std::uint32_t>(value);
    }
  };
  const unsigned v = layout.minor;
  take(40, layout.runtime_interpreters);
  take(64, layout.interpreter_next);
  take(72, layout.interpreter_threads);
  const std::uint64_t later = v >= 14 ? 8 : 0;  // threads_main came in between
  take(80 + later, layout.interpreter_gc);
  take(88 + later, layout.interpreter_modules);
  take(96 + later, layout.interpreter_sysdict);
  take(104 + later, layout.interpreter_builtins);
  const std::uint64_t thread = v == 13 ? 152 : 176;
  take(thread + 16, layout.thread_next);
  take(thread + 32, layout.thread_frame);
  take(v == 15 ? 248 : thread + 48, layout.thread_native_id);
  const std::uint64_t frame = v == 13 ? 232 : v == 14 ? 256 : 320;
  take(frame, layout.frame_previous);
  take(frame + 8, layout.frame_code);
  take(frame + 16, layout.frame_instruction);
  take(frame + 24, layout.frame_fast_locals);
  take(frame + 32, layout.frame_owner);
  const std::uint64_t code = v == 13 ? 280 : v == 14 ? 320 : 384;
  take(code, layout.code_file);
  take(code + 8, layout.code_name);
  take(code + 16, layout.code_qualname);
  take(code + 24, layout.code_lines);
  take(code + 32, layout.code_first_line);
  take(code + 48, layout.code_local_names);
  take(code + 64, layout.code_start);
}

std::vector<std::uint64_t> interpreters_of(MemoryImage& image, std::uint64_t runtime,
                                           const PythonLayout& layout) {
  std::vector<std::uint64_t> all;
  std::uint64_t interpreter = image.word(runtime + layout.runtime_interpreters);
  while (interpreter != 0 && interpreter % 8 == 0 && all.size() < kMostInterpreters &&
         std::find(all.begin(), all.end(), interpreter) == all.end() &&
         image.mapping_at(interpreter) != nullptr) {
    all.push_back(interpreter);
    interpreter = image.word(interpreter + layout.interpreter_next);
  }
  return all;
}

std::uint32_t thread_state_bytes(MemoryImage& image, std::uint64_t runtime, unsigned minor) {
  constexpr std::uint64_t kMost = 4096;
  if (minor >= kFirstPublishedMinor) {
    const std::uint64_t bytes = image.word(runtime + (minor == 13 ? 152 : 176));
    return bytes <= kMost ? static_cast<std::uint32_t>(bytes) : 0;
  }
  return minor >= 12 ? 264 : minor == 11 ? 360 : 264;
}

// 0: not known. The version has a symbol of its own from 3.11 on; before that new functions tell.
unsigned minor_of(const inject::RemoteModule& module, const inject::RemoteMemory& memory) {
  if (const std::uint64_t at = inject::find_exported(module, memory, "Py_Version"); at != 0) {
    const auto number = memory.load<std::uint32_t>(at);
    return number && *number >> 24U == 3 ? (*number >> 16U) & 0xffU : 0;
  }
  if (inject::find_exported(module, memory, "Py_NewRef") != 0) {
    return 10;
  }
  return inject::find_exported(module, memory, "PyFrame_GetBack") != 0 ? 9 : 0;
}

// Writable data of files, and what follows them: where variables of programs lie.
bool is_data(const std::vector<Mapping>& mappings, std::size_t i) {
  const Mapping& mapping = mappings[i];
  if (!mapping.is_writable || mapping.is_shared) {
    return false;
  }
  if (mapping.name.starts_with('/')) {
    return true;
  }
  return mapping.name.empty() && i > 0 && mappings[i - 1].name.starts_with('/') &&
         mappings[i - 1].range.end == mapping.range.begin;
}

bool is_list_head(MemoryImage& image, std::uint64_t head) {
  const std::uint64_t next = image.word(head) & ~std::uint64_t{3};
  const std::uint64_t previous = image.word(head + 8) & ~std::uint64_t{3};
  if (next == 0 || previous == 0) {
    return false;
  }
  return (image.word(next + 8) & ~std::uint64_t{3}) == head &&
         (image.word(previous) & ~std::uint64_t{3}) == head;
}

// Whether an interpreter of 3.9 to 3.12 lies here, to judge by the lists of its collector.
bool is_interpreter(MemoryImage& image, std::uint64_t interpreter, const PythonLayout& layout) {
  const std::uint64_t gc = interpreter + layout.interpreter_gc;
  for (const unsigned head : {24U, 48U, 72U, 104U}) {
    if (!is_list_head(image, gc + head)) {
      return false;
    }
  }
  return image.mapping_at(image.word(interpreter + layout.interpreter_modules)) != nullptr;
}

struct FoundRuntime {
  std::uint64_t address = 0;
  unsigned minor = 0;
};

std::optional<FoundRuntime> runtime_at(MemoryImage& image, std::uint64_t address,
                                       std::uint64_t value, std::uint64_t next) {
  if (value == kCookie) {
    return FoundRuntime{address, 0};
  }
  if (value == 0 || value != next || value % 8 != 0 || image.mapping_at(value) == nullptr) {
    return std::nullopt;
  }
  for (unsigned minor = kFirstPythonMinor; minor < kFirstPublishedMinor; ++minor) {
    const PythonLayout layout = python_layout(minor, false);
    if (is_interpreter(image, value, layout)) {
      return FoundRuntime{address - layout.runtime_interpreters, minor};
    }
  }
  return std::nullopt;
}

// A stripped program that exports nothing: its data is looked through for what a runtime begins
// with, or for the first and the main interpreter, which are one.
std::optional<FoundRuntime> scan_for_runtime(MemoryImage& image) {
  std::uint64_t scanned = 0;
  const auto& mappings = image.mappings();
  for (std::size_t i = 0; i < mappings.size() && scanned < kMostScannedBytes; ++i) {
    if (!is_data(mappings, i)) {
      continue;
    }
    const AddressRange range = mappings[i].range;
    std::vector<std::uint64_t> words(MemoryImage::kPageBytes / 8 + 1);
    for (std::uint64_t page = range.begin; page < range.end; page += MemoryImage::kPageBytes) {
      const std::size_t count =
          page + MemoryImage::kPageBytes < range.end ? words.size() : words.size() - 1;
      words.back() = 0;
      scanned += MemoryImage::kPageBytes;
      if (!image.read_array(page, std::span(words.data(), count))) {
        continue;
      }
      for (std::size_t word = 0; word + 1 < words.size(); ++word) {
        if (auto found = runtime_at(image, page + 8 * word, words[word], words[word + 1])) {
          return found;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<PythonRuntime> read_python(MemoryImage& image, std::uint64_t address, unsigned minor) {
  bool is_free_threaded = false;
  const bool is_published = image.word(address) == kCookie;
  if (is_published) {
    const std::uint64_t version = image.word(address + kVersionAt);
    minor = version >> 24U == 3 ? (version >> 16U) & 0xffU : 0;
    is_free_threaded = (image.word(address + kFreeThreadedAt) & 1U) != 0;
  }
  if (minor < kFirstPythonMinor || minor > kLastPythonMinor || (is_free_threaded && minor < 14) ||
      is_published != (minor >= kFirstPublishedMinor)) {
    return Error{Errc::kUnsupported,
                 minor == 0 ? "this version of Python is not known"
                            : fmt::format("objects of Python 3.{}{} cannot be read yet (only 3.{} "
                                          "to 3.{})",
                                          minor, is_free_threaded ? " (free-threaded)" : "",
                                          kFirstPythonMinor, kLastPythonMinor)};
  }
  PythonRuntime runtime;
  runtime.address = address;
  runtime.layout = python_layout(minor, is_free_threaded);
  if (is_published) {
    take_published(image, address, runtime.layout);
  }
  runtime.thread_state_bytes = thread_state_bytes(image, address, minor);
  runtime.interpreters = interpreters_of(image, address, runtime.layout);
  if (runtime.interpreters.empty()) {
    return Error{Errc::kNotFound, "its Python has not begun yet, or has ended"};
  }
  return runtime;
}

Result<PythonRuntime> find_python(MemoryImage& image, const inject::RemoteMemory& memory) {
  auto modules = inject::find_modules(image.mappings(), memory);
  std::stable_partition(modules.begin(), modules.end(), [](const inject::RemoteModule& module) {
    return basename_of(module.path).find("python") != std::string_view::npos;
  });
  Error problem{Errc::kNotFound, "there is no Python in it"};
  for (const inject::RemoteModule& module : modules) {
    const std::uint64_t address = inject::find_exported(module, memory, "_PyRuntime");
    if (address == 0) {
      continue;
    }
    auto runtime = read_python(image, address, minor_of(module, memory));
    if (runtime) {
      return runtime;
    }
    problem = runtime.error();
  }
  if (problem.code == Errc::kNotFound) {
    if (const auto found = scan_for_runtime(image)) {
      return read_python(image, found->address, found->minor);
    }
  }
  return problem;
}

}  // namespace tidemark::heap
