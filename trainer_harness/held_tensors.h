// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

// Tensors that a run holds beside its model: the memory of the scenarios.
class HeldTensors {
 public:
  HeldTensors();
  ~HeldTensors();
  HeldTensors(const HeldTensors&) = delete;
  HeldTensors& operator=(const HeldTensors&) = delete;

  // The training set, held to the end.
  Status load_training_set(std::uint64_t bytes);

  // A copy that a checkpoint makes and nobody drops.
  Status keep_a_copy(std::uint64_t bytes, LeakLines& lines);

  // Two objects that own each other and a tensor. Only collect_cycles() frees them.
  Status make_a_cycle(std::uint64_t bytes);
  void collect_cycles();

  // Blocks too small to be mapped by themselves, from the heap. Freed, all but a few between them:
  // the allocator cannot give the rest back.
  Status make_fragments(std::uint64_t bytes);
  void free_fragments();

  // Grows or shrinks to a size: the memory of a replayed job.
  Status follow(std::uint64_t bytes);

  // A pinned host buffer; without a GPU one that is locked. Whether it could be locked.
  Result<bool> keep_pinned(std::uint64_t bytes, bool on_gpu, LeakLines& lines);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// From now on each block of 128 KiB or more is mapped by itself, so that what is freed is given
// back to the kernel. For the whole process.
void return_freed_blocks();

}  // namespace tidemark::harness
