// SPDX-License-Identifier: Apache-2.0
#include "monitor/footprint.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <tuple>

#include "monitor/watched_process.h"

namespace tidemark::monitor {

void FootprintLedger::add(const ProcessKey& key, Role role, std::optional<ProcessKey> forked_from) {
  Member member;
  member.role = role;
  members_.insert_or_assign(key, member);
  anonymous_.add(key, forked_from);
}

void FootprintLedger::remove(const ProcessKey& key) {
  members_.erase(key);
  anonymous_.remove(key);
  shmem_.remove(key);
  std::erase(shmem_members_, key);
}

void FootprintLedger::exec(const ProcessKey& key) {
  if (const auto it = members_.find(key); it != members_.end()) {
    const Role role = it->second.role;
    remove(key);
    add(key, role, std::nullopt);
  }
}

void FootprintLedger::set_role(const ProcessKey& key, Role role) {
  if (const auto it = members_.find(key); it != members_.end()) {
    it->second.role = role;
  }
}

// From the first page of shared memory on: before, it would only be waited for.
void FootprintLedger::join_shmem(const ProcessKey& key) {
  shmem_.add(key, shmem_members_.empty() ? std::nullopt : std::optional(shmem_members_.front()));
  shmem_members_.push_back(key);
  if (members_.at(key).given_up) {
    shmem_.give_up(key);
  }
}

void FootprintLedger::set_cheap(const ProcessKey& key, const CheapMemory& now) {
  const auto it = members_.find(key);
  if (it == members_.end()) {
    return;
  }
  it->second.now = now;
  it->second.has_cheap = true;
  anonymous_.set_mapped(key, now.anon_bytes + now.swap_bytes);
  if (now.shmem_bytes > 0 && !shmem_.contains(key)) {
    join_shmem(key);
  }
  shmem_.set_mapped(key, now.shmem_bytes);
}

void FootprintLedger::set_share(const ProcessKey& key, const PssFields& read, std::int64_t now_ns) {
  const auto it = members_.find(key);
  if (it == members_.end()) {
    return;
  }
  it->second.given_up = false;
  const std::uint64_t anonymous = read.pss_anon_bytes + read.swap_pss_bytes;
  anonymous_.set_share(key,
                       {anonymous, std::min(read.private_dirty_bytes, anonymous), 1.0, now_ns});
  const std::uint64_t mapped = it->second.now.shmem_bytes;
  const double ratio =
      mapped == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(read.pss_shmem_bytes) / static_cast<double>(mapped));
  shmem_.set_share(key, {read.pss_shmem_bytes, 0, ratio, now_ns});
}

void FootprintLedger::give_up_share(const ProcessKey& key) {
  if (const auto it = members_.find(key); it != members_.end()) {
    it->second.given_up = true;
    anonymous_.give_up(key);
    shmem_.give_up(key);
  }
}

void FootprintLedger::try_again(const ProcessKey& key) {
  if (const auto it = members_.find(key); it != members_.end()) {
    it->second.given_up = false;
    anonymous_.try_again(key);
    shmem_.try_again(key);
  }
}

void FootprintLedger::commit() {
  anonymous_.commit();
  shmem_.commit();
}

FootprintLedger::Totals FootprintLedger::totals() const {
  Totals totals;
  const auto count = [&](const ProcessKey& key, std::uint64_t bytes, bool held) {
    const auto role = static_cast<std::size_t>(members_.at(key).role);
    for (Total* total : {&totals.tree, &totals.roles[role]}) {
      total->bytes += bytes;
      total->held = total->held || held;
    }
  };
  anonymous_.for_each(count);
  shmem_.for_each(count);
  return totals;
}

// Of both kinds of memory together: one reading serves both.
SharingLedger::Need FootprintLedger::need(const ProcessKey& key) const {
  SharingLedger::Need need = anonymous_.need(key);
  if (shmem_.contains(key)) {
    const SharingLedger::Need shmem = shmem_.need(key);
    need.stale = need.stale || shmem.stale;
    need.unread = need.unread || shmem.unread;
    need.change_bytes = std::llabs(need.change_bytes) + std::llabs(shmem.change_bytes);
  }
  need.change_bytes = std::llabs(need.change_bytes);
  return need;
}

bool FootprintLedger::wants_reading_now(const ProcessKey& key) const {
  const auto it = members_.find(key);
  if (it == members_.end() || it->second.given_up) {
    return false;
  }
  const SharingLedger::Need needed = need(key);
  return needed.stale || needed.unread;
}

std::vector<ProcessKey> FootprintLedger::reading_order() const {
  struct Candidate {
    ProcessKey key;
    int urgency;
    std::uint64_t group;  // of the stale: one family is finished before the next is begun
    std::int64_t change;
    std::int64_t taken_ns;
  };
  // A change below 1 MiB is noise: among the quiet the oldest reading comes first.
  constexpr std::int64_t kNoise = 1 << 20;
  std::vector<Candidate> candidates;
  candidates.reserve(members_.size());
  for (const auto& [key, member] : members_) {
    if (member.given_up || !member.has_cheap) {
      continue;
    }
    const SharingLedger::Need needed = need(key);
    const int urgency = needed.stale ? 0 : (needed.unread ? 1 : 2);
    candidates.push_back({key, urgency, needed.stale ? needed.group : 0,
                          -(needed.change_bytes / kNoise), needed.taken_ns});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.urgency, a.group, a.change, a.taken_ns, a.key) <
           std::tie(b.urgency, b.group, b.change, b.taken_ns, b.key);
  });
  std::vector<ProcessKey> order;
  order.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    order.push_back(candidate.key);
  }
  return order;
}

void GroupSums::add(const WatchedProcess& watched, const ProcessSample& sample) {
  const auto role = static_cast<std::size_t>(watched.record.role);
  GroupSample& group = roles_[role];
  ++group.processes;
  group.rss_bytes += sample.rss_bytes.value_or(0);
  group.swap_bytes += sample.swap_bytes.value_or(0);
  group.pss_bytes = group.pss_bytes.value_or(0) + sample.pss_bytes.value_or(0);
  without_pss_[role] += watched.has_memory && !sample.pss_bytes ? 1U : 0U;
  group.unreadable += watched.pss_refused ? 1U : 0U;
}

void GroupSums::finish(const FootprintLedger::Totals& footprints, Tick& tick) const {
  tick.tree.pss_bytes = 0;
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    GroupSample group = roles_[i];
    if (group.processes == 0) {
      continue;
    }
    if (without_pss_[i] > 0) {
      group.pss_bytes.reset();
    }
    group.footprint_bytes = footprints.roles[i].bytes;
    group.footprint_held = footprints.roles[i].held;
    tick.tree.processes += group.processes;
    tick.tree.rss_bytes += group.rss_bytes;
    tick.tree.swap_bytes += group.swap_bytes;
    tick.tree.unreadable += group.unreadable;
    if (tick.tree.pss_bytes && group.pss_bytes) {
      *tick.tree.pss_bytes += *group.pss_bytes;
    } else {
      tick.tree.pss_bytes.reset();
    }
    tick.roles.push_back({static_cast<Role>(i), group});
  }
  tick.tree.footprint_bytes = footprints.tree.bytes;
  tick.tree.footprint_held = footprints.tree.held;
}

}  // namespace tidemark::monitor
