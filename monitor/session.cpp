// SPDX-License-Identifier: Apache-2.0
#include "monitor/session.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

constexpr double kStretchesPerWindow = 256.0;

// No sample for this many intervals: somebody stopped us, or the machine, and a reader must know.
constexpr std::int64_t kGapIntervals = 3;
// Batch systems change limits under a running job; reading them takes a quarter of a millisecond.
constexpr double kLimitEveryS = 30.0;
// For the GPU driver to start; without a resident driver that takes seconds, and comes later then.
constexpr std::chrono::milliseconds kGpuStartTimeout{1000};

void add_loss(Tick& tick, LossKind what, std::uint64_t count) {
  if (count > 0) {
    tick.losses.push_back({tick.t_s, what, count});
  }
}

pid_t first_of(const TreeRoots& roots) {
  return roots.keys.empty() ? ::getpid() : roots.keys.front().pid;
}

// Whose limits count: those of a process, or, without one, the machine's.
std::optional<pid_t> limits_of(const TreeRoots& roots, const ProcessRecord* trainer) {
  if (roots.everything) {
    return std::nullopt;
  }
  return trainer != nullptr ? trainer->key.pid : first_of(roots);
}

// A sample of the GPUs may take a quarter of the time between two ticks.
GpuWatch::Options gpu_options(const SessionOptions& options) {
  GpuWatch::Options gpu;
  const std::chrono::nanoseconds share(options.interval_ns / 4);
  gpu.timeout = std::min(gpu.timeout, std::chrono::duration_cast<std::chrono::milliseconds>(share));
  return gpu;
}

// The /dev/shm of the job. One that is not ours is a container's own: what is in it was made there.
ShmWatch::Options shm_options(const TreeRoots& roots) {
  ShmWatch::Options options;
  options.counts_all = roots.everything;
  if (std::string directory = shm_directory_of("/proc", first_of(roots)); !directory.empty()) {
    options.counts_all |= directory != options.directory;
    options.directory = std::move(directory);
  }
  return options;
}

}  // namespace

GrowthWarning::GrowthWarning(Rate rate) : rate_(rate) {}

std::optional<GrowthWarning::Warning> GrowthWarning::add(double at, std::uint64_t bytes) {
  if (!lows_.empty() && at < lows_.back().from) {
    lows_.clear();  // time went backwards: another clock, another window
  }
  // The last sample is kept however old it is: a window may be shorter than the time between two.
  while (lows_.size() > 1 && lows_.front().at < at - rate_.per) {
    lows_.pop_front();
  }
  if (lows_.empty() || at - lows_.back().from >= rate_.per / kStretchesPerWindow) {
    lows_.push_back({at, at, bytes});
  } else if (bytes <= lows_.back().bytes) {
    lows_.back().at = at;
    lows_.back().bytes = bytes;
  }
  const Low* lowest = &lows_.front();
  for (const Low& low : lows_) {
    if (low.bytes <= lowest->bytes) {
      lowest = &low;
    }
  }
  const std::uint64_t growth = bytes - lowest->bytes;
  const double over = at - lowest->at;
  const double windows = std::max(over / rate_.per, 1.0);
  if (growth == 0 || static_cast<double>(growth) < rate_.bytes * windows) {
    return std::nullopt;
  }
  const Warning warning{growth, over};
  lows_.clear();
  lows_.push_back({at, at, bytes});
  return warning;
}

Rate default_growth_rate(std::uint64_t limit_bytes) {
  return {0.05 * static_cast<double>(limit_bytes), RateUnit::kSecond, 60.0};
}

Session::Session(SessionOptions options, const Clock& clock, std::unique_ptr<Sampler> sampler,
                 std::unique_ptr<GpuWatch> gpu)
    : options_(std::move(options)),
      clock_(clock),
      start_wall_ns_(clock.wall_ns() - (clock.monotonic_ns() - options_.start_ns)),
      sampler_(std::move(sampler)),
      system_(options_.machine_root, limits_of(options_.sampler.roots, nullptr)),
      shm_(shm_options(options_.sampler.roots), clock),
      gpu_(std::move(gpu)),
      markers_({.run_start_ns = options_.start_ns}) {
  if (options_.warn_growth) {
    warning_.emplace(*options_.warn_growth);
  } else if (options_.warn && limit().bytes) {
    warning_.emplace(default_growth_rate(*limit().bytes));
  }
}

Result<std::unique_ptr<Session>> Session::start(SessionOptions options, ProcessSource& source,
                                                const Clock& clock) {
  auto gpu = std::make_unique<GpuWatch>(gpu_options(options));  // it starts meanwhile
  TIDEMARK_TRY_ASSIGN(auto sampler, Sampler::start(options.sampler, source, clock));
  std::unique_ptr<Session> session(
      new Session(std::move(options), clock, std::move(sampler), std::move(gpu)));
  session->take_first_sample();
  session->wait_for_the_gpu();
  return session;
}

// The limit of the trainer: a wrapper may have set one for its child.
void Session::refresh_limit() {
  const ProcessRecord* trainer = sampler_->trainer();
  limit_of_ = trainer != nullptr ? trainer->key : ProcessKey{};
  system_.refresh_limit(limits_of(options_.sampler.roots, trainer));
  if (options_.warn && !options_.warn_growth && limit().bytes) {
    const Rate rate = default_growth_rate(*limit().bytes);
    if (!warning_ || warning_->rate().bytes != rate.bytes) {
      warning_.emplace(rate);
    }
  }
}

// Ranks mark the same steps a moment apart: one of them counts, until it has gone.
bool Session::comes_from_the_step_source(const ProcessKey& key) {
  if (!step_source_ || (step_source_->pid != 0 && sampler_->find(*step_source_) == nullptr)) {
    step_source_ = key;
  }
  return *step_source_ == key;
}

Session::~Session() {
  std::vector<MarkerRecord> too_late;
  markers_.finish(clock_.monotonic_ns(), too_late);
}

// Before the run is described: only a sample shows which process is the trainer.
void Session::take_first_sample() {
  first_ = sampler_->sample(to_seconds(clock_.monotonic_ns() - options_.start_ns));
  refresh_limit();
  next_limit_s_ = first_->t_s + kLimitEveryS;
  physical_bytes_ = system_.sample().total_bytes;
  if (!limit().note.empty()) {
    notes_.push_back(limit().note);
  }
}

// Without a GPU there is nothing to report; a driver that does not answer yet may do so later.
void Session::wait_for_the_gpu() {
  const auto problem = gpu_->wait_until_open(kGpuStartTimeout);
  if (!problem) {
    return;
  }
  if (problem->code == Errc::kUnsupported) {
    no_gpu_ = problem->what;
  } else {
    notes_.push_back("GPU memory is unknown: " + problem->what);
  }
  if (!gpu_->is_starting()) {
    gpu_.reset();
  }
}

Tick Session::sample(std::int64_t due_ns, std::vector<MarkerRecord> from_log,
                     std::vector<LossRecord> losses) {
  const std::int64_t now = clock_.monotonic_ns();
  Tick tick = first_ ? *std::exchange(first_, std::nullopt)
                     : sampler_->sample(to_seconds(now - options_.start_ns));
  tick.late_s = to_seconds(std::max<std::int64_t>(0, now - due_ns));
  add_gap(tick);
  add_system(tick);
  add_gpus(tick);
  add_markers(tick, std::move(from_log));
  add_warning(tick);
  for (LossRecord& loss : losses) {
    loss.t_s = tick.t_s;
    tick.losses.push_back(std::move(loss));
  }
  summary_.add(tick);
  return tick;
}

void Session::add_losses(const std::vector<LossRecord>& losses) {
  for (const LossRecord& loss : losses) {
    summary_.lose(loss);
  }
}

void Session::add_gap(Tick& tick) {
  const double since_s = tick.t_s - last_sample_s_.value_or(tick.t_s);
  last_sample_s_ = tick.t_s;
  if (since_s > to_seconds(kGapIntervals * options_.interval_ns)) {
    tick.events.push_back(
        {tick.t_s, EventKind::kGap, {}, fmt::format("no sample for {}", format_duration(since_s))});
  }
}

void Session::add_system(Tick& tick) {
  const ProcessRecord* trainer = sampler_->trainer();
  if (tick.t_s >= next_limit_s_ || (trainer != nullptr && trainer->key != limit_of_)) {
    refresh_limit();
    next_limit_s_ = tick.t_s + kLimitEveryS;
  }
  tick.system = system_.sample();
  shm_.sample(*tick.system, sampler_->members());
  if (const OomKills kills = system_.new_oom_kills(); kills.count > 0) {
    const char* where = kills.whole_machine ? "somewhere on this machine" : "in the control group";
    tick.events.push_back({tick.t_s,
                           EventKind::kOomKill,
                           {},
                           fmt::format("the kernel's OOM killer ended {} {} {}", kills.count,
                                       kills.count == 1 ? "process" : "processes", where),
                           kills.count});
  }
}

void Session::add_gpus(Tick& tick) {
  if (gpu_ == nullptr) {
    return;
  }
  std::vector<pid_t> pids;
  for (const ProcessSample& sample : tick.processes) {
    pids.push_back(sample.key.pid);
  }
  if (auto gpus = gpu_->sample(pids); gpus) {
    tick.gpus = *std::move(gpus);
    add_loss(tick, LossKind::kGpuLate, gpu_->is_fresh() ? 0 : 1);
    add_lost_gpus(tick);
  } else {
    tick.losses.push_back({tick.t_s, LossKind::kGpuUnreadable, 1});
    tell_gpu_failure(gpus.error().what);
  }
  const GpuLosses& losses = gpu_->losses();
  tell_gpu_failure(losses.last_failure);
  add_loss(tick, LossKind::kGpuProcessesUnmapped, losses.unmapped_processes);
  add_loss(tick, LossKind::kGpuQueriesFailed, losses.failed_queries);
}

// The losses count them; a few are told with their reason, each once.
void Session::tell_gpu_failure(const std::string& failure) {
  constexpr std::size_t kMost = 3;
  if (!failure.empty() && gpu_failures_.size() < kMost && gpu_failures_.insert(failure).second) {
    news_.push_back("figures of a GPU are missing: " + failure);
  }
}

void Session::add_lost_gpus(Tick& tick) {
  for (const GpuSample& gpu : tick.gpus) {
    if (!gpu.is_lost) {
      lost_gpus_.erase(gpu.index);
    } else if (lost_gpus_.insert(gpu.index).second) {
      tick.events.push_back({tick.t_s,
                             EventKind::kGpuLost,
                             {},
                             fmt::format("{} {} no longer answers its driver; the kernel's log "
                                         "tells why (dmesg | grep Xid)",
                                         gpu_label(gpu.index), gpu.name)});
    }
  }
}

void Session::add_markers(Tick& tick, std::vector<MarkerRecord> from_log) {
  tick.markers = std::move(from_log);
  markers_.poll(sampler_->members(), clock_.monotonic_ns(), tick.markers);
  std::stable_sort(tick.markers.begin(), tick.markers.end(),
                   [](const MarkerRecord& a, const MarkerRecord& b) { return a.t_s < b.t_s; });
  for (const MarkerRecord& marker : tick.markers) {
    if (marker.kind == MarkerKind::kStep && comes_from_the_step_source(marker.key)) {
      step_ = marker.value;
    } else if (marker.kind == MarkerKind::kEpoch) {
      epoch_ = marker.value;
    }
  }
  add_loss(tick, LossKind::kMarkersLost, markers_.take_lost());
  const std::uint64_t unreadable = markers_.unreadable_files();
  add_loss(tick, LossKind::kMarkerFilesUnreadable,
           unreadable - std::min(unreadable, unreadable_markers_));
  unreadable_markers_ = unreadable;
  tick.step = step_;
  tick.epoch = epoch_;
}

void Session::add_warning(Tick& tick) {
  if (!warning_ || tick.tree.processes == 0 || !tick.tree.footprint_bytes) {
    return;
  }
  const bool per_step = warning_->rate().unit == RateUnit::kStep;
  if (per_step && !tick.step) {
    return;
  }
  const double at = per_step ? static_cast<double>(steps_.add(*tick.step)) : tick.t_s;
  if (const auto warning = warning_->add(at, *tick.tree.footprint_bytes)) {
    const std::string over =
        per_step ? fmt::format("{:.0f} steps", warning->over) : format_duration(warning->over);
    tick.events.push_back(
        {tick.t_s,
         EventKind::kWarnGrowth,
         {},
         fmt::format("the tree grew by {} within {}", format_bytes(warning->growth_bytes), over)});
  }
}

RunInfo Session::describe() const {
  RunInfo info;
  utsname name{};
  if (::uname(&name) == 0) {
    info.host = name.nodename;
    info.kernel = fmt::format("{} {}", name.sysname, name.release);
  }
  info.format = "tidemark";
  info.start_wall_ns = start_wall_ns_;
  info.physical_bytes = physical_bytes_;
  info.limit_bytes = limit().bytes;
  info.limit_source = limit().source;
  info.interval_s = to_seconds(options_.interval_ns);
  return info;
}

}  // namespace tidemark::monitor
