// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/owner_records.h"
#include "profiler/heap/object_graph.h"

namespace tidemark::heap {

// The way to an object, as a person would write it: "__main__.collator.cache".
struct ObjectPath {
  std::string text;
  std::string grouped;  // the same with "[*]" for every key: equal for what belongs together
  std::vector<PathStep> steps;
  bool is_library = false;
};

// Names the ways through a graph. What an object calls its parts is read again when it is asked
// for, and kept. Not thread-safe.
class ObjectPaths {
 public:
  using Node = ObjectGraph::Node;

  explicit ObjectPaths(const ObjectGraph& graph) : graph_(graph) {}
  ObjectPath of(Node node);

 private:
  struct Label {
    ReferenceKind kind = ReferenceKind::kItem;
    std::string text;         // of an attribute, a member or a variable
    std::uint64_t index = 0;  // among the references of the parent of the same kind
  };
  class Writer;

  const Label& label_of(Node node);
  Label read_label(Node node) const;

  const ObjectGraph& graph_;
  std::unordered_map<Node, Label> labels_;
};

}  // namespace tidemark::heap
