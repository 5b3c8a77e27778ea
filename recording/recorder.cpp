// SPDX-License-Identifier: Apache-2.0
#include "recording/recorder.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "common/quiet_thread.h"

namespace tidemark::recording {

namespace {

std::size_t bytes_of(const ProcessRecord& process) {
  return sizeof process + process.comm.size() + process.argv.size();
}

std::size_t allocation_bytes(const AllocationFacts& facts) {
  std::size_t bytes = facts.samples.size() * sizeof(SiteSample);
  for (const ModuleRecord& module : facts.modules) {
    bytes += sizeof module + module.path.size() + module.build_id.size();
  }
  for (const FrameRecord& frame : facts.frames) {
    bytes += sizeof frame + frame.function.size() + frame.file.size();
  }
  for (const SiteRecord& site : facts.sites) {
    bytes += sizeof site + site.frames.size() * sizeof(std::uint32_t);
  }
  for (const SiteAges& ages : facts.ages) {
    bytes += sizeof ages + ages.intervals.size() * sizeof(SiteAges::Interval);
  }
  for (const TraceSample& trace : facts.traces) {
    bytes += sizeof trace + trace.problem.size();
  }
  bytes += facts.accounts.size() * sizeof(MemoryAccount);
  bytes += facts.untraced.size() * sizeof(UntracedProcess);
  if (facts.shm) {
    for (const GrowingSegment& segment : facts.shm->largest) {
      bytes += sizeof segment + segment.path.size();
    }
  }
  return bytes;
}

std::size_t bytes_of(const HeapFacts::OfProcess& of) {
  std::size_t bytes = sizeof of + of.look.detour.size() + of.look.problem.size();
  for (const OwnerSample& sample : of.owners) {
    bytes += sizeof sample + sample.shared_with.size() + sample.sites.size() * sizeof(OwnerSite);
    for (const HeldObjects& held : sample.holds) {
      bytes += sizeof held + held.type.size() + held.shape.size() * sizeof(std::int64_t);
    }
  }
  for (const TypeSample& type : of.types) {
    bytes += sizeof type + type.type.size();
  }
  for (const TensorSample& tensor : of.tensors) {
    bytes += sizeof tensor + tensor.shape.size() * sizeof(std::int64_t);
  }
  return bytes;
}

std::size_t heap_bytes(const HeapFacts& facts) {
  std::size_t bytes = 0;
  for (const OwnerRecord& owner : facts.owners) {
    bytes += sizeof owner + owner.path.size() + owner.type.size();
    for (const PathStep& step : owner.steps) {
      bytes += sizeof step + step.label.size() + step.type.size();
    }
  }
  for (const HeapFacts::OfProcess& of : facts.looks) {
    bytes += bytes_of(of);
  }
  return bytes;
}

std::size_t ledger_bytes(const std::vector<MemoryLedger>& ledgers) {
  std::size_t bytes = 0;
  for (const MemoryLedger& ledger : ledgers) {
    bytes += sizeof ledger + ledger.problem.size();
    for (const LedgerRow& row : ledger.rows) {
      bytes += sizeof row + row.name.size();
    }
  }
  return bytes;
}

std::size_t facts_bytes(const Tick& tick) {
  std::size_t bytes = 0;
  for (const ProcessRecord& process : tick.new_processes) {
    bytes += bytes_of(process);
  }
  for (const MarkerRecord& marker : tick.markers) {
    bytes += sizeof marker + marker.name.size();
  }
  for (const EventRecord& event : tick.events) {
    bytes += sizeof event + event.detail.size();
  }
  for (const LossRecord& loss : tick.losses) {
    bytes += sizeof loss + loss.what.text().size();
  }
  for (const InterventionRecord& intervention : tick.interventions) {
    bytes += sizeof intervention + intervention.problem.size();
  }
  return bytes + allocation_bytes(tick.allocations) + heap_bytes(tick.heap) +
         ledger_bytes(tick.ledgers);
}

std::uint64_t facts_count(const Tick& tick) {
  const AllocationFacts& facts = tick.allocations;
  return tick.new_processes.size() + tick.markers.size() + tick.events.size() + tick.losses.size() +
         facts.modules.size() + facts.frames.size() + facts.sites.size() + facts.samples.size() +
         facts.ages.size() + facts.traces.size() + facts.accounts.size() + facts.untraced.size() +
         (facts.shm ? 1U : 0U) + tick.heap.owners.size() + tick.heap.looks.size() +
         tick.interventions.size() + tick.ledgers.size();
}

template <typename T>
void prepend(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.begin(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Of two samples of one thing the later one counts; what the later tick does not name stays as the
// earlier one has it, because only what has changed is sampled.
template <typename T, typename Id>
void keep_latest(std::vector<T>& to, std::vector<T>&& from, Id id) {
  std::erase_if(from, [&](const T& old) {
    return std::any_of(to.begin(), to.end(), [&](const T& now) { return id(now) == id(old); });
  });
  prepend(to, std::move(from));
}

void keep_latest_samples(std::vector<SiteSample>& to, std::vector<SiteSample>&& from) {
  std::unordered_set<std::uint32_t> named;
  for (const SiteSample& sample : to) {
    named.insert(sample.site);
  }
  std::erase_if(from, [&](const SiteSample& sample) { return named.contains(sample.site); });
  prepend(to, std::move(from));
}

void prepend_allocations(AllocationFacts& to, AllocationFacts&& from) {
  prepend(to.modules, std::move(from.modules));
  prepend(to.frames, std::move(from.frames));
  prepend(to.sites, std::move(from.sites));
  keep_latest_samples(to.samples, std::move(from.samples));
  keep_latest(to.ages, std::move(from.ages), [](const SiteAges& b) { return b.site; });
  keep_latest(to.traces, std::move(from.traces), [](const TraceSample& t) { return t.key; });
  keep_latest(to.accounts, std::move(from.accounts),
              [](const MemoryAccount& account) { return account.key; });
  keep_latest(to.untraced, std::move(from.untraced),
              [](const UntracedProcess& process) { return process.key; });
  if (!to.shm) {
    to.shm = std::move(from.shm);
  }
}

void prepend_heap(HeapFacts& to, HeapFacts&& from) {
  prepend(to.owners, std::move(from.owners));
  keep_latest(to.looks, std::move(from.looks),
              [](const HeapFacts::OfProcess& of) { return of.look.key; });
}

void prepend_facts(Tick& to, Tick&& from) {
  prepend(to.new_processes, std::move(from.new_processes));
  prepend(to.markers, std::move(from.markers));
  prepend(to.events, std::move(from.events));
  prepend(to.losses, std::move(from.losses));
  prepend_allocations(to.allocations, std::move(from.allocations));
  prepend_heap(to.heap, std::move(from.heap));
  prepend(to.interventions, std::move(from.interventions));
  keep_latest(to.ledgers, std::move(from.ledgers),
              [](const MemoryLedger& ledger) { return ledger.key; });
}

void remove_facts(Tick& tick) {
  tick.new_processes.clear();
  tick.markers.clear();
  tick.events.clear();
  tick.losses.clear();
  tick.allocations = {};
  tick.heap = {};
  tick.interventions.clear();
  tick.ledgers.clear();
}

void add_loss(Tick& tick, LossKind what, std::uint64_t count) {
  if (count > 0) {
    tick.losses.push_back({tick.t_s, what, count});
  }
}

}  // namespace

std::size_t approximate_bytes(const Tick& tick) {
  std::size_t bytes = sizeof tick + facts_bytes(tick) +
                      tick.processes.size() * sizeof(ProcessSample) +
                      tick.roles.size() * sizeof(RoleSample);
  for (const GpuSample& gpu : tick.gpus) {
    bytes += sizeof gpu + gpu.name.size() + gpu.processes.size() * sizeof(GpuProcessUse);
  }
  return bytes;
}

bool PendingFacts::has_room_for(std::size_t bytes) {
  if (bytes_ + bytes > max_bytes_) {
    return false;
  }
  bytes_ += bytes;
  return true;
}

void PendingFacts::add_ended(const ProcessRecord& process) {
  if (has_room_for(bytes_of(process))) {
    ended_.push_back(process);
  } else {
    ++facts_lost_;
  }
}

void PendingFacts::add_dropped(Tick tick) {
  if (!has_room_for(facts_bytes(tick))) {
    facts_lost_ += facts_count(tick);
    remove_facts(tick);
  }
  if (dropped_) {
    prepend_facts(tick, std::move(*dropped_));
  }
  dropped_ = std::move(tick);
  ++ticks_;
}

void PendingFacts::move_into(Tick& tick) {
  if (dropped_) {
    prepend_facts(tick, std::move(*dropped_));
  }
  add_loss(tick, LossKind::kTicksDropped, std::exchange(ticks_, 0));
  add_loss(tick, LossKind::kFactsDropped, std::exchange(facts_lost_, 0));
  dropped_.reset();
  bytes_ = 0;
}

std::optional<Tick> PendingFacts::take_last_dropped() {
  std::optional<Tick> last = std::exchange(dropped_, std::nullopt);
  if (last) {
    --ticks_;  // this one is saved after all
    move_into(*last);
  }
  return last;
}

std::vector<ProcessRecord> PendingFacts::take_ended() { return std::exchange(ended_, {}); }

Recorder::Recorder(std::unique_ptr<RunWriter> writer, RecorderOptions options)
    : writer_(std::move(writer)), options_(options), pending_(options.max_bytes / 4) {}

Recorder::~Recorder() { finish(std::nullopt); }

Status Recorder::begin(const RunInfo& info) {
  TIDEMARK_TRY(writer_->begin(info));
  thread_ = start_quiet_thread([this] { run(); });
  return ok();
}

Status Recorder::add(Tick&& tick) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      ++stats_.ticks_dropped;
      return ok();
    }
    if (!has_room_for(approximate_bytes(tick))) {
      ++stats_.ticks_dropped;
      pending_.add_dropped(std::move(tick));
      return ok();
    }
  }
  // Only this thread fills the queue: the room cannot be gone by now.
  pending_.move_into(tick);
  push(std::move(tick));
  return ok();
}

Status Recorder::process_ended(const ProcessRecord& process) {
  pending_.add_ended(process);
  return ok();
}

Status Recorder::end(double t_s) {
  finish(t_s);
  const std::lock_guard lock(mutex_);
  return failure_ ? Status(*failure_) : ok();
}

std::optional<Error> Recorder::take_error() {
  const std::lock_guard lock(mutex_);
  if (!failure_ || std::exchange(failure_was_taken_, true)) {
    return std::nullopt;
  }
  return failure_;
}

RecorderStats Recorder::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

// One tick always fits, however large it is.
bool Recorder::has_room_for(std::size_t bytes) const {
  return queue_.empty() ||
         (queue_.size() < options_.max_ticks && queued_bytes_ + bytes <= options_.max_bytes);
}

void Recorder::push(Tick tick) {
  Item item{pending_.take_ended(), std::move(tick), 0, clock_.monotonic_ns()};
  item.bytes = approximate_bytes(item.tick);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {  // since add() looked
      ++stats_.ticks_dropped;
      return;
    }
    queued_bytes_ += item.bytes;
    queue_.push_back(std::move(item));
  }
  wake_.notify_one();
}

void Recorder::finish(std::optional<double> end_s) {
  if (!thread_.joinable()) {
    return;
  }
  if (auto last = pending_.take_last_dropped()) {
    {
      const std::lock_guard lock(mutex_);
      --stats_.ticks_dropped;
    }
    push(std::move(*last));
  }
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (!end_s || failure_) {  // the thread is gone: no lock needed
    return;
  }
  Status status = write_ended(pending_.take_ended());
  if (status) {
    status = writer_->end(*end_s);
  }
  if (!status) {
    fail(status.error(), /*lost_ticks=*/0);
  }
}

void Recorder::run() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
      if (queue_.empty()) {
        return;
      }
      item = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= item.bytes;
    }
    if (const Status status = write(item); !status) {
      fail(status.error(), /*lost_ticks=*/1);
      return;
    }
  }
}

Status Recorder::write(const Item& item) {
  Status status = write_ended(item.ended);
  if (status) {
    status = writer_->add(item.tick);
  }
  if (!status) {
    return status;
  }
  const double late_s = to_seconds(clock_.monotonic_ns() - item.added_ns);
  writer_->set_write_late_s(late_s);
  const std::lock_guard lock(mutex_);
  ++stats_.ticks_written;
  stats_.max_write_late_s = std::max(stats_.max_write_late_s, late_s);
  return status;
}

Status Recorder::write_ended(const std::vector<ProcessRecord>& ended) {
  for (const ProcessRecord& process : ended) {
    TIDEMARK_TRY(writer_->process_ended(process));
  }
  return ok();
}

void Recorder::fail(const Error& error, std::uint64_t lost_ticks) {
  const std::lock_guard lock(mutex_);
  failure_ = error;
  stats_.ticks_dropped += queue_.size() + lost_ticks;
  queue_.clear();
  queued_bytes_ = 0;
}

}  // namespace tidemark::recording
