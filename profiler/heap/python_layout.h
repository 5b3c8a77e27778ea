// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::heap {

// Where CPython 3.9 to 3.15 keeps what a walk over its objects reads: offsets in bytes. They differ
// between versions and move in patch releases and vendors' builds; what an interpreter publishes
// itself (_Py_DebugOffsets, from 3.13 on) goes before. Each is checked where it is used, by the
// type of what is found there.
struct PythonLayout {
  static constexpr std::uint32_t kNone = 0xffffffff;

  unsigned minor = 0;  // 3.minor
  bool is_free_threaded = false;
  // By how much fields of objects are further on than in an object with a header of 16 bytes.
  std::uint32_t shift = 0;

  // Of the runtime, and of an interpreter.
  std::uint32_t runtime_interpreters = 0;
  std::uint32_t interpreter_next = 0;
  std::uint32_t interpreter_threads = 0;
  std::uint32_t interpreter_gc = 0;
  std::uint32_t interpreter_modules = 0;
  std::uint32_t interpreter_sysdict = 0;
  std::uint32_t interpreter_builtins = 0;
  std::uint32_t gc_is_collecting = 0;
  std::uint32_t gc_is_enabled = 0;
  // What else of an interpreter may refer to objects: from, to; the caches in between hold borrowed
  // and stale references.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  Part interpreter_parts[3] = {};

  // Of a thread state.
  std::uint32_t thread_next = 8;
  std::uint32_t thread_frame = 0;        // the innermost frame; kNone: by the C frame
  std::uint32_t thread_c_frame = kNone;  // 3.11 and 3.12
  std::uint32_t c_frame_frame = 0;
  std::uint32_t thread_native_id = kNone;
  std::uint32_t thread_dict = 0;
  std::uint32_t thread_context = 0;
  std::uint32_t thread_exceptions = 0;
  std::uint32_t exceptions_value = 0;  // of an entry of the stack of handled exceptions
  std::uint32_t exceptions_previous = 0;

  // Of a frame: an object (3.9, 3.10), or a part of the stack of a thread, a generator or an
  // object.
  std::uint32_t frame_code = 0;
  std::uint32_t frame_previous = 0;
  std::uint32_t frame_function = kNone;
  std::uint32_t frame_locals = 0;
  std::uint32_t frame_object = kNone;
  std::uint32_t frame_instruction = 0;
  std::uint32_t frame_stack_top = 0;
  std::uint32_t frame_owner = kNone;
  std::uint32_t frame_fast_locals = 0;
  std::uint32_t frame_object_frame = kNone;  // of a frame object: its frame

  // Of a code object.
  std::uint32_t code_constants = 0;
  std::uint32_t code_names = 0;
  std::uint32_t code_file = 0;
  std::uint32_t code_name = 0;
  std::uint32_t code_qualname = kNone;
  std::uint32_t code_lines = 0;
  std::uint32_t code_first_line = 0;
  std::uint32_t code_local_count = 0;  // with cells and free variables from 3.11 on
  std::uint32_t code_local_names = 0;
  std::uint32_t code_start = 0;
  std::uint32_t code_stack_size = 0;
  std::uint32_t code_frame_size = kNone;  // from 3.12 on
  std::uint32_t code_cell_names = kNone;  // 3.9, 3.10
  std::uint32_t code_free_names = kNone;

  // Of a function.
  std::uint32_t function_code = 0;
  std::uint32_t function_globals = 0;
  std::uint32_t function_builtins = kNone;
  std::uint32_t function_defaults = 0;
  std::uint32_t function_keyword_defaults = 0;
  std::uint32_t function_closure = 0;
  std::uint32_t function_dict = 0;
  std::uint32_t function_module = 0;
  std::uint32_t function_qualname = 0;
  std::uint32_t function_name = 0;
  std::uint32_t function_doc = 0;
  std::uint32_t function_annotations = 0;
  std::uint32_t function_annotate = kNone;
  std::uint32_t function_type_params = kNone;

  // Of a generator, coroutine or asynchronous generator.
  std::uint32_t generator_frame = 0;  // 3.9, 3.10: a reference; later the frame itself
  std::uint32_t generator_state = kNone;
  std::uint32_t generator_name = 0;
  std::uint32_t generator_qualname = 0;
  std::uint32_t generator_exceptions = 0;
  std::uint32_t generator_code = kNone;

  // Of a type.
  std::uint32_t type_name = 0;
  std::uint32_t type_basic_size = 0;
  std::uint32_t type_item_size = 0;
  std::uint32_t type_flags = 0;
  std::uint32_t type_weaklist_offset = 0;
  std::uint32_t type_members = 0;
  std::uint32_t type_base = 0;
  std::uint32_t type_dict = 0;
  std::uint32_t type_dict_offset = 0;
  std::uint32_t type_bases = 0;
  std::uint32_t type_mro = 0;
  std::uint32_t type_cache = 0;
  std::uint32_t type_subclasses = 0;
  std::uint32_t heap_type_name = 0;
  std::uint32_t heap_type_slots = 0;
  std::uint32_t heap_type_qualname = 0;
  std::uint32_t heap_type_cached_keys = 0;
  std::uint32_t heap_type_module = 0;

  // Of other objects.
  std::uint32_t object_type = 0;
  std::uint32_t object_size = 0;  // ob_size of those that have one; ma_used of a dict
  std::uint32_t ascii_data = 0;
  std::uint32_t compact_data = 0;
  std::uint32_t text_state = 0;
  std::uint32_t tuple_items = 0;
  std::uint32_t module_dict = 0;
  std::uint32_t module_state = 0;
  std::uint32_t module_name = 0;
  std::uint32_t module_state_size = kNone;  // 3.15
  std::uint32_t module_definition = kNone;
  std::uint32_t managed_dict_before = 24;  // so far before the object
};

inline constexpr unsigned kFirstPythonMinor = 9;
inline constexpr unsigned kFirstPublishedMinor = 13;  // with _Py_DebugOffsets
inline constexpr unsigned kLastPythonMinor = 15;

// Bits of tp_flags.
inline constexpr std::uint64_t kInlineValuesFlag = 1U << 2U;    // from 3.13 on
inline constexpr std::uint64_t kManagedWeakrefFlag = 1U << 3U;  // from 3.12 on
inline constexpr std::uint64_t kManagedDictFlag = 1U << 4U;     // from 3.11 on
inline constexpr std::uint64_t kStaticBuiltinFlag = 1U << 1U;   // from 3.12 on
inline constexpr std::uint64_t kHeapTypeFlag = 1U << 9U;
inline constexpr std::uint64_t kReadyFlag = 1U << 12U;
inline constexpr std::uint64_t kHasGcFlag = 1U << 14U;
inline constexpr std::uint64_t kIntFlag = 1U << 24U;
inline constexpr std::uint64_t kListFlag = 1U << 25U;
inline constexpr std::uint64_t kTupleFlag = 1U << 26U;
inline constexpr std::uint64_t kBytesFlag = 1U << 27U;
inline constexpr std::uint64_t kTextFlag = 1U << 28U;
inline constexpr std::uint64_t kDictFlag = 1U << 29U;
inline constexpr std::uint64_t kExceptionFlag = 1U << 30U;
inline constexpr std::uint64_t kTypeFlag = 1U << 31U;

// That of the headers of a version that is supported.
PythonLayout python_layout(unsigned minor, bool is_free_threaded);

}  // namespace tidemark::heap
