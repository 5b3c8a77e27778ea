// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/heap/object_graph.h"

namespace tidemark::tests {

// Objects that a test puts at addresses, texts of keys among them: every byte of what is written
// about them is the test's own.
class PlacedObjects final : public heap::ObjectSource {
 public:
  struct Object {
    heap::PythonTypes::Index type = 0;
    std::uint64_t bytes = 0;
    std::vector<heap::Reference> references = {};
    std::string text = "";
    std::string name = "";
  };

  // References to others can be added to what it returns.
  Object& add(std::uint64_t address, heap::ObjectKind kind, const std::string& type,
              std::uint64_t bytes = 16) {
    return objects_[address] = {type_index(kind, type), bytes};
  }
  Object& add_text(std::uint64_t address, const std::string& text) {
    Object& object = add(address, heap::ObjectKind::kText, "str");
    object.text = text;
    return object;
  }
  // An entry of a dictionary, with its key.
  void add_entry(std::uint64_t dict, std::uint64_t key_address, const std::string& key,
                 std::uint64_t value) {
    add_text(key_address, key);
    at(dict).references.push_back({key_address, 0, "", heap::ReferenceKind::kKey});
    at(dict).references.push_back({value, key_address, "", heap::ReferenceKind::kValue});
  }
  void add_items(std::uint64_t list, const std::vector<std::uint64_t>& items) {
    for (const std::uint64_t item : items) {
      at(list).references.push_back({item, 0, "", heap::ReferenceKind::kItem});
    }
  }
  // With its dictionary.
  void add_module(std::uint64_t address, std::uint64_t dict, const std::string& name) {
    add(address, heap::ObjectKind::kModule, "module").name = name;
    at(address).references = {{dict, 0, "", heap::ReferenceKind::kDict}};
    add(dict, heap::ObjectKind::kDict, "dict");
  }
  Object& at(std::uint64_t address) { return objects_.at(address); }

  heap::PythonTypes::Index type_of(std::uint64_t address, heap::ReferenceKind /*kind*/) override {
    const auto found = objects_.find(address);
    return found == objects_.end() ? heap::PythonTypes::kNone : found->second.type;
  }
  const heap::TypeInfo& type(heap::PythonTypes::Index index) const override {
    return types_[index];
  }
  void references(std::uint64_t address, heap::PythonTypes::Index /*type*/,
                  heap::VisitReferences visit) override {
    visit(at(address).references);
  }
  std::uint64_t bytes(std::uint64_t address, heap::PythonTypes::Index /*type*/) override {
    return at(address).bytes;
  }
  std::string text(std::uint64_t address) override {
    const auto found = objects_.find(address);
    return found == objects_.end() ? "" : found->second.text;
  }
  std::string name(std::uint64_t address, heap::PythonTypes::Index /*type*/) override {
    return at(address).name;
  }
  std::string variable_name(std::uint64_t /*function*/, heap::PythonTypes::Index /*type*/,
                            bool /*is_closure*/, std::uint64_t /*index*/) override {
    return "variable";
  }

 private:
  heap::PythonTypes::Index type_index(heap::ObjectKind kind, const std::string& name) {
    const auto [found, is_new] =
        by_name_.try_emplace({kind, name}, static_cast<heap::PythonTypes::Index>(types_.size()));
    if (is_new) {
      heap::TypeInfo& type = types_.emplace_back();
      type.name = name;
      type.kind = kind;
      type.identity = found->second;
    }
    return found->second;
  }

  std::map<std::uint64_t, Object> objects_;
  std::deque<heap::TypeInfo> types_;
  std::map<std::pair<heap::ObjectKind, std::string>, heap::PythonTypes::Index> by_name_;
};

}  // namespace tidemark::tests
