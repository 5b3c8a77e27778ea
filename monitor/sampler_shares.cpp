// SPDX-License-Identifier: Apache-2.0
// How the sampler reads what each process has of the pages that it shares: dear, so by a budget.
#include "monitor/procfs/process_entry.h"
#include "monitor/sampler.h"

namespace tidemark::monitor {
namespace {

// A share that nothing calls into question is read again when it is this old.
constexpr std::int64_t kShareAgeNs = 15 * kNsPerSecond;
constexpr std::int64_t kRetryShareNs = 60 * kNsPerSecond;

}  // namespace

void Sampler::read_shares(Tick& tick) {
  if (budget_.mode() == PssMode::kOff) {
    ledger_.commit();  // nobody waits for a reading
    return;
  }
  offer_again();
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
  discard_if_disturbed(read, tick);
  ledger_.commit();
}

// Shares add up only if nobody was born or died while they were read: newborns and the dead make
// their families stale, and that drops the readings.
void Sampler::discard_if_disturbed(const std::vector<WatchedProcess*>& read, Tick& tick) {
  if (read.empty()) {
    return;
  }
  const std::int64_t now = clock_.monotonic_ns();
  const std::int64_t cpu_before = thread_cpu_ns();
  if (plan_.next(now, last_pid(options_.proc_root)) != Look::kNothing) {
    ask_for_children(tick);
    plan_.children_read(now, thread_cpu_ns() - cpu_before);
  }
  for (WatchedProcess* watched : read) {
    const ProcessKey key = watched->record.key;
    if (ledger_.shares(key) && !look_at(*watched, status_plan_.again(), tick)) {
      forget(key, tick);
    }
  }
  if (roles_outdated_) {
    assign_roles();
  }
}

// What could not be read a while ago may be readable now: it has shrunk, or descriptors are free.
void Sampler::offer_again() {
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
  if (look_at(watched, status_plan_.again(), tick) && watched.has_memory) {
    ledger_.set_share(key, *pss, after);
    watched.pss = *pss;
    watched.pss_taken_ns = after;
  }
  return true;
}

}  // namespace tidemark::monitor
