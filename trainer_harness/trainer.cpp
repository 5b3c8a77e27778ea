// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "api/tidemark.h"
#include "common/atomic_file.h"
#include "common/io.h"
#include "common/json_writer.h"
#include "common/text.h"
#include "common/units.h"
#include "trainer_harness/collator.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/model.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/scenario_memory.h"
#include "trainer_harness/truth.h"
#include "trainer_harness/workers.h"

namespace tidemark::harness {
namespace {

// Gives every step (and every batch of an evaluation) the same duration, so that the growth per
// second is known. A step that takes longer delays all later ones.
class Pacer {
 public:
  explicit Pacer(double step_time_s) : step_time_s_(step_time_s) {}

  // Sleeps until the time of the current step is over, or until the observer says stop.
  void wait(TrainerObserver& observer) {
    deadline_ +=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step_time_s_));
    deadline_ = std::max(deadline_, Clock::now());
    while (!observer.stop_requested()) {
      const auto left = deadline_ - Clock::now();
      if (left <= Clock::duration::zero()) {
        return;
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(left, kLongestSleep));
    }
  }
  double seconds() const {  // since the first step began
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLongestSleep{
      100};  // between two looks at stop_requested()

  double step_time_s_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_ = start_;
};

// Resident memory of this process; nullopt where /proc does not say.
std::optional<std::uint64_t> own_rss_bytes() {
  const auto text = read_file("/proc/self/statm");
  if (!text) {
    return std::nullopt;
  }
  const auto words = split(*text, ' ');
  const auto pages = words.size() > 1 ? parse_number<std::uint64_t>(words[1]) : std::nullopt;
  if (!pages) {
    return std::nullopt;
  }
  return *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Log lines for people on stdout, and one JSON line per step for a program on another descriptor. A
// reader that has gone is no reason to stop training.
class TrainLog {
 public:
  explicit TrainLog(const TrainerOptions& options)
      : log_every_(options.log_every), progress_fd_(options.progress_fd) {}

  void line(std::string_view text) { (void)write_all(STDOUT_FILENO, std::string(text) + "\n"); }
  void step(std::uint64_t step, double loss) {
    if (step % log_every_ == 0) {
      const auto rss_bytes = own_rss_bytes();
      line(fmt::format("Step {} loss={:.4f} rss={}", step, loss,
                       rss_bytes ? fmt::format("{}MB", *rss_bytes >> 20U) : "?"));
    }
    if (progress_fd_) {
      JsonWriter json;
      json.begin_object().field("step", step).field("loss", loss);
      json.field("rss_bytes", own_rss_bytes()).end_object();
      if (!write_all(*progress_fd_, json.take() + "\n")) {
        progress_fd_.reset();
      }
    }
  }

 private:
  std::uint64_t log_every_;
  std::optional<int> progress_fd_;
};

// Marks a phase during its lifetime, for Tidemark and for the observer.
class Phase {
 public:
  Phase(TrainerObserver& observer, const char* name) : observer_(observer), name_(name) {
    tidemark_phase_begin(name_);
    observer_.on_phase(name_, true);
  }
  ~Phase() {
    tidemark_phase_end(name_);
    observer_.on_phase(name_, false);
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  TrainerObserver& observer_;
  const char* name_;
};

// Without compile workers if the user has disabled them.
Plan plan_for(const TrainerOptions& options) {
  Plan plan = plan_run(options);
  if (compile_is_disabled()) {
    plan.pool.reset();
  }
  return plan;
}

std::optional<pid_t> wrapper_pid() {
  const char* const pid = std::getenv(kWrappedVariable);
  return pid != nullptr ? parse_number<pid_t>(pid) : std::nullopt;
}

class Run {
 public:
  Run(const TrainerOptions& options, TrainerObserver& observer)
      : options_(options),
        observer_(observer),
        plan_(plan_for(options)),
        log_(options),
        memory_(plan_, options, [this](std::string_view text) { log_.line(text); }) {}

  Result<TrainerOutcome> run();

 private:
  Status prepare();
  Status train_all();
  Result<double> train(std::uint64_t step);
  Status after_step(std::uint64_t step);
  Status evaluate(std::uint64_t step);
  Status checkpoint(std::uint64_t step);
  void clean_up(std::uint64_t step);
  Status write_new_lines();
  Status write_truth(bool complete);
  std::optional<double> seconds_per_step() const;

  const TrainerOptions& options_;
  TrainerObserver& observer_;
  const Plan plan_;
  TrainLog log_;
  ScenarioMemory memory_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Collator> collator_;
  std::optional<Pacer> pacer_;

  TrainerOutcome outcome_;
  std::uint64_t first_step_ = 1;
  std::uint64_t rate_from_step_ = 0;  // where the measured part of the run begins
  double rate_from_s_ = 0;
  double cleanup_s_ = 0;
  LeakLines written_lines_;
};

Status Run::prepare() {
  return_freed_blocks();
  TIDEMARK_TRY(write_truth(false));
  TIDEMARK_TRY(memory_.start_processes());
  TIDEMARK_TRY_ASSIGN(model_, Model::create(options_.device, options_.seed));
  dataset_ = std::make_unique<Dataset>(plan_, options_.seed);
  collator_ = std::make_unique<Collator>(plan_, *dataset_, model_->on_gpu());
  if (!options_.resume_path.empty()) {
    TIDEMARK_TRY_ASSIGN(const auto step, model_->load(options_.resume_path));
    outcome_.steps_done = step;
    first_step_ = step + 1;
    log_.line(fmt::format("Resumed {} at step {}", options_.resume_path, step));
  }
  // libtorch allocates on first use; that must happen before step 1.
  TIDEMARK_TRY_ASSIGN(const auto batch, collator_->evaluation_batch(0));
  TIDEMARK_TRY(model_->accumulate(*batch, 1));
  TIDEMARK_TRY(model_->evaluate(*batch));
  model_->drop_gradients();
  TIDEMARK_TRY(memory_.load(outcome_.steps_done));
  return write_truth(false);
}

Result<TrainerOutcome> Run::run() {
  Status done = prepare();
  if (done) {
    if (options_.scenarios.contains(Scenario::kCompileWorkers) && !plan_.pool) {
      log_.line("TORCH_COMPILE_DISABLE=1: no compile workers");
    }
    log_.line(fmt::format("Training on {}: {} of {:g} s, seed {}", model_->device_name(),
                          format_count(plan_.steps, "step"), plan_.step_time_s, options_.seed));
    done = train_all();
  }
  if (pacer_) {
    outcome_.seconds = pacer_->seconds();
  }
  // Written also after a failure, which is then the error that is reported.
  const Status written = write_truth(bool(done));
  if (!done) {
    return done.error();
  }
  if (!written) {
    return written.error();
  }
  return outcome_;
}

Status Run::train_all() {
  pacer_.emplace(plan_.step_time_s);
  rate_from_step_ = outcome_.steps_done;
  for (std::uint64_t step = first_step_; step <= plan_.steps; ++step) {
    if (observer_.stop_requested()) {
      outcome_.stopped = true;
      break;
    }
    if ((step - 1) % plan_.epoch_steps == 0) {
      tidemark_epoch(static_cast<std::int64_t>((step - 1) / plan_.epoch_steps) + 1);
    }
    if (options_.crash_at_step == step) {
      std::abort();
    }
    TIDEMARK_TRY_ASSIGN(const auto loss, train(step));
    tidemark_step(static_cast<std::int64_t>(step));
    outcome_.steps_done = step;
    outcome_.last_loss = loss;
    log_.step(step, loss);
    observer_.on_step(step, loss);
    pacer_->wait(observer_);
    TIDEMARK_TRY(after_step(step));
  }
  return options_.checkpoint_path.empty() ? ok() : checkpoint(outcome_.steps_done);
}

Result<double> Run::train(std::uint64_t step) {
  double sum = 0;
  for (std::uint64_t part = 0; part < kMicroBatches; ++part) {
    TIDEMARK_TRY_ASSIGN(const auto batch, collator_->training_batch(step, part, memory_.lines()));
    TIDEMARK_TRY_ASSIGN(const auto loss, model_->accumulate(*batch, kMicroBatches));
    sum += loss;
  }
  TIDEMARK_TRY(model_->step());
  TIDEMARK_TRY(memory_.on_step(step, *model_));
  TIDEMARK_TRY(write_new_lines());
  return sum / kMicroBatches;
}

Status Run::after_step(std::uint64_t step) {
  const auto is_due = [&](std::uint64_t every) { return every > 0 && step % every == 0; };
  if (is_due(plan_.cleanup_every)) {
    clean_up(step);
  }
  Status done = ok();
  if (is_due(plan_.eval_every)) {
    done = evaluate(step);
  }
  if (done && is_due(plan_.checkpoint_every)) {
    done = checkpoint(step);
    if (done) {
      done = memory_.on_checkpoint();
    }
    if (done) {
      done = write_new_lines();
    }
  }
  if (plan_.leak && step == plan_.leak->after_step) {
    rate_from_step_ = step;
    rate_from_s_ = pacer_->seconds();
  }
  return done;
}

// At once: the run may be killed before its end.
Status Run::write_new_lines() {
  return memory_.lines() == written_lines_ ? ok() : write_truth(false);
}

Status Run::evaluate(std::uint64_t step) {
  const Phase phase(observer_, "eval");
  TIDEMARK_TRY(dataset_->load_evaluation_set());
  double sum = 0;
  for (std::uint64_t i = 0; i < plan_.eval_batches; ++i) {
    TIDEMARK_TRY_ASSIGN(const auto batch, collator_->evaluation_batch(i));
    TIDEMARK_TRY_ASSIGN(const auto loss, model_->evaluate(*batch));
    sum += loss;
    pacer_->wait(observer_);
  }
  dataset_->drop_evaluation_set();
  log_.line(
      fmt::format("Step {} eval_loss={:.4f}", step, sum / static_cast<double>(plan_.eval_batches)));
  return ok();
}

Status Run::checkpoint(std::uint64_t step) {
  const Phase phase(observer_, "checkpoint");
  if (options_.checkpoint_path.empty()) {
    return ok();
  }
  const Status saved = model_->save(options_.checkpoint_path, step);
  if (saved) {
    log_.line(fmt::format("Step {} saved {}", step, options_.checkpoint_path));
  }
  return saved;
}

void Run::clean_up(std::uint64_t step) {
  const double begin_s = pacer_->seconds();
  model_->drop_gradients();
  memory_.clean_up();
  const double end_s = pacer_->seconds();
  cleanup_s_ += end_s - begin_s;
  log_.line(fmt::format("Step {} cleanup took {:.2f} ms, {:.2f} % of the time so far", step,
                        (end_s - begin_s) * 1e3, 100 * cleanup_s_ / end_s));
}

// If the run leaks: of the steps that leak.
std::optional<double> Run::seconds_per_step() const {
  if (!pacer_ || outcome_.steps_done <= rate_from_step_) {
    return std::nullopt;
  }
  return (outcome_.seconds - rate_from_s_) /
         static_cast<double>(outcome_.steps_done - rate_from_step_);
}

Status Run::write_truth(bool complete) {
  if (options_.truth_path.empty()) {
    return ok();
  }
  RunFacts facts;
  facts.complete = complete;
  facts.first_step = first_step_;
  facts.steps_done = outcome_.steps_done;
  facts.seconds_per_step = complete ? seconds_per_step() : std::nullopt;
  if (complete) {
    facts.seconds = outcome_.seconds;
  }
  facts.lines = memory_.lines();
  written_lines_ = facts.lines;
  facts.processes = memory_.processes();
  facts.wrapper_pid = wrapper_pid();
  if (facts.wrapper_pid) {
    facts.processes.insert(facts.processes.begin(), {*facts.wrapper_pid, "wrapper"});
  }
  return write_file_atomically(options_.truth_path, truth_json(options_, plan_, facts));
}

}  // namespace

Result<TrainerOutcome> run_trainer(const TrainerOptions& options, TrainerObserver& observer) {
  return Run(options, observer).run();
}

}  // namespace tidemark::harness
