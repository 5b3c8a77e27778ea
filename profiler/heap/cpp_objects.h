// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/heap/cpp_classes.h"
#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_objects.h"

namespace tidemark::heap {

// Of a tensor. It has no memory of its own: several may share a storage.
struct TensorFacts {
  std::string dtype;   // "float32"
  std::string device;  // "cpu", "cuda:0"
  std::vector<std::int64_t> shape;
  bool requires_grad = false;
  bool is_graph = false;      // an operation that is kept has made it
  bool is_view = false;       // of another tensor, as torch sees it
  std::uint64_t storage = 0;  // its address; 0: it has none
  std::uint64_t offset = 0;   // of its first element in the storage
  std::uint64_t elements = 0;
};

// Of the memory of tensors.
struct StorageFacts {
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  std::string device;
  bool is_host = false;    // it is memory of the process
  bool is_pinned = false;  // page-locked memory of the host
};

// The objects of torch in C++: what they refer to, and what they say of themselves. Where a version
// of torch keeps what in an object is found out from the objects themselves: the place at which
// what must be true of it is true for most of them. Everything read is a stranger's. Not
// thread-safe.
class CppObjects {
 public:
  explicit CppObjects(MemoryImage& image) : image_(image), classes_(image) {}

  // A library of torch is loaded: else there are none.
  bool has_torch() const { return classes_.has_torch(); }
  // nullptr: there is no object of torch at an address.
  const CppClass* find(std::uint64_t address) {
    const CppClass* const found = classes_.of(address);
    return found == nullptr || found->role == CppRole::kNone || found->is_undefined_tensor ? nullptr
                                                                                           : found;
  }
  void references(std::uint64_t object, const CppClass& of, VisitReferences visit);
  // Of the object itself, as malloc has rounded them; without the memory of tensors.
  std::uint64_t bytes(std::uint64_t object, const CppClass& of);

  // nullopt: what is read there cannot be true.
  std::optional<TensorFacts> tensor(std::uint64_t tensor);
  std::optional<StorageFacts> storage(std::uint64_t storage);
  // Where a storage whose memory somebody else has made may keep a reference to that.
  std::vector<std::uint64_t> lenders(std::uint64_t storage);

  // All tensors and storages in the memory of the process, without following a reference.
  struct Found {
    std::vector<std::uint64_t> tensors;
    std::vector<std::uint64_t> storages;
    std::vector<std::uint64_t> instances;
    bool is_partial = false;
  };
  // What else a scan looks for, and what it need not look through.
  struct ScanOptions {
    std::uint64_t type = 0;          // what may be its instances, in Python; 0: of no type
    std::vector<AddressRange> data;  // no object is in them
  };
  // `known`: storages whose data need not be looked through.
  Found scan(std::span<const std::uint64_t> known, const std::function<bool()>& is_over,
             const ScanOptions& options);

 private:
  // Offsets in objects of torch.
  struct Layout {
    static constexpr std::uint32_t kNone = 0xffffffff;

    std::uint32_t storage = kNone;  // of a tensor: its storage, and behind that its gradients
    std::uint32_t sizes = kNone;    // of a tensor: number of dimensions, sizes, strides and so on
    std::uint32_t data = kNone;     // of a storage: data, function that frees it, context, device
    std::uint32_t flags = kNone;    // of gradients: requires_grad, and more

    bool is_whole() const { return storage != kNone && sizes != kNone && data != kNone; }
  };
  struct Samples {
    std::vector<std::uint64_t> tensors;
    std::vector<std::uint64_t> storages;
    std::vector<std::uint64_t> gradients;
  };
  class Parts;

  void learn_near(std::uint64_t object);
  void learn(const Samples& samples);
  std::uint32_t find_flags(std::span<const std::uint64_t> gradients);
  bool is_shape(std::uint64_t sizes);
  bool is_data(std::uint64_t data);
  bool are_flags(std::uint64_t flags, bool is_view);
  template <typename Visit>
  void for_each_object(AddressRange range, Visit visit);
  void find_instances(AddressRange range, std::uint64_t type, std::vector<std::uint64_t>& found);
  std::string device_of(std::uint64_t optional, std::uint64_t storage);
  std::uint64_t gradients_of(std::uint64_t tensor);
  std::uint64_t chunk_bytes(std::uint64_t address);
  std::uint64_t bytes_to_read(std::uint64_t object, const CppClass& of);

  MemoryImage& image_;
  CppClasses classes_;
  Layout layout_;
  int attempts_ = 0;  // to find the layout
  std::uint64_t learned_near_ = 0;
  std::vector<Reference> references_;
};

}  // namespace tidemark::heap
