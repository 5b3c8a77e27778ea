// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/heap/memory_image.h"

namespace tidemark::tests {

// The memory of a small program of libtorch 2.6 without Python that a test makes up: a library with
// the classes, and a heap with tensors, storages, and a graph of two operations. What may be of
// other versions is found out from the objects, so one is enough.
class MadeUpTorch {
 public:
  static constexpr std::uint64_t kLibrary = 0x200000;
  static constexpr std::uint64_t kHeap = 0x300000;
  static constexpr std::size_t kLibraryBytes = 0x2000;
  static constexpr std::size_t kHeapBytes = 0x10000;
  // Of the tensors that are there from the beginning, and of add_tensor(): float32 [128, 256].
  static constexpr std::uint64_t kStorageBytes = 4 * 128 * 256;

  // With so many tensors; the first three of them require gradients, and the third is a result.
  explicit MadeUpTorch(int tensors = 8);

  std::string& bytes() { return bytes_; }
  const std::vector<std::uint64_t>& tensors() const { return tensors_; }
  const std::vector<std::uint64_t>& storages() const { return storages_; }
  const std::vector<std::uint64_t>& operations() const { return operations_; }
  std::uint64_t data_of(std::size_t storage) const { return data_[storage]; }
  // The type information and the table of functions of a class: "N3c1010TensorImplE".
  std::uint64_t information(std::string_view mangled) const;
  std::uint64_t table(std::string_view mangled) const;

  std::uint64_t add_tensor();
  std::uint64_t add_storage(std::uint64_t bytes);
  // Room in the heap, as malloc gives it.
  std::uint64_t take(std::size_t bytes);
  void put(std::uint64_t address, std::uint64_t word);

  // The memory; the text of `of` must outlive it.
  static heap::MemoryImage image(const std::string& bytes);

 private:
  struct Class {
    std::string mangled;
    std::uint64_t information = 0;
    std::uint64_t table = 0;
  };

  void make_class(const std::string& mangled, std::string_view base);
  std::uint64_t make(std::string_view mangled, std::size_t bytes);
  void make_graph();
  static std::size_t place_of(std::uint64_t address);

  std::string bytes_ = std::string(kLibraryBytes + kHeapBytes, '\0');
  std::uint64_t next_in_library_ = kLibrary + 0x100;
  std::uint64_t next_in_heap_ = kHeap + 0x40;
  std::vector<Class> classes_;
  std::vector<std::uint64_t> tensors_;
  std::vector<std::uint64_t> storages_;
  std::vector<std::uint64_t> operations_;
  std::vector<std::uint64_t> data_;
};

}  // namespace tidemark::tests
