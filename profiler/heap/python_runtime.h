// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"
#include "profiler/inject/remote_memory.h"

namespace tidemark::heap {

// The Python of a process: where its state lies, and how to read it.
struct PythonRuntime {
  std::uint64_t address = 0;  // of _PyRuntime
  PythonLayout layout;
  std::vector<std::uint64_t> interpreters;
  std::uint32_t thread_state_bytes = 0;
};

// By its exported symbols; if there are none, by what its data looks like. Errc::kNotFound: there
// is no Python in the process, or it has not begun yet. Errc::kUnsupported: a version that is not
// known.
Result<PythonRuntime> find_python(MemoryImage& image, const inject::RemoteMemory& memory);
// As it lies at an address; `minor` of a version that does not publish its own: 0 there.
Result<PythonRuntime> read_python(MemoryImage& image, std::uint64_t address, unsigned minor);

}  // namespace tidemark::heap
