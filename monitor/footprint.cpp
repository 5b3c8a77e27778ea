// SPDX-License-Identifier: Apache-2.0
#include "monitor/footprint.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace tidemark::monitor {
namespace {

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

}  // namespace

// What the account has changed by since its base.
std::int64_t FootprintLedger::Account::drift() const {
  const std::int64_t own = difference(now.anon_bytes, base.at.anon_bytes) +
                           difference(now.swap_bytes, base.at.swap_bytes);
  const auto shared = static_cast<double>(difference(now.shmem_bytes, base.at.shmem_bytes));
  return own + static_cast<std::int64_t>(std::llround(shared * base.shmem_ratio));
}

std::uint64_t FootprintLedger::Account::bytes() const {
  if (!has_cheap) {
    return 0;
  }
  // A forked process that frees inherited pages would go below zero: they are its family's.
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, static_cast<std::int64_t>(base.share_bytes) + drift()));
}

void FootprintLedger::add(const ProcessKey& key, Role role, std::optional<ProcessKey> forked_from) {
  Account account;
  account.role = role;
  const auto parent = forked_from ? accounts_.find(*forked_from) : accounts_.end();
  account.forked = parent != accounts_.end();
  account.family = account.forked ? parent->second.family : next_family_++;
  accounts_.insert_or_assign(key, account);
  Family& family = families_[account.family];
  family.members.push_back(key);
  if (account.forked) {
    mark_stale(family);
  }
}

// How much of a leaving process's account stays, because others map the same pages.
std::uint64_t FootprintLedger::shared_with_survivors(const ProcessKey& key,
                                                     const Account& account) const {
  const std::uint64_t bytes = account.bytes();
  const Family& family = families_.at(account.family);
  if (family.members.size() <= 1) {
    return 0;
  }
  if (account.has_reading) {
    const auto own = static_cast<std::int64_t>(account.base.private_bytes) + account.drift();
    const auto private_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, own));
    return bytes - std::min(bytes, private_bytes);
  }
  if (account.forked) {
    return 0;  // never read: its account is nothing but its growth since the fork
  }
  // Never read, and the family's ancestor: what a survivor maps beyond its own account is shared.
  std::uint64_t shared = 0;
  for (const ProcessKey& member : family.members) {
    if (member != key) {
      const Account& other = accounts_.at(member);
      const std::uint64_t mapped = other.now.total();
      shared = std::max(shared, mapped - std::min(mapped, other.bytes()));
    }
  }
  return std::min(bytes, shared);
}

void FootprintLedger::leave_family(const ProcessKey& key, const Account& account) {
  Family& family = families_.at(account.family);
  family.left_by_the_dead[static_cast<std::size_t>(account.role)] +=
      shared_with_survivors(key, account);
  std::erase(family.members, key);
  if (family.members.empty()) {
    families_.erase(account.family);
  } else {
    mark_stale(family);
  }
}

// Its sharing has changed: every reading so far speaks of the time before.
void FootprintLedger::mark_stale(Family& family) {
  family.stale = true;
  family.awaited = 0;
  for (const ProcessKey& member : family.members) {
    Account& account = accounts_.at(member);
    account.pending.reset();
    family.awaited += account.given_up ? 0 : 1;
  }
  if (family.awaited == 0) {
    settle(family);
  }
}

void FootprintLedger::remove(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it != accounts_.end()) {
    const Account account = it->second;
    leave_family(key, account);
    accounts_.erase(key);
  }
}

void FootprintLedger::exec(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  const Role role = it->second.role;
  remove(key);
  add(key, role, std::nullopt);
}

void FootprintLedger::set_role(const ProcessKey& key, Role role) {
  if (const auto it = accounts_.find(key); it != accounts_.end()) {
    it->second.role = role;
  }
}

void FootprintLedger::set_cheap(const ProcessKey& key, const CheapMemory& now) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  Account& account = it->second;
  account.now = now;
  if (!account.has_cheap) {
    account.has_cheap = true;
    if (account.forked) {
      account.base.at = now;  // inherited: counted in the parent's account
    }
  }
}

void FootprintLedger::set_share(const ProcessKey& key, const PssFields& read, std::int64_t now_ns) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end()) {
    return;
  }
  Account& account = it->second;
  Reading reading;
  reading.share_bytes = read.footprint_bytes();
  reading.private_bytes = std::min(read.private_dirty_bytes, reading.share_bytes);
  if (account.now.shmem_bytes > 0) {
    reading.shmem_ratio = std::min(1.0, static_cast<double>(read.pss_shmem_bytes) /
                                            static_cast<double>(account.now.shmem_bytes));
  }
  reading.at = account.now;
  reading.taken_ns = now_ns;
  Family& family = families_.at(account.family);
  const bool was_awaited = family.stale && !account.pending && !account.given_up;
  account.given_up = false;
  if (!family.stale) {
    account.base = reading;
    account.has_reading = true;
    return;
  }
  account.pending = reading;
  if (was_awaited && --family.awaited == 0) {
    settle(family);
  }
}

void FootprintLedger::give_up_share(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end() || it->second.given_up) {
    return;
  }
  Account& account = it->second;
  Family& family = families_.at(account.family);
  const bool was_awaited = family.stale && !account.pending;
  account.given_up = true;
  if (was_awaited && --family.awaited == 0) {
    settle(family);
  }
}

// Every member that can be read has been read since the last birth or death: all enter at once.
void FootprintLedger::settle(Family& family) {
  family.stale = false;
  for (const ProcessKey& member : family.members) {
    Account& account = accounts_.at(member);
    if (account.pending) {
      account.base = *account.pending;
      account.has_reading = true;
      account.pending.reset();
      family.left_by_the_dead.fill(0);  // now in the survivors' shares
    }
  }
}

FootprintLedger::Totals FootprintLedger::totals() const {
  Totals totals;
  const auto count = [&](Role role, std::uint64_t bytes, bool held) {
    for (Total* total : {&totals.tree, &totals.roles[static_cast<std::size_t>(role)]}) {
      total->bytes += bytes;
      total->held = total->held || held;
    }
  };
  for (const auto& [key, account] : accounts_) {
    count(account.role, account.bytes(), families_.at(account.family).stale);
  }
  for (const auto& [id, family] : families_) {
    for (std::size_t i = 0; i < family.left_by_the_dead.size(); ++i) {
      count(static_cast<Role>(i), family.left_by_the_dead[i], false);
    }
  }
  return totals;
}

bool FootprintLedger::wants_reading_now(const ProcessKey& key) const {
  const auto it = accounts_.find(key);
  if (it == accounts_.end() || it->second.given_up) {
    return false;
  }
  const Account& account = it->second;
  return (families_.at(account.family).stale && !account.pending) ||
         (!account.has_reading && !account.pending);
}

std::vector<ProcessKey> FootprintLedger::reading_order() const {
  struct Candidate {
    ProcessKey key;
    int need;
    FamilyId family;  // of the stale: one family is finished before the next is begun
    std::int64_t change;
    std::int64_t taken_ns;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(accounts_.size());
  for (const auto& [key, account] : accounts_) {
    if (account.given_up || !account.has_cheap) {
      continue;
    }
    const bool lacks = wants_reading_now(key);
    const bool stale = lacks && families_.at(account.family).stale;
    candidates.push_back({key, stale ? 0 : (lacks ? 1 : 2), stale ? account.family : 0,
                          std::llabs(account.drift()), account.base.taken_ns});
  }
  // A change below 1 MiB is noise: among the quiet the oldest reading comes first.
  constexpr std::int64_t kNoise = 1 << 20;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.need, a.family, -(a.change / kNoise), a.taken_ns, a.key) <
           std::tuple(b.need, b.family, -(b.change / kNoise), b.taken_ns, b.key);
  });
  std::vector<ProcessKey> order;
  order.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    order.push_back(candidate.key);
  }
  return order;
}

}  // namespace tidemark::monitor
