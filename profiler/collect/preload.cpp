// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/preload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "profiler/reader/needed_libraries.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::collect {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTracer = "libtidemark_tracer.so";
constexpr std::string_view kOperators = "libtidemark_operators.so";
// A trace larger than this is of a process with millions of live blocks; the rest is then counted
// as lost.
constexpr std::uint64_t kMostFileBytes = std::uint64_t{2} << 30U;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : value;
}

std::optional<std::string> find_program(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  for (const std::string_view folder : split(search_path, ':')) {
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return std::nullopt;
}

// The interpreter that the first line of a script names; "" when it is none.
std::string interpreter_of(const std::string& path, std::string_view search_path) {
  constexpr std::size_t kMostBytes = 256;
  const auto file = open_file(path, O_RDONLY | O_NONBLOCK);
  std::string head(kMostBytes, '\0');
  const auto count = file ? pread_full(file->get(), head) : Result<std::size_t>(file.error());
  if (!count || !head.starts_with("#!")) {
    return "";
  }
  const std::string_view line =
      trim(std::string_view(head).substr(2, head.find_first_of(std::string_view("\n\0", 2)) - 2));
  const auto words = split(line, ' ');
  const bool is_env = basename_of(words[0]) == "env" && words.size() > 1;
  return find_program(std::string(words[is_env ? 1 : 0]), search_path).value_or("");
}

// The libraries that the program of a command is linked to, or its interpreter. Empty where it is
// not found.
std::vector<std::string> linked_libraries(const std::vector<std::string>& command,
                                          std::string_view search_path) {
  const auto program = command.empty() ? std::nullopt : find_program(command.front(), search_path);
  if (!program) {
    return {};
  }
  const std::string interpreter = interpreter_of(*program, search_path);
  return reader::needed_libraries(interpreter.empty() ? *program : interpreter);
}

}  // namespace

Result<TraceMode> parse_trace_mode(std::string_view text) {
  const auto mode = trace_mode_from_name(text);
  if (!mode || *mode == TraceMode::kDormant) {
    return Error{Errc::kUsage,
                 fmt::format("--mode is sampled or exact, not '{}'", escape_text(text))};
  }
  return *mode;
}

Result<std::uint64_t> parse_sample_every(std::string_view text) {
  constexpr std::uint64_t kLeast = 1024;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  auto bytes = parse_size_bytes(text);
  if (bytes && (*bytes < kLeast || *bytes > kMost)) {
    return Error{Errc::kUsage,
                 "--sample-every is at least 1KiB, for example 512KiB; --mode exact records all"};
  }
  return bytes;
}

Result<std::string> find_library_beside(std::string_view file) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = own.parent_path();
  for (const fs::path& place : {folder / "../lib", folder / "../lib/tidemark", folder}) {
    const fs::path library = place / file;
    if (!error && fs::exists(library, error)) {
      return fs::weakly_canonical(library, error).string();
    }
    error.clear();
  }
  return Error{Errc::kNotFound,
               fmt::format("{} is not beside this program; build or install it as well", file)};
}

Result<std::string> find_tracer() { return find_library_beside(kTracer); }

bool has_other_allocator(const std::vector<std::string>& command, std::string_view preloaded,
                         std::string_view search_path) {
  for (std::string_view rest = preloaded; !rest.empty();) {
    const std::size_t end = rest.find_first_of(": ");
    if (reader::is_other_allocator(rest.substr(0, end))) {
      return true;
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  const auto libraries = linked_libraries(command, search_path);
  return std::any_of(libraries.begin(), libraries.end(), reader::is_other_allocator);
}

Status refuse_address_sanitizer(const std::vector<std::string>& command,
                                std::string_view search_path, std::string_view asan_options) {
  const auto libraries = linked_libraries(command, search_path);
  const bool is_linked =
      std::any_of(libraries.begin(), libraries.end(),
                  [](const std::string& library) { return library.starts_with("libasan.so"); });
  if (!is_linked || asan_options.find("verify_asan_link_order=0") != std::string_view::npos) {
    return ok();
  }
  return Error{Errc::kUnsupported,
               fmt::format("{} is built with AddressSanitizer, which ends a program that something "
                           "is preloaded into; profile a build without -fsanitize=address",
                           command.front())};
}

Result<std::string> preload_value(const std::string& tracer, bool with_operators,
                                  std::string_view preloaded) {
  if (tracer.find_first_of(": ") != std::string::npos) {
    return Error{Errc::kUnsupported,
                 fmt::format("{} cannot be preloaded: the loader takes no name with a blank or a "
                             "colon; install tidemark elsewhere",
                             tracer)};
  }
  std::string value = tracer;
  const std::string operators =
      fmt::format("{}/{}", fs::path(tracer).parent_path().string(), kOperators);
  if (with_operators && ::access(operators.c_str(), R_OK) == 0) {
    value += ':' + operators;
  }
  return preloaded.empty() ? value : fmt::format("{}:{}", value, preloaded);
}

std::string trace_request(const TraceOptions& options, const std::string& directory) {
  std::string flags;
  flags += options.follow_children ? "f" : "";
  flags += options.use_libunwind ? "u" : "";
  return fmt::format("1:{}:{}:{}:{}:{}", trace_mode_name(options.mode), options.sample_every_bytes,
                     kMostFileBytes, flags, directory);
}

std::string python_allocator(std::string_view set) {
  return set.starts_with("malloc") ? "" : set.ends_with("debug") ? "malloc_debug" : "malloc";
}

Result<std::vector<std::pair<std::string, std::string>>> tracing_environment(
    const TraceOptions& options, const std::vector<std::string>& command,
    const std::string& directory) {
  TIDEMARK_TRY_ASSIGN(const auto tracer, find_tracer());
  if (auto allowed = refuse_address_sanitizer(command, variable("PATH"), variable("ASAN_OPTIONS"));
      !allowed) {
    return allowed.error();
  }
  const std::string_view preloaded = variable("LD_PRELOAD");
  const bool with_operators = has_other_allocator(command, preloaded, variable("PATH"));
  TIDEMARK_TRY_ASSIGN(auto preload, preload_value(tracer, with_operators, preloaded));
  std::vector<std::pair<std::string, std::string>> variables;
  variables.emplace_back("LD_PRELOAD", std::move(preload));
  variables.emplace_back(wire::kRequestVariable, trace_request(options, directory));
  if (std::string allocator = python_allocator(variable("PYTHONMALLOC"));
      options.python_objects && !allocator.empty()) {
    variables.emplace_back("PYTHONMALLOC", std::move(allocator));
  }
  return variables;
}

}  // namespace tidemark::collect
