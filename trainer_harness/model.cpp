// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/model.h"

#include <torch/cuda.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/optim/adam.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>
#include <utility>
#include <vector>

#include "common/atomic_file.h"
#include "trainer_harness/tensors.h"

namespace tidemark::harness {
namespace {

namespace nn = torch::nn;

// An image of 16x16 becomes 16 tokens for a transformer block.
class VisionNet : public nn::Module {
 public:
  VisionNet()
      : first_(
            register_module("first", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)))),
        second_(register_module("second",
                                nn::Conv2d(nn::Conv2dOptions(8, kWidth, 3).stride(2).padding(1)))),
        block_(register_module(
            "block",
            nn::TransformerEncoderLayer(
                nn::TransformerEncoderLayerOptions(kWidth, 2).dim_feedforward(32).dropout(0)))),
        classifier_(register_module("classifier", nn::Linear(kWidth, kClasses))) {}

  torch::Tensor forward(const torch::Tensor& pixels) {
    torch::Tensor features = torch::relu(second_(torch::relu(first_(pixels))));
    // [images, width, 4, 4] -> [tokens, images, width]
    return classifier_(block_(features.flatten(2).permute({2, 0, 1})).mean(0));
  }

 private:
  static constexpr std::int64_t kWidth = 16;
  nn::Conv2d first_;
  nn::Conv2d second_;
  nn::TransformerEncoderLayer block_;
  nn::Linear classifier_;
};

torch::optim::AdamOptions adam_options() { return torch::optim::AdamOptions(1e-3); }

}  // namespace

struct Model::State {
  torch::Device device = torch::kCPU;
  std::shared_ptr<VisionNet> net;
  std::unique_ptr<torch::optim::Adam> adam;

  torch::Tensor graph_scale;          // what the kept losses depend on
  std::vector<torch::Tensor> losses;  // with their graphs: the leak

  // The state of this optimizer grows; its parameters and gradients are views of two tensors.
  std::unique_ptr<torch::optim::Adam> growing;
  torch::Tensor shared_values;
  torch::Tensor shared_gradient;

  torch::Tensor loss_of(const Batch& batch) const {
    const torch::Tensor pixels = batch.pixels.to(device, /*non_blocking=*/true);
    const torch::Tensor labels = batch.labels.to(device, /*non_blocking=*/true);
    return torch::cross_entropy_loss(net->forward(pixels), labels);
  }
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::create(Device device, std::uint64_t seed) {
  return catch_torch_errors("cannot make the model", [&]() -> Result<std::unique_ptr<Model>> {
    const bool has_cuda = torch::cuda::is_available();
    if (device == Device::kCuda && !has_cuda) {
      return Error{Errc::kUnsupported, "libtorch finds no CUDA device; try --device cpu"};
    }
    auto state = std::make_unique<State>();
    if (has_cuda && device != Device::kCpu) {
      state->device = torch::Device(torch::kCUDA);
    }
    at::set_num_threads(1);  // buffers of more threads would add noise to the curve
    torch::manual_seed(seed);
    state->net = std::make_shared<VisionNet>();
    state->net->to(state->device);
    state->adam = std::make_unique<torch::optim::Adam>(state->net->parameters(), adam_options());
    return std::unique_ptr<Model>(new Model(std::move(state)));
  });
}

bool Model::on_gpu() const { return state_->device.is_cuda(); }
std::string_view Model::device_name() const { return on_gpu() ? "CUDA" : "CPU"; }

Result<double> Model::accumulate(const Batch& batch, std::uint64_t parts) {
  return catch_torch_errors("training step", [&]() -> Result<double> {
    const torch::Tensor loss = state_->loss_of(batch);
    (loss / static_cast<double>(parts)).backward();
    return loss.item<double>();
  });
}

Status Model::step() {
  return catch_torch_errors("optimizer step", [&]() -> Status {
    state_->adam->step();
    drop_gradients();
    return ok();
  });
}

void Model::drop_gradients() { state_->net->zero_grad(/*set_to_none=*/true); }

Result<double> Model::evaluate(const Batch& batch) {
  return catch_torch_errors("evaluation", [&]() -> Result<double> {
    const torch::NoGradGuard no_grad;
    state_->net->eval();
    const double loss = state_->loss_of(batch).item<double>();
    state_->net->train();
    return loss;
  });
}

Status Model::retain_graph(std::uint64_t bytes, LeakLines& lines) {
  return catch_torch_errors("loss with its graph", [&]() -> Status {
    State& state = *state_;
    if (!state.graph_scale.defined()) {
      state.graph_scale = torch::ones({1}, torch::requires_grad());
    }
    // The product saves its input and tanh its result, both of this size; nothing else is saved.
    const auto floats = static_cast<std::int64_t>(bytes / (2 * sizeof(float)));
    auto loss =
        noted(lines.allocating, (at::full({floats}, 0.5) * state.graph_scale).tanh().mean());
    state.losses.push_back(noted(lines.retaining, loss));
    return ok();
  });
}

Status Model::grow_optimizer(std::uint64_t bytes, LeakLines& lines) {
  return catch_torch_errors("growing optimizer", [&]() -> Status {
    State& state = *state_;
    if (!state.shared_values.defined()) {
      // Adam keeps two values per value of a parameter.
      const auto floats = static_cast<std::int64_t>(bytes / (2 * sizeof(float)));
      state.shared_values = torch::full({floats}, 0.5);
      state.shared_gradient = torch::full({floats}, 0.01);
      state.growing = std::make_unique<torch::optim::Adam>(
          std::vector<torch::Tensor>{torch::zeros({1}, torch::requires_grad())}, adam_options());
    }
    torch::Tensor parameter = state.shared_values.detach().requires_grad_();
    parameter.mutable_grad() = state.shared_gradient;
    state.growing->param_groups()[0].params().push_back(noted(lines.retaining, parameter));
    noted(lines.allocating, state.growing->step());
    parameter.mutable_grad().reset();  // from now on the optimizer skips it
    return ok();
  });
}

Status Model::save(const std::string& path, std::uint64_t step) const {
  return catch_torch_errors("cannot write the checkpoint", [&]() -> Status {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive net;
    torch::serialize::OutputArchive adam;
    state_->net->save(net);
    state_->adam->save(adam);
    archive.write("net", net);
    archive.write("adam", adam);
    archive.write("step", torch::tensor(static_cast<std::int64_t>(step)));
    // Through memory: where its own file cannot grow, libtorch ends the process from a destructor.
    std::ostringstream bytes;
    archive.save_to(bytes);
    return write_file_atomically(path, bytes.view());
  });
}

Result<std::uint64_t> Model::load(const std::string& path) {
  return catch_torch_errors("cannot read the checkpoint " + path, [&]() -> Result<std::uint64_t> {
    torch::serialize::InputArchive archive;
    torch::serialize::InputArchive net;
    torch::serialize::InputArchive adam;
    torch::Tensor step;
    archive.load_from(path, state_->device);
    archive.read("net", net);
    archive.read("adam", adam);
    archive.read("step", step);
    state_->net->load(net);
    state_->adam->load(adam);
    return static_cast<std::uint64_t>(step.item<std::int64_t>());
  });
}

}  // namespace tidemark::harness
