// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/stack_lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::tracker {
namespace {

bool is_of_the_tracer(const ShownFrame& frame) {
  const std::string_view module = basename_of(frame.module);
  return module == "libtidemark_tracer.so" || module == "libtidemark_operators.so";
}

// The name without arguments, templates and version: "operator new" of "operator new(unsigned
// long)", "malloc" of "malloc+0x1c".
std::string_view bare_name(std::string_view function) {
  return function.substr(0, function.find_first_of("(+@<"));
}

bool is_allocator_name(std::string_view function) {
  constexpr std::array<std::string_view, 22> kNames{
      "malloc",         "calloc",         "realloc",       "reallocarray",  "memalign",
      "posix_memalign", "aligned_alloc",  "valloc",        "pvalloc",       "mmap",
      "mmap64",         "mremap",         "__libc_malloc", "__libc_calloc", "__libc_realloc",
      "operator new",   "operator new[]", "cudaMalloc",    "cudaHostAlloc", "cudaMallocHost",
      "strdup",         "__strdup"};
  const std::string_view name = trim(bare_name(function));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// What the C++ library puts between a container and operator new.
bool is_library_wrapper(std::string_view function) {
  constexpr std::array<std::string_view, 6> kPrefixes{
      "std::allocator",        "__gnu_cxx::new_allocator", "std::__new_allocator",
      "std::allocator_traits", "std::_Vector_base",        "void* std::__"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return function.starts_with(prefix); });
}

// The C library, its loader, the C++ library and allocators.
bool is_of_the_runtime(const ShownFrame& frame) {
  constexpr std::array<std::string_view, 7> kModules{
      "libc.so", "libm.so", "ld-linux", "libjemalloc", "libtcmalloc", "libmimalloc", "libstdc++"};
  const std::string_view module = basename_of(frame.module);
  return std::any_of(kModules.begin(), kModules.end(),
                     [&](std::string_view known) { return module.starts_with(known); });
}

bool is_of_an_allocator(const ShownFrame& frame) {
  return is_of_the_runtime(frame) || is_allocator_name(frame.frame->function) ||
         is_library_wrapper(frame.frame->function);
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Below /usr, but where people build and install their own: containers have their application in
// /usr/src/app. Distributions put the sources of their packages into /usr/src/debug.
bool is_of_the_system(std::string_view path) {
  constexpr std::array<std::string_view, 2> kOwn{"/usr/src/", "/usr/local/"};
  constexpr std::array<std::string_view, 2> kNotOwn{"/usr/src/debug/", "/usr/local/cuda"};
  return path.starts_with("/usr/") &&
         (!starts_with_any(path, kOwn) || starts_with_any(path, kNotOwn));
}

// Sources and headers that came with the system, with an installed package, or with torch.
bool is_of_a_package(std::string_view file) {
  constexpr std::array<std::string_view, 2> kPlaces{"/usr/local/include/", "/usr/local/lib"};
  constexpr std::array<std::string_view, 4> kParts{"/include/c++/", "/site-packages/",
                                                   "/dist-packages/", "/torch/include/"};
  return is_of_the_system(file) || starts_with_any(file, kPlaces) || contains_any(file, kParts);
}

// Programs and libraries that the user has not built: of the system, of packages, and those that
// training jobs have, wherever they lie.
bool is_of_a_library(std::string_view module) {
  constexpr std::array<std::string_view, 3> kPlaces{"/lib", "/bin/", "/sbin/"};
  constexpr std::array<std::string_view, 15> kNames{
      "libtorch",    "libc10", "libcuda",  "libcublas", "libcudnn",
      "libnccl",     "libnv",  "libgomp",  "libiomp5",  "libpython",
      "libopenblas", "libmkl", "libarrow", "python2",   "python3"};
  constexpr std::array<std::string_view, 4> kParts{"/site-packages/", "/dist-packages/", "conda3/",
                                                   "/conda/lib/"};
  return is_of_the_system(module) || starts_with_any(module, kPlaces) ||
         starts_with_any(basename_of(module), kNames) || contains_any(module, kParts);
}

// Between two frames of the user: containers and callables of the C++ library.
bool is_library_code(const ShownFrame& frame) {
  const std::string_view file = frame.frame->file;
  return file.starts_with("/usr/include/") || file.find("/include/c++/") != std::string_view::npos;
}

// Below main() and below the start of a thread.
bool is_start_code(const ShownFrame& frame) {
  constexpr std::array<std::string_view, 4> kNames{"_start", "start_thread", "clone3", "__clone3"};
  const std::string_view name = trim(bare_name(frame.frame->function));
  return name.starts_with("__libc_start") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_own_source(const ShownFrame& shown) {
  const FrameRecord& frame = *shown.frame;
  return !frame.file.empty() && frame.line && !is_of_a_package(frame.file) &&
         !is_of_the_runtime(shown) &&
         (frame.kind == FrameKind::kPython || !is_of_a_library(shown.module));
}

bool is_own_module(const ShownFrame& shown) {
  return shown.module.starts_with('/') && !is_of_the_runtime(shown) &&
         !is_of_a_library(shown.module) && !is_of_a_package(shown.frame->file);
}

// "name+0x12" is a place in a function; "libfoo.so+0x1234" is all that is known.
bool has_name(const ShownFrame& shown) {
  return !shown.frame->function.starts_with(basename_of(shown.module));
}

std::optional<std::size_t> find_call_from_python(const std::vector<ShownFrame>& frames) {
  const auto is_python = [](const ShownFrame& frame) {
    const std::string_view module = basename_of(frame.module);
    return frame.frame->kind == FrameKind::kNative &&
           (module.starts_with("python") || module.starts_with("libpython"));
  };
  const auto python = std::find_if(frames.begin(), frames.end(), is_python);
  if (python == frames.begin() || python == frames.end()) {
    return std::nullopt;
  }
  const auto named = std::find_if(std::make_reverse_iterator(python), frames.rend(), has_name);
  return named == frames.rend() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(
                                      std::distance(frames.begin(), named.base()) - 1));
}

// What tells a line of code from others.
std::string name_of(const ShownFrame& shown) {
  const FrameRecord& frame = *shown.frame;
  if (!frame.file.empty() && frame.line) {
    return fmt::format("{}:{}", frame.file, *frame.line);
  }
  const bool is_named = has_name(shown);
  return fmt::format(
      "{} {}", shown.module,
      is_named ? frame.function.substr(0, frame.function.rfind("+0x")) : frame.function);
}

}  // namespace

std::vector<ShownFrame> frames_of(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  std::vector<ShownFrame> frames;
  for (const std::uint32_t number : numbers) {
    const auto frame = run.frames.find(number);
    if (frame == run.frames.end()) {
      continue;
    }
    ShownFrame shown{&frame->second, {}};
    if (const auto module = run.modules.find(frame->second.module.value_or(0));
        module != run.modules.end()) {
      shown.module = module->second.path;
    }
    if (!is_of_the_tracer(shown)) {
      frames.push_back(shown);
    }
  }
  return frames;
}

ShownStack shown_stack(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  ShownStack stack;
  stack.frames = frames_of(run, numbers);
  const auto first = std::find_if_not(stack.frames.begin(), stack.frames.end(), is_of_an_allocator);
  if (first != stack.frames.end()) {  // else nothing would be left
    stack.left_out = static_cast<std::size_t>(first - stack.frames.begin());
    stack.frames.erase(stack.frames.begin(), first);
  }
  const auto is_left_out = [](const ShownFrame& frame) {
    return is_library_code(frame) || is_start_code(frame);
  };
  if (!std::all_of(stack.frames.begin(), stack.frames.end(), is_left_out)) {
    stack.left_out += std::erase_if(stack.frames, is_left_out);
  }
  auto own = std::find_if(stack.frames.begin(), stack.frames.end(), is_own_source);
  if (own == stack.frames.end()) {
    own = std::find_if(stack.frames.begin(), stack.frames.end(), is_own_module);
  }
  if (own != stack.frames.end()) {
    stack.own_line = static_cast<std::size_t>(own - stack.frames.begin());
  }
  stack.call_from_python = find_call_from_python(stack.frames);
  return stack;
}

std::vector<std::string> own_lines(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  const ShownStack stack = shown_stack(run, numbers);
  std::vector<std::string> lines;
  for (std::size_t i = stack.own_line.value_or(stack.frames.size()); i < stack.frames.size(); ++i) {
    if (is_own_source(stack.frames[i]) || is_own_module(stack.frames[i])) {
      lines.push_back(name_of(stack.frames[i]));
    }
  }
  if (!stack.own_line && stack.call_from_python) {
    lines.push_back(name_of(stack.frames[*stack.call_from_python]));
  }
  return lines;
}

std::optional<std::size_t> find_line(const ShownStack& stack, const std::string& name) {
  const auto frame = std::find_if(stack.frames.begin(), stack.frames.end(),
                                  [&](const ShownFrame& each) { return name_of(each) == name; });
  const auto otherwise = stack.own_line ? stack.own_line : stack.call_from_python;
  return frame == stack.frames.end()
             ? otherwise
             : std::optional(static_cast<std::size_t>(frame - stack.frames.begin()));
}

std::string frame_text(const ShownFrame& frame, std::size_t columns) {
  const FrameRecord& record = *frame.frame;
  std::string place;
  if (!record.file.empty()) {
    place = escape_text(basename_of(record.file));
    if (record.line) {
      place += fmt::format(":{}", *record.line);
    }
  } else if (!frame.module.empty()) {
    place = fmt::format("[{}]", escape_text(basename_of(frame.module)));
  }
  place = shorten(place, columns / 2);
  const std::size_t room = columns > place.size() + 1 ? columns - place.size() - 1 : columns / 2;
  return fmt::format("{}{}{}",
                     shorten(escape_text(record.function), std::max<std::size_t>(room, 16)),
                     place.empty() ? "" : " ", place);
}

std::string headline(const ShownStack& stack, const std::string& line, std::size_t columns) {
  if (stack.frames.empty()) {
    return "";
  }
  return frame_text(stack.frames[find_line(stack, line).value_or(0)], columns);
}

}  // namespace tidemark::tracker
