// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/loaded_libraries.h"

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

struct LibraryName {
  std::string_view prefix;
  std::string LoadedLibraries::*kind;
};

constexpr LibraryName kNames[] = {
    {"libtorch", &LoadedLibraries::framework},
    {"libtensorflow", &LoadedLibraries::framework},
    {"_pywrap_tensorflow", &LoadedLibraries::framework},
    {"libjax", &LoadedLibraries::framework},
    {"xla_extension", &LoadedLibraries::framework},
    {"libmxnet", &LoadedLibraries::framework},
    {"libpaddle", &LoadedLibraries::framework},
    {"libmlx", &LoadedLibraries::framework},
    {"libcuda.so", &LoadedLibraries::gpu},
    {"libcudart", &LoadedLibraries::gpu},
    {"libamdhip64", &LoadedLibraries::gpu},
    {"libhsa-runtime64", &LoadedLibraries::gpu},
    {"libze_intel_gpu", &LoadedLibraries::gpu},
};

}  // namespace

void note_libraries(std::string_view maps_lines, LoadedLibraries& libraries) {
  std::string_view line;
  while (take_line(maps_lines, line)) {
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) {
      continue;
    }
    std::string_view name = basename_of(line.substr(slash));
    constexpr std::string_view kDeleted = " (deleted)";
    if (name.ends_with(kDeleted)) {
      name.remove_suffix(kDeleted.size());
    }
    for (const LibraryName& known : kNames) {
      // A model file may carry such a name too; a library has ".so" in it.
      if (name.starts_with(known.prefix) && name.find(".so") != std::string_view::npos &&
          (libraries.*known.kind).empty()) {
        libraries.*known.kind = std::string(name);
      }
    }
  }
}

}  // namespace tidemark::monitor
