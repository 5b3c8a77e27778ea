// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/held_tensors.h"

#include <malloc.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "trainer_harness/tensors.h"

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kMappedBlockBytes = 128U << 10U;
constexpr std::uint64_t kFragmentBytes = 24U << 10U;
constexpr std::size_t kFragmentsPerSurvivor = 64;

using Tensors = std::vector<at::Tensor>;

struct Cell {
  std::shared_ptr<Cell> other;
  at::Tensor payload;
};

}  // namespace

struct HeldTensors::State {
  Tensors training_set;
  Tensors copies;
  std::vector<std::weak_ptr<Cell>> cycles;
  Tensors fragments;
  Tensors replayed;
  std::uint64_t replayed_bytes = 0;
  Tensors pinned;
};

HeldTensors::HeldTensors() : state_(std::make_unique<State>()) {}
HeldTensors::~HeldTensors() { collect_cycles(); }

Status HeldTensors::load_training_set(std::uint64_t bytes) {
  return catch_torch_errors("training set", [&]() -> Status {
    add_filled_blocks(state_->training_set, bytes, kSetBlockBytes);
    return ok();
  });
}

Status HeldTensors::retain_copy(std::uint64_t bytes, LeakLines& lines) {
  return catch_torch_errors("copy of a checkpoint", [&]() -> Status {
    const auto size = static_cast<std::int64_t>(bytes);
    at::Tensor copy = noted(lines.allocating, at::full({size}, 0x5A, at::kByte));
    state_->copies.push_back(noted(lines.retaining, copy));
    return ok();
  });
}

Status HeldTensors::make_cycle(std::uint64_t bytes) {
  return catch_torch_errors("cycle", [&]() -> Status {
    auto one = std::make_shared<Cell>();
    one->payload = filled_tensor(bytes);
    one->other = std::make_shared<Cell>(Cell{one, {}});
    state_->cycles.push_back(one);
    return ok();
  });
}

void HeldTensors::collect_cycles() {
  for (const std::weak_ptr<Cell>& cycle : std::exchange(state_->cycles, {})) {
    if (const std::shared_ptr<Cell> cell = cycle.lock()) {
      cell->other.reset();
    }
  }
}

Status HeldTensors::make_fragments(std::uint64_t bytes) {
  return catch_torch_errors("fragments", [&]() -> Status {
    add_filled_blocks(state_->fragments, bytes, kFragmentBytes);
    return ok();
  });
}

void HeldTensors::free_fragments() {
  Tensors survivors;
  const std::size_t count = state_->fragments.size();
  for (std::size_t i = 0; i < count; ++i) {
    // The last one keeps the allocator from trimming the heap.
    if (i % kFragmentsPerSurvivor == 0 || i + 1 == count) {
      survivors.push_back(std::move(state_->fragments[i]));
    }
  }
  state_->fragments = std::move(survivors);
}

Status HeldTensors::resize_to(std::uint64_t bytes) {
  return catch_torch_errors("replayed memory", [&]() -> Status {
    State& state = *state_;
    while (state.replayed_bytes > bytes) {
      state.replayed_bytes -= static_cast<std::uint64_t>(state.replayed.back().numel());
      state.replayed.pop_back();
    }
    const std::uint64_t missing = bytes - state.replayed_bytes;
    // A smaller block would come from the heap and stay there; it is added with the next step.
    if (missing >= kMappedBlockBytes) {
      add_filled_blocks(state.replayed, missing, kSetBlockBytes);
      state.replayed_bytes = bytes;
    }
    return ok();
  });
}

Result<bool> HeldTensors::retain_pinned(std::uint64_t bytes, bool on_gpu, LeakLines& lines) {
  return catch_torch_errors("pinned buffer", [&]() -> Result<bool> {
    const auto size = static_cast<std::int64_t>(bytes);
    at::Tensor buffer;
    if (on_gpu) {
      buffer = noted(lines.allocating, filled_tensor(bytes).pin_memory());
    } else {
      buffer = noted(lines.allocating, at::full({size}, 0x5A, at::kByte));
    }
    const bool locked = on_gpu || ::mlock(buffer.data_ptr(), bytes) == 0;
    state_->pinned.push_back(noted(lines.retaining, buffer));
    return locked;
  });
}

void return_freed_blocks() {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMappedBlockBytes));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(kMappedBlockBytes));
}

}  // namespace tidemark::harness
