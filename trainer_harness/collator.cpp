// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/collator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "trainer_harness/tensors.h"

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kEvaluationSamples = std::uint64_t{1} << 40U;  // their first number
constexpr std::size_t kPixels = 3 * kImageSide * kImageSide;           // bytes of a small image
constexpr float kGrey = 128;
constexpr float kContrast = 32;

// Decoded images by seed, size and number. It belongs to the process, as caches of real trainers
// do: the next run in this process finds it filled.
using SampleCache =
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::uint64_t, at::Tensor>>;
SampleCache& sample_cache() {
  static SampleCache cache;
  return cache;
}

at::Tensor noise(at::IntArrayRef sizes, std::uint64_t bits) {
  return at::randn(sizes, at::detail::createCPUGenerator(bits), at::kFloat);
}

std::span<std::uint8_t> bytes_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<std::uint8_t>(), static_cast<std::size_t>(tensor.numel())};
}

// A decoded image has one byte per value and any size; this is where it has pixel `i` of the small
// image that the model sees.
std::size_t place_of(std::size_t i, std::size_t image_bytes) { return i * image_bytes / kPixels; }

at::Tensor resized(std::span<const std::uint8_t> image) {
  at::Tensor pixels = at::empty({3, kImageSide, kImageSide}, at::kFloat);
  float* const values = pixels.data_ptr<float>();
  for (std::size_t i = 0; i < kPixels; ++i) {
    values[i] = (static_cast<float>(image[place_of(i, image.size())]) - kGrey) / kContrast;
  }
  return pixels;
}

}  // namespace

struct Dataset::State {
  Plan plan;
  std::uint64_t seed = 0;
  at::Tensor patterns;                     // [classes, 3, side, side]
  std::vector<at::Tensor> evaluation_set;  // blocks; image n is in block n % blocks

  std::int64_t label(std::uint64_t number) const {
    return static_cast<std::int64_t>(random_bits(~seed, number) % kClasses);
  }

  void draw(std::uint64_t number, std::span<std::uint8_t> image) const {
    const at::Tensor picture =
        patterns[label(number)].add(noise({3, kImageSide, kImageSide}, random_bits(seed, number)));
    const float* const values = picture.data_ptr<float>();
    for (std::size_t i = 0; i < kPixels; ++i) {
      const float value = std::clamp(std::round(kGrey + kContrast * values[i]), 0.0F, 255.0F);
      image[place_of(i, image.size())] = static_cast<std::uint8_t>(value);
    }
  }

  at::Tensor decode(std::uint64_t number, std::uint64_t bytes) const {
    at::Tensor image = filled_tensor(bytes);
    draw(number, bytes_of(image));
    return image;
  }

  // Where the loaded set has an evaluation image; empty: it does not.
  std::span<std::uint8_t> in_evaluation_set(std::uint64_t number) const {
    if (evaluation_set.empty()) {
      return {};
    }
    const auto block = bytes_of(evaluation_set[number % evaluation_set.size()]);
    const std::size_t from = number / evaluation_set.size() * kPixels;
    return from + kPixels <= block.size() ? block.subspan(from, kPixels)
                                          : std::span<std::uint8_t>();
  }
};

Dataset::Dataset(const Plan& plan, std::uint64_t seed) : state_(std::make_unique<State>()) {
  state_->plan = plan;
  state_->seed = seed;
  state_->patterns = noise({kClasses, 3, kImageSide, kImageSide}, random_bits(seed, 0));
}

Dataset::~Dataset() = default;

Sample Dataset::get(std::uint64_t number) {
  const std::uint64_t cached_bytes = state_->plan.sample_bytes;
  if (cached_bytes == 0) {
    return {resized(bytes_of(state_->decode(number, kPixels))), state_->label(number)};
  }
  at::Tensor& image = sample_cache()[{state_->seed, cached_bytes}][number];
  if (!image.defined()) {
    image = state_->decode(number, cached_bytes);
  }
  return {resized(bytes_of(image)), state_->label(number)};
}

Sample Dataset::get_for_evaluation(std::uint64_t number) const {
  const std::uint64_t unique_number = kEvaluationSamples + number;
  if (const auto image = state_->in_evaluation_set(number); !image.empty()) {
    return {resized(image), state_->label(unique_number)};
  }
  return {resized(bytes_of(state_->decode(unique_number, kPixels))), state_->label(unique_number)};
}

Status Dataset::load_evaluation_set() {
  return catch_torch_errors("evaluation set", [&]() -> Status {
    const Plan& plan = state_->plan;
    add_filled_blocks(state_->evaluation_set, plan.eval_bytes, kSetBlockBytes);
    for (std::uint64_t number = 0; number < plan.eval_batches * plan.batch; ++number) {
      if (const auto image = state_->in_evaluation_set(number); !image.empty()) {
        state_->draw(kEvaluationSamples + number, image);
      }
    }
    return ok();
  });
}

void Dataset::drop_evaluation_set() { state_->evaluation_set.clear(); }

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
