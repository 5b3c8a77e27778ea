// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/owner_records.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/paths.h"

namespace tidemark::heap {

// Something that leads to objects that were not there at the first look.
struct GrowingOwner {
  OwnerKind kind = OwnerKind::kContainer;
  ObjectPath path;
  std::string type;
  std::vector<ObjectGraph::Node> nodes;  // several, if what lies side by side grows alike
  std::uint64_t entries = 0;             // references that they have
  std::uint64_t first_entries = 0;       // that they had at the first look
  std::uint64_t grown_bytes = 0;
  std::uint64_t grown_bytes_alone = 0;
  std::string shared_with;
  // What is new below it, and in which ratio that is growth: the rest has taken the place of
  // others.
  std::vector<ObjectGraph::Node> new_nodes;
  double share = 1.0;
};

struct HeapGrowth {
  std::uint64_t new_bytes = 0;
  std::uint64_t gone_bytes = 0;
  std::vector<GrowingOwner> owners;  // the most growth first
};

// The addresses of many objects, in two bytes each: what is in one page of memory stands side by
// side.
class AddressTable {
 public:
  using Number = std::uint32_t;
  static constexpr Number kNone = 0xffffffff;

  // Calls for_each_address(visit) twice, and has then what it has visited, each once.
  template <typename ForEachAddress>
  void fill(ForEachAddress for_each_address);
  Number find(std::uint64_t address) const;
  std::size_t size() const { return places_.size(); }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;

  struct Page {
    Number first = 0;
    Number count = 0;
  };
  std::unordered_map<std::uint64_t, Page> pages_;
  std::vector<std::uint16_t> places_;  // in the page, in units of 8 bytes
};

template <typename ForEachAddress>
void AddressTable::fill(ForEachAddress for_each_address) {
  for_each_address([&](std::uint64_t address) { ++pages_[address / kPageBytes].count; });
  Number first = 0;
  for (auto& [number, page] : pages_) {
    page.first = first;
    first += std::exchange(page.count, 0);
  }
  places_.resize(first);
  for_each_address([&](std::uint64_t address) {
    Page& page = pages_[address / kPageBytes];
    places_[page.first + page.count++] = static_cast<std::uint16_t>(address % kPageBytes / 8);
  });
}

// What grows between looks. An owner is an object that was there at the first look and refers to
// more objects now (a bounded buffer does not), or a variable below which more and more is new. An
// object is the same at two looks if its address and its type are.
class GrowthFinder {
 public:
  // The first look is what later ones are compared with.
  HeapGrowth compare(const ObjectGraph& graph, ObjectPaths& paths, double t_s);

 private:
  using Node = ObjectGraph::Node;

  // What was there at the first look.
  struct Before {
    std::uint32_t identity = 0;         // of its type
    std::uint32_t units = 0;            // of 8 bytes
    std::uint32_t reference_count = 0;  // at the first look
    std::uint32_t last_count = 0;
  };
  struct Candidate {
    Node node = 0;
    std::uint32_t more_references = 0;
    std::uint64_t more_bytes = 0;
    std::uint32_t first_references = 0;
    bool is_weak = false;  // only reached through what belongs to the interpreter
  };
  struct Group {
    GrowingOwner owner;
    std::uint64_t own_bytes = 0;  // by which the objects themselves have grown
    std::uint64_t more_references = 0;
    std::uint64_t new_references = 0;
    std::uint64_t reached_bytes = 0;
    std::uint64_t alone_bytes = 0;
    std::uint64_t first_bytes = 0;  // without what owners before it lead to
    bool is_weak = false;
  };
  class Comparison;

  void begin(const ObjectGraph& graph);

  bool has_begun_ = false;
  int compared_ = 0;  // looks after the first
  AddressTable table_;
  std::vector<Before> before_;  // as the table has them
  // Which of them had fewer references than at a look before, and which are there at this look.
  std::vector<bool> has_fallen_;
  std::vector<bool> is_there_;
  // Of those that had grown at the look before: some of what they led to, by address.
  std::unordered_map<Node, std::vector<std::uint64_t>> samples_;
  double first_t_s_ = 0.0;
  // Of variables, by path: what was new below them at the second look.
  struct Seen {
    double t_s = 0.0;
    std::uint64_t bytes = 0;
    std::uint64_t last_bytes = 0;
    bool has_fallen = false;
  };
  std::unordered_map<std::string, Seen> variables_;
};

}  // namespace tidemark::heap
