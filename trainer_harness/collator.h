// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "common/result.h"
#include "trainer_harness/dataset.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

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
