// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/process_key.h"
#include "common/records.h"
#include "monitor/procfs/proc_smaps.h"
#include "monitor/sharing_ledger.h"

namespace tidemark::monitor {

// The cheap part: what /proc/PID/status tells at every tick.
struct CheapMemory {
  std::uint64_t anon_bytes = 0;
  std::uint64_t shmem_bytes = 0;
  std::uint64_t swap_bytes = 0;

  std::uint64_t total() const { return anon_bytes + shmem_bytes + swap_bytes; }
};

// The footprint of a tree and its roles, each shared page counted once; SharingLedger says how.
// Anonymous pages are shared within families: processes that descend from each other by fork
// without exec. Shared memory may be mapped by anybody: all who map some form one group.
//
// Pure bookkeeping; not thread-safe.
class FootprintLedger {
 public:
  // `forked_from`: the parent whose image it still shares.
  void add(const ProcessKey& key, Role role, std::optional<ProcessKey> forked_from);
  void remove(const ProcessKey& key);
  // It has an image of its own now, and shares nothing with its former family.
  void exec(const ProcessKey& key);
  void set_role(const ProcessKey& key, Role role);

  void set_cheap(const ProcessKey& key, const CheapMemory& now);
  void set_share(const ProcessKey& key, const PssFields& read, std::int64_t now_ns);
  // Its share cannot be read (no permission, too large): nobody waits for it any more.
  void give_up_share(const ProcessKey& key);
  void try_again(const ProcessKey& key);
  // The shares set since the last call are of one moment: they count from now on.
  void commit();

  struct Total {
    std::uint64_t bytes = 0;
    bool held = false;  // waits for a reading: partly carried over
  };
  struct Totals {
    Total tree;
    std::array<Total, kRoleCount> roles;
  };
  Totals totals() const;

  // Whom to read next, in the order of need: those that a stale group waits for, then those never
  // read, then by change since the last reading, then by age. Those given up are left out.
  std::vector<ProcessKey> reading_order() const;
  bool wants_reading_now(const ProcessKey& key) const;  // stale or never read
  // Its coming and going changes what others hold.
  bool shares(const ProcessKey& key) const { return anonymous_.shares(key) || shmem_.shares(key); }

 private:
  struct Member {
    Role role = Role::kOther;
    CheapMemory now;
    bool has_cheap = false;
    bool given_up = false;
  };

  void join_shmem(const ProcessKey& key);
  SharingLedger::Need need(const ProcessKey& key) const;

  std::unordered_map<ProcessKey, Member> members_;
  SharingLedger anonymous_{1.0};
  SharingLedger shmem_{0.0};  // one group
  std::vector<ProcessKey> shmem_members_;
};

struct WatchedProcess;

// Adds up the processes of one tick, by role and as a tree.
class GroupSums {
 public:
  void add(const WatchedProcess& watched, const ProcessSample& sample);
  // Writes `tick.roles` and `tick.tree`.
  void finish(const FootprintLedger::Totals& footprints, Tick& tick) const;

 private:
  std::array<GroupSample, kRoleCount> roles_{};
  std::array<std::uint32_t, kRoleCount> without_pss_{};
};

}  // namespace tidemark::monitor
