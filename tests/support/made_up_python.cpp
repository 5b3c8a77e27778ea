// SPDX-License-Identifier: Apache-2.0
#include "tests/support/made_up_python.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"

namespace tidemark::tests {
namespace {

using heap::kDictFlag;
using heap::kHasGcFlag;
using heap::kHeapTypeFlag;
using heap::kIntFlag;
using heap::kListFlag;
using heap::kReadyFlag;
using heap::kTextFlag;
using heap::kTupleFlag;
using heap::kTypeFlag;
using heap::PythonLayout;

constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
constexpr std::size_t kTypeBytes = 0x3c0;
constexpr std::size_t kRuntimeBytes = 1024;
constexpr std::size_t kInterpreterBytes = 1280;
constexpr std::size_t kGcHeaderBytes = 16;
// Of a block of a deque: items between the addresses of its neighbours.
constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kBlockWords = 66;

// A layout as large as that of a real interpreter would need more memory than a fuzzer can change.
PythonLayout small_layout(unsigned minor) {
  PythonLayout layout = heap::python_layout(minor, false);
  if (minor >= heap::kFirstPublishedMinor) {
    layout.runtime_interpreters = 632;
    layout.interpreter_next = 0;
    layout.interpreter_threads = 16;
    layout.interpreter_gc = 112;
    layout.interpreter_modules = 944;
    layout.interpreter_sysdict = 952;
    layout.interpreter_builtins = 960;
  }
  return layout;
}

}  // namespace

MadeUpPython::MadeUpPython(unsigned minor) : layout_(small_layout(minor)) {
  take(kRuntimeBytes);
  interpreter_ = take(kInterpreterBytes);
  make_types();
  make_variables();
  make_interpreter();
  make_thread();
}

std::uint64_t MadeUpPython::type(std::string_view name) const {
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [&](const auto& type) { return type.first == name; });
  TIDEMARK_CHECK(found != types_.end(), "a type that is there");
  return found->second;
}

std::uint64_t MadeUpPython::variable(std::string_view name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  TIDEMARK_CHECK(found != variables_.end(), "a variable that is there");
  return found->second;
}

std::vector<heap::Mapping> MadeUpPython::mappings() {
  heap::Mapping mapping;
  mapping.range = {kBegin, kBegin + kBytes};
  mapping.is_writable = true;
  mapping.name = "/usr/bin/python3";
  return {mapping};
}

heap::MemoryImage MadeUpPython::image(const std::string& bytes) {
  return {mappings(),
          [&bytes](std::uint64_t address, std::span<char> into) {
            if (address < kBegin || address - kBegin + into.size() > bytes.size()) {
              return false;
            }
            std::memcpy(into.data(), bytes.data() + (address - kBegin), into.size());
            return true;
          },
          std::uint64_t{1} << 20U};
}

void MadeUpPython::put(std::uint64_t address, std::uint64_t word) {
  TIDEMARK_CHECK(address >= kBegin && address + 8 <= kBegin + kBytes, "in its memory");
  std::memcpy(bytes_.data() + (address - kBegin), &word, sizeof(word));
}

std::uint64_t MadeUpPython::take(std::size_t bytes) {
  const std::uint64_t address = next_;
  next_ += (bytes + 15) & ~std::size_t{15};
  TIDEMARK_CHECK(next_ <= kBegin + kBytes, "more than there is memory");
  return address;
}

std::uint64_t MadeUpPython::make(std::string_view type_name, std::size_t bytes) {
  const std::uint64_t object = take(kGcHeaderBytes + bytes) + kGcHeaderBytes;
  put(object, 1);  // its number of references
  put(object + layout_.object_type, type(type_name));
  return object;
}

std::uint64_t MadeUpPython::make_text(std::string_view text) {
  constexpr std::uint64_t kAsciiOfOneByte = 1U << 2U | 1U << 5U | 1U << 6U;
  const std::uint64_t object = make("str", layout_.ascii_data + text.size() + 1);
  put(object + layout_.object_size, text.size());
  put(object + layout_.text_state, kAsciiOfOneByte);
  std::memcpy(bytes_.data() + (object + layout_.ascii_data - kBegin), text.data(), text.size());
  return object;
}

std::uint64_t MadeUpPython::make_list(const std::vector<std::uint64_t>& items) {
  const std::uint64_t list = make("list", 40);
  const std::uint64_t table = take(8 * items.size());
  put(list + layout_.object_size, items.size());
  put(list + 24, table);
  put(list + 32, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    put(table + 8 * i, items[i]);
  }
  return list;
}

std::uint64_t MadeUpPython::make_tuple(const std::vector<std::uint64_t>& items) {
  const std::uint64_t tuple = make("tuple", layout_.tuple_items + 8 * items.size());
  put(tuple + layout_.object_size, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    put(tuple + layout_.tuple_items + 8 * i, items[i]);
  }
  return tuple;
}

std::uint64_t MadeUpPython::make_dict(
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& items) {
  constexpr std::uint64_t kSlots = 32;
  const std::uint64_t dict = make("dict", 48);
  const std::uint64_t keys = take(40 + kSlots + 24 * items.size());
  put(dict + layout_.object_size, items.size());
  put(dict + 32, keys);
  put(keys, 1);
  const bool is_old = layout_.minor <= 10;
  put(keys + 8, is_old ? kSlots : 5U | 5U << 8U);
  put(keys + (is_old ? 32 : 24), items.size());
  std::uint64_t entry = keys + (is_old ? 40 : 32) + kSlots;
  for (const auto& [key, value] : items) {
    put(entry + 8, key);
    put(entry + 16, value);
    entry += 24;
  }
  return dict;
}

void MadeUpPython::make_type(std::string_view name, std::uint64_t size, std::uint64_t item_size,
                             std::uint64_t flags) {
  const std::uint64_t type = take(kTypeBytes);
  const std::uint64_t text = take(name.size() + 1);
  std::memcpy(bytes_.data() + (text - kBegin), name.data(), name.size());
  types_.emplace_back(name, type);
  put(type, 1);
  put(type + layout_.object_type, types_.front().second);
  put(type + layout_.type_name, text);
  put(type + layout_.type_basic_size, size);
  put(type + layout_.type_item_size, item_size);
  put(type + layout_.type_flags, flags | kReadyFlag | kHasGcFlag);
}

void MadeUpPython::make_types() {
  make_type("type", 0x3a0, 40, kTypeFlag);
  make_type("str", layout_.compact_data + 8, 0, kTextFlag);
  make_type("dict", 48, 0, kDictFlag);
  make_type("list", 40, 0, kListFlag);
  make_type("tuple", layout_.tuple_items, 8, kTupleFlag);
  make_type("int", 24, 4, kIntFlag);
  make_type("module", 56, 0, 0);
  make_type("function", 128, 0, 0);
  make_type("code", layout_.code_start, 1, 0);
  make_type("cell", 24, 0, 0);
  make_type("set", 200, 0, 0);
  make_type("collections.deque", 96, 0, 0);
  make_type("generator", layout_.generator_frame + 16, 8, 0);
  make_type("frame", 64, 8, 0);
  make_type("weakref", 64, 0, 0);
  make_type("Trainer", 48, 0, kHeapTypeFlag);
  const std::uint64_t trainer = type("Trainer");
  put(trainer + layout_.type_base, type("list"));
  put(trainer + layout_.type_dict, make_dict({{make_text("__module__"), make_text("__main__")}}));
  put(trainer + layout_.type_mro, make_tuple({trainer, type("list")}));
  put(trainer + layout_.heap_type_qualname, make_text("make.<locals>.Trainer"));
  put(trainer + layout_.type_base, 0);
  put(trainer + layout_.type_dict_offset, 40);
}

std::uint64_t MadeUpPython::make_code() {
  const std::uint64_t code = make("code", 256);
  put(code + layout_.code_name, make_text("step"));
  put(code + layout_.code_file, make_text("train.py"));
  put(code + layout_.code_local_names, make_tuple({make_text("batch"), make_text("loss")}));
  if (layout_.code_qualname != PythonLayout::kNone) {
    put(code + layout_.code_qualname, make_text("main.<locals>.step"));
  }
  if (layout_.code_cell_names != PythonLayout::kNone) {
    put(code + layout_.code_cell_names, make_tuple({}));
    put(code + layout_.code_free_names, make_tuple({make_text("seen")}));
  }
  const std::uint32_t count = 2;  // of arguments, and of variables
  const std::uint32_t arguments_at = layout_.minor <= 10 ? 16 : layout_.code_stack_size - 12;
  std::memcpy(bytes_.data() + (code + arguments_at - kBegin), &count, 4);
  std::memcpy(bytes_.data() + (code + layout_.code_local_count - kBegin), &count, 4);
  return code;
}

std::uint64_t MadeUpPython::make_function() {
  const std::uint64_t function = make("function", 144);
  const std::uint64_t cell = make("cell", 24);
  put(cell + 16, make_list({}));
  put(function + layout_.function_code, make_code());
  put(function + layout_.function_qualname, make_text("main.<locals>.step"));
  put(function + layout_.function_closure, make_tuple({cell}));
  put(function + layout_.function_defaults, make_tuple({make_list({})}));
  return function;
}

std::uint64_t MadeUpPython::make_deque() {
  const std::uint64_t deque = make("collections.deque", 96);
  const std::uint64_t first = take(kWord * kBlockWords);
  const std::uint64_t last = take(kWord * kBlockWords);
  put(deque + layout_.object_size, 3);
  put(deque + 24, first);
  put(deque + 32, last);
  put(deque + 40, 62);
  put(deque + 48, 0);
  put(first + kWord * 63, make_list({}));
  put(first + kWord * 64, make_list({}));
  put(first + kWord * 65, last);
  put(last, first);
  put(last + 8, make_list({}));
  return deque;
}

std::uint64_t MadeUpPython::make_set() {
  const std::uint64_t set = make("set", 200);
  put(set + 24, 1);
  put(set + 32, 7);
  put(set + 40, set + 64);
  put(set + 64 + 32, make_text("element"));
  return set;
}

void MadeUpPython::make_variables() {
  const std::uint64_t trainer = make("Trainer", 48);
  const std::uint64_t history = make_list({make_tuple({}), make_tuple({trainer})});
  put(trainer + 40, make_dict({{make_text("history"), history}}));
  const std::uint64_t generator = make("generator", layout_.generator_frame + 128);
  const std::uint64_t weakref = make("weakref", 64);
  put(weakref + 16, trainer);
  variables_ = {{"cache", make_list({make_list({}), make_text("one"), make_dict({})})},
                {"trainer", trainer},
                {"step", make_function()},
                {"recent", make_deque()},
                {"seen", make_set()},
                {"batches", generator},
                {"Trainer", type("Trainer")},
                {"weak", weakref}};
}

// Its fields are where the version says that they are, or, from 3.13 on, where it says so itself.
void MadeUpPython::make_interpreter() {
  const unsigned minor = layout_.minor;
  if (minor >= heap::kFirstPublishedMinor) {
    put(kBegin, kCookie);
    put(kBegin + 8, 3U << 24U | minor << 16U);
    put(kBegin + 40, layout_.runtime_interpreters);
    put(kBegin + 64, layout_.interpreter_next);
    put(kBegin + 72, layout_.interpreter_threads);
    const std::uint64_t later = minor >= 14 ? 8 : 0;
    put(kBegin + 80 + later, layout_.interpreter_gc);
    put(kBegin + 88 + later, layout_.interpreter_modules);
    put(kBegin + 96 + later, layout_.interpreter_sysdict);
    put(kBegin + 104 + later, layout_.interpreter_builtins);
    const std::uint64_t thread = minor == 13 ? 152 : 176;
    put(kBegin + thread, 256);
    put(kBegin + thread + 16, layout_.thread_next);
    put(kBegin + thread + 32, layout_.thread_frame);
    const std::uint64_t frame = minor == 13 ? 232 : minor == 14 ? 256 : 320;
    put(kBegin + frame, layout_.frame_previous);
    put(kBegin + frame + 8, layout_.frame_code);
    put(kBegin + frame + 16, layout_.frame_instruction);
    put(kBegin + frame + 24, layout_.frame_fast_locals);
    put(kBegin + frame + 32, layout_.frame_owner);
    const std::uint64_t code = minor == 13 ? 280 : minor == 14 ? 320 : 384;
    put(kBegin + code, layout_.code_file);
    put(kBegin + code + 8, layout_.code_name);
    put(kBegin + code + 16, layout_.code_qualname);
    put(kBegin + code + 24, layout_.code_lines);
    put(kBegin + code + 32, layout_.code_first_line);
    put(kBegin + code + 48, layout_.code_local_names);
    put(kBegin + code + 64, layout_.code_start);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> variables;
  for (const auto& [name, object] : variables_) {
    variables.emplace_back(make_text(name), object);
  }
  const std::uint64_t main = make("module", 56);
  put(main + layout_.module_dict, make_dict(variables));
  put(main + layout_.module_name, make_text("__main__"));
  put(kBegin + layout_.runtime_interpreters, interpreter_);
  put(kBegin + layout_.runtime_interpreters + 8, interpreter_);
  put(interpreter_ + layout_.interpreter_modules, make_dict({{make_text("__main__"), main}}));
  put(interpreter_ + layout_.interpreter_sysdict,
      make_dict(
          {{make_text("version"), make_text("3." + std::to_string(minor) + ".1 (made up)")}}));
  // The first list of the collector has the list "cache", the others nothing.
  const std::uint64_t tracked = variable("cache") - kGcHeaderBytes;
  for (const std::uint64_t offset : {24U, 48U, 72U, 104U}) {
    const std::uint64_t head = interpreter_ + layout_.interpreter_gc + offset;
    const std::uint64_t only = offset == 24 ? tracked : head;
    put(head, only);
    put(head + 8, only);
  }
  put(tracked, interpreter_ + layout_.interpreter_gc + 24);
  put(tracked + 8, interpreter_ + layout_.interpreter_gc + 24);
}

// One that runs the function, with a list as its first variable.
void MadeUpPython::make_thread() {
  const std::uint64_t thread = take(512);
  const std::uint64_t frame = layout_.minor <= 10 ? make("frame", 480) : take(160);
  put(interpreter_ + layout_.interpreter_threads, thread);
  if (layout_.thread_frame != PythonLayout::kNone) {
    put(thread + layout_.thread_frame, frame);
  } else {
    const std::uint64_t c_frame = take(32);
    put(thread + layout_.thread_c_frame, c_frame);
    put(c_frame + layout_.c_frame_frame, frame);
  }
  std::uint64_t code = 0;
  std::memcpy(&code, bytes_.data() + (variable("step") + layout_.function_code - kBegin), 8);
  put(frame + layout_.frame_code, code);
  put(frame + layout_.frame_fast_locals, make_list({make_text("local")}));
}

}  // namespace tidemark::tests
