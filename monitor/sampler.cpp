// SPDX-License-Identifier: Apache-2.0
#include "monitor/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "monitor/footprint.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {
namespace {

// argv and exe are compared again for this long after the start, when exec is most likely, and
// afterwards at this cadence: an exec that keeps the name (python -> python) shows only there.
constexpr std::int64_t kYoungNs = 2 * kNsPerSecond;
constexpr std::int64_t kImageEveryNs = 30 * kNsPerSecond;
// Whoever has no arguments for so long has none.
constexpr std::int64_t kExecTakesNs = kNsPerSecond;
// The trainer may outgrow its wrapper only minutes after its start: roles are assigned again.
constexpr std::int64_t kRolesEveryNs = 5 * kNsPerSecond;
constexpr std::int64_t kTracersEveryNs = kNsPerSecond;
// A share that nothing calls into question is read again when it is this old.
constexpr std::int64_t kShareAgeNs = 15 * kNsPerSecond;
constexpr std::int64_t kRetryShareNs = 60 * kNsPerSecond;

bool is_gone(const Error& error) {
  return error.code == Errc::kGone || error.code == Errc::kNotFound;
}

}  // namespace

void Sampler::add_loss(Tick& tick, LossKind what) {
  for (LossRecord& loss : tick.losses) {
    if (loss.what == what) {
      ++loss.count;
      return;
    }
  }
  tick.losses.push_back({tick.t_s, what, 1});
}

Sampler::Sampler(SamplerOptions options, ProcessSource& source, const Clock& clock)
    : options_(std::move(options)),
      source_(source),
      clock_(clock),
      tree_(options_.roots, ::getpid()),
      status_plan_(options_.statuses_per_tick),
      budget_(options_.pss, options_.pss_share_of_wall_time),
      tracers_(options_.shm_root, ::geteuid()) {
  if (options_.roots.children_of) {
    if (auto key = process_key_of(options_.proc_root, *options_.roots.children_of); key) {
      if (auto handle = ProcessHandle::open(options_.proc_root, *key); handle) {
        self_.emplace(*std::move(handle));
      }
    }
  }
}

Result<std::unique_ptr<Sampler>> Sampler::start(SamplerOptions options, ProcessSource& source,
                                                const Clock& clock) {
  std::unique_ptr<Sampler> sampler(new Sampler(std::move(options), source, clock));
  TIDEMARK_TRY_ASSIGN(auto table, source.snapshot());
  const TreeRoots& roots = sampler->options_.roots;
  if (std::none_of(table.begin(), table.end(),
                   [&](const ProcessEntry& entry) { return roots.has_root(entry); })) {
    return Error{Errc::kNotFound, "the process to watch has ended"};
  }
  return sampler;
}

Tick Sampler::sample(double t_s) {
  const std::int64_t begin_ns = clock_.monotonic_ns();
  Tick tick;
  tick.t_s = t_s;
  new_images_.clear();
  discover(tick);
  read_tracer_files();
  read_status(tick);
  if (roles_outdated_ || clock_.monotonic_ns() >= next_roles_ns_) {
    assign_roles();
  }
  read_shares(tick);
  describe_new_images(tick);
  sum_up(tick);
  tick.t_s += to_seconds(when_memory_was_read(begin_ns) - begin_ns);
  return tick;
}

// Of the largest process, in the tick that began then: finding processes and reading how pages
// are shared take their time, and a training step is short.
std::int64_t Sampler::when_memory_was_read(std::int64_t begin_ns) const {
  std::int64_t read_ns = begin_ns;
  std::uint64_t largest = 0;
  for (const WatchedProcess* watched : order_) {
    const std::uint64_t bytes = watched->status.rss_bytes.value_or(0);
    if (watched->memory_read_ns >= begin_ns && bytes > largest) {
      largest = bytes;
      read_ns = watched->memory_read_ns;
    }
  }
  return read_ns;
}

void Sampler::discover(Tick& tick) {
  const std::int64_t now = clock_.monotonic_ns();
  const std::int64_t cpu_before = thread_cpu_ns();
  switch (plan_.next(now, last_pid(options_.proc_root))) {
    case Discovery::kNothing:
      break;
    case Discovery::kChildren:
      read_children(tick);
      plan_.children_read(now, thread_cpu_ns() - cpu_before);
      break;
    case Discovery::kTable:
      if (read_table(tick)) {
        plan_.table_read(now, thread_cpu_ns() - cpu_before);
      } else {
        plan_.table_unreadable(now);
      }
      break;
  }
}

bool Sampler::read_table(Tick& tick) {
  const auto table = source_.snapshot();
  if (!table) {
    add_loss(tick, LossKind::kProcessTableUnreadable);
    return false;
  }
  const ProcessTree::Change change = tree_.update(*table);
  for (const ProcessKey& key : change.gone) {
    stop_watching(key, tick);
  }
  for (const ProcessEntry& entry : *table) {
    if (const auto it = watched_.find(entry.key); it != watched_.end()) {
      it->second.cpu_ticks = entry.cpu_ticks;
    }
  }
  for (const ProcessEntry& entry : change.started) {
    start_watching(entry, tick);
  }
  return true;
}

void Sampler::read_children(Tick& tick) {
  // order_ grows while we walk, so that new processes are asked as well.
  const auto ask = [&](const ProcessHandle& handle, std::uint32_t threads, bool is_self) {
    const auto children = handle.children(threads);
    if (!children) {
      if (children.error().code == Errc::kUnsupported) {
        plan_.children_unsupported();
      }
      return;
    }
    for (const pid_t pid : *children) {
      if (tree_.member_with_pid(pid) || pid == ::getpid()) {
        continue;
      }
      if (const auto entry = read_process_entry(options_.proc_root, pid); entry) {
        if ((!is_self || options_.roots.has_root(*entry)) && tree_.add(*entry)) {
          start_watching(*entry, tick);
        }
      }
    }
  };
  if (self_) {
    ask(*self_, 0, /*is_self=*/true);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (order_[i]->has_memory) {
      ask(order_[i]->handle, order_[i]->status.threads.value_or(0), /*is_self=*/false);
    }
  }
}

void Sampler::start_watching(const ProcessEntry& entry, Tick& tick) {
  auto handle = ProcessHandle::open(options_.proc_root, entry.key);
  if (!handle) {
    tree_.remove(entry.key);  // gone between the table and here
    return;
  }
  WatchedProcess watched(*std::move(handle), entry, tick.t_s);
  watched.set_age(clock_.boot_ns());
  watched.read_identity(options_.redact);
  watched.image_checked_ns = clock_.monotonic_ns();

  std::optional<ProcessKey> forked_from;
  if (const auto parent_key = tree_.member_with_pid(entry.ppid)) {
    const auto parent = watched_.find(*parent_key);
    if (parent != watched_.end() && watched.shares_image_with(parent->second)) {
      forked_from = *parent_key;
    }
  }
  ledger_.add(entry.key, Role::kOther, forked_from);
  if (options_.pss == PssMode::kOff) {
    ledger_.give_up_share(entry.key);
  }
  if (watched.read_status(StatusRead::kAlways) && watched.status.rss_bytes) {
    ledger_.set_cheap(entry.key, watched.cheap());
  }
  const auto added = watched_.insert_or_assign(entry.key, std::move(watched)).first;
  order_.push_back(&added->second);
  new_images_.push_back(entry.key);
  roles_outdated_ = true;
}

void Sampler::stop_watching(const ProcessKey& key, Tick& tick) {
  const auto it = watched_.find(key);
  if (it == watched_.end()) {
    return;
  }
  ProcessRecord record = std::move(it->second.record);
  record.exited_s = tick.t_s;
  tick.events.push_back(
      {tick.t_s, EventKind::kExit, key, fmt::format("{} {}", role_name(record.role), record.comm)});
  ended_.push_back(std::move(record));
  ledger_.remove(key);
  tree_.remove(key);
  const auto place = std::find(order_.begin(), order_.end(), &it->second);
  status_plan_.removed(static_cast<std::size_t>(place - order_.begin()));
  order_.erase(place);
  watched_.erase(it);
  roles_outdated_ = true;
}

// Their files grow slowly; but a new process has one at once.
void Sampler::read_tracer_files() {
  const std::int64_t now = clock_.monotonic_ns();
  if (now < next_tracers_ns_ && new_images_.empty()) {
    return;
  }
  next_tracers_ns_ = now + kTracersEveryNs;
  tracers_.read();
  for (WatchedProcess* watched : order_) {
    const std::uint64_t bytes = tracers_.bytes_of(watched->record.key.pid);
    if (std::exchange(watched->tracer_bytes, bytes) != bytes && watched->has_memory) {
      ledger_.set_cheap(watched->record.key, watched->cheap());
    }
  }
}

void Sampler::read_status(Tick& tick) {
  std::vector<ProcessKey> gone;
  status_plan_.begin_tick(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    WatchedProcess& watched = *order_[i];
    if (read_memory(watched, status_plan_.of(i), tick)) {
      check_identity(watched, tick);
    } else {
      gone.push_back(watched.record.key);
    }
  }
  for (const ProcessKey& key : gone) {
    stop_watching(key, tick);
  }
}

// What it holds. False: it has gone.
bool Sampler::read_memory(WatchedProcess& watched, StatusRead when, Tick& tick) {
  const ProcessKey& key = watched.record.key;
  const auto is_new = watched.read_status(when);
  if (!is_new) {
    if (is_gone(is_new.error())) {
      return false;
    }
    add_loss(tick, LossKind::kStatusUnreadable);  // the last values stand
    return true;
  }
  if (!*is_new) {
    return true;
  }
  watched.memory_read_ns = clock_.monotonic_ns();
  const bool has_memory = watched.status.rss_bytes.has_value();
  if (has_memory && !watched.status.rss_anon_bytes && !watched.split_unknown) {
    watched.split_unknown = true;
    add_loss(tick, LossKind::kSplitUnknown);
  }
  if (watched.has_memory && !has_memory) {
    ledger_.remove(key);  // a zombie holds nothing; what it shared is its family's
    watched.pss.reset();
  }
  watched.has_memory = has_memory;
  if (has_memory) {
    ledger_.set_cheap(key, watched.cheap());
  }
  return true;
}

// Who its parent is, what it is called, and whether that means a new program.
void Sampler::check_identity(WatchedProcess& watched, Tick& tick) {
  ProcessRecord& record = watched.record;
  if (watched.status.ppid != record.ppid) {
    tick.events.push_back({tick.t_s, EventKind::kReparent, record.key,
                           fmt::format("parent was {}, is {}", record.ppid, watched.status.ppid)});
    record.ppid = watched.status.ppid;
    roles_outdated_ = true;
  }
  const bool renamed = watched.status.comm != record.comm;
  if (renamed) {
    record.comm = watched.status.comm;
    roles_outdated_ = true;
  }
  const std::int64_t since = clock_.monotonic_ns() - watched.image_checked_ns;
  const bool young = tick.t_s - record.started_s < to_seconds(kYoungNs);
  if (renamed || watched.exec_seen_ns || since >= kImageEveryNs || (young && since > 0)) {
    check_image(watched, tick);
  }
}

void Sampler::check_image(WatchedProcess& watched, Tick& tick) {
  const std::int64_t now = clock_.monotonic_ns();
  watched.image_checked_ns = now;
  const ImageChange change = watched.image_change();
  if (change == ImageChange::kUnderWay && now - watched.exec_seen_ns.value_or(now) < kExecTakesNs) {
    watched.exec_seen_ns = watched.exec_seen_ns.value_or(now);
    return;  // checked again at the next tick
  }
  watched.exec_seen_ns.reset();
  if (change == ImageChange::kNone) {
    return;
  }
  const std::string before = watched.record.argv;
  watched.read_identity(options_.redact);
  new_images_.push_back(watched.record.key);
  roles_outdated_ = true;
  if (change == ImageChange::kTitle) {
    return;
  }
  watched.record.age_s = 0.0;
  ledger_.exec(watched.record.key);
  if (options_.pss == PssMode::kOff) {
    ledger_.give_up_share(watched.record.key);
  }
  watched.pss.reset();
  watched.pss_refused = false;
  tick.events.push_back({tick.t_s, EventKind::kExec, watched.record.key,
                         fmt::format("{} -> {}", before, watched.record.argv)});
}

void Sampler::assign_roles() {
  std::vector<ProcessFacts> facts;
  facts.reserve(order_.size());
  for (const WatchedProcess* watched : order_) {
    const ProcessRecord& record = watched->record;
    facts.push_back({record.key, record.ppid, record.comm, watched->argv,
                     watched->status.threads.value_or(0), watched->cheap().total(),
                     watched->cpu_ticks, watched->rank, watched->job, record.role});
  }
  const std::vector<RoleAssignment> roles = monitor::assign_roles(facts);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    ProcessRecord& record = order_[i]->record;
    if (record.role != roles[i].role || record.rank != roles[i].rank) {
      record.role = roles[i].role;
      record.rank = roles[i].rank;
      ledger_.set_role(record.key, record.role);
      new_images_.push_back(record.key);
    }
  }
  roles_outdated_ = false;
  next_roles_ns_ = clock_.monotonic_ns() + kRolesEveryNs;
}

void Sampler::describe_new_images(Tick& tick) {
  std::sort(new_images_.begin(), new_images_.end());
  new_images_.erase(std::unique(new_images_.begin(), new_images_.end()), new_images_.end());
  for (const ProcessKey& key : new_images_) {
    const auto it = watched_.find(key);
    if (it == watched_.end()) {
      continue;
    }
    const ProcessRecord& record = it->second.record;
    tick.new_processes.push_back(record);
    if (record.started_s == tick.t_s) {
      tick.events.push_back({tick.t_s, EventKind::kSpawn, key,
                             fmt::format("{} {}", role_name(record.role), record.comm)});
    }
  }
}

void Sampler::sum_up(Tick& tick) const {
  GroupSums sums;
  const std::int64_t now = clock_.monotonic_ns();
  tick.processes.reserve(order_.size());
  for (const WatchedProcess* watched : order_) {
    tick.processes.push_back(watched->sample(now));
    sums.add(*watched, tick.processes.back());
  }
  sums.finish(ledger_.totals(), tick);
}

bool Sampler::finished() const {
  return std::none_of(order_.begin(), order_.end(),
                      [](const WatchedProcess* watched) { return watched->has_memory; });
}

std::vector<ProcessRecord> Sampler::take_ended() { return std::exchange(ended_, {}); }

const ProcessRecord* Sampler::find(const ProcessKey& key) const {
  const auto it = watched_.find(key);
  return it == watched_.end() ? nullptr : &it->second.record;
}

const ProcessRecord* Sampler::trainer() const {
  for (const Role role : {Role::kTrainer, Role::kRank}) {
    for (const WatchedProcess* watched : order_) {
      if (watched->record.role == role) {
        return &watched->record;
      }
    }
  }
  return nullptr;
}

std::vector<ProcessKey> Sampler::members() const {
  std::vector<ProcessKey> keys;
  keys.reserve(order_.size());
  for (const WatchedProcess* watched : order_) {
    keys.push_back(watched->record.key);
  }
  return keys;
}

void Sampler::read_shares(Tick& tick) {
  if (budget_.mode() == PssMode::kOff) {
    ledger_.commit();  // nobody waits for a reading
    return;
  }
  retry_shares();
  bool whole_pass = true;
  std::vector<WatchedProcess*> read;
  for (const ProcessKey& key : ledger_.reading_order()) {
    const std::int64_t now = clock_.monotonic_ns();
    if (!budget_.may_read(now)) {
      whole_pass = false;
      break;
    }
    WatchedProcess& watched = watched_.at(key);
    const bool fresh = watched.pss && now - watched.pss_taken_ns < kShareAgeNs;
    if (budget_.mode() == PssMode::kAuto && fresh && !ledger_.wants_reading_now(key)) {
      continue;
    }
    if (read_share(watched, tick)) {
      read.push_back(&watched);
    }
  }
  if (whole_pass) {
    budget_.first_pass_done();
  }
  discard_if_tree_changed(read, tick);
  ledger_.commit();
}

// Shares add up only if no process started or exited while they were read: one that did makes its
// family stale, and that drops the readings.
void Sampler::discard_if_tree_changed(const std::vector<WatchedProcess*>& read, Tick& tick) {
  if (read.empty()) {
    return;
  }
  const std::int64_t now = clock_.monotonic_ns();
  const std::int64_t cpu_before = thread_cpu_ns();
  if (plan_.next(now, last_pid(options_.proc_root)) != Discovery::kNothing) {
    read_children(tick);
    plan_.children_read(now, thread_cpu_ns() - cpu_before);
  }
  for (WatchedProcess* watched : read) {
    const ProcessKey key = watched->record.key;
    if (ledger_.shares(key) && !read_memory(*watched, status_plan_.again(), tick)) {
      stop_watching(key, tick);
    }
  }
  if (roles_outdated_) {
    assign_roles();
  }
}

// What could not be read a while ago may be readable now: it has shrunk, or descriptors are free.
void Sampler::retry_shares() {
  const std::int64_t now = clock_.monotonic_ns();
  for (WatchedProcess* watched : order_) {
    if (watched->retry_share_ns && now >= *watched->retry_share_ns) {
      watched->retry_share_ns.reset();
      ledger_.try_again(watched->record.key);
    }
  }
}

bool Sampler::read_share(WatchedProcess& watched, Tick& tick) {
  const ProcessKey& key = watched.record.key;
  if (budget_.too_large(watched.status.rss_bytes.value_or(0))) {
    add_loss(tick, LossKind::kPssTooLarge);
    ledger_.give_up_share(key);
    watched.retry_share_ns = clock_.monotonic_ns() + kRetryShareNs;
    return false;
  }
  const std::int64_t cpu_before = thread_cpu_ns();  // who has to wait for a processor costs nothing
  auto pss = watched.pss_without_tracer();
  const std::int64_t after = clock_.monotonic_ns();
  budget_.charge(thread_cpu_ns() - cpu_before);
  if (!pss) {
    if (pss.error().code == Errc::kPermission) {
      watched.pss_refused = true;
      add_loss(tick, LossKind::kPssDenied);
    } else if (pss.error().code != Errc::kGone) {
      add_loss(tick, LossKind::kPssUnreadable);
      watched.retry_share_ns = after + kRetryShareNs;
    }
    ledger_.give_up_share(key);
    return false;
  }
  // The cheap numbers must be of the same moment as the share that they will carry forward.
  if (read_memory(watched, status_plan_.again(), tick) && watched.has_memory) {
    ledger_.set_share(key, *pss, after);
    watched.pss = *pss;
    watched.pss_taken_ns = after;
  }
  return true;
}

}  // namespace tidemark::monitor
