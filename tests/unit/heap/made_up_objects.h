// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/heap/object_graph.h"

namespace tidemark::tests {

// Objects that a test makes up, changes between looks, and names the ways through.
class MadeUpObjects : public heap::ObjectSource {
 public:
  using Address = std::uint64_t;

  Address add(const std::string& type, heap::ObjectKind kind = heap::ObjectKind::kOther,
              std::uint64_t bytes = 64) {
    next_ += 64;
    put(next_, type, kind, bytes);
    return next_;
  }
  // At an address where something else may have been.
  void put(Address address, const std::string& type, heap::ObjectKind kind, std::uint64_t bytes) {
    objects_[address] = {type_index(type, kind), bytes, {}, ""};
  }
  Address list(std::uint64_t bytes = 64) { return add("list", heap::ObjectKind::kList, bytes); }
  Address dict(std::uint64_t bytes = 64) { return add("dict", heap::ObjectKind::kDict, bytes); }
  void set_name(Address object, const std::string& name) { objects_.at(object).name = name; }

  void refer(Address from, heap::Reference reference) {
    objects_.at(from).references.push_back(reference);
  }
  void item(Address from, Address to) { refer(from, {to, 0, "", heap::ReferenceKind::kItem}); }
  void value(Address dict, const std::string& key, Address to) {
    refer(dict, {to, text_at(key), "", heap::ReferenceKind::kValue});
  }
  void attribute(Address from, const std::string& name, Address to) {
    refer(from, {to, text_at(name), "", heap::ReferenceKind::kAttribute});
  }
  void member(Address from, const char* name, Address to) {
    refer(from, {to, 0, name, heap::ReferenceKind::kMember});
  }
  void forget(Address from) { objects_.at(from).references.clear(); }
  // All of its variables are then `to` only.
  void assign(Address module, const std::string& name, Address to) {
    const Address dict = objects_.at(module).references.front().target;
    const Address key = text_at(name);
    for (heap::Reference& reference : objects_.at(dict).references) {
      if (reference.detail == key) {
        reference.target = to;
        return;
      }
    }
    value(dict, name, to);
  }
  // A module with the dict of its variables.
  Address module(const std::string& name) {
    const Address module = add("module", heap::ObjectKind::kModule);
    refer(module, {dict(), 0, "", heap::ReferenceKind::kDict});
    roots.push_back({module, name, name == "__main__" ? 0U : 14U, name != "__main__", false});
    return module;
  }

  heap::PythonTypes::Index type_of(Address address, heap::ReferenceKind /*kind*/) override {
    const auto found = objects_.find(address);
    return found == objects_.end() ? heap::PythonTypes::kNone : found->second.type;
  }
  const heap::TypeInfo& type(heap::PythonTypes::Index index) const override {
    return types_[index];
  }
  void references(Address address, heap::PythonTypes::Index /*type*/,
                  heap::VisitReferences visit) override {
    visit(objects_.at(address).references);
  }
  std::uint64_t bytes(Address address, heap::PythonTypes::Index /*type*/) override {
    return objects_.at(address).bytes;
  }
  void set_bytes(Address address, std::uint64_t bytes) { objects_.at(address).bytes = bytes; }
  std::string text(Address address) override {
    const auto found = texts_.find(address);
    return found == texts_.end() ? "" : found->second;
  }
  std::string name(Address address, heap::PythonTypes::Index /*type*/) override {
    return objects_.at(address).name;
  }
  std::string variable_name(Address function, heap::PythonTypes::Index /*type*/, bool is_closure,
                            std::uint64_t index) override {
    return objects_.at(function).name + (is_closure ? "_free_" : "_default_") +
           std::to_string(index);
  }

  std::vector<heap::Root> roots;

 private:
  struct Object {
    heap::PythonTypes::Index type = 0;
    std::uint64_t bytes = 0;
    std::vector<heap::Reference> references;
    std::string name;
  };

  heap::PythonTypes::Index type_index(const std::string& name, heap::ObjectKind kind) {
    const auto [found, is_new] =
        by_name_.try_emplace(name, static_cast<heap::PythonTypes::Index>(types_.size()));
    if (is_new) {
      heap::TypeInfo type;
      type.name = name;
      type.full_name = name;
      type.kind = kind;
      type.identity = found->second + 1;
      types_.push_back(type);
    }
    return found->second;
  }
  // Of a text that is no object of the graph.
  Address text_at(const std::string& text) {
    const auto [found, is_new] = text_addresses_.try_emplace(text, 8 * (texts_.size() + 1));
    texts_[found->second] = text;
    return found->second;
  }

  Address next_ = 0x10000;
  std::deque<heap::TypeInfo> types_;
  std::map<std::string, heap::PythonTypes::Index> by_name_;
  std::unordered_map<Address, Object> objects_;
  std::unordered_map<Address, std::string> texts_;
  std::unordered_map<std::string, Address> text_addresses_;
};

}  // namespace tidemark::tests
