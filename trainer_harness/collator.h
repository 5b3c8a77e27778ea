// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "common/result.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

struct Sample;

// Synthetic images, each a pure function of seed and number. Images of one class share a pattern,
// so that there is something to learn. Not thread-safe.
class Dataset {
 public:
  Dataset(const Plan& plan, std::uint64_t seed);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  // Both throw what libtorch throws: for callers inside catch_torch_errors().
  // A training image. With a cache in the plan it is decoded only once.
  Sample get(std::uint64_t number);
  // An evaluation image, from the evaluation set when that is loaded.
  Sample get_for_evaluation(std::uint64_t number) const;

  // Loads the whole evaluation set, until it is dropped.
  Status load_evaluation_set();
  void drop_evaluation_set();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Batch;

// Makes batches from the images of a dataset, which must outlive it.
class Collator {
 public:
  // `on_gpu`: batches are in pinned memory, so that copies do not block.
  Collator(const Plan& plan, Dataset& dataset, bool on_gpu);
  ~Collator();
  Collator(const Collator&) = delete;
  Collator& operator=(const Collator&) = delete;

  // Micro-batch `part` of a step. Retains its originals when the plan has the collator leak.
  Result<std::shared_ptr<const Batch>> training_batch(std::uint64_t step, std::uint64_t part,
                                                      LeakLines& lines);
  Result<std::shared_ptr<const Batch>> evaluation_batch(std::uint64_t number);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark::harness
