// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/interpreter.h"

#include <link.h>

#include "profiler/tracer/python/elf_symbols.h"
#include "profiler/tracer/python/frame_reader.h"
#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint16_t kNone = PythonLayout::kNone;

// 0: none that is known. The version has a symbol of its own from 3.11 on; before that
// new functions tell.
std::uint16_t minor_version(const ElfSymbols& symbols) noexcept {
  if (const ElfSymbol version = symbols.find("Py_Version"); version.address != 0) {
    const std::uint32_t number = load_half(version.address, 0);
    return number >> 24U == 3 ? static_cast<std::uint16_t>((number >> 16U) & 0xff) : 0;
  }
  if (symbols.find("Py_NewRef").address != 0) {
    return 10;
  }
  return symbols.find("PyFrame_GetBack").address != 0 ? 9 : 0;
}

}  // namespace

void PythonInterpreter::turn_off(const char* problem) noexcept {
  problem_ = problem;
  state_.store(State::kOff, std::memory_order_release);
}

bool PythonInterpreter::find_layout(const Symbols& symbols) noexcept {
  if (symbols.minor < kFirstPythonMinor) {
    turn_off("Python before 3.9 is not supported");
    return false;
  }
  if (known_layout(symbols.minor, layout_)) {
    return true;
  }
  PublishedOffsets published = {};
  if (is_aligned(symbols.runtime.begin) &&
      symbols.runtime.end - symbols.runtime.begin >= sizeof(published)) {
    __builtin_memcpy(&published, reinterpret_cast<const void*>(symbols.runtime.begin),
                     sizeof(published));
  }
  const char* problem = nullptr;
  if (!published_layout(published, layout_, problem)) {
    turn_off(problem);
    return false;
  }
  return true;
}

void PythonInterpreter::consider(const link_map& linked, ByteRange range) noexcept {
  if (state() != State::kNone) {
    return;
  }
  const ElfSymbols exported(linked);
  const auto range_of = [&](const char* name) {
    const ElfSymbol symbol = exported.find(name);
    return ByteRange{symbol.address, symbol.address + symbol.bytes};
  };
  Symbols symbols;
  symbols.get_thread_state =
      reinterpret_cast<void* (*)()>(exported.find("PyGILState_GetThisThreadState").address);
  const ElfSymbol is_ending = exported.find("Py_IsFinalizing");  // from 3.13 on
  symbols.is_ending = reinterpret_cast<int (*)()>(
      is_ending.address != 0 ? is_ending.address : exported.find("_Py_IsFinalizing").address);
  symbols.runtime = range_of("_PyRuntime");
  if (symbols.get_thread_state == nullptr || symbols.runtime.begin == 0) {
    return;
  }
  symbols.module = range;
  symbols.evaluate = range_of("_PyEval_EvalFrameDefault");
  const auto type = [&](const char* name) { return exported.find(name).address; };
  symbols.types = {type("PyCode_Type"),  type("PyUnicode_Type"),  type("PyBytes_Type"),
                   type("PyFrame_Type"), type("PyFunction_Type"), type("PyType_Type")};
  symbols.minor = minor_version(exported);
  can_be_unloaded_ = linked.l_name != nullptr && linked.l_name[0] != '\0';
  adopt(symbols);
}

void PythonInterpreter::adopt(const Symbols& symbols) noexcept {
  if (!find_layout(symbols)) {
    return;
  }
  const PythonTypes& types = symbols.types;
  if (types.code == 0 || types.text == 0 || types.bytes == 0 || types.frame == 0 ||
      types.function == 0 || types.type == 0 || symbols.is_ending == nullptr) {
    return turn_off("the interpreter does not export what is needed to read its frames");
  }
  symbols_ = symbols;
  state_.store(State::kFound, std::memory_order_release);
}

void PythonInterpreter::forget() noexcept {
  state_.store(State::kNone, std::memory_order_release);
  symbols_.module = {};
  problem_ = nullptr;
}

void PythonInterpreter::before_unload() noexcept {
  unloads_.fetch_add(1, std::memory_order_seq_cst);
}

void PythonInterpreter::after_unload() noexcept {
  unloads_.fetch_sub(1, std::memory_order_release);
}

// False: the thread has no frames, or nothing may be read.
[[gnu::always_inline]] inline bool PythonInterpreter::find_innermost(
    Innermost& innermost) noexcept {
  const State now = state();
  if (now == State::kNone || now == State::kOff ||
      (can_be_unloaded_ && unloads_.load(std::memory_order_relaxed) != 0)) {
    return false;
  }
  const auto thread = reinterpret_cast<std::uint64_t>(symbols_.get_thread_state());
  if (thread == 0 || symbols_.is_ending() != 0) {
    return false;
  }
  if (now == State::kFound) [[unlikely]] {
    check(thread);
    if (state() != State::kOn) {
      return false;
    }
  }
  const bool has_c_frame = layout_.thread_c_frame != kNone;
  const bool has_frame = layout_.thread_frame != kNone;
  innermost.c_frame = has_c_frame ? load(thread, layout_.thread_c_frame) : 0;
  innermost.frame = has_frame ? load(thread, layout_.thread_frame) : 0;
  // Asked again: the thread may have lost its processor, and meanwhile its state.
  if (symbols_.is_ending() != 0) [[unlikely]] {
    return false;
  }
  if (!has_frame && is_aligned(innermost.c_frame)) {
    innermost.frame = load(innermost.c_frame, layout_.c_frame_frame);
  }
  return true;
}

// While a code object is freed, callbacks may run with its last frame still there (3.11).
[[gnu::always_inline]] inline bool PythonInterpreter::is_live_code(
    std::uint64_t code) const noexcept {
  return load(code, kObjectType) == symbols_.types.code && load_half(code, kObjectReferences) != 0;
}

// Of so many bytes, behind which and before which an object has more: their number, and some of
// them.
[[gnu::always_inline]] inline std::uint64_t content_of(std::uint64_t begin,
                                                       std::uint64_t bytes) noexcept {
  const std::uint64_t end = (begin + bytes - 1) & ~std::uint64_t{7};
  return load_word(begin) * 0xd1342543de82ef95 + load_word(end) * 0x2545f4914f6cdd1d +
         bytes * 0x9fb21c651e98df25;
}

[[gnu::always_inline]] inline std::uint64_t content_of_text(const PythonLayout& layout,
                                                            std::uint64_t object) noexcept {
  const Text text = text_at(layout, object);
  return text.width == 0 ? 0 : content_of(text.characters, text.length);
}
[[gnu::always_inline]] inline std::uint64_t content_of_bytes(std::uint64_t object) noexcept {
  return content_of(object + kBytesData, load(object, kBytesSize));
}

// The addresses of code objects are used again, also by the thousand (torch.compile), and those of
// what they point to with them: some of its content tells them apart.
[[gnu::always_inline]] inline std::uint64_t PythonInterpreter::identity_of(
    std::uint64_t code, FileName& last) const noexcept {
  const std::uint64_t file = load(code, layout_.code_file);
  if (file != last.text) {
    last = {file, file * 0xbf58476d1ce4e5b9 + content_of_text(layout_, file)};
  }
  const std::uint64_t name = load(code, layout_.code_name);
  const std::uint64_t lines = load(code, layout_.code_lines);
  const std::uint64_t instructions = load(code, layout_.code_identity);
  std::uint64_t sum = code * 0x9e3779b97f4a7c15 + last.hash + name * 0x94d049bb133111eb +
                      content_of_text(layout_, name) * 0xa24baed4963ee407 +
                      lines * 0xd6e8feb86659fd93 + instructions * 0xff51afd7ed558ccd +
                      std::uint64_t{load_half(code, layout_.code_first_line)} * 0xc4ceb9fe1a85ec53 +
                      content_of_bytes(lines) * 0xaf251af3b0f025b5;
  if (layout_.code_start == kNone) {  // an object of its own
    sum += content_of_bytes(instructions) * 0x9fb21c651e98df25;
  }
  const std::uint64_t mixed = sum ^ (sum >> 29U);
  return mixed == 0 ? 1 : mixed;
}

// Calls add(code, frame), which returns false when it is full, and end_call(anchor) after the last
// frame that one native frame evaluates. In 3.9 that is each frame, and there is no anchor; in 3.10
// each, and in 3.11 each that says so, and the anchor is a C frame; later frames of the interpreter
// itself lie in between, and are the anchors.
template <typename Add, typename EndCall>
[[gnu::always_inline]] inline void PythonInterpreter::walk(Innermost from, Add add,
                                                           EndCall end_call) const noexcept {
  constexpr std::size_t kMostSteps = 2 * kMaxPythonFrames;
  std::uint64_t c_frame = from.c_frame;
  std::uint64_t frame = from.frame;
  for (std::size_t i = 0; i < kMostSteps && is_aligned(frame); ++i) {
    if (is_interpreter_frame(layout_, frame)) {
      end_call(frame);
    } else {
      const std::uint64_t code = code_of(layout_, frame);
      if (code == 0 || (is_live_code(code) && !add(code, frame))) {
        return;
      }
      if (layout_.frame_owner == kNone && is_entry_frame(layout_, frame)) {
        end_call(c_frame);
        c_frame = is_aligned(c_frame) && layout_.c_frame_previous != kNone
                      ? load(c_frame, layout_.c_frame_previous)
                      : 0;
      }
    }
    frame = load(frame, layout_.frame_previous);
    if (layout_.frame_is_object && symbols_.is_ending() != 0) [[unlikely]] {
      return;  // 3.9 frees the frames of other threads too
    }
  }
}

std::uint64_t PythonInterpreter::hash_frames() noexcept {
  Innermost innermost;
  if (!find_innermost(innermost)) {
    return 0;
  }
  std::uint64_t hash = 0;
  std::size_t depth = 0;
  FileName file;
  walk(
      innermost,
      [&](std::uint64_t code, std::uint64_t frame) {
        hash = hash * 5 +
               (identity_of(code, file) ^ (unit_of(layout_, frame, code) * 0x9e3779b97f4a7c15));
        return ++depth < kMaxPythonFrames;
      },
      [](std::uint64_t /*anchor*/) {});
  return hash;
}

bool PythonInterpreter::read_frames(PythonFrames& frames) noexcept {
  frames.depth = 0;
  frames.truncated = false;
  Innermost innermost;
  if (!find_innermost(innermost)) {
    return false;
  }
  std::uint32_t first_of_call = 0;
  FileName file;
  walk(
      innermost,
      [&](std::uint64_t code, std::uint64_t frame) {
        if (frames.depth == kMaxPythonFrames) {
          frames.truncated = true;
          return false;
        }
        frames.frame[frames.depth++] = {code, identity_of(code, file), 0,
                                        unit_of(layout_, frame, code), false};
        return true;
      },
      [&](std::uint64_t anchor) {
        if (frames.depth == first_of_call) {
          return;
        }
        frames.frame[frames.depth - 1].ends_call = true;
        for (; first_of_call < frames.depth; ++first_of_call) {
          frames.frame[first_of_call].anchor = anchor;
        }
      });
  return frames.depth != 0;
}

void PythonInterpreter::check(std::uint64_t thread) noexcept {
  if (sys::calls_are_stopped()) {
    return;  // nothing can be probed now
  }
  State found = State::kFound;
  switch (check_layout(layout_, symbols_.types, thread)) {
    case LayoutCheck::kUnknown:
      return;
    case LayoutCheck::kSound:
      state_.compare_exchange_strong(found, State::kOn);
      return;
    case LayoutCheck::kWrong:
      return turn_off("the interpreter's frames are not where its version has them");
  }
}

}  // namespace tidemark::tracer
