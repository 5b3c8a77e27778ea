// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_frames.h"

namespace tidemark::heap {
namespace {

constexpr std::uint32_t kMostLocals = 10'000;
constexpr std::uint32_t kMostStack = 20'000;
constexpr std::uint8_t kOwnedByFrameObject = 2;

}  // namespace

void PythonFrames::object_references(std::uint64_t object, ReferenceBatch& batch) {
  const std::uint32_t shift = layout_.shift;
  if (layout_.minor <= 10) {
    batch.add(image_.word(object + layout_.frame_previous), "f_back", ReferenceKind::kBack);
    return old_references(object, batch);
  }
  batch.add(image_.word(object + 16 + shift), "f_back", ReferenceKind::kBack);
  batch.add(image_.word(object + 32 + shift), "f_trace");
  if (layout_.minor >= 13) {
    batch.add(image_.word(object + 48 + shift), "f_extra_locals");
    batch.add(image_.word(object + 56 + shift), "f_locals_cache");
  }
  if (layout_.minor >= 14) {
    batch.add(image_.word(object + 64 + shift), "f_overwritten_fast_locals");
  }
  const std::uint64_t frame = image_.word(object + layout_.frame_object_frame);
  if (frame != 0 && image_.load<std::uint8_t>(frame + layout_.frame_owner) == kOwnedByFrameObject) {
    references(frame, batch);
  }
}

std::uint64_t PythonFrames::untagged(std::uint64_t reference) const {
  if (layout_.minor >= 14) {
    return (reference & 3U) == 3 ? 0 : reference & ~std::uint64_t{7};
  }
  return reference & ~std::uint64_t{1};
}

std::uint64_t PythonFrames::code_of(std::uint64_t frame) {
  const std::uint64_t code = untagged(image_.word(frame + layout_.frame_code));
  const PythonTypes::Index type = types_.of(code);
  return type != PythonTypes::kNone && types_[type].kind == ObjectKind::kCode ? code : 0;
}

void PythonFrames::references(std::uint64_t frame, ReferenceBatch& batch) {
  if (layout_.minor <= 10) {
    return old_references(frame, batch);
  }
  batch.add(image_.word(frame + layout_.frame_locals), "f_locals");
  batch.add(untagged(image_.word(frame + layout_.frame_function)), "f_func");
  batch.add(image_.word(frame + layout_.frame_object), "f_frame");
  const std::uint64_t code = code_of(frame);
  batch.add(code, "f_code");
  const auto locals = image_.load<std::uint32_t>(code + layout_.code_local_count);
  if (code == 0 || locals > kMostLocals) {
    return;
  }
  std::int64_t top = 0;
  if (layout_.minor <= 13) {
    top = image_.load<std::int32_t>(frame + layout_.frame_stack_top);
  } else if (const std::uint64_t pointer = image_.word(frame + layout_.frame_stack_top);
             pointer != 0) {
    top = static_cast<std::int64_t>(pointer - frame - layout_.frame_fast_locals) / 8;
  }
  if (top < static_cast<std::int64_t>(locals) || top > kMostStack) {
    top = locals;  // it runs: where its stack ends is in a register
  }
  const std::uint64_t names = image_.word(code + layout_.code_local_names);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(top); ++i) {
    const std::uint64_t value =
        untagged(image_.word(frame + layout_.frame_fast_locals + std::uint64_t{8} * i));
    if (i < locals) {
      batch.add(value, ReferenceKind::kLocal,
                image_.word(names + layout_.tuple_items + std::uint64_t{8} * i));
    } else {
      batch.add(value, ReferenceKind::kStack);
    }
  }
}

// Frames of 3.9 and 3.10 are objects.
void PythonFrames::old_references(std::uint64_t frame, ReferenceBatch& batch) {
  const std::uint64_t code = code_of(frame);
  batch.add(code, "f_code");
  batch.add(image_.word(frame + 40), "f_builtins", ReferenceKind::kBuiltins);
  batch.add(image_.word(frame + 48), "f_globals", ReferenceKind::kGlobals);
  batch.add(image_.word(frame + layout_.frame_locals), "f_locals");
  batch.add(image_.word(frame + (layout_.minor == 9 ? 80 : 72)), "f_trace");
  if (code == 0) {
    return;
  }
  std::uint32_t slot = 0;
  const auto add_locals = [&](std::uint64_t names, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count && slot < kMostLocals; ++i, ++slot) {
      batch.add(image_.word(frame + layout_.frame_fast_locals + std::uint64_t{8} * slot),
                ReferenceKind::kLocal, image_.word(names + layout_.tuple_items + 8 * i));
    }
  };
  const std::uint64_t cells = image_.word(code + layout_.code_cell_names);
  const std::uint64_t free = image_.word(code + layout_.code_free_names);
  add_locals(image_.word(code + layout_.code_local_names),
             image_.load<std::uint32_t>(code + layout_.code_local_count));
  add_locals(cells, image_.word(cells + layout_.object_size));
  add_locals(free, image_.word(free + layout_.object_size));
  const std::uint64_t stack = image_.word(frame + 64);
  std::int64_t depth = image_.load<std::int32_t>(frame + layout_.frame_stack_top);
  if (layout_.minor == 9) {
    const std::uint64_t top = image_.word(frame + layout_.frame_stack_top);
    depth = top == 0 ? 0 : static_cast<std::int64_t>(top - stack) / 8;
  }
  for (std::int64_t i = 0; i < depth && i < kMostStack; ++i) {
    batch.add(image_.word(stack + 8 * static_cast<std::uint64_t>(i)), ReferenceKind::kStack);
  }
}

// What a frame takes beyond its head.
std::uint64_t PythonFrames::extra_bytes(std::uint64_t code) {
  constexpr std::uint64_t kMost = 100'000;
  if (code == 0) {
    return 0;
  }
  if (layout_.code_frame_size != PythonLayout::kNone) {
    const std::uint64_t bytes =
        std::uint64_t{8} * image_.load<std::uint32_t>(code + layout_.code_frame_size);
    return bytes < 8 * kMost && bytes > layout_.frame_fast_locals
               ? bytes - layout_.frame_fast_locals
               : 0;
  }
  const std::uint64_t slots =
      std::uint64_t{image_.load<std::uint32_t>(code + layout_.code_local_count)} +
      image_.load<std::uint32_t>(code + layout_.code_stack_size);
  return slots < kMost ? 8 * slots : 0;
}

}  // namespace tidemark::heap
