// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/scenario_memory.h"

#include <unistd.h>

#include <utility>

#include "trainer_harness/native/image_decoder.h"

namespace tidemark::harness {
namespace {

bool is_due(std::uint64_t step, std::uint64_t every) { return every > 0 && step % every == 0; }

}  // namespace

ScenarioMemory::ScenarioMemory(const Plan& plan, const TrainerOptions& options, LogLine log_line)
    : plan_(plan), keep_shm_(options.keep_shm), log_line_(std::move(log_line)) {}

Status ScenarioMemory::start_processes() {
  if (plan_.copy_on_write) {
    TIDEMARK_TRY_ASSIGN(cow_workers_, CowWorkers::start(*plan_.copy_on_write));
  }
  if (plan_.pool) {
    TIDEMARK_TRY_ASSIGN(auto pool, CompilePool::start(*plan_.pool));
    pool_.emplace(std::move(pool));
  }
  if (plan_.leak && plan_.leak->cause == Cause::kShm) {
    TIDEMARK_TRY_ASSIGN(auto segments, ShmSegments::start(keep_shm_));
    segments_.emplace(std::move(segments));
  }
  return ok();
}

Status ScenarioMemory::load(std::uint64_t steps_done) {
  if (plan_.replayed) {
    TIDEMARK_TRY(held_.resize_to(replayed_bytes(*plan_.replayed, steps_done)));
  }
  return held_.load_training_set(plan_.base_bytes);
}

Status ScenarioMemory::on_step(std::uint64_t step, Model& model) {
  if (cow_workers_) {
    cow_workers_->on_step(step);
  }
  if (pool_ && step == plan_.pool->quits_after_step) {
    TIDEMARK_TRY(pool_->quiesce());
    log_line_("compile workers quit");
  }
  if (is_due(step, plan_.collect_every)) {
    held_.collect_cycles();
  }
  if (step == plan_.fragment_until_step + 1) {
    held_.free_fragments();
  }
  Status done = ok();
  if (plan_.cycle_bytes_per_step > 0) {
    done = held_.make_cycle(plan_.cycle_bytes_per_step);
  }
  if (done && plan_.fragment_bytes_per_step > 0 && step <= plan_.fragment_until_step) {
    done = held_.make_fragments(plan_.fragment_bytes_per_step);
  }
  if (done && plan_.replayed) {
    done = held_.resize_to(replayed_bytes(*plan_.replayed, step));
  }
  if (done && plan_.leak && step > plan_.leak->after_step) {
    done = leak(model);
  }
  return done;
}

Status ScenarioMemory::leak(Model& model) {
  const std::uint64_t bytes = plan_.leak->bytes_per_step;
  switch (plan_.leak->cause) {
    case Cause::kCollator:
      return ok();  // the collator itself
    case Cause::kAutograd:
      return model.retain_graph(bytes, lines_);
    case Cause::kOptimizer:
      return model.grow_optimizer(bytes, lines_);
    case Cause::kNative:
      harness_decode_image(bytes);
      if (!lines_.allocating) {
        lines_.allocating = source_line("trainer_harness/native/image_decoder.c",
                                        static_cast<unsigned>(harness_decoder_leaking_line()));
      }
      return ok();
    case Cause::kShm:
      return segments_->leak_one(bytes, lines_);
    case Cause::kPinned:
      break;
  }
  TIDEMARK_TRY_ASSIGN(const auto locked, held_.retain_pinned(bytes, model.on_gpu(), lines_));
  if (!locked && !std::exchange(warned_, true)) {
    log_line_("reached the limit on locked memory (ulimit -l): further buffers are not locked");
  }
  return ok();
}

Status ScenarioMemory::on_checkpoint() {
  return plan_.checkpoint_bytes > 0 ? held_.retain_copy(plan_.checkpoint_bytes, lines_) : ok();
}

void ScenarioMemory::clean_up() { held_.collect_cycles(); }

std::vector<TruthProcess> ScenarioMemory::processes() const {
  std::vector<TruthProcess> all = {{::getpid(), "trainer"}};
  if (pool_) {
    all.push_back({pool_->sidecar(), "compile_worker"});
    for (const pid_t worker : pool_->workers()) {
      all.push_back({worker, "compile_worker"});
    }
  }
  if (cow_workers_) {
    for (const pid_t worker : cow_workers_->workers()) {
      all.push_back({worker, "dataloader_worker"});
    }
  }
  if (segments_ && segments_->manager()) {
    all.push_back({*segments_->manager(), "shm_manager"});
  }
  return all;
}

}  // namespace tidemark::harness
