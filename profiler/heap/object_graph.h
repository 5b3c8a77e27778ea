// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "profiler/heap/python_objects.h"
#include "profiler/heap/python_types.h"

namespace tidemark::heap {

// Where the objects of a graph come from: a process, or what a test makes up.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  // That of what lies at an address to which a reference of such a kind leads; PythonTypes::kNone:
  // there is no object.
  virtual PythonTypes::Index type_of(std::uint64_t address, ReferenceKind kind) = 0;
  virtual const TypeInfo& type(PythonTypes::Index index) const = 0;
  virtual void references(std::uint64_t address, PythonTypes::Index type,
                          VisitReferences visit) = 0;
  virtual std::uint64_t bytes(std::uint64_t address, PythonTypes::Index type) = 0;
  // The characters of a text; empty: it is none.
  virtual std::string text(std::uint64_t address) = 0;
  // Of a function, generator, class or module: what it calls itself; empty: it has no name.
  virtual std::string name(std::uint64_t address, PythonTypes::Index type) = 0;
  // Of a function: its free variable, or its argument with a default, that stands there.
  virtual std::string variable_name(std::uint64_t function, PythonTypes::Index type,
                                    bool is_closure, std::uint64_t index) = 0;
};

// Something from which objects are reached: a module, a variable of a running function.
struct Root {
  std::uint64_t address = 0;
  std::string label;
  std::uint32_t cost = 0;
  bool is_library = false;   // of a library, not of the job's own code
  bool is_variable = false;  // what it leads to has this one name; else a module or the like
};

// Objects of one look by number, and which lie where.
class ObjectTable {
 public:
  using Node = std::uint32_t;
  static constexpr Node kNone = 0xffffffff;

  Node find(std::uint64_t address) const;
  // It must not be there yet.
  Node add(std::uint64_t address);
  std::size_t size() const { return addresses_.size(); }
  std::uint64_t address(Node node) const { return addresses_[node]; }

 private:
  std::size_t slot_of(std::uint64_t address) const {
    return (address * 0x9e3779b97f4a7c15U) >> shift_;
  }
  void grow();

  std::vector<std::uint64_t> addresses_;
  std::vector<Node> slots_ = std::vector<Node>(std::size_t{1} << 10U, kNone);
  unsigned shift_ = 54;
};

struct GraphLimits {
  std::size_t most_objects = 20'000'000;
  // What lies about its size may seem to have as many as there is memory.
  std::size_t most_references = 300'000'000;
  // Asked now and then: true ends the walk, with what was reached by then.
  std::function<bool()> is_over = [] { return false; };
  // Ends what goes on after the walk, too.
  std::function<bool()> is_cancelled = [] { return false; };
};

// All objects that are reached from roots, each with the way to it that a person would name first:
// the cheapest, where a step through a class or the globals of a function costs more than one to an
// attribute.
class ObjectGraph {
 public:
  using Node = ObjectTable::Node;
  static constexpr Node kNone = ObjectTable::kNone;

  ObjectGraph(ObjectSource& source, std::vector<Root> roots, const GraphLimits& limits);

  std::size_t size() const { return table_.size(); }
  Node find(std::uint64_t address) const { return table_.find(address); }
  std::uint64_t address(Node node) const { return table_.address(node); }
  PythonTypes::Index type_index(Node node) const { return types_[node]; }
  const TypeInfo& type(Node node) const { return source_.type(types_[node]); }
  std::uint64_t bytes(Node node) const { return std::uint64_t{8} * units_[node]; }
  std::uint32_t reference_count(Node node) const { return reference_counts_[node]; }
  // kNone: it is reached from a root.
  Node parent(Node node) const { return parents_[node] >= kFirstRoot ? kNone : parents_[node]; }
  // The root of the way to it.
  const Root& root(Node node) const;
  std::size_t root_index(Node node) const;
  // What it refers to; the same several times, if not side by side.
  std::span<const Node> targets(Node node) const;
  // In the order in which they were reached: each after its parent.
  std::span<const Node> order() const { return order_; }
  // Of what was reached from given roots; all that follows in `order` was not.
  std::size_t reachable() const { return reachable_; }
  const std::vector<Root>& roots() const { return roots_; }
  ObjectSource& source() const { return source_; }
  bool is_partial() const { return is_partial_; }

  // Goes on from objects that nothing leads to.
  void add_unreachable(std::vector<Root> roots, const GraphLimits& limits);

  // For each node the bytes of it and of all whose way goes through it.
  std::vector<std::uint64_t> bytes_below() const;

 private:
  static constexpr Node kFirstRoot = 0xc0000000;

  static constexpr std::uint32_t kFar = 0xffffffff;

  // Whether its way is final, and what it refers to is known.
  bool is_settled(Node node) const { return target_count_[node] != kFar; }
  void push(Node node, std::uint32_t distance, Node parent);
  void push_roots(std::size_t first);
  void walk(const GraphLimits& limits);
  void expand(Node node, const GraphLimits& limits);
  void take_step(const Reference& reference, Node from, Node to);
  Node find_or_add(const Reference& reference, const GraphLimits& limits);

  ObjectSource& source_;
  std::vector<Root> roots_;
  ObjectTable table_;
  std::vector<PythonTypes::Index> types_;
  std::vector<Node> parents_;         // or the number of a root, from kFirstRoot on
  std::vector<std::uint32_t> units_;  // of 8 bytes
  std::vector<std::uint32_t> reference_counts_;
  std::vector<std::uint32_t> first_target_;  // its distance, as long as it is not settled
  std::vector<std::uint32_t> target_count_;  // kFar: it is not settled
  std::vector<Node> targets_;
  std::vector<Node> order_;
  std::vector<std::vector<Node>> buckets_;  // by distance
  std::uint32_t distance_ = 0;
  std::size_t waiting_ = 0;
  std::size_t reachable_ = 0;
  bool is_partial_ = false;
};

}  // namespace tidemark::heap
