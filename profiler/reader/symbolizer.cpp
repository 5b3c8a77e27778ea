// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/symbolizer.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "common/text.h"
#include "profiler/reader/debug_server.h"
#include "profiler/reader/object_file.h"

namespace tidemark::reader {
namespace {

// Compilers of models make thousands of small libraries; only so many are kept open.
constexpr std::size_t kMostOpenFiles = 256;
// A symbol that ends before an address is worth a mention when it is about this near.
constexpr std::uint64_t kNearBytes = 16384;

std::string module_and_offset(const std::string& path, std::uint64_t address) {
  return fmt::format("{}+{:#x}", path.empty() ? "?" : basename_of(path), address);
}

}  // namespace

class Symbolizer::State {
 public:
  explicit State(SymbolizerOptions options) : options_(std::move(options)) {
    if (options_.server == nullptr) {
      options_.server = std::make_shared<DebugServer>();
    }
  }

  const std::vector<SourceFrame>& resolve(const std::string& path, const std::string& build_id,
                                          std::uint64_t address);
  std::vector<ModuleProblem> problems() const;
  void set_root(std::string root) { options_.root = std::move(root); }

 private:
  struct Module {
    std::optional<ObjectFile> file;
    std::string problem;  // why it has no file; empty: not tried yet, or closed for a while
    std::string tried_root;
    std::uint64_t last_use = 0;
    std::unordered_map<std::uint64_t, std::vector<SourceFrame>> known;
  };
  using Key = std::pair<std::string, std::string>;  // path, build-id

  void open(const Key& key, Module& module);
  void close_the_oldest();
  static std::vector<SourceFrame> look_up(const Key& key, Module& module, std::uint64_t address);

  SymbolizerOptions options_;
  std::map<Key, Module> modules_;
  std::size_t open_files_ = 0;
  std::uint64_t uses_ = 0;
};

void Symbolizer::State::open(const Key& key, Module& module) {
  if (module.file || (!module.problem.empty() && module.tried_root == options_.root)) {
    return;
  }
  module.problem.clear();
  module.tried_root = options_.root;
  if (key.first.empty() || key.first.front() != '/') {
    module.problem = "not a file";  // [vdso]
    return;
  }
  if (open_files_ >= kMostOpenFiles) {
    close_the_oldest();
  }
  auto file = ObjectFile::open(options_.root + key.first, key.second, *options_.server);
  if (!file) {
    module.problem = file.error().what;
    return;
  }
  module.file = std::move(*file);
  ++open_files_;
}

void Symbolizer::State::close_the_oldest() {
  Module* oldest = nullptr;
  for (auto& [key, module] : modules_) {
    if (module.file && (oldest == nullptr || module.last_use < oldest->last_use)) {
      oldest = &module;
    }
  }
  if (oldest != nullptr) {
    oldest->file.reset();
    --open_files_;
  }
}

std::vector<SourceFrame> Symbolizer::State::look_up(const Key& key, Module& module,
                                                    std::uint64_t address) {
  SourceFrame base;
  base.module_path = key.first;
  base.build_id = key.second;
  base.offset = address;
  base.function = module_and_offset(key.first, address);
  if (!module.file) {
    return {base};
  }
  const auto symbol = module.file->symbol(address);
  if (symbol && symbol->contains) {
    base.function = fmt::format("{}+{:#x}", symbol->name, symbol->offset);
  } else if (symbol && symbol->offset < kNearBytes) {
    base.function += " (after " + symbol->name + ")";
  }
  std::vector<SourceFrame> frames;
  for (DebugFrame& found : module.file->debug_frames(address)) {
    SourceFrame& frame = frames.emplace_back(base);
    if (!found.has_arguments && !found.inlined && symbol && symbol->contains &&
        symbol->is_mangled) {
      // Which copy the compiler made of it is nothing that the source knows.
      frame.function = symbol->name.substr(0, symbol->name.find(" [clone "));
    } else if (!found.function.empty()) {
      frame.function = std::move(found.function);
    }
    frame.file = std::move(found.file);
    frame.line = found.line;
    frame.is_inlined = found.inlined;
  }
  if (frames.empty()) {
    frames.push_back(std::move(base));
  }
  frames.back().is_inlined = false;
  return frames;
}

const std::vector<SourceFrame>& Symbolizer::State::resolve(const std::string& path,
                                                           const std::string& build_id,
                                                           std::uint64_t address) {
  const auto place = modules_.try_emplace(Key(path, build_id)).first;
  Module& module = place->second;
  const auto known = module.known.find(address);
  if (known != module.known.end()) {
    return known->second;
  }
  module.last_use = ++uses_;
  open(place->first, module);
  return module.known.emplace(address, look_up(place->first, module, address)).first->second;
}

std::vector<ModuleProblem> Symbolizer::State::problems() const {
  std::vector<ModuleProblem> problems;
  for (const auto& [key, module] : modules_) {
    if (!module.problem.empty()) {
      problems.push_back({key.first, key.second, module.problem});
    }
  }
  return problems;
}

Symbolizer::Symbolizer(SymbolizerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Symbolizer::~Symbolizer() = default;
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;

std::vector<SourceFrame> Symbolizer::resolve(const std::string& module_path,
                                             const std::string& build_id, std::uint64_t address) {
  return state_->resolve(module_path, build_id, address);
}

std::vector<SourceFrame> Symbolizer::resolve(const StackFrame& frame,
                                             const std::vector<TraceModule>& modules) {
  if (frame.kind == FrameKind::kNative && frame.module && *frame.module < modules.size()) {
    const TraceModule& module = modules[*frame.module];
    return resolve(module.path, module.build_id, call_address(frame, module));
  }
  SourceFrame named;
  if (frame.kind == FrameKind::kPython) {
    named.kind = FrameKind::kPython;
    named.function = frame.function.empty() ? "[Python]" : frame.function;
    named.file = frame.file;
    named.line = frame.line;
  } else if (frame.kind == FrameKind::kThreadStart) {
    named.kind = FrameKind::kThreadStart;
    named.function = "[thread started by]";
  } else {
    named.offset = frame.value;
    named.function = fmt::format("{:#x}", frame.value);
  }
  return {named};
}

std::vector<SourceFrame> Symbolizer::resolve(const std::vector<StackFrame>& stack,
                                             const std::vector<TraceModule>& modules) {
  std::vector<SourceFrame> frames;
  for (const StackFrame& frame : stack) {
    for (SourceFrame& found : resolve(frame, modules)) {
      frames.push_back(std::move(found));
    }
  }
  return frames;
}

void Symbolizer::set_root(std::string root) { state_->set_root(std::move(root)); }

std::vector<ModuleProblem> Symbolizer::problems() const { return state_->problems(); }

}  // namespace tidemark::reader
