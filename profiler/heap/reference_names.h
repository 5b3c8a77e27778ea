// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/heap/object_graph.h"

namespace tidemark::heap {

// What an object calls one that it refers to.
struct ReferenceName {
  enum class Sort {
    kProperty,  // by a name of the program's: an attribute, a key, a variable
    kElement,   // by its index
    kInternal,  // by what the interpreter calls it
  };
  Sort sort = Sort::kInternal;
  ReferenceKind kind = ReferenceKind::kItem;
  std::string text;         // of an element: empty
  std::uint64_t index = 0;  // of an element
};

// Of longer names there is only the beginning.
inline constexpr std::size_t kMostNameBytes = 80;
// The beginning of a text that is valid UTF-8 if the text is.
std::string_view cut_name(std::string_view text);

// The names of what an object refers to: asked again of where the objects come from, as a graph
// does not keep them. Not thread-safe.
class ReferenceNames {
 public:
  explicit ReferenceNames(const ObjectGraph& graph) : graph_(graph) {}

  // Called once for each of graph.targets(node), in their order, whatever the object refers to by
  // now: what is gone has the internal name "?".
  using Visit = std::function<void(ObjectGraph::Node target, const ReferenceName& name)>;
  void of(ObjectGraph::Node node, const Visit& visit) const;

 private:
  void name(const Reference& reference, std::uint64_t index, ReferenceName& name) const;

  const ObjectGraph& graph_;
};

}  // namespace tidemark::heap
