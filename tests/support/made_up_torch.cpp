// SPDX-License-Identifier: Apache-2.0
#include "tests/support/made_up_torch.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/check.h"

namespace tidemark::tests {
namespace {

constexpr std::string_view kPlain = "N10__cxxabiv117__class_type_infoE";
constexpr std::string_view kDerived = "N10__cxxabiv120__si_class_type_infoE";
constexpr std::string_view kTensor = "N3c1010TensorImplE";
constexpr std::string_view kStorage = "N3c1011StorageImplE";
constexpr std::string_view kGradients = "N5torch8autograd12AutogradMetaE";
constexpr std::string_view kNode = "N5torch8autograd4NodeE";
constexpr std::string_view kProduct = "N5torch8autograd9generated12MulBackward0E";
constexpr std::string_view kAccumulator = "N5torch8autograd14AccumulateGradE";

}  // namespace

MadeUpTorch::MadeUpTorch(int tensors) {
  make_class(std::string(kPlain), "");
  make_class(std::string(kDerived), "");
  for (const std::string_view mangled : {kTensor, kStorage, kGradients, kNode}) {
    make_class(std::string(mangled), "");
  }
  make_class(std::string(kProduct), kNode);
  make_class(std::string(kAccumulator), kNode);
  for (int i = 0; i < tensors; ++i) {
    add_tensor();
  }
  if (tensors >= 3) {
    make_graph();
  }
}

std::size_t MadeUpTorch::place_of(std::uint64_t address) {
  return address >= kHeap ? kLibraryBytes + (address - kHeap) : address - kLibrary;
}

void MadeUpTorch::put(std::uint64_t address, std::uint64_t word) {
  std::memcpy(bytes_.data() + place_of(address), &word, sizeof(word));
}

std::uint64_t MadeUpTorch::information(std::string_view mangled) const {
  return std::find_if(classes_.begin(), classes_.end(),
                      [&](const Class& of) { return of.mangled == mangled; })
      ->information;
}

std::uint64_t MadeUpTorch::table(std::string_view mangled) const {
  return std::find_if(classes_.begin(), classes_.end(),
                      [&](const Class& of) { return of.mangled == mangled; })
      ->table;
}

// Its name, its type information, and its table, with the two words before it.
void MadeUpTorch::make_class(const std::string& mangled, std::string_view base) {
  const std::uint64_t name = next_in_library_;
  std::memcpy(bytes_.data() + place_of(name), mangled.data(), mangled.size());
  const std::uint64_t information = name + (mangled.size() + 8) / 8 * 8;
  const std::uint64_t table = information + 48;
  next_in_library_ = table + 32;
  classes_.push_back({mangled, information, table});
  put(information, this->table(base.empty() ? kPlain : kDerived));
  put(information + 8, name);
  put(information + 16, base.empty() ? 0 : this->information(base));
  put(table - 8, information);
  put(table, kLibrary);  // a function
}

std::uint64_t MadeUpTorch::take(std::size_t bytes) {
  const std::uint64_t begin = next_in_heap_;
  const std::uint64_t chunk = (bytes + 8 + 15) / 16 * 16;
  TIDEMARK_CHECK(begin + chunk < kHeap + kHeapBytes, "the heap that is made up has no more room");
  put(begin - 8, chunk | 1U);
  next_in_heap_ += chunk;
  return begin;
}

std::uint64_t MadeUpTorch::make(std::string_view mangled, std::size_t bytes) {
  const std::uint64_t object = take(bytes);
  put(object, table(mangled));
  put(object + 8, (std::uint64_t{1} << 32U) | 1U);  // strong and weak references
  return object;
}

std::uint64_t MadeUpTorch::add_storage(std::uint64_t bytes) {
  const std::uint64_t storage = make(kStorage, 64);
  const std::uint64_t data = take(16);
  put(storage + 16, data);
  put(storage + 24, kLibrary);  // what frees it
  put(storage + 32, data);
  put(storage + 48, bytes);
  storages_.push_back(storage);
  data_.push_back(data);
  return storage;
}

std::uint64_t MadeUpTorch::add_tensor() {
  constexpr std::uint64_t kFloat = 6;
  const std::uint64_t storage = add_storage(kStorageBytes);
  const std::uint64_t tensor = make(kTensor, 184);
  put(tensor + 16, storage);
  put(tensor + 64, 2);  // dimensions, and their lengths and strides
  put(tensor + 72, 128);
  put(tensor + 80, 256);
  put(tensor + 112, 256);
  put(tensor + 120, 1);
  put(tensor + 160, std::uint64_t{128} * 256);
  put(tensor + 168, kFloat);
  tensors_.push_back(tensor);
  return tensor;
}

void MadeUpTorch::make_graph() {
  const std::uint64_t product = make(kProduct, 480);
  const std::uint64_t accumulator = make(kAccumulator, 480);
  operations_ = {product, accumulator};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t gradients = make(kGradients, 160);
    put(tensors_[i] + 24, gradients);
    if (i == 2) {
      put(gradients + 48, product);
    } else {
      put(gradients + 144, 1);  // it requires one
    }
  }
  const std::uint64_t edges = take(24);
  put(edges, accumulator);
  put(product + 96, edges);
  put(product + 104, edges + 24);
  put(product + 112, edges + 24);
  put(product + 300 / 8 * 8, tensors_[0]);  // saved
  put(accumulator + 472, tensors_[1]);
}

heap::MemoryImage MadeUpTorch::image(const std::string& bytes) {
  heap::Mapping library;
  library.range = {kLibrary, kLibrary + kLibraryBytes};
  library.name = "/usr/lib/libtorch_cpu.so";
  heap::Mapping heap_of_it;
  heap_of_it.range = {kHeap, kHeap + kHeapBytes};
  heap_of_it.is_writable = true;
  heap_of_it.name = "[heap]";
  return heap::MemoryImage(
      {library, heap_of_it},
      [&bytes](std::uint64_t address, std::span<char> into) {
        const std::uint64_t end = address + into.size();
        const bool is_inside =
            end > address && ((address >= kLibrary && end <= kLibrary + kLibraryBytes) ||
                              (address >= kHeap && end <= kHeap + kHeapBytes));
        if (is_inside) {
          std::memcpy(into.data(), bytes.data() + place_of(address), into.size());
        }
        return is_inside;
      },
      std::uint64_t{16} << 20U);
}

}  // namespace tidemark::tests
