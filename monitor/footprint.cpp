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

std::uint64_t FootprintLedger::Account::mapped() const {
  return has_cheap ? now.anon_bytes + now.swap_bytes : 0;
}

std::uint64_t FootprintLedger::Account::shmem() const {
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(now.shmem_bytes) * base.shmem_ratio));
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
  family.left_by_the_dead_bytes += shared_with_survivors(key, account);
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
    family.stale = false;  // nobody can be read: nothing to wait for
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
  if (family.stale && !account.pending && !account.given_up) {
    --family.awaited;
  }
  account.given_up = false;
  account.pending = reading;
  to_settle_.push_back(account.family);
}

void FootprintLedger::give_up_share(const ProcessKey& key) {
  const auto it = accounts_.find(key);
  if (it == accounts_.end() || it->second.given_up) {
    return;
  }
  Account& account = it->second;
  Family& family = families_.at(account.family);
  if (family.stale && !account.pending) {
    --family.awaited;
  }
  account.given_up = true;
  to_settle_.push_back(account.family);
}

void FootprintLedger::commit() {
  for (const FamilyId id : to_settle_) {
    if (const auto it = families_.find(id); it != families_.end()) {
      settle(it->second);
    }
  }
  to_settle_.clear();
}

// A stale family waits until every member that can be read has been read; then all enter at once.
void FootprintLedger::settle(Family& family) {
  if (family.stale && family.awaited > 0) {
    return;
  }
  for (const ProcessKey& member : family.members) {
    Account& account = accounts_.at(member);
    if (account.pending) {
      account.base = *account.pending;
      account.has_reading = true;
      account.pending.reset();
      family.left_by_the_dead_bytes = 0;  // now in the survivors' shares
    }
  }
  family.stale = false;
}

std::uint64_t FootprintLedger::family_bytes(const Family& family) const {
  std::uint64_t sum = family.left_by_the_dead_bytes;
  std::uint64_t at_least = 0;
  for (const ProcessKey& member : family.members) {
    const Account& account = accounts_.at(member);
    sum += account.bytes();
    at_least = std::max(at_least, account.mapped());
  }
  return std::max(sum, at_least);
}

FootprintLedger::Totals FootprintLedger::totals() const {
  Totals totals;
  const auto count = [&](Role role, std::uint64_t bytes, bool held) {
    for (Total* total : {&totals.tree, &totals.roles[static_cast<std::size_t>(role)]}) {
      total->bytes += bytes;
      total->held = total->held || held;
    }
  };
  for (const auto& [id, family] : families_) {
    const std::uint64_t all = family_bytes(family);
    const Account& head = accounts_.at(family.members.front());
    std::uint64_t others = 0;  // the shares of all but the head, to divide the rest by
    for (const ProcessKey& member : family.members) {
      others += accounts_.at(member).bytes();
    }
    others -= head.bytes();
    const std::uint64_t of_head = others == 0 ? all : std::min(all, head.mapped() + head.shmem());
    const double rest = static_cast<double>(all - of_head);
    count(head.role, of_head, family.stale);
    std::uint64_t given = of_head;
    for (std::size_t i = 1; i < family.members.size(); ++i) {
      const Account& account = accounts_.at(family.members[i]);
      const double part =
          others == 0 ? 0.0 : static_cast<double>(account.bytes()) / static_cast<double>(others);
      const auto bytes = std::min(all - given, static_cast<std::uint64_t>(rest * part));
      count(account.role, bytes, family.stale);
      given += bytes;
    }
    count(head.role, all - given, family.stale);  // what rounding left
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
