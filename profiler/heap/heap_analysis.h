// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/owner_records.h"
#include "profiler/heap/growth.h"
#include "profiler/heap/heap_watch.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/paths.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/tensor_groups.h"

namespace tidemark::heap {

// Where the blocks begin that the growth of an owner is in.
struct OwnerBlocks {
  std::size_t place = 0;  // of the owner among those of the look
  double share = 1.0;     // of them, that is growth
  std::vector<std::uint64_t> addresses;
};

// What the looks at one process find, from the memory images of each. Not thread-safe.
class HeapAnalysis {
 public:
  HeapAnalysis(ProcessKey key, const HeapOptions& options) : key_(key), options_(options) {}

  // Fills in owners, types, tensors, and of the look what the objects tell. `facts` has one look.
  // False, and nothing has changed: when all was read, it was not sound.
  bool run(MemoryImage& image, ProcessObjects& objects, const GraphLimits& limits,
           const std::function<bool()>& is_sound, const HeapExports& exports, HeapFacts& facts);
  // Likewise, of a process without Python: the tensors of torch.
  bool run_native(MemoryImage& image, const GraphLimits& limits,
                  const std::function<bool()>& is_sound, HeapFacts& facts);

  // From the next look on: whether it finds the blocks of owners as well.
  void set_with_blocks(bool with_blocks) {
    with_blocks_ = with_blocks;
    blocks_.clear();
  }
  // From the next look on: only what names of Python lead to. What was allocated while the objects
  // of a process that runs were read would else seem to be garbage.
  void set_only_reached(bool only_reached) { only_reached_ = only_reached; }
  // Of the last look; those that grew most first.
  std::vector<OwnerBlocks> take_blocks() { return std::exchange(blocks_, {}); }

 private:
  // What no name leads to: its bytes at the first look, and whether it has ever had less.
  struct Unnamed {
    std::uint64_t first_bytes = 0;
    std::uint64_t last_bytes = 0;
    bool has_fallen = false;
  };
  class Look;

  std::uint32_t number_of(OwnerKind kind, const ObjectPath& path, const std::string& type,
                          HeapFacts& facts);
  void add_tensors(CppObjects& objects, std::span<const std::uint64_t> tensors,
                   HeapFacts::OfProcess& of_process) const;
  void add_native(CppObjects& objects, const CppObjects::Found& found,
                  std::span<const NativeArray> arrays, HeapFacts& facts);

  ProcessKey key_;
  HeapOptions options_;
  GrowthFinder growth_;
  NativeTensors native_;
  std::map<std::pair<OwnerKind, std::string>, std::uint32_t> owners_;
  std::set<std::uint32_t> grew_;  // owners that have grown at any look
  std::map<OwnerKind, Unnamed> unnamed_;
  bool with_blocks_ = false;
  bool only_reached_ = false;
  std::vector<OwnerBlocks> blocks_;
};

}  // namespace tidemark::heap
