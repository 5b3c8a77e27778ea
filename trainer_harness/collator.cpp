// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/collator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <map>
#include <utility>
#include <vector>

#include "trainer_harness/batch.h"
#include "trainer_harness/mixed_bits.h"
#include "trainer_harness/source_line.h"
#include "trainer_harness/torch_guard.h"

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kEvaluationSamples = std::uint64_t{1} << 40U;  // where their numbers begin

// Decoded images by seed, size and number. It belongs to the process, not to the run, as such
// caches do: the next run finds it filled.
using SampleCache =
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::uint64_t, at::Tensor>>;
SampleCache& sample_cache() {
  static SampleCache cache;
  return cache;
}

at::Tensor noise(at::IntArrayRef sizes, std::uint64_t bits) {
  return at::randn(sizes, at::detail::createCPUGenerator(bits), at::kFloat);
}

}  // namespace

struct Collator::State {
  Plan plan;
  std::uint64_t seed = 0;
  bool on_gpu = false;
  at::Tensor patterns;                // [classes, 3, side, side]
  std::vector<at::Tensor> originals;  // those that were kept: the leak

  at::Tensor sample(std::uint64_t number, std::int64_t label) const {
    if (plan.sample_bytes > 0 && number < kEvaluationSamples) {
      at::Tensor& decoded = sample_cache()[{seed, plan.sample_bytes}][number];
      if (!decoded.defined()) {
        decoded = filled_tensor(plan.sample_bytes);
      }
    }
    return patterns[label].add(noise({3, kImageSide, kImageSide}, mixed_bits(seed, number)));
  }

  std::shared_ptr<Batch> batch(std::uint64_t first_number) const {
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < plan.batch; ++i) {
      const std::uint64_t number = first_number + i;
      labels.push_back(static_cast<std::int64_t>(mixed_bits(~seed, number) % kClasses));
      images.push_back(sample(number, labels.back()));
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

Collator::Collator(const Plan& plan, std::uint64_t seed, bool on_gpu)
    : state_(std::make_unique<State>()) {
  state_->plan = plan;
  state_->seed = seed;
  state_->on_gpu = on_gpu;
  state_->patterns = noise({kClasses, 3, kImageSide, kImageSide}, mixed_bits(seed, 0));
}

Collator::~Collator() = default;

Result<std::shared_ptr<const Batch>> Collator::training_batch(std::uint64_t step,
                                                              std::uint64_t part,
                                                              LeakLines& lines) {
  using Made = Result<std::shared_ptr<const Batch>>;
  return guarded("cannot make a batch", [&]() -> Made {
    const Plan& plan = state_->plan;
    const std::uint64_t step_in_epoch = (step - 1) % plan.epoch_steps;
    auto batch = state_->batch((step_in_epoch * kMicroBatches + part) * plan.batch);
    if (plan.leak && plan.leak->cause == Cause::kCollator) {
      const auto bytes = static_cast<std::int64_t>(plan.leak->bytes_per_step / kMicroBatches);
      const bool leaks = step > plan.leak->after_step;
      LeakLines none;
      LeakLines& known = leaks ? lines : none;  // a batch that goes again is no leak
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
  return guarded("cannot make a batch", [&]() -> Made {
    return std::shared_ptr<const Batch>(
        state_->batch(kEvaluationSamples + number * state_->plan.batch));
  });
}

}  // namespace tidemark::harness
