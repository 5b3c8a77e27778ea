// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

// Tensors that a run holds besides its model: the memory of the scenarios.
class HeldTensors {
 public:
  HeldTensors();
  ~HeldTensors();
  HeldTensors(const HeldTensors&) = delete;
  HeldTensors& operator=(const HeldTensors&) = delete;

  // The training set, held to the end.
  Status load_training_set(std::uint64_t bytes);

  // A copy that a checkpoint makes and never frees.
  Status retain_copy(std::uint64_t bytes, LeakLines& lines);

  // Two objects that own each other and a tensor. Only collect_cycles() frees them.
  Status make_cycle(std::uint64_t bytes);
  void collect_cycles();

  // Blocks from the heap, too small for a mapping of their own. free_fragments() keeps a few of
  // them, so that the allocator cannot return the pages between them.
  Status make_fragments(std::uint64_t bytes);
  void free_fragments();

  // Grows or shrinks the memory of a replayed job.
  Status resize_to(std::uint64_t bytes);

  // A pinned host buffer; without a GPU a locked one. Returns whether it could be locked.
  Result<bool> retain_pinned(std::uint64_t bytes, bool on_gpu, LeakLines& lines);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Makes malloc map each block of 128 KiB or more by itself, so that free returns it to the kernel.
// For the whole process.
void return_freed_blocks();

}  // namespace tidemark::harness
