// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiler/heap/memory_image.h"

namespace tidemark::heap {

// What an object of a class is to torch.
enum class CppRole : std::uint8_t {
  kNone,       // nothing
  kTensor,     // c10::TensorImpl, or derives from it
  kStorage,    // c10::StorageImpl: the memory of tensors
  kGradients,  // torch::autograd::AutogradMeta: the gradient of a tensor, and where it comes from
  kNode,       // torch::autograd::Node: an operation, kept to compute gradients
  kPart,       // anything else in its namespaces
};

// A class of C++ with virtual functions.
struct CppClass {
  std::string mangled;  // "N3c1010TensorImplE"
  CppRole role = CppRole::kNone;
  bool is_undefined_tensor = false;  // there is one for all
  bool is_accumulator = false;       // the node of a leaf: adds to its gradient
  bool is_view = false;              // gradients of a view of another tensor
  bool may_lead_to_python = false;
  std::uint32_t number = 0;  // from 0 on
};

// The classes that objects of C++ in a process have, told by the type information that compilers
// put beside the table of virtual functions: no symbols are needed. Tables and type information lie
// in mapped files; what does not is no class. Not thread-safe.
class CppClasses {
 public:
  explicit CppClasses(MemoryImage& image);

  // A library of torch is loaded.
  bool has_torch() const { return has_torch_; }
  // Of the object at an address; nullptr: there is none, or it is part of a library.
  const CppClass* of(std::uint64_t object) {
    return object < kLowestAddress || object % 8 != 0 || is_in_file(object)
               ? nullptr
               : of_table(image_.word(object));
  }
  // The class with this table of virtual functions; nullptr: it is none.
  const CppClass* of_table(std::uint64_t table) {
    return table % 8 == 0 && is_in_file(table) ? find(table) : nullptr;
  }
  bool is_in_file(std::uint64_t address) const {
    return address >= lowest_ && address < highest_ && is_in_range(address);
  }

 private:
  static constexpr std::uint64_t kLowestAddress = 4096;

  bool is_in_range(std::uint64_t address) const;
  const CppClass* find(std::uint64_t table);
  const CppClass* read(std::uint64_t table);
  std::uint64_t type_information(std::uint64_t table);
  std::string name_of(std::uint64_t information);
  std::uint64_t base_of(std::uint64_t information);

  MemoryImage& image_;
  std::vector<AddressRange> files_;
  std::uint64_t lowest_ = 0;
  std::uint64_t highest_ = 0;
  bool has_torch_ = false;
  std::deque<CppClass> classes_;
  std::unordered_map<std::uint64_t, const CppClass*> by_table_;
  std::unordered_set<std::uint64_t> others_;  // addresses where no table is
};

}  // namespace tidemark::heap
