// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/heap/object_graph.h"
#include "profiler/heap/python_objects.h"
#include "profiler/heap/python_runtime.h"

namespace tidemark::heap {

// Modules, variables of running functions, and what interpreters and threads themselves refer to.
// What costs less to begin with is what a person would name first.
std::vector<Root> python_roots(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                               PythonObjects& objects);

// Roots that cost as much belong to the interpreter and its threads, not to any code.
inline constexpr std::uint32_t kInternalRootCost = 22;

// What the collector of an interpreter knows.
struct CollectorState {
  bool is_collecting = false;
  bool is_enabled = true;
  std::vector<std::int64_t> thresholds;
  std::vector<std::uint64_t> lists;  // heads of lists of objects; the last: what is frozen
};
CollectorState read_collector(MemoryImage& image, const PythonLayout& layout,
                              std::uint64_t interpreter);
// The objects in one of its lists. They are torn where the process runs: it ends at the first link
// that is not mutual, and is_whole is false then.
struct CollectorList {
  std::vector<std::uint64_t> objects;
  bool is_whole = true;
};
CollectorList read_collector_list(MemoryImage& image, std::uint64_t head, std::size_t most);

// "3.11.2", as sys.version says; empty: not known.
std::string python_version(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types);
// Of a module that is imported: an attribute; 0: it has none.
std::uint64_t module_value(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                           std::string_view module, std::string_view attribute);
// Likewise, one that is a text; empty: it has none.
std::string module_text(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                        std::string_view module, std::string_view attribute);

// "f" of "make.<locals>.f".
std::string_view without_outer_functions(std::string_view qualified);
// Whether a file is of a library, not of the job's own code.
bool is_library_file(std::string_view path);

}  // namespace tidemark::heap
