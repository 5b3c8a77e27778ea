// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_roots.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/owner_records.h"
#include "profiler/heap/python_dicts.h"

namespace tidemark::heap {
namespace {

constexpr std::size_t kMostThreads = 10'000;
constexpr std::size_t kMostFrames = 100'000;
constexpr std::size_t kMostRoots = 1U << 20U;
constexpr std::size_t kMostModules = 100'000;
// Of a module, among which one is looked for; its own are the first.
constexpr std::size_t kMostVariables = 100'000;
constexpr std::size_t kMostFirstVariables = 64;
constexpr std::uint8_t kFirstInterpreterOwner = 3;

constexpr std::uint32_t kMainCost = 0;
constexpr std::uint32_t kModuleCost = 1;
// What a module leads to as well is better named by that than by a variable of a loop.
constexpr std::uint32_t kFrameCost = 9;
constexpr std::uint32_t kInnerFrameCost = 10;
constexpr std::uint32_t kThreadCost = 10;
constexpr std::uint32_t kLibraryModuleCost = 14;
constexpr std::uint32_t kNoModuleCost = 16;
constexpr std::uint32_t kLibraryFrameCost = 18;
constexpr std::uint32_t kThreadWordCost = kInternalRootCost;
constexpr std::uint32_t kInterpreterCost = kInternalRootCost + 2;

class RootFinder {
 public:
  RootFinder(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
             PythonObjects& objects)
      : image_(image),
        layout_(runtime.layout),
        runtime_(runtime),
        types_(types),
        objects_(objects) {}

  std::vector<Root> find() {
    for (const std::uint64_t interpreter : runtime_.interpreters) {
      add_modules(interpreter);
      std::uint64_t thread = image_.word(interpreter + layout_.interpreter_threads);
      while (seen_threads_.size() < kMostThreads && image_.mapping_at(thread) != nullptr &&
             seen_threads_.insert(thread).second) {
        add_frames(thread);
        add_thread(thread, interpreter);
        thread = image_.word(thread + layout_.thread_next);
      }
      add_interpreter(interpreter);
    }
    return std::move(roots_);
  }

 private:
  bool is_full() const { return roots_.size() >= kMostRoots; }
  void add(std::uint64_t address, std::string label, std::uint32_t cost, bool is_library = true,
           bool is_variable = true) {
    if (address != 0 && address % 8 == 0 && !is_full()) {
      roots_.push_back({address, std::move(label), cost, is_library, is_variable});
    }
  }

  std::string file_of(std::uint64_t module) {
    const std::uint64_t dict = image_.word(module + layout_.module_dict);
    return types_.text(types_.value_of(dict, "__file__", kMostFirstVariables), kMostOwnerTextBytes);
  }

  void add_module(const std::string& name, std::uint64_t module) {
    const PythonTypes::Index type = types_.of(module);
    if (type == PythonTypes::kNone || types_[type].kind != ObjectKind::kModule) {
      return add(module, fmt::format("sys.modules[{}]", name), kNoModuleCost);
    }
    const bool is_main = name == "__main__" || name == "__mp_main__";
    const std::string file = is_main ? "" : file_of(module);
    const bool is_library = !is_main && (file.empty() || is_library_file(file));
    add(module, name,
        is_main      ? kMainCost
        : is_library ? kLibraryModuleCost
                     : kModuleCost,
        is_library, false);
  }

  void add_modules(std::uint64_t interpreter) {
    const std::uint64_t modules = image_.word(interpreter + layout_.interpreter_modules);
    std::size_t count = 0;
    for_each_item(image_, read_dict(image_, layout_, modules),
                  [&](std::uint64_t key, std::uint64_t value) {
                    add_module(types_.text(key, kMostOwnerTextBytes), value);
                    return ++count < kMostModules;
                  });
    add(modules, "sys.modules", kNoModuleCost + 1);
    add(image_.word(interpreter + layout_.interpreter_sysdict), "sys", kLibraryModuleCost);
    add(image_.word(interpreter + layout_.interpreter_builtins), "builtins", kLibraryModuleCost);
  }

  std::uint64_t innermost_frame(std::uint64_t thread) {
    if (layout_.thread_frame != PythonLayout::kNone) {
      return image_.word(thread + layout_.thread_frame);
    }
    return image_.word(image_.word(thread + layout_.thread_c_frame) + layout_.c_frame_frame);
  }

  void add_frames(std::uint64_t thread) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> frames;  // with their code
    std::uint64_t frame = innermost_frame(thread);
    while (seen_frames_.size() < kMostFrames && frame != 0 && frame % 8 == 0 &&
           seen_frames_.insert(frame).second) {
      const bool is_shim =
          layout_.minor >= 12 &&
          image_.load<std::uint8_t>(frame + layout_.frame_owner) >= kFirstInterpreterOwner;
      if (const std::uint64_t code = is_shim ? 0 : objects_.frames().code_of(frame); code != 0) {
        frames.emplace_back(frame, code);
      }
      frame = objects_.frames().previous(frame);
    }
    bool is_outermost = true;
    for (auto from_outside = frames.rbegin(); from_outside != frames.rend() && !is_full();
         ++from_outside) {
      is_outermost =
          !add_frame(from_outside->first, from_outside->second, is_outermost) && is_outermost;
    }
  }

  // False: it is of a library, or of a module.
  bool add_frame(std::uint64_t frame, std::uint64_t code, bool is_outermost) {
    const std::uint32_t name_at =
        layout_.code_qualname != PythonLayout::kNone ? layout_.code_qualname : layout_.code_name;
    const std::string name = types_.text(image_.word(code + name_at), kMostOwnerTextBytes);
    const std::string file =
        types_.text(image_.word(code + layout_.code_file), kMostOwnerTextBytes);
    const std::string function = fmt::format("{}()", without_outer_functions(name));
    const bool is_library = is_library_file(file);
    const std::uint32_t cost = is_library     ? kLibraryFrameCost
                               : is_outermost ? kFrameCost
                                              : kInnerFrameCost;
    const bool is_module = name == "<module>";
    objects_.frame_references(frame, [&](std::span<const Reference> references) {
      for (const Reference& reference : references) {
        if (reference.kind == ReferenceKind::kLocal && !is_module) {
          add(reference.target,
              fmt::format("{} locals: {}", function, types_.text(reference.detail, 128)), cost,
              is_library);
        } else if (reference.kind == ReferenceKind::kLocal ||
                   reference.kind == ReferenceKind::kStack) {
          add(reference.target, fmt::format("{} stack", function), cost + 4, is_library);
        }
      }
    });
    if (layout_.frame_object == PythonLayout::kNone) {
      add(frame, fmt::format("{} frame", function), cost + 8, is_library);
    } else {
      add(image_.word(frame + layout_.frame_object), fmt::format("{} frame", function), cost + 8,
          is_library);
      add(objects_.frames().untagged(image_.word(frame + layout_.frame_function)), function,
          cost + 38, is_library);
    }
    return !is_library && !is_module;
  }

  void add_thread(std::uint64_t thread, std::uint64_t interpreter) {
    constexpr int kMostExceptions = 50;
    add(image_.word(thread + layout_.thread_dict), "thread dict", kThreadCost);
    add(image_.word(thread + layout_.thread_context), "thread context", kThreadCost);
    std::uint64_t handled = image_.word(thread + layout_.thread_exceptions);
    for (int i = 0; i < kMostExceptions && handled != 0; ++i) {
      add(image_.word(handled + layout_.exceptions_value), "exception being handled", kThreadCost);
      handled = image_.word(handled + layout_.exceptions_previous);
    }
    for (std::uint64_t offset = 0; offset + 8 <= runtime_.thread_state_bytes; offset += 8) {
      if (const std::uint64_t value = image_.word(thread + offset); value != interpreter) {
        add(value, "thread state", kThreadWordCost);
      }
    }
  }

  void add_interpreter(std::uint64_t interpreter) {
    for (const PythonLayout::Part& part : layout_.interpreter_parts) {
      for (std::uint64_t offset = part.begin; offset < part.end; offset += 8) {
        add(image_.word(interpreter + offset), "interpreter", kInterpreterCost);
      }
    }
  }

  MemoryImage& image_;
  const PythonLayout& layout_;
  const PythonRuntime& runtime_;
  PythonTypes& types_;
  PythonObjects& objects_;
  std::unordered_set<std::uint64_t> seen_threads_;
  std::unordered_set<std::uint64_t> seen_frames_;
  std::vector<Root> roots_;
};

constexpr std::uint64_t kLinkMask = ~std::uint64_t{3};  // the lowest bits of links are flags

}  // namespace

std::vector<Root> python_roots(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                               PythonObjects& objects) {
  return RootFinder(image, runtime, types, objects).find();
}

// A head: next, previous, and two small numbers; vendors have moved them, by 4 bytes even.
CollectorState read_collector(MemoryImage& image, const PythonLayout& layout,
                              std::uint64_t interpreter) {
  constexpr std::uint64_t kSearchedBytes = 320;
  constexpr std::uint64_t kHeadBytes = 24;
  constexpr std::size_t kLists = 4;
  CollectorState state;
  const std::uint64_t gc = interpreter + layout.interpreter_gc;
  state.is_collecting = image.load<std::int32_t>(gc + layout.gc_is_collecting) != 0;
  state.is_enabled = image.load<std::int32_t>(gc + layout.gc_is_enabled) != 0;
  if (layout.is_free_threaded) {
    return state;  // its objects are in no lists
  }
  for (std::uint64_t at = gc; at < gc + kSearchedBytes && state.lists.size() < kLists; at += 4) {
    const std::uint64_t next = image.word(at) & kLinkMask;
    const std::uint64_t previous = image.word(at + 8) & kLinkMask;
    if (next == 0 || previous == 0 || (image.word(next + 8) & kLinkMask) != at ||
        (image.word(previous) & kLinkMask) != at) {
      continue;
    }
    state.lists.push_back(at);
    state.thresholds.push_back(image.load<std::int32_t>(at + 16));
    at += kHeadBytes - 4;
  }
  if (state.lists.size() == kLists) {
    state.thresholds.pop_back();  // the last list is of what is frozen
  } else {
    state.lists.clear();
    state.thresholds.clear();
  }
  return state;
}

CollectorList read_collector_list(MemoryImage& image, std::uint64_t head, std::size_t most) {
  constexpr std::uint64_t kHeaderBytes = 16;
  CollectorList list;
  std::uint64_t previous = head;
  std::uint64_t at = image.word(head) & kLinkMask;
  while (at != head) {
    std::uint64_t links[2] = {};
    if (list.objects.size() >= most || !image.read_array(at, std::span<std::uint64_t>(links)) ||
        (links[1] & kLinkMask) != previous) {
      list.is_whole = false;
      break;
    }
    list.objects.push_back(at + kHeaderBytes);
    previous = at;
    at = links[0] & kLinkMask;
  }
  return list;
}

std::string python_version(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types) {
  const std::uint64_t sys =
      image.word(runtime.interpreters.front() + runtime.layout.interpreter_sysdict);
  const std::string version = types.text(types.value_of(sys, "version", kMostVariables), 64);
  return version.substr(0, version.find(' '));
}

std::uint64_t module_value(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                           std::string_view module, std::string_view attribute) {
  const PythonLayout& layout = runtime.layout;
  const std::uint64_t modules =
      image.word(runtime.interpreters.front() + layout.interpreter_modules);
  const std::uint64_t object = types.value_of(modules, module, kMostModules);
  const PythonTypes::Index type = types.of(object);
  if (type == PythonTypes::kNone || types[type].kind != ObjectKind::kModule) {
    return 0;
  }
  return types.value_of(image.word(object + layout.module_dict), attribute, kMostVariables);
}

std::string module_text(MemoryImage& image, const PythonRuntime& runtime, PythonTypes& types,
                        std::string_view module, std::string_view attribute) {
  return types.text(module_value(image, runtime, types, module, attribute), 64);
}

std::string_view without_outer_functions(std::string_view qualified) {
  constexpr std::string_view kLocals = "<locals>.";
  const std::size_t at = qualified.rfind(kLocals);
  return at == std::string_view::npos ? qualified : qualified.substr(at + kLocals.size());
}

bool is_library_file(std::string_view path) {
  return path.empty() || path.starts_with("<frozen") ||
         path.find("site-packages") != std::string_view::npos ||
         path.find("dist-packages") != std::string_view::npos ||
         path.find("/lib/python3") != std::string_view::npos;
}

}  // namespace tidemark::heap
