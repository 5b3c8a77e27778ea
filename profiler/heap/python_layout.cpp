// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_layout.h"

#include "common/check.h"

namespace tidemark::heap {
namespace {

constexpr std::uint32_t kNone = PythonLayout::kNone;

// One number for each of 3.9 to 3.15.
class ByMinor {
 public:
  explicit ByMinor(unsigned minor) : index_(minor - kFirstPythonMinor) {}
  std::uint32_t operator()(std::uint32_t v9, std::uint32_t v10, std::uint32_t v11,
                           std::uint32_t v12, std::uint32_t v13, std::uint32_t v14,
                           std::uint32_t v15) const {
    const std::uint32_t values[] = {v9, v10, v11, v12, v13, v14, v15};
    return values[index_];
  }
  // The same from 3.12 on.
  std::uint32_t operator()(std::uint32_t v9, std::uint32_t v10, std::uint32_t v11,
                           std::uint32_t later) const {
    return (*this)(v9, v10, v11, later, later, later, later);
  }

 private:
  unsigned index_;
};

void set_interpreter(PythonLayout& layout, ByMinor by) {
  layout.runtime_interpreters = by(32, 32, 40, 40, 632, 808, 936);
  layout.interpreter_next = by(0, 0, 0, 0, 7264, 7272, 7264);
  layout.interpreter_threads = by(8, 8, 16, 72, 7344, 7344, 7336);
  layout.interpreter_gc = by(616, 616, 648, 112, 7400, 7408, 7400);
  layout.interpreter_modules = by(856, 856, 888, 944, 7656, 7688, 7592);
  layout.interpreter_sysdict = by(872, 872, 904, 352, 7640, 7672, 7576);
  layout.interpreter_builtins = layout.interpreter_sysdict + 8;
  layout.gc_is_collecting = by(200, 200, 200, 200, 200, 192, 112);
  layout.gc_is_enabled = by(12, 12, 12, 12, 12, 12, 0);
  switch (layout.minor) {
    case 9:
      layout.interpreter_parts[0] = {64, 944};
      layout.interpreter_parts[1] = {3400, 3560};
      break;
    case 10:
      layout.interpreter_parts[0] = {64, 3520};
      break;
    case 11:
      layout.interpreter_parts[0] = {96, 3560};
      break;
    case 12:
      layout.interpreter_parts[0] = {96, 3960};
      layout.interpreter_parts[1] = {267208, 267352};
      layout.interpreter_parts[2] = {373696, 383248};
      break;
    case 13:
      layout.interpreter_parts[0] = {7264, 10880};
      layout.interpreter_parts[1] = {182960, 193064};
      break;
    default:
      layout.interpreter_parts[0] = {7264, 10920};
      layout.interpreter_parts[1] = {180152, 190336};
      break;
  }
}

void set_thread(PythonLayout& layout, ByMinor by) {
  layout.thread_frame = by(24, 24, kNone, kNone, 72, 72, 72);
  layout.thread_c_frame = by(kNone, kNone, 56, 56, kNone, kNone, kNone);
  layout.c_frame_frame = by(0, 0, 8, 0);
  layout.thread_native_id = by(kNone, kNone, 160, 144, 160, 160, 184);
  layout.thread_dict = by(152, 152, 128, 112, 128, 128, 152);
  layout.thread_context = by(240, 240, 224, 208, 208, 208, 232);
  layout.thread_exceptions = by(144, 144, 120, 104, 120, 120, 144);
  layout.exceptions_value = by(8, 8, 0, 0);
  layout.exceptions_previous = by(24, 24, 8, 8);
}

void set_frame(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.frame_code = by(32, 32, 32, 0);
  layout.frame_previous = by(24, 24, 48, 8);
  layout.frame_function = by(kNone, kNone, 0, 16);
  layout.frame_locals = by(56, 56, 24, 40);
  layout.frame_object = by(kNone, kNone, 40, 48);
  layout.frame_instruction = by(104, 96, 56, 56);
  layout.frame_stack_top = by(72, 80, 64, 64);
  layout.frame_owner = by(kNone, kNone, 69, 70, 70, layout.is_free_threaded ? 78 : 74, 74);
  layout.frame_fast_locals = by(360, 352, 72, 72, 72, 80, 80);
  layout.frame_object_frame = layout.minor >= 11 ? 24 + shift : kNone;
}

void set_code(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.code_constants = by(56, 56, 24, 24) + shift;
  layout.code_names = by(64, 64, 32, 32) + shift;
  layout.code_file = by(104, 104, 112, 112) + shift;
  layout.code_name = by(112, 112, 120, 120) + shift;
  layout.code_qualname = layout.minor >= 11 ? 128 + shift : kNone;
  layout.code_lines = by(120, 120, 136, 136) + shift;
  layout.code_first_line = by(40, 40, 72, 68) + shift;
  layout.code_local_count = by(28, 28, 76, 72) + shift;
  layout.code_local_names = by(72, 72, 96, 96) + shift;
  const std::uint32_t thread_local_code = layout.is_free_threaded ? 8 : 0;
  layout.code_start = by(48, 48, 184, 192, 200, 208, 208) + shift + thread_local_code;
  layout.code_stack_size = by(32, 32, 68, 64) + shift;
  layout.code_frame_size = layout.minor >= 12 ? 76 + shift : kNone;
  layout.code_cell_names = layout.minor <= 10 ? 88 : kNone;
  layout.code_free_names = layout.minor <= 10 ? 80 : kNone;
}

void set_function(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.function_code = by(16, 48, 48, 48) + shift;
  layout.function_globals = by(24, 16, 16, 16) + shift;
  layout.function_builtins = layout.minor >= 10 ? 24 + shift : kNone;
  layout.function_name = by(64, 32, 32, 32) + shift;
  layout.function_qualname = by(104, 40, 40, 40) + shift;
  layout.function_defaults = by(32, 56, 56, 56) + shift;
  layout.function_keyword_defaults = by(40, 64, 64, 64) + shift;
  layout.function_closure = by(48, 72, 72, 72) + shift;
  layout.function_doc = by(56, 80, 80, 80) + shift;
  layout.function_dict = by(72, 88, 88, 88) + shift;
  layout.function_module = by(88, 104, 104, 104) + shift;
  layout.function_annotations = by(96, 112, 112, 112) + shift;
  layout.function_annotate = layout.minor >= 14 ? 120 + shift : kNone;
  layout.function_type_params = by(kNone, kNone, kNone, 120, 120, 128, 128);
  if (layout.function_type_params != kNone) {
    layout.function_type_params += shift;
  }
}

void set_generator(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.generator_frame = by(16, 16, 80, 72) + shift;
  layout.generator_state = by(kNone, kNone, 75, 67);
  if (layout.generator_state != kNone) {
    layout.generator_state += shift;
  }
  layout.generator_name = by(48, 40, 32, 24) + shift;
  layout.generator_qualname = layout.generator_name + 8;
  layout.generator_exceptions = by(64, 56, 48, 40) + shift;
  layout.generator_code = by(32, 24, 16, kNone);
}

void set_type(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.type_name = 24 + shift;
  layout.type_basic_size = 32 + shift;
  layout.type_item_size = 40 + shift;
  layout.type_flags = 168 + shift;
  layout.type_weaklist_offset = 208 + shift;
  layout.type_members = 240 + shift;
  layout.type_base = 256 + shift;
  layout.type_dict = 264 + shift;
  layout.type_dict_offset = 288 + shift;
  layout.type_bases = 336 + shift;
  layout.type_mro = 344 + shift;
  layout.type_cache = 352 + shift;
  layout.type_subclasses = 360 + shift;
  layout.heap_type_name = by(840, 848, 848, 856, 856, 856, 864) + shift;
  layout.heap_type_slots = layout.heap_type_name + 8;
  layout.heap_type_qualname = layout.heap_type_name + 16;
  layout.heap_type_cached_keys = layout.heap_type_name + 24;
  layout.heap_type_module = layout.heap_type_name + 32;
}

void set_objects(PythonLayout& layout, ByMinor by) {
  const std::uint32_t shift = layout.shift;
  layout.object_type = 8 + shift;
  layout.object_size = 16 + shift;
  layout.ascii_data = by(48, 48, 48, 40) + shift;
  layout.compact_data = by(72, 72, 72, 56) + shift;
  layout.text_state = 32 + shift;
  layout.tuple_items = by(24, 24, 24, 24, 24, 32, 32) + shift;
  layout.module_dict = 16 + shift;
  layout.module_state = by(32, 32, 32, 32, 32, 32, 24) + shift;
  layout.module_name = by(48, 48, 48, 48, 48, 48, 40) + shift;
  layout.module_definition = layout.minor < 15 ? 24 + shift : kNone;
  layout.module_state_size = layout.minor < 15 ? kNone : 56 + shift;
  layout.managed_dict_before = layout.is_free_threaded ? 8 : 24;
}

}  // namespace

PythonLayout python_layout(unsigned minor, bool is_free_threaded) {
  TIDEMARK_CHECK(minor >= kFirstPythonMinor && minor <= kLastPythonMinor,
                 "a version that is known");
  PythonLayout layout;
  layout.minor = minor;
  layout.is_free_threaded = is_free_threaded;
  layout.shift = is_free_threaded ? 16 : 0;
  const ByMinor by(minor);
  set_interpreter(layout, by);
  set_thread(layout, by);
  set_frame(layout, by);
  set_code(layout, by);
  set_function(layout, by);
  set_generator(layout, by);
  set_type(layout, by);
  set_objects(layout, by);
  return layout;
}

}  // namespace tidemark::heap
