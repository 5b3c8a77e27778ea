// SPDX-License-Identifier: Apache-2.0
#include "live/interventions.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/quiet_thread.h"
#include "common/units.h"
#include "monitor/procfs/process_handle.h"
#include "tracker/causes/intervention_effect.h"

namespace tidemark::live {
namespace {

using collect::InterventionAnswer;
using collect::PlannedIntervention;
using tracker::FootprintPoint;

constexpr std::int64_t kSampleEveryNs = kNsPerSecond / 10;
constexpr std::int64_t kAfterNs = kNsPerSecond;

bool is_of_allocator(InterventionKind kind) {
  return kind == InterventionKind::kTrim || kind == InterventionKind::kJemalloc ||
         kind == InterventionKind::kTcmalloc || kind == InterventionKind::kMimalloc;
}

Error cancelled() { return {Errc::kIo, "it was given up", EINTR}; }

// One process, and the probe in it.
class Interventions {
 public:
  Interventions(const ProcessKey& key, const InterventionOptions& options, std::int64_t begun_ns,
                const InterventionListener& listener)
      : key_(key), options_(options), begun_ns_(begun_ns), listener_(listener) {}

  Status run();

 private:
  double now_s() const { return to_seconds(clock_.monotonic_ns() - begun_ns_); }
  void start_probe();
  Status take(const PlannedIntervention& step);
  Status intervene(const PlannedIntervention& step);
  Result<InterventionAnswer> call(const PlannedIntervention& step);
  void read(const PlannedIntervention& step) const;
  void record_problem(const PlannedIntervention& step, const std::string& problem,
                      bool is_absent) const;
  Result<std::vector<FootprintPoint>> sample(std::int64_t for_ns);
  InterventionRecord record_of(const PlannedIntervention& step) const;

  const ProcessKey key_;
  const InterventionOptions& options_;
  const std::int64_t begun_ns_;
  const InterventionListener& listener_;
  const SystemClock clock_;
  collect::InterventionPlan plan_;
  std::optional<monitor::ProcessHandle> process_;
  std::optional<inject::Probe> probe_;
};

Status Interventions::run() {
  TIDEMARK_TRY_ASSIGN(auto process, monitor::ProcessHandle::open("/proc", key_));
  process_.emplace(std::move(process));
  TIDEMARK_TRY_ASSIGN(plan_, collect::plan_interventions(key_.pid, options_.choice));
  start_probe();
  for (auto step = plan_.steps.begin(); step != plan_.steps.end(); ++step) {
    Status done = take(*step);
    if (!done) {
      std::for_each(step, plan_.steps.end(), [&](const PlannedIntervention& undone) {
        record_problem(undone, done.error().what, /*is_absent=*/false);
      });
      return done;
    }
  }
  return plan_.allowed;
}

Status Interventions::take(const PlannedIntervention& step) {
  if (listener_.is_cancelled()) {
    return cancelled();
  }
  if (step.is_reading()) {
    read(step);
    return ok();
  }
  const std::string problem = !step.problem.empty() ? step.problem
                              : !plan_.allowed      ? plan_.allowed.error().what
                                                    : "";
  if (!problem.empty()) {
    record_problem(step, problem, step.is_absent);
    return ok();
  }
  return intervene(step);
}

// Where that fails, it is the answer of all that need it.
void Interventions::start_probe() {
  const bool is_needed = std::any_of(
      plan_.steps.begin(), plan_.steps.end(),
      [](const PlannedIntervention& step) { return !step.is_reading() && step.problem.empty(); });
  if (!is_needed || !plan_.allowed) {
    return;
  }
  auto probe = collect::start_probe(key_.pid, options_.timeout_ns, listener_.is_cancelled);
  if (!probe) {
    plan_.allowed = probe.error();
    return;
  }
  probe_.emplace(*std::move(probe));
  constexpr double kNsPerMs = 1e6;
  listener_.on_note(
      fmt::format("pid {}: the probe is in it; one thread of it stood still for {:.1f} ms",
                  key_.pid, static_cast<double>(probe_->figures().thread_stopped_ns) / kNsPerMs));
}

InterventionRecord Interventions::record_of(const PlannedIntervention& step) const {
  InterventionRecord record;
  record.key = key_;
  record.kind = step.kind;
  record.t_s = now_s();
  return record;
}

void Interventions::record_problem(const PlannedIntervention& step, const std::string& problem,
                                   bool is_absent) const {
  InterventionRecord record = record_of(step);
  record.problem = problem;
  record.outcome = is_absent ? InterventionOutcome::kRuledOut : InterventionOutcome::kCannotTell;
  listener_.on_record(std::move(record));
}

void Interventions::read(const PlannedIntervention& step) const {
  InterventionRecord record = record_of(step);
  if (const auto part = collect::read_droppable(key_.pid, step.kind)) {
    record.before_bytes = part->whole_bytes;
    record.after_bytes = part->whole_bytes - std::min(part->whole_bytes, part->part_bytes);
    record.effect_bytes = static_cast<std::int64_t>(part->part_bytes);
    record.outcome = tracker::judge_share(part->part_bytes, part->whole_bytes);
  } else {
    record.problem = part.error().what;
  }
  listener_.on_record(std::move(record));
}

// The probe keeps hearing of us meanwhile.
Result<std::vector<FootprintPoint>> Interventions::sample(std::int64_t for_ns) {
  std::vector<FootprintPoint> points;
  const std::int64_t end_ns = clock_.monotonic_ns() + for_ns;
  while (clock_.monotonic_ns() < end_ns) {
    if (!probe_->wait(kSampleEveryNs)) {
      return listener_.is_cancelled()
                 ? cancelled()
                 : Error{Errc::kGone,
                         fmt::format("process {} has exited, or runs another program", key_.pid)};
    }
    TIDEMARK_TRY_ASSIGN(const auto status, process_->status());
    if (status.rss_anon_bytes && status.rss_shmem_bytes) {
      points.push_back({now_s(), *status.rss_anon_bytes + *status.rss_shmem_bytes +
                                     status.swap_bytes.value_or(0)});
    }
  }
  return points;
}

// What the collector frees goes to the allocator, which may keep it: the allocators are asked
// again, unless they are to be left alone.
Result<InterventionAnswer> Interventions::call(const PlannedIntervention& step) {
  TIDEMARK_TRY_ASSIGN(auto answer, collect::intervene(*probe_, step, options_.timeout_ns));
  if (step.kind == InterventionKind::kGc && answer.is_done) {
    for (const PlannedIntervention& other : plan_.steps) {
      if (is_of_allocator(other.kind)) {
        TIDEMARK_TRY(collect::intervene(*probe_, other, options_.timeout_ns));
      }
    }
  }
  return answer;
}

Status Interventions::intervene(const PlannedIntervention& step) {
  InterventionRecord record = record_of(step);
  listener_.on_note(fmt::format("pid {}: watching it, then {}", key_.pid, step.how));
  TIDEMARK_TRY_ASSIGN(const auto control, sample(options_.settle_ns + kAfterNs));
  record.t_s = now_s();
  TIDEMARK_TRY_ASSIGN(const InterventionAnswer answer, call(step));
  record.took_s = answer.took_s;
  record.waited_s = answer.waited_s;
  record.objects = answer.objects;
  record.gpu_bytes = answer.gpu_bytes;
  record.problem = answer.problem;
  if (!answer.is_done) {
    record.outcome =
        answer.is_absent ? InterventionOutcome::kRuledOut : InterventionOutcome::kCannotTell;
    listener_.on_record(std::move(record));
    return ok();
  }
  if (!probe_->wait(options_.settle_ns) && listener_.is_cancelled()) {
    return cancelled();
  }
  TIDEMARK_TRY_ASSIGN(const auto after, sample(kAfterNs));
  if (const auto effect = tracker::judge_effect(control, after)) {
    record.before_bytes = effect->before_bytes;
    record.after_bytes = effect->after_bytes;
    record.effect_bytes = effect->effect_bytes;
    record.noise_bytes = effect->noise_bytes;
    record.outcome = effect->outcome;
  } else {
    record.problem = "its footprint could not be read";
  }
  // It reaches what threads that have ended have left, and not what living ones keep.
  if (record.kind == InterventionKind::kMimalloc &&
      record.outcome == InterventionOutcome::kRuledOut) {
    record.outcome = InterventionOutcome::kCannotTell;
    record.problem = "mimalloc gives back what a thread keeps only if that thread asks for it";
  }
  listener_.on_record(std::move(record));
  return ok();
}

}  // namespace

Status intervene_in_process(const ProcessKey& key, const InterventionOptions& options,
                            std::int64_t begun_ns, const InterventionListener& listener) {
  return Interventions(key, options, begun_ns, listener).run();
}

void InterventionThread::begin(std::vector<ProcessKey> targets, double t_s) {
  {
    const std::lock_guard lock(mutex_);
    is_busy_ = true;
  }
  const std::int64_t begun_ns = SystemClock().monotonic_ns() - static_cast<std::int64_t>(t_s * 1e9);
  thread_ = start_quiet_thread(
      [this, targets = std::move(targets), begun_ns] { run(targets, begun_ns); });
}

bool InterventionThread::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_busy_;
}

InterventionThread::News InterventionThread::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void InterventionThread::cancel() {
  is_cancelled_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void InterventionThread::run(const std::vector<ProcessKey>& targets, std::int64_t begun_ns) {
  const InterventionListener listener = {[this](const std::string& text) {
                                           const std::lock_guard lock(mutex_);
                                           news_.notes.push_back(text);
                                         },
                                         [this](InterventionRecord record) {
                                           const std::lock_guard lock(mutex_);
                                           news_.records.push_back(std::move(record));
                                         },
                                         [this] { return is_cancelled_.load(); }};
  for (const ProcessKey& key : targets) {
    const Status done = intervene_in_process(key, options_, begun_ns, listener);
    const std::lock_guard lock(mutex_);
    if (!done) {
      news_.failures.push_back({key, done.error()});
    }
    if (is_cancelled_) {
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  is_busy_ = false;
}

}  // namespace tidemark::live
