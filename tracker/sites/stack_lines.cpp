// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/stack_lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

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

bool is_python(const ShownFrame& frame) { return frame.frame->kind == FrameKind::kPython; }

bool is_of_an_allocator(const ShownFrame& frame) {
  return !is_python(frame) &&
         (is_of_the_runtime(frame) || is_allocator_name(frame.frame->function) ||
          is_library_wrapper(frame.frame->function));
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

// Sources and headers that came with the system, with an installed package, or with torch.
bool is_of_a_package(std::string_view file) {
  constexpr std::array<std::string_view, 2> kPlaces{"/usr/local/include/", "/usr/local/lib"};
  constexpr std::array<std::string_view, 5> kParts{
      "/include/c++/", "/site-packages/", "/dist-packages/", "/torch/include/", "/include/python3"};
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
  constexpr std::array<std::string_view, 7> kParts{
      "/site-packages/", "/dist-packages/", "conda3/",        "/conda/lib/",
      "/lib-dynload/",   "/torchinductor_", "/.triton/cache/"};
  return is_of_the_system(module) || starts_with_any(module, kPlaces) ||
         basename_of(module) == "python" || starts_with_any(basename_of(module), kNames) ||
         contains_any(module, kParts);
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
  return is_python(shown) ? shown.is_own
                          : !frame.file.empty() && frame.line && !is_of_a_package(frame.file) &&
                                !is_of_the_runtime(shown) && !is_of_a_library(shown.module);
}

bool is_own_module(const ShownFrame& shown) {
  return shown.module.starts_with('/') && !is_of_the_runtime(shown) &&
         !is_of_a_library(shown.module) && !is_of_a_package(shown.frame->file);
}

std::size_t place_in(const std::vector<ShownFrame>& frames,
                     std::vector<ShownFrame>::const_iterator frame) {
  return static_cast<std::size_t>(frame - frames.begin());
}

std::optional<std::size_t> find_call_from_python(const std::vector<ShownFrame>& frames) {
  const auto python = std::find_if(frames.begin(), frames.end(), is_of_the_interpreter);
  if (python == frames.begin() || python == frames.end()) {
    return std::nullopt;
  }
  const auto named = std::find_if(std::make_reverse_iterator(python), frames.rend(), has_name);
  return named == frames.rend() ? std::nullopt : std::optional(place_in(frames, named.base()) - 1);
}

// How the interpreter gets from a line of Python to a function in C.
bool is_interpreter_call(const ShownFrame& shown) {
  constexpr std::array<std::string_view, 14> kPrefixes{
      "_PyEval",      "PyEval_",       "_PyObject_Call", "PyObject_Call", "_PyObject_MakeTpCall",
      "PyObject_Vec", "_PyObject_Vec", "PyVectorcall",   "PyCFunction_",  "cfunction_",
      "_PyFunction",  "method_vector", "vectorcall_",    "slot_tp_"};
  return is_of_the_interpreter(shown) && starts_with_any(shown.frame->function, kPrefixes);
}

// "<string>" is the user's code where it is the program, after `python -c`. Processes that
// multiprocessing starts are called in this way too, and are not.
void mark_the_program(std::vector<ShownFrame>& frames) {
  const auto outermost = std::find_if(frames.rbegin(), frames.rend(), is_python);
  if (outermost == frames.rend() || outermost->frame->file != "<string>" ||
      outermost->frame->function != "<module>") {
    return;
  }
  const auto next = std::find_if(std::next(outermost), frames.rend(), is_python);
  const std::string module = next == frames.rend() ? "" : python_code(*next->frame).module;
  if (module.starts_with("multiprocessing") || module.starts_with("joblib")) {
    return;
  }
  for (ShownFrame& shown : frames) {
    shown.is_own |= is_python(shown) && shown.owner == CodeOwner::kString;
  }
}

// In a stack where nothing else is: exec() of somebody, or a thread of such a program. Methods like
// __init__ are made by libraries.
bool is_likely_own(const ShownFrame& shown) {
  return is_python(shown) && shown.owner == CodeOwner::kString &&
         !shown.frame->function.starts_with("__") && shown.frame->function != "<module>";
}

// Of the library, what of a stack without a line of the user's stands for it: the innermost Python
// frame, but not what only imports; else the function that Python calls.
std::optional<std::size_t> find_stand_in(const std::vector<ShownFrame>& frames) {
  const auto tells = [](const ShownFrame& frame) {
    return is_python(frame) && frame.library != "importlib" && !frame.frame->file.empty();
  };
  auto line = std::find_if(frames.begin(), frames.end(), tells);
  if (line == frames.end()) {
    line = std::find_if(frames.begin(), frames.end(), is_python);
  }
  return line == frames.end() ? find_call_from_python(frames)
                              : std::optional(place_in(frames, line));
}

// Extensions of Python have the version and the system in their names:
// "_umath.cpython-311-x86_64-linux-gnu.so" is "_umath.so" for people.
std::string short_library(std::string_view name) {
  constexpr std::string_view kEnd = ".so";
  const std::size_t version = std::min(name.find(".cpython-"), name.find(".abi3"));
  return version == std::string_view::npos || !name.ends_with(kEnd)
             ? std::string(name)
             : fmt::format("{}{}", name.substr(0, version), kEnd);
}

// What tells a function from others.
std::string function_name_of(const ShownFrame& shown) {
  const FrameRecord& frame = *shown.frame;
  const std::string function = is_python(shown)
                                   ? python_function(frame.function)
                                   : frame.function.substr(0, frame.function.rfind("+0x"));
  return fmt::format("{} {}", frame.file.empty() ? shown.module : frame.file,
                     has_name(shown) ? function : frame.function);
}

// What tells a line of code from others.
std::string name_of(const ShownFrame& shown) {
  const FrameRecord& frame = *shown.frame;
  if (frame.file.empty() || !frame.line) {
    return function_name_of(shown);
  }
  return frame.file.starts_with('<')  // as many have it
             ? fmt::format("{}:{} {}", frame.file, *frame.line, frame.function)
             : fmt::format("{}:{}", frame.file, *frame.line);
}

}  // namespace

bool is_of_the_interpreter(const ShownFrame& frame) {
  const std::string_view module = basename_of(frame.module);
  return !is_python(frame) && (module.starts_with("python") || module.starts_with("libpython"));
}

bool is_thread_start(const ShownFrame& shown) {
  return shown.frame->kind == FrameKind::kThreadStart;
}

bool has_name(const ShownFrame& shown) {
  return !shown.frame->function.starts_with(basename_of(shown.module));
}

std::vector<ShownFrame> frames_of(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  std::vector<ShownFrame> frames;
  for (const std::uint32_t number : numbers) {
    const auto frame = run.frames.find(number);
    if (frame == run.frames.end()) {
      continue;
    }
    ShownFrame shown;
    shown.frame = &frame->second;
    if (const auto module = run.modules.find(frame->second.module.value_or(0));
        module != run.modules.end()) {
      shown.module = module->second.path;
    }
    if (is_of_the_tracer(shown)) {
      continue;
    }
    if (is_python(shown)) {
      PythonCode code = python_code(*shown.frame);
      shown.owner = code.owner;
      shown.is_own = code.owner == CodeOwner::kUser;
      shown.library = std::move(code.library);
      shown.place = code.owner == CodeOwner::kUser && code.place == basename_of(shown.frame->file)
                        ? run.file_names.short_name(shown.frame->file)
                        : std::move(code.place);
    } else {
      shown.library = short_library(basename_of(shown.module));
      shown.place = basename_of(shown.frame->file);
      shown.is_own = is_own_source(shown) || is_own_module(shown);
    }
    frames.push_back(std::move(shown));
  }
  mark_the_program(frames);
  return frames;
}

ShownStack shown_stack(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  ShownStack stack;
  stack.frames = frames_of(run, numbers);
  const auto first = std::find_if_not(stack.frames.begin(), stack.frames.end(), is_of_an_allocator);
  if (first != stack.frames.end()) {  // else nothing would be left
    stack.left_out = place_in(stack.frames, first);
    stack.frames.erase(stack.frames.begin(), first);
  }
  const auto is_left_out = [](const ShownFrame& frame) {
    return !is_python(frame) && (is_library_code(frame) || is_start_code(frame));
  };
  if (!std::all_of(stack.frames.begin(), stack.frames.end(), is_left_out)) {
    stack.left_out += std::erase_if(stack.frames, is_left_out);
  }
  for (const auto is_own : {is_own_source, is_likely_own, is_own_module}) {
    const auto own = std::find_if(stack.frames.begin(), stack.frames.end(), is_own);
    if (own != stack.frames.end()) {
      stack.own_line = place_in(stack.frames, own);
      break;
    }
  }
  stack.stand_in = find_stand_in(stack.frames);
  return stack;
}

std::vector<std::string> own_lines(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  const ShownStack stack = shown_stack(run, numbers);
  std::vector<std::string> lines;
  for (std::size_t i = stack.own_line.value_or(stack.frames.size()); i < stack.frames.size(); ++i) {
    if (i == stack.own_line || stack.frames[i].is_own) {
      lines.push_back(name_of(stack.frames[i]));
    }
  }
  if (!stack.own_line && stack.stand_in) {
    lines.push_back(name_of(stack.frames[*stack.stand_in]));
  }
  return lines;
}

std::string own_function(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  const ShownStack stack = shown_stack(run, numbers);
  const auto line = stack.own_line ? stack.own_line : stack.stand_in;
  return line ? function_name_of(stack.frames[*line]) : "";
}

std::string native_line(const RunSites& run, const std::vector<std::uint32_t>& numbers) {
  const ShownStack stack = shown_stack(run, numbers);
  const std::vector<ShownFrame>& frames = stack.frames;
  for (const auto is_own : {is_own_source, is_own_module}) {
    const auto own = std::find_if(frames.begin(), frames.end(), [&](const ShownFrame& frame) {
      return !is_python(frame) && is_own(frame);
    });
    if (own != frames.end()) {
      return name_of(*own);
    }
  }
  // Of a thread that runs no Python, what it runs: it was started by a line of Python.
  const auto python = std::find_if(frames.begin(), frames.end(), [](const ShownFrame& frame) {
    return is_python(frame) || is_thread_start(frame);
  });
  const auto called = python == frames.end() ? find_call_from_python(frames)
                                             : native_call(stack, place_in(frames, python));
  return called ? name_of(frames[*called]) : "";
}

std::optional<std::size_t> native_call(const ShownStack& stack, std::size_t python) {
  const auto line =
      std::make_reverse_iterator(stack.frames.begin() + static_cast<std::ptrdiff_t>(python));
  const auto end = std::find_if(line, stack.frames.rend(), [](const ShownFrame& frame) {
    return is_python(frame) || is_thread_start(frame);
  });
  const auto is_operator = [](const ShownFrame& frame) {
    return frame.frame->function.starts_with("at::_ops::");
  };
  const auto is_named = [](const ShownFrame& frame) {
    return has_name(frame) && !is_interpreter_call(frame);
  };
  const auto is_of_a_module = [](const ShownFrame& frame) { return !is_interpreter_call(frame); };
  auto found = std::find_if(line, end, is_operator);
  found = found == end ? std::find_if(line, end, is_named) : found;
  found = found == end ? std::find_if(line, end, is_of_a_module) : found;
  return found == end ? std::nullopt : std::optional(place_in(stack.frames, found.base()) - 1);
}

std::optional<std::size_t> find_line(const ShownStack& stack, const std::string& name) {
  const auto frame =
      std::find_if(stack.frames.begin(), stack.frames.end(), [&](const ShownFrame& each) {
        return name_of(each) == name || function_name_of(each) == name;
      });
  const auto otherwise = stack.own_line ? stack.own_line : stack.stand_in;
  return frame == stack.frames.end() ? otherwise : std::optional(place_in(stack.frames, frame));
}

}  // namespace tidemark::tracker
