// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/owner_records.h"
#include "profiler/heap/cpp_objects.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/process_objects.h"

namespace tidemark::heap {

// A tensor, with the memory that counts for it.
struct CountedTensor {
  TensorFacts facts;
  std::uint64_t bytes = 0;      // of its storage; 0: they count for another tensor
  std::uint64_t own_bytes = 0;  // of these, what is memory of the process itself
  bool is_pinned = false;
};

// Of several tensors that share a storage its bytes count for that of which the others are views.
// `is_counted` tells of a storage whether its bytes count at all.
std::vector<CountedTensor> count_tensors(CppObjects& objects,
                                         std::span<const std::uint64_t> tensors,
                                         const std::function<bool(std::uint64_t)>& is_counted);

// Those that look the same are one sample; the most bytes come first, and at most so many.
std::vector<TensorSample> group_tensors(std::span<const CountedTensor> tensors, std::size_t most);

// What some objects of a graph are, by type, tensors and arrays by what they look like as well. The
// shell that Python has of a tensor, and what belongs to it in C++, are one thing: the tensor. The
// most bytes come first, and at most so many sorts.
std::vector<HeldObjects> held_objects(const ObjectGraph& graph, ProcessObjects& objects,
                                      std::span<const ObjectGraph::Node> nodes, std::size_t most);

// Tensors and arrays that nothing in Python leads to, in groups of those that look the same, and
// storages that no tensor has, by their size, from look to look. What has fallen at any look does
// not grow.
class NativeTensors {
 public:
  struct Group {
    // "torch tensors float32 [256, 1024] cpu", "torch storages of 4096 bytes cpu",
    // "numpy arrays float32 [256, 1024]".
    std::string path;
    HeldObjects held;  // what has come since the group was first seen
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    // Where the memory begins that was not there at the first look, and how much it is: some of it
    // has taken the place of other memory.
    std::vector<std::uint64_t> new_data;
    std::uint64_t new_bytes = 0;
  };
  struct Change {
    std::vector<Group> groups;  // the most growth first
    std::uint64_t bytes = 0;    // of all
    std::uint64_t new_bytes = 0;
    std::uint64_t gone_bytes = 0;
  };
  // One look, with all tensors and storages that count.
  Change compare(CppObjects& objects, std::span<const std::uint64_t> tensors,
                 std::span<const std::uint64_t> storages, std::span<const NativeArray> arrays);

 private:
  struct Seen {
    std::uint64_t first_bytes = 0;
    std::uint64_t first_count = 0;
    std::uint64_t last_bytes = 0;
    bool has_fallen = false;
  };

  class Groups;

  using BytesByAddress = std::unordered_map<std::uint64_t, std::uint64_t>;

  // Whether a storage or an array was not there at the first look.
  bool is_new(std::uint64_t address, std::uint64_t bytes) const;
  void compare_memory(BytesByAddress now, Change& change);
  // What of each group has come since it was first seen.
  void measure_growth(std::vector<Group>& groups);

  bool has_begun_ = false;
  std::map<std::string, Seen> seen_;  // by path
  BytesByAddress first_;              // storages and arrays
};

}  // namespace tidemark::heap
