// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/tensor_groups.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;

constexpr std::string_view kTensorType = "torch.Tensor";
constexpr std::string_view kStorageType = "c10::StorageImpl";
constexpr std::size_t kMostGroups = 1U << 16U;

// Of those that share a storage: no view, all of it, from its beginning.
bool is_more_of_a_base(const TensorFacts& a, const TensorFacts& b) {
  return std::tuple(a.is_view, -static_cast<double>(a.elements), a.offset) <
         std::tuple(b.is_view, -static_cast<double>(b.elements), b.offset);
}

template <typename Sorts>
void keep_most(Sorts& sorts, std::size_t most) {
  std::stable_sort(sorts.begin(), sorts.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  sorts.resize(std::min(sorts.size(), most));
}

struct LooksBefore {
  bool operator()(const HeldObjects& a, const HeldObjects& b) const {
    const auto look_of = [](const HeldObjects& held) {
      return std::tie(held.type, held.dtype, held.shape, held.device);
    };
    return look_of(a) < look_of(b);
  }
};

// Objects by what they look like.
class Held {
 public:
  void add(const HeldObjects& one) {
    const auto found = by_look_.find(one);
    if (found != by_look_.end()) {
      found->second.count += one.count;
      found->second.bytes += one.bytes;
    } else if (by_look_.size() < kMostGroups) {
      by_look_.emplace(one, Sum{one.count, one.bytes});
    }
  }
  std::vector<HeldObjects> most(std::size_t count) const {
    std::vector<HeldObjects> all;
    for (const auto& [look, sum] : by_look_) {
      all.push_back(look);
      all.back().count = sum.count;
      all.back().bytes = sum.bytes;
    }
    keep_most(all, count);
    return all;
  }

 private:
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<HeldObjects, Sum, LooksBefore> by_look_;
};

HeldObjects held_tensor(const CountedTensor& tensor) {
  return {std::string(kTensorType), tensor.facts.dtype, tensor.facts.shape, tensor.facts.device, 1,
          tensor.own_bytes};
}

}  // namespace

std::vector<CountedTensor> count_tensors(CppObjects& objects,
                                         std::span<const std::uint64_t> tensors,
                                         const std::function<bool(std::uint64_t)>& is_counted) {
  std::vector<CountedTensor> counted;
  std::unordered_map<std::uint64_t, std::size_t> base_of;  // a storage
  for (const std::uint64_t tensor : tensors) {
    auto facts = objects.tensor(tensor);
    if (!facts) {
      continue;
    }
    const std::size_t index = counted.size();
    counted.push_back({*std::move(facts)});
    if (const std::uint64_t storage = counted.back().facts.storage; storage != 0) {
      const auto [found, is_new] = base_of.try_emplace(storage, index);
      if (!is_new && is_more_of_a_base(counted[index].facts, counted[found->second].facts)) {
        found->second = index;
      }
    }
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    CountedTensor& tensor = counted[i];
    const auto storage =
        tensor.facts.storage == 0 ? std::nullopt : objects.storage(tensor.facts.storage);
    if (!storage) {
      continue;
    }
    tensor.is_pinned = storage->is_pinned;
    if (base_of[tensor.facts.storage] != i) {
      tensor.facts.is_view = true;
    } else if (storage->data != 0 && is_counted(tensor.facts.storage)) {
      tensor.bytes = storage->bytes;
      tensor.own_bytes = storage->is_host ? storage->bytes : 0;
    }
  }
  return counted;
}

std::vector<TensorSample> group_tensors(std::span<const CountedTensor> tensors, std::size_t most) {
  const auto sample_of = [](const CountedTensor& tensor) {
    const TensorFacts& facts = tensor.facts;
    return TensorSample{facts.device,   facts.dtype,   facts.shape,      facts.requires_grad,
                        facts.is_graph, facts.is_view, tensor.is_pinned, 1,
                        tensor.bytes};
  };
  const auto is_before = [](const TensorSample& a, const TensorSample& b) {
    const auto look = [](const TensorSample& s) {
      return std::tie(s.device, s.dtype, s.shape, s.requires_grad, s.is_graph, s.is_view,
                      s.is_pinned);
    };
    return look(a) < look(b);
  };
  std::map<TensorSample, std::pair<std::uint64_t, std::uint64_t>, decltype(is_before)> groups(
      is_before);
  for (const CountedTensor& tensor : tensors) {
    const auto found = groups.try_emplace(sample_of(tensor)).first;
    ++found->second.first;
    found->second.second += tensor.bytes;
  }
  std::vector<TensorSample> samples;
  for (const auto& [look, sum] : groups) {
    samples.push_back(look);
    std::tie(samples.back().count, samples.back().bytes) = sum;
  }
  keep_most(samples, most);
  return samples;
}

std::vector<HeldObjects> held_objects(const ObjectGraph& graph, ProcessObjects& objects,
                                      std::span<const Node> nodes, std::size_t most) {
  Held held;
  std::vector<std::uint64_t> tensors;
  std::unordered_map<std::uint64_t, bool> storages;  // whether a tensor has it
  std::unordered_map<PythonTypes::Index, HeldObjects> others;
  for (const Node node : nodes) {
    const std::uint64_t address = graph.address(node);
    switch (graph.type(node).kind) {
      case ObjectKind::kTensor:
        break;
      case ObjectKind::kCppTensor:
        tensors.push_back(address);
        break;
      case ObjectKind::kCppStorage:
        storages.emplace(address, false);
        break;
      case ObjectKind::kNumpyArray: {
        HeldObjects array = objects.array(address);
        array.type = graph.type(node).name;
        array.count = 1;
        array.bytes = graph.bytes(node);
        held.add(array);
        break;
      }
      default: {
        HeldObjects& sort = others[graph.type_index(node)];
        ++sort.count;
        sort.bytes += graph.bytes(node);
        break;
      }
    }
  }
  const auto is_counted = [&](std::uint64_t storage) { return storages.contains(storage); };
  for (const CountedTensor& tensor : count_tensors(objects.cpp(), tensors, is_counted)) {
    held.add(held_tensor(tensor));
    if (const auto found = storages.find(tensor.facts.storage); found != storages.end()) {
      found->second = true;
    }
  }
  for (const auto& [storage, has_tensor] : storages) {
    if (!has_tensor) {
      const Node node = graph.find(storage);
      HeldObjects& sort = others[graph.type_index(node)];
      ++sort.count;
      sort.bytes += graph.bytes(node);
    }
  }
  for (auto& [type, sort] : others) {
    sort.type = graph.source().type(type).name;
    held.add(sort);
  }
  return held.most(most);
}

// What one look finds.
class NativeTensors::Groups {
 public:
  Groups(const NativeTensors& before, CppObjects& objects) : before_(before), objects_(objects) {}

  void add_tensor(const CountedTensor& tensor) {
    has_tensor_.insert(tensor.facts.storage);
    const auto storage = tensor.own_bytes > 0 ? objects_.storage(tensor.facts.storage)
                                              : std::optional(StorageFacts());
    if (storage) {
      add_look(held_tensor(tensor), tensor.facts.storage, storage->data);
    }
  }
  void add_array(const NativeArray& array) { add_look(array.held, array.address, array.data); }
  // After all tensors.
  void add_storage(std::uint64_t storage) {
    const auto facts = has_tensor_.contains(storage) || storages_.size() >= kMostGroups
                           ? std::nullopt
                           : objects_.storage(storage);
    if (facts && facts->is_host && facts->data != 0 && facts->bytes > 0) {
      add(storages_[{facts->bytes, facts->device}],
          {std::string(kStorageType), "", {}, facts->device, 1, facts->bytes}, storage,
          facts->data);
    }
  }
  std::vector<Group> take() {
    std::vector<Group> groups;
    for (auto& [look, group] : by_look_) {
      const bool is_tensor = look.type == kTensorType;
      group.path =
          fmt::format("{} {} [{}]{}{}", is_tensor ? "torch tensors" : "numpy arrays", look.dtype,
                      fmt::join(look.shape, ", "), is_tensor ? " " : "", look.device);
      groups.push_back(std::move(group));
    }
    for (auto& [look, group] : storages_) {
      group.path = fmt::format("torch storages of {} bytes {}", look.first, look.second);
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  void add_look(const HeldObjects& one, std::uint64_t address, std::uint64_t data) {
    if (by_look_.size() < kMostGroups) {
      add(by_look_[one], one, address, data);
    }
  }
  void add(Group& group, const HeldObjects& one, std::uint64_t address, std::uint64_t data) {
    ++group.count;
    group.bytes += one.bytes;
    if (one.bytes > 0 && before_.is_new(address, one.bytes)) {
      group.new_bytes += one.bytes;
      group.new_data.push_back(data);
    }
    if (group.held.type.empty()) {
      group.held = one;
    }
  }

  const NativeTensors& before_;
  CppObjects& objects_;
  std::map<HeldObjects, Group, LooksBefore> by_look_;
  std::map<std::pair<std::uint64_t, std::string>, Group> storages_;  // by size and device
  std::unordered_set<std::uint64_t> has_tensor_;                     // storages
};

bool NativeTensors::is_new(std::uint64_t address, std::uint64_t bytes) const {
  const auto before = first_.find(address);
  return has_begun_ && (before == first_.end() || before->second != bytes);
}

NativeTensors::Change NativeTensors::compare(CppObjects& objects,
                                             std::span<const std::uint64_t> tensors,
                                             std::span<const std::uint64_t> storages,
                                             std::span<const NativeArray> arrays) {
  Change change;
  Groups groups(*this, objects);
  for (const CountedTensor& tensor :
       count_tensors(objects, tensors, [](std::uint64_t) { return true; })) {
    groups.add_tensor(tensor);
  }
  BytesByAddress now;
  for (const std::uint64_t storage : storages) {
    groups.add_storage(storage);
    const auto facts = objects.storage(storage);
    now.emplace(storage, facts && facts->is_host && facts->data != 0 ? facts->bytes : 0);
  }
  for (const NativeArray& array : arrays) {
    groups.add_array(array);
    now.emplace(array.address, array.held.bytes);
  }
  change.groups = groups.take();
  measure_growth(change.groups);
  std::stable_sort(change.groups.begin(), change.groups.end(), [](const Group& a, const Group& b) {
    return std::pair(a.held.bytes, a.bytes) > std::pair(b.held.bytes, b.bytes);
  });
  compare_memory(std::move(now), change);
  has_begun_ = true;
  return change;
}

void NativeTensors::measure_growth(std::vector<Group>& groups) {
  std::unordered_map<std::string_view, std::uint64_t> now;
  for (const Group& group : groups) {
    now.emplace(group.path, group.bytes);
  }
  for (auto& [path, seen] : seen_) {
    const auto found = now.find(path);
    const std::uint64_t bytes = found == now.end() ? 0 : found->second;
    seen.has_fallen = seen.has_fallen || bytes < seen.last_bytes;
    seen.last_bytes = bytes;
  }
  for (Group& group : groups) {
    const Seen& seen =
        seen_.try_emplace(group.path, Seen{group.bytes, group.count, group.bytes, false})
            .first->second;
    group.held.bytes = seen.has_fallen ? 0 : group.bytes - seen.first_bytes;
    group.held.count = group.count - std::min(group.count, seen.first_count);
  }
}

void NativeTensors::compare_memory(BytesByAddress now, Change& change) {
  for (const auto& [address, bytes] : now) {
    change.bytes += bytes;
    change.new_bytes += is_new(address, bytes) ? bytes : 0;
  }
  for (const auto& [address, bytes] : first_) {
    const auto found = now.find(address);
    change.gone_bytes += found != now.end() && found->second == bytes ? 0 : bytes;
  }
  if (!has_begun_) {
    first_ = std::move(now);
  }
}

}  // namespace tidemark::heap
