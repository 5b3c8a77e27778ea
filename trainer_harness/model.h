// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "trainer_harness/options.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

struct Batch;

// A small vision model (convolutions, a transformer block, a classifier) with Adam, on the CPU or
// a GPU. Not thread-safe.
class Model {
 public:
  // kUnsupported: there is no CUDA device, but one was asked for.
  static Result<std::unique_ptr<Model>> create(Device device, std::uint64_t seed);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  bool on_gpu() const;
  std::string_view device_name() const;  // "CPU" or "CUDA"

  // Adds the gradients of one of `parts` micro-batches; returns the loss.
  Result<double> accumulate(const Batch& batch, std::uint64_t parts);
  // Updates the weights and drops the gradients.
  Status step();
  void drop_gradients();
  Result<double> evaluate(const Batch& batch);

  // Computes a loss and keeps it with its graph, which holds `bytes`.
  Status retain_graph(std::uint64_t bytes, LeakLines& lines);
  // Adds a parameter whose state in the optimizer has `bytes`.
  Status grow_optimizer(std::uint64_t bytes, LeakLines& lines);

  // Writes weights, optimizer state and step. The file is replaced atomically.
  Status save(const std::string& path, std::uint64_t step) const;
  // Returns the step of the checkpoint.
  Result<std::uint64_t> load(const std::string& path);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tidemark::harness
