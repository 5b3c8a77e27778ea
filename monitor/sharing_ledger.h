// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/process_key.h"

namespace tidemark::monitor {

// Memory of one kind (anonymous, or shared) held by groups of processes that share pages of it,
// each page counted once.
//
// Only smaps_rollup knows how pages are shared, and it is too expensive for every tick. So each
// process has an account: its share at its last reading, carried forward by the change of what it
// maps since. The sum over a group is right as long as all its accounts speak of the same sharing.
// Who joins or leaves changes the sharing of the whole group at once: the group is "stale". Its sum
// is held (who joins counts nothing but its own growth; of who left the pages that others map
// remain) until every member has been read again, and then all new shares enter together.
// Readings count only from commit() on: the reader first checks whether a process started or exited
// meanwhile.
//
// A sharer that we do not see (it lived between two samples only, or is outside the tree) makes
// shares too small. A group holds at least what its largest member maps, so no sum falls below
// that.
//
// Pure bookkeeping; not thread-safe.
class SharingLedger {
 public:
  // A reading of smaps_rollup.
  struct Share {
    std::uint64_t bytes = 0;
    std::uint64_t private_bytes = 0;  // what goes with the process when it leaves
    double growth_ratio = 1.0;        // how much of further growth is its own
    std::int64_t taken_ns = 0;
  };

  // `growth_of_joiners`: how much of the growth of a process that joined a group and was not yet
  // read is its own. 1 for memory that only it can get; 0 where it may be mapping what others hold.
  explicit SharingLedger(double growth_of_joiners) : growth_of_joiners_(growth_of_joiners) {}

  // Into the group of `with`, or, when that is nullopt or unknown, into one of its own.
  void add(const ProcessKey& key, std::optional<ProcessKey> with);
  void remove(const ProcessKey& key);
  bool contains(const ProcessKey& key) const { return accounts_.contains(key); }
  // Others are in its group.
  bool shares(const ProcessKey& key) const;

  // What it maps now. The first call for a process that joined a group: all of it is the group's.
  void set_mapped(const ProcessKey& key, std::uint64_t bytes);
  void set_share(const ProcessKey& key, const Share& share);
  // Its share cannot be read for now: nobody waits for it.
  void give_up(const ProcessKey& key);
  void try_again(const ProcessKey& key);
  // The shares set since the last call are of one moment: they count from now on.
  void commit();

  // Calls visit(key, bytes, held) for each process. Shared pages are credited to the head of a
  // group, its oldest member: the trainer's number does not move because a worker was forked or
  // has ended; the others are credited with what they have added.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [id, group] : groups_) {
      visit_group(group, visit);
    }
  }

  struct Need {
    bool stale = false;   // its group waits for it
    bool unread = false;  // never read
    std::uint64_t group = 0;
    std::int64_t change_bytes = 0;  // since its last reading
    std::int64_t taken_ns = 0;
    bool given_up = false;
  };
  // Of a process that is in the ledger.
  Need need(const ProcessKey& key) const;

 private:
  using GroupId = std::uint64_t;

  struct Account {
    GroupId group = 0;
    bool joined = false;  // its pages at first are its group's
    bool has_mapped = false;
    bool has_reading = false;  // `base` comes from smaps_rollup
    bool given_up = false;
    Share base;
    std::uint64_t base_mapped = 0;  // what it mapped at `base`
    std::optional<Share> pending;   // waits for commit(), and for the rest of a stale group
    std::uint64_t pending_mapped = 0;
    std::uint64_t mapped = 0;

    std::int64_t drift() const;
    std::uint64_t bytes() const;  // its share, carried forward
  };

  struct Group {
    std::vector<ProcessKey> members;  // the oldest first
    bool stale = false;
    std::size_t awaited = 0;                   // while stale: members that have yet to be read
    std::uint64_t left_by_the_gone_bytes = 0;  // pages of theirs that the others still map
  };

  std::uint64_t group_bytes(const Group& group) const;
  std::uint64_t shared_with_the_others(const ProcessKey& key, const Account& account) const;
  void mark_stale(Group& group);
  void settle(Group& group);

  template <typename Visit>
  void visit_group(const Group& group, const Visit& visit) const {
    const std::uint64_t all = group_bytes(group);
    const ProcessKey& head_key = group.members.front();
    const Account& head = accounts_.at(head_key);
    double others = 0.0;  // the shares of all but the head, to divide the rest by
    for (std::size_t i = 1; i < group.members.size(); ++i) {
      others += static_cast<double>(accounts_.at(group.members[i]).bytes());
    }
    const std::uint64_t of_head = others == 0.0 ? all : std::min(all, head.mapped);
    const auto rest = static_cast<double>(all - of_head);
    std::uint64_t given = 0;
    for (std::size_t i = 1; i < group.members.size(); ++i) {
      const auto share = static_cast<double>(accounts_.at(group.members[i]).bytes());
      const auto bytes = others == 0.0 ? 0 : static_cast<std::uint64_t>(rest * share / others);
      visit(group.members[i], bytes, group.stale);
      given += bytes;
    }
    visit(head_key, all - given, group.stale);
  }

  double growth_of_joiners_;
  std::unordered_map<ProcessKey, Account> accounts_;
  std::unordered_map<GroupId, Group> groups_;
  std::vector<GroupId> to_settle_;
  GroupId next_group_ = 1;
};

}  // namespace tidemark::monitor
