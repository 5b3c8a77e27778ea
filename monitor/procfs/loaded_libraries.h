// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidemark::monitor {

// The libraries in a process's memory map that tell what it does; empty where there is none.
struct LoadedLibraries {
  std::string framework;  // "libtorch_cpu.so", "libtensorflow_framework.so.2", ...
  std::string gpu;        // "libcuda.so.1", "libcudart.so.12", ...

  bool complete() const { return !framework.empty() && !gpu.empty(); }
};

// Adds what some lines of a /proc/PID/maps show.
void note_libraries(std::string_view maps_lines, LoadedLibraries& libraries);

}  // namespace tidemark::monitor
