// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/site_records.h"

// How the tracer gets into a command: two environment variables.
namespace tidemark::collect {

// How the allocation tracer works in the processes that it is in.
struct TraceOptions {
  TraceMode mode = TraceMode::kSampled;
  std::uint64_t sample_every_bytes = 512U << 10U;
  bool follow_children = true;
  bool use_libunwind = false;
  bool python_objects = false;  // small objects of Python one by one

  bool operator==(const TraceOptions&) const = default;
};

// "sampled", "exact".
Result<TraceMode> parse_trace_mode(std::string_view text);
// At least 1 KiB: below that, exact is cheaper.
Result<std::uint64_t> parse_sample_every(std::string_view text);

// A library of ours, as it was built or installed with this program.
Result<std::string> find_library_beside(std::string_view file);
// That of the tracer.
Result<std::string> find_tracer();

// Whether a command, or what is preloaded into it, brings an allocator with an operator new of its
// own. `search_path` is that of the shell, for a command without a slash.
bool has_other_allocator(const std::vector<std::string>& command, std::string_view preloaded,
                         std::string_view search_path);

// An error for a command that is linked to the run time of AddressSanitizer, unless the options of
// that let others come before it.
Status refuse_address_sanitizer(const std::vector<std::string>& command,
                                std::string_view search_path, std::string_view asan_options);

// The value of LD_PRELOAD: the tracer, its operators where they are wanted and exist, then what was
// there. An error when the loader could not read the name.
Result<std::string> preload_value(const std::string& tracer, bool with_operators,
                                  std::string_view preloaded);

// What the tracer is asked for, with its files in this folder: see profiler/wire/trace_request.h.
std::string trace_request(const TraceOptions& options, const std::string& directory);

// The value of PYTHONMALLOC with which each object of Python is a block of malloc; "": what is set
// does that already.
std::string python_allocator(std::string_view set);

// The variables that a command is started with.
Result<std::vector<std::pair<std::string, std::string>>> tracing_environment(
    const TraceOptions& options, const std::vector<std::string>& command,
    const std::string& directory);

}  // namespace tidemark::collect
