// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "monitor/gpu/gpu_source.h"

namespace tidemark::monitor {

// A source whose driver may hang: it is opened and asked in a thread of its own, and whoever wants
// figures waits for a moment only. An answer that is late is given out next time, with its age.
// All calls come from one thread.
class GpuWatch final : public GpuSource {
 public:
  struct Options {
    std::function<Result<std::unique_ptr<GpuSource>>()> open = &open_gpu_source;
    std::chrono::milliseconds timeout{100};  // of one sample()
  };

  // Returns at once: the driver starts meanwhile.
  explicit GpuWatch(Options options);
  // A thread that the driver does not let go is left behind: see left_a_thread_behind().
  ~GpuWatch() override;
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Waits for the driver to start. What it said if it cannot be used; kIo while it says nothing.
  std::optional<Error> wait_until_open(std::chrono::milliseconds timeout);

  // It has said nothing yet.
  bool is_starting() const;

  // The newest figures, with the age of those that are not of this moment; none before the first
  // answer. An error when the driver refuses to answer.
  Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) override;
  // Of the last sample; 0 where it only repeated an older one.
  const GpuLosses& losses() const override { return losses_; }
  // Whether the last sample was an answer to its own question.
  bool is_fresh() const { return is_fresh_; }

  // Some driver holds a thread of this process. Then it must end by _exit(2): the library's own
  // clean-up could wait for that thread for ever.
  static bool left_a_thread_behind();

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // with the thread
  std::chrono::milliseconds timeout_;
  bool has_waited_in_vain_ = false;  // for the question that is still open
  bool is_fresh_ = false;
  GpuLosses losses_;
};

}  // namespace tidemark::monitor
