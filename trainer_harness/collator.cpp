// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/collator.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <utility>
#include <vector>

#include "trainer_harness/tensors.h"

namespace tidemark::harness {

struct Collator::State {
  Plan plan;
  Dataset& dataset;
  bool on_gpu = false;
  std::vector<at::Tensor> originals;  // the leak

  // Of as many samples as a batch has; `get` returns one by its number.
  template <typename Get>
  std::shared_ptr<Batch> batch(std::uint64_t first_number, Get get) const {
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < plan.batch; ++i) {
      Sample sample = get(first_number + i);
      images.push_back(std::move(sample.pixels));
      labels.push_back(sample.label);
    }
    auto result = std::make_shared<Batch>();
    result->pixels = at::stack(images);
    result->labels = at::tensor(labels, at::kLong);
    if (on_gpu) {
      result->pixels = result->pixels.pin_memory();
      result->labels = result->labels.pin_memory();
    }
    return result;
  }
};

Collator::Collator(const Plan& plan, Dataset& dataset, bool on_gpu)
    : state_(std::make_unique<State>(State{plan, dataset, on_gpu, {}})) {}

Collator::~Collator() = default;

Result<std::shared_ptr<const Batch>> Collator::training_batch(std::uint64_t step,
                                                              std::uint64_t part,
                                                              LeakLines& lines) {
  using Made = Result<std::shared_ptr<const Batch>>;
  return catch_torch_errors("cannot make a batch", [&]() -> Made {
    const Plan& plan = state_->plan;
    const std::uint64_t step_in_epoch = (step - 1) % plan.epoch_steps;
    auto batch = state_->batch((step_in_epoch * kMicroBatches + part) * plan.batch,
                               [&](std::uint64_t i) { return state_->dataset.get(i); });
    if (plan.leak && plan.leak->cause == Cause::kCollator) {
      const auto bytes = static_cast<std::int64_t>(plan.leak->bytes_per_step / kMicroBatches);
      const bool leaks = step > plan.leak->after_step;
      LeakLines none;
      LeakLines& known = leaks ? lines : none;  // a batch that is freed again is no leak
      batch->originals = noted(known.allocating, at::full({bytes}, 0x5A, at::kByte));
      if (leaks) {
        state_->originals.push_back(noted(lines.retaining, batch->originals));
      }
    }
    return std::shared_ptr<const Batch>(std::move(batch));
  });
}

Result<std::shared_ptr<const Batch>> Collator::evaluation_batch(std::uint64_t number) {
  using Made = Result<std::shared_ptr<const Batch>>;
  return catch_torch_errors("cannot make a batch", [&]() -> Made {
    return std::shared_ptr<const Batch>(
        state_->batch(number * state_->plan.batch,
                      [&](std::uint64_t i) { return state_->dataset.get_for_evaluation(i); }));
  });
}

}  // namespace tidemark::harness
