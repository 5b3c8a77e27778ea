// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/process_key.h"
#include "common/role.h"
#include "monitor/proc_smaps.h"

namespace tidemark::monitor {

// The cheap part: what /proc/PID/status tells at every tick.
struct CheapMemory {
  std::uint64_t anon_bytes = 0;
  std::uint64_t shmem_bytes = 0;
  std::uint64_t swap_bytes = 0;

  std::uint64_t total() const { return anon_bytes + shmem_bytes + swap_bytes; }
};

// The footprint of groups of processes, each shared page counted once.
//
// Only smaps_rollup knows how pages are shared, and it is too expensive for every tick. So each
// process has an account: its share (Pss_Anon + Pss_Shmem + SwapPss) at its last reading, carried
// forward by the change of its cheap numbers since. The sum over a group is then right as long as
// all its accounts speak of the same sharing. Fork and exit change the sharing of a whole family at
// once: the processes that descend from each other by fork without exec, and so share anonymous
// pages. Such a family is "stale": its sum is held (a newborn counts nothing but its own growth; of
// a dead member the pages that others share remain) until every member has been read again, and
// then all new shares enter together. Readings in between wait, and count only from commit() on:
// who reads looks first whether somebody was born or died meanwhile.
//
// Within a family shared pages are credited to its head, the first of the living: the trainer's
// number does not move because a worker was forked or has ended, and workers are credited with what
// they have added.
//
// A sharer that we do not see (born and gone between two looks, or outside the tree) makes shares
// too small. A family holds at least what its largest member maps, so no sum falls below that.
//
// Pure bookkeeping; not thread-safe.
class FootprintLedger {
 public:
  // `forked_from`: the parent whose image it still shares. Nothing is known of it until
  // set_cheap().
  void add(const ProcessKey& key, Role role, std::optional<ProcessKey> forked_from);
  void remove(const ProcessKey& key);
  // It has an image of its own now, and shares nothing with its former family.
  void exec(const ProcessKey& key);
  void set_role(const ProcessKey& key, Role role);

  void set_cheap(const ProcessKey& key, const CheapMemory& now);
  void set_share(const ProcessKey& key, const PssFields& read, std::int64_t now_ns);
  // The shares set since the last call are of one moment: they count from now on.
  void commit();
  // Its share cannot be read (no permission, too large): nobody waits for it any more.
  void give_up_share(const ProcessKey& key);

  struct Total {
    std::uint64_t bytes = 0;
    bool held = false;
  };
  struct Totals {
    Total tree;
    std::array<Total, kRoleCount> roles;
  };
  Totals totals() const;

  // Whom to read next, in the order of need: members of stale families that still lack a reading,
  // then those never read, then by change since the last reading, then by age. Those given up are
  // left out.
  std::vector<ProcessKey> reading_order() const;
  bool wants_reading_now(const ProcessKey& key) const;  // stale or never read

 private:
  using FamilyId = std::uint64_t;

  struct Reading {
    std::uint64_t share_bytes = 0;
    std::uint64_t private_bytes = 0;
    double shmem_ratio = 1.0;  // share of its shared memory that is its own
    CheapMemory at;            // the cheap numbers that go with it
    std::int64_t taken_ns = 0;
  };

  struct Account {
    Role role = Role::kOther;
    FamilyId family = 0;
    bool forked = false;       // its pages at birth are its family's
    bool has_cheap = false;    // set_cheap() was called
    bool has_reading = false;  // `base` comes from smaps_rollup
    bool given_up = false;
    Reading base;
    std::optional<Reading> pending;  // waits for commit(), and for the rest of a stale family
    CheapMemory now;

    std::uint64_t bytes() const;   // its share, carried forward
    std::uint64_t mapped() const;  // what it maps of memory that only its family can hold
    std::uint64_t shmem() const;   // its share of segments that anybody may map
    std::int64_t drift() const;
  };

  struct Family {
    std::vector<ProcessKey> members;
    bool stale = false;
    std::size_t awaited = 0;                   // while stale: members that have yet to be read
    std::uint64_t left_by_the_dead_bytes = 0;  // pages of theirs that the living still map
  };

  std::uint64_t family_bytes(const Family& family) const;
  void leave_family(const ProcessKey& key, const Account& account);
  void mark_stale(Family& family);
  void settle(Family& family);
  std::uint64_t shared_with_survivors(const ProcessKey& key, const Account& account) const;

  std::unordered_map<ProcessKey, Account> accounts_;
  std::unordered_map<FamilyId, Family> families_;
  std::vector<FamilyId> to_settle_;  // families with a pending reading, or with nobody to wait for
  FamilyId next_family_ = 1;
};

}  // namespace tidemark::monitor
