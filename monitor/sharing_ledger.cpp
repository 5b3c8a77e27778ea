// SPDX-License-Identifier: Apache-2.0
#include "monitor/sharing_ledger.h"

#include <cmath>

namespace tidemark::monitor {

std::int64_t SharingLedger::Account::drift() const {
  const std::int64_t change =
      static_cast<std::int64_t>(mapped) - static_cast<std::int64_t>(base_mapped);
  return static_cast<std::int64_t>(std::llround(static_cast<double>(change) * base.growth_ratio));
}

std::uint64_t SharingLedger::Account::bytes() const {
  if (!has_mapped) {
    return 0;
  }
  // A process that frees pages of its group would go below zero.
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, static_cast<std::int64_t>(base.bytes) + drift()));
}

void SharingLedger::add(const ProcessKey& key, std::optional<ProcessKey> with) {
  Account account;
  const auto other = with ? accounts_.find(*with) : accounts_.end();
  account.joined = other != accounts_.end();
  account.base.growth_ratio = account.joined ? growth_of_joiners_ : 1.0;
  account.group = account.joined ? other->second.group : next_group_++;
  accounts_.insert_or_assign(key, account);
  Group& group = groups_[account.group];
  group.members.push_back(key);
  if (account.joined) {
    mark_stale(group);
  }
}

bool SharingLedger::shares(const ProcessKey& key) const {
  const auto it = accounts_.find(key);
  return it != accounts_.end() && groups_.at(it->second.group).members.size() > 1;
}

// How much of a leaving process's account stays, because others map the same pages.
std::uint64_t SharingLedger::shared_with_the_others(const ProcessKey& key,
                                                    const Account& account) const {
  const std::uint64_t bytes = account.bytes();
  const Group& group = groups_.at(account.group);
  if (group.members.size() <= 1) {
    return 0;
  }
  if (account.has_reading) {
    const auto own = static_cast<std::int64_t>(account.base.private_bytes) + account.drift();
    const auto private_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, own));
    return bytes - std::min(bytes, private_bytes);
  }
  if (account.joined) {
    return 0;  // never read: its account is nothing but its growth since it joined
  }
  // Never read, and the first of its group: what another maps beyond its own account is shared.
  std::uint64_t shared = 0;
  for (const ProcessKey& member : group.members) {
    if (member != key) {
      const Account& other = accounts_.at(member);
      shared = std::max(shared, other.mapped - std::min(other.mapped, other.bytes()));
    }
  }
  return std::min(bytes, shared);
}

void SharingLedger::remove(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  Group& group = groups_.at(it->second.group);
  group.left_by_the_gone_bytes += shared_with_the_others(key, it->second);
  const GroupId id = it->second.group;
  std::erase(group.members, key);
  accounts_.erase(it);
  if (group.members.empty()) {
    groups_.erase(id);
  } else {
    mark_stale(group);
  }
}

// Its sharing has changed: every reading so far speaks of the time before.
void SharingLedger::mark_stale(Group& group) {
  group.awaited = 0;
  for (const ProcessKey& member : group.members) {
    Account& account = accounts_.at(member);
    account.pending.reset();
    group.awaited += account.given_up ? 0U : 1U;
  }
  group.stale = group.awaited > 0;  // when nobody can be read there is nothing to wait for
}

void SharingLedger::set_mapped(const ProcessKey& key, std::uint64_t bytes) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  Account& account = it->second;
  account.mapped = bytes;
  if (!account.has_mapped) {
    account.has_mapped = true;
    account.base_mapped = account.joined ? bytes : 0;
  }
}

void SharingLedger::set_share(const ProcessKey& key, const Share& share) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  Account& account = it->second;
  Group& group = groups_.at(account.group);
  if (group.stale && !account.pending && !account.given_up) {
    --group.awaited;
  }
  account.given_up = false;
  account.pending = share;
  account.pending_mapped = account.mapped;
  to_settle_.push_back(account.group);
}

void SharingLedger::give_up(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end() || it->second.given_up) {
    return;
  }
  Account& account = it->second;
  Group& group = groups_.at(account.group);
  if (group.stale && !account.pending) {
    --group.awaited;
  }
  account.given_up = true;
  to_settle_.push_back(account.group);
}

void SharingLedger::try_again(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end() || !it->second.given_up) {
    return;
  }
  it->second.given_up = false;
  Group& group = groups_.at(it->second.group);
  if (group.members.size() > 1) {
    mark_stale(group);
  }
}

void SharingLedger::commit() {
  std::sort(to_settle_.begin(), to_settle_.end());
  to_settle_.erase(std::unique(to_settle_.begin(), to_settle_.end()), to_settle_.end());
  for (const GroupId id : to_settle_) {
    if (const auto it = groups_.find(id); it != groups_.end()) {
      settle(it->second);
    }
  }
  to_settle_.clear();
}

// A stale group waits until every member that can be read has been read; then all enter at once.
void SharingLedger::settle(Group& group) {
  if (group.stale && group.awaited > 0) {
    return;
  }
  for (const ProcessKey& member : group.members) {
    Account& account = accounts_.at(member);
    if (account.pending) {
      account.base = *account.pending;
      account.base_mapped = account.pending_mapped;
      account.has_reading = true;
      account.pending.reset();
      group.left_by_the_gone_bytes = 0;  // now in the others' shares
    }
  }
  group.stale = false;
}

std::uint64_t SharingLedger::group_bytes(const Group& group) const {
  std::uint64_t sum = group.left_by_the_gone_bytes;
  std::uint64_t at_least = 0;
  for (const ProcessKey& member : group.members) {
    const Account& account = accounts_.at(member);
    sum += account.bytes();
    at_least = std::max(at_least, account.mapped);
  }
  return std::max(sum, at_least);
}

SharingLedger::Need SharingLedger::need(const ProcessKey& key) const {
  const Account& account = accounts_.at(key);
  Need need;
  need.group = account.group;
  need.given_up = account.given_up;
  need.stale = groups_.at(account.group).stale && !account.pending;
  need.unread = !account.has_reading && !account.pending;
  need.change_bytes = account.drift();
  need.taken_ns = account.base.taken_ns;
  return need;
}

}  // namespace tidemark::monitor
