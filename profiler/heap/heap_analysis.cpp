// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/heap_analysis.h"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "common/text.h"
#include "profiler/heap/heap_export.h"
#include "profiler/heap/object_blocks.h"
#include "profiler/heap/owner_ways.h"
#include "profiler/heap/python_roots.h"

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;

constexpr std::size_t kMostHeldSorts = 4;
constexpr std::size_t kMostRetained = 3;     // owners of which is measured what goes free with them
constexpr std::size_t kMostWithBlocks = 10;  // owners
constexpr std::size_t kMostBlocks = 1U << 20U;  // of all of them
constexpr std::size_t kMostNames = 20;
// From 3.12 on Python freezes some hundred of its own objects as it starts.
constexpr std::size_t kMostFrozenByItself = 2000;
constexpr std::uint64_t kLeastNameBytes = 256U << 10U;
constexpr std::size_t kMostUnreachable = 2'000'000;
constexpr std::size_t kMostNameDepth = 6;

std::string cut(std::string text) {
  if (text.size() > kMostOwnerTextBytes) {
    text.resize(kMostOwnerTextBytes);
  }
  return text;
}

}  // namespace

std::uint32_t HeapAnalysis::number_of(OwnerKind kind, const ObjectPath& path,
                                      const std::string& type, HeapFacts& facts) {
  const auto [found, is_new] = owners_.try_emplace({kind, path.text}, owners_.size() + 1);
  if (is_new) {
    OwnerRecord record;
    record.owner = found->second;
    record.key = key_;
    record.kind = kind;
    record.path = cut(path.text);
    record.type = cut(type);
    record.steps = path.steps;
    for (PathStep& step : record.steps) {
      step = {cut(std::move(step.label)), cut(std::move(step.type))};
    }
    record.is_library = path.is_library;
    facts.owners.push_back(std::move(record));
  }
  return found->second;
}

// One look at the objects of a process.
class HeapAnalysis::Look {
 public:
  Look(HeapAnalysis& analysis, MemoryImage& image, ProcessObjects& objects,
       const GraphLimits& limits, HeapFacts& facts)
      : analysis_(analysis),
        image_(image),
        objects_(objects),
        limits_(limits),
        facts_(facts),
        of_process_(facts.looks.front()),
        graph_(objects, objects.roots(), limits),
        paths_(graph_) {}

  void run(const HeapExports& exports) {
    analysis_.blocks_.clear();
    describe_interpreter();
    describe_graph();
    const HeapGrowth growth = analysis_.growth_.compare(graph_, paths_, of_process_.look.t_s);
    of_process_.look.new_bytes = growth.new_bytes;
    of_process_.look.gone_bytes = growth.gone_bytes;
    below_ = graph_.bytes_below();
    add_owners(growth);
    add_names();
    if (!analysis_.only_reached_) {
      add_unreachable();
      add_native();
    }
    of_process_.look.is_partial = graph_.is_partial();
    write(exports, growth);
    of_process_.look.unread_bytes = image_.unread_bytes();
  }

 private:
  HeapLook& look() { return of_process_.look; }

  void describe_interpreter() {
    InterpreterFacts& facts = look().interpreter;
    const PythonRuntime& runtime = objects_.runtime();
    facts.python = python_version(image_, runtime, objects_.types());
    facts.is_free_threaded = runtime.layout.is_free_threaded;
    const auto version_of = [&](std::string_view module) {
      return module_text(image_, runtime, objects_.types(), module, "__version__");
    };
    facts.torch = version_of("torch");
    facts.numpy = version_of("numpy");
    collector_ = read_collector(image_, runtime.layout, runtime.interpreters.front());
    facts.gc_enabled = collector_.is_enabled;
    facts.gc_thresholds = collector_.thresholds;
    if (!collector_.lists.empty()) {
      const CollectorList frozen =
          read_collector_list(image_, collector_.lists.back(), kMostUnreachable);
      if (frozen.is_whole) {
        const std::size_t count = frozen.objects.size();
        facts.gc_frozen_objects = count > kMostFrozenByItself ? count : 0;
      }
    }
  }

  void describe_graph() {
    std::unordered_map<std::string, TypeSample> by_type;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  // of objects and bytes, by type
    for (const Node node : reachable()) {
      const PythonTypes::Index type = graph_.type_index(node);
      if (type >= counts.size()) {
        counts.resize(std::max<std::size_t>(2 * counts.size(), type + std::size_t{1}));
      }
      ++counts[type].first;
      counts[type].second += graph_.bytes(node);
      look().heap_bytes += graph_.bytes(node);
    }
    look().objects = graph_.reachable();
    for (PythonTypes::Index type = 0; type < counts.size(); ++type) {
      if (counts[type].first > 0) {
        TypeSample& sample = by_type[graph_.source().type(type).name];
        sample.count += counts[type].first;
        sample.bytes += counts[type].second;
      }
    }
    for (auto& [name, sample] : by_type) {
      sample.type = cut(name);
      of_process_.types.push_back(sample);
    }
    std::sort(of_process_.types.begin(), of_process_.types.end(),
              [](const TypeSample& a, const TypeSample& b) {
                return std::pair(b.bytes, a.type) < std::pair(a.bytes, b.type);
              });
    of_process_.types.resize(std::min(of_process_.types.size(), analysis_.options_.most_types));
  }

  std::span<const Node> reachable() const { return graph_.order().first(graph_.reachable()); }

  void add_owners(const HeapGrowth& growth) {
    const std::size_t count = std::min(growth.owners.size(), analysis_.options_.most_owners);
    for (std::size_t i = 0; i < count; ++i) {
      const GrowingOwner& owner = growth.owners[i];
      OwnerSample sample;
      sample.owner = analysis_.number_of(owner.kind, owner.path, owner.type, facts_);
      if (owner.kind == OwnerKind::kContainer) {
        sample.entries = entries_of(owner, owner.entries);
        sample.first_entries = entries_of(owner, owner.first_entries);
      }
      sample.grown_bytes = owner.grown_bytes;
      sample.grown_bytes_alone = owner.grown_bytes_alone;
      sample.shared_with = cut(owner.shared_with);
      sample.holds = held_by(owner);
      sample.reached_bytes = 0;
      for (const Node node : owner.nodes) {
        *sample.reached_bytes += below_[node];
      }
      if (i < kMostRetained && owner.grown_bytes > 0 && !limits_.is_over()) {
        sample.retained_bytes = retained_by(owner.nodes);
      }
      analysis_.grew_.insert(sample.owner);
      if (sample.grown_bytes > 0) {
        add_blocks(owner.new_nodes.empty() ? owner.nodes : owner.new_nodes, owner.share);
      }
      of_process_.owners.push_back(std::move(sample));
    }
    add_ended(of_process_.owners);
  }

  // What grew at a look before and does not now: a series must not end with its growth.
  void add_ended(const std::vector<OwnerSample>& growing) {
    std::set<std::uint32_t> ended = analysis_.grew_;
    for (const OwnerSample& sample : growing) {
      ended.erase(sample.owner);
    }
    for (const std::uint32_t owner : ended) {
      OwnerSample sample;
      sample.owner = owner;
      of_process_.owners.push_back(std::move(sample));
    }
  }

  // Of the owner that comes next.
  void add_blocks(std::span<const Node> nodes, double share) {
    std::vector<OwnerBlocks>& all = analysis_.blocks_;
    if (!analysis_.with_blocks_ || all.size() >= kMostWithBlocks) {
      return;
    }
    OwnerBlocks blocks{of_process_.owners.size(), share, {}};
    for (const Node node : nodes) {
      if (blocks_ >= kMostBlocks || (blocks_ % 1024 == 0 && limits_.is_over())) {
        break;
      }
      const std::size_t before = blocks.addresses.size();
      heap::add_blocks(image_, objects_, graph_.address(node), graph_.type_index(node),
                       blocks.addresses);
      blocks_ += blocks.addresses.size() - before;
    }
    all.push_back(std::move(blocks));
  }

  // Items of a dictionary have a key and a value each.
  std::uint64_t entries_of(const GrowingOwner& owner, std::uint64_t references) const {
    return graph_.type(owner.nodes.front()).kind == ObjectKind::kDict ? references / 2 : references;
  }

  std::vector<HeldObjects> held_by(const GrowingOwner& owner) {
    std::vector<HeldObjects> held = held_objects(graph_, objects_, owner.new_nodes, kMostHeldSorts);
    for (HeldObjects& sort : held) {
      sort.type = cut(std::move(sort.type));
    }
    return held;
  }

  // What is not reached any more without these.
  std::uint64_t retained_by(std::span<const Node> owners) const {
    std::vector<bool> is_seen(graph_.size());
    for (const Node node : owners) {
      is_seen[node] = true;
    }
    std::vector<Node> waiting;
    std::uint64_t reached = 0;
    const auto take = [&](Node node) {
      if (!is_seen[node]) {
        is_seen[node] = true;
        reached += graph_.bytes(node);
        waiting.push_back(node);
      }
    };
    for (const Root& root : graph_.roots()) {
      if (const Node node = graph_.find(root.address); node != ObjectGraph::kNone) {
        take(node);
      }
    }
    // Types that are compiled in are reached by nothing else.
    for (const Node node : reachable()) {
      if (graph_.parent(node) == ObjectGraph::kNone) {
        take(node);
      }
    }
    while (!waiting.empty()) {
      const Node node = waiting.back();
      waiting.pop_back();
      for (const Node target : graph_.targets(node)) {
        take(target);
      }
    }
    return look_bytes() - std::min(look_bytes(), reached);
  }

  std::uint64_t look_bytes() const { return of_process_.look.heap_bytes; }

  void write(const HeapExports& exports, const HeapGrowth& growth) {
    const auto check = [&](int fd, const Status& written) {
      if (!written) {
        exports.on_error(fd, written.error());
      }
    };
    if (exports.heapsnapshot) {
      SnapshotLimits limits;
      limits.is_cancelled = limits_.is_cancelled;
      check(*exports.heapsnapshot, write_heap_snapshot(graph_, *exports.heapsnapshot, limits));
    }
    if (exports.dot) {
      check(*exports.dot, write_dot(exports, growth));
    }
  }

  Status write_dot(const HeapExports& exports, const HeapGrowth& growth) {
    const std::string& path = exports.dot_path;
    const auto owner = std::find_if(
        growth.owners.begin(), growth.owners.end(),
        [&](const GrowingOwner& each) { return path.empty() || each.path.text == path; });
    if (owner == growth.owners.end() && path.empty()) {
      return Error{Errc::kNotFound, "no object is known to grow: name the one whose ways to write"};
    }
    const Node node = owner != growth.owners.end()
                          ? owner->nodes.front()
                          : find_object(graph_, paths_, path, limits_.is_cancelled);
    if (node == ObjectGraph::kNone) {
      return Error{Errc::kNotFound,
                   fmt::format("no object has the path {} at this look", escape_text(path))};
    }
    return write_ways(graph_, paths_, node, below_, *exports.dot);
  }

  // The names of the job's own code that lead to most: of modules, and of running functions.
  void add_names() {
    std::vector<Node> best(graph_.size(), ObjectGraph::kNone);  // the child that leads to most
    std::vector<Node> names;
    for (const Node node : reachable()) {
      if (below_[node] < kLeastNameBytes) {
        continue;
      }
      const Node parent = graph_.parent(node);
      if (parent != ObjectGraph::kNone &&
          (best[parent] == ObjectGraph::kNone || below_[node] > below_[best[parent]])) {
        best[parent] = node;
      }
      if (is_name(node)) {
        names.push_back(node);
      }
    }
    std::sort(names.begin(), names.end(),
              [&](Node a, Node b) { return std::pair(below_[b], a) < std::pair(below_[a], b); });
    names.resize(std::min(names.size(), kMostNames));
    for (Node node : names) {
      add_name(most_of(node, best));
    }
  }

  // A variable of a running function, or what stands in the dictionary of a module.
  // (The way from a root may be long: its root is asked for only near to that.)
  bool is_name(Node node) const {
    const Node parent = graph_.parent(node);
    const Node above = parent == ObjectGraph::kNone ? parent : graph_.parent(parent);
    if (graph_.type(node).kind == ObjectKind::kModule ||
        (above != ObjectGraph::kNone && graph_.parent(above) != ObjectGraph::kNone)) {
      return false;
    }
    const Root& root = graph_.root(node);
    if (root.is_library || root.is_variable) {
      return !root.is_library && parent == ObjectGraph::kNone;
    }
    return above != ObjectGraph::kNone && graph_.type(parent).kind == ObjectKind::kDict;
  }

  // Follows attributes as long as one of them leads to nearly all.
  Node most_of(Node node, const std::vector<Node>& best) {
    Node named = node;
    for (std::size_t i = 0; i < kMostNameDepth; ++i) {
      node = best[node];
      if (node == ObjectGraph::kNone || below_[node] < below_[named] / 10 * 9) {
        break;
      }
      const std::string text = paths_.of(node).text;
      if (text.ends_with(']') || text.ends_with('>') || text.ends_with(')')) {
        break;
      }
      named = text == paths_.of(named).text ? named : node;
    }
    return named;
  }

  void add_name(Node node) {
    OwnerSample sample;
    sample.owner =
        analysis_.number_of(OwnerKind::kName, paths_.of(node), graph_.type(node).name, facts_);
    sample.reached_bytes = below_[node];
    sample.entries = length_of(node);
    of_process_.owners.push_back(std::move(sample));
  }

  // Of a container: what len() says of it.
  std::optional<std::uint64_t> length_of(Node node) const {
    switch (graph_.type(node).kind) {
      case ObjectKind::kDict:
        return graph_.reference_count(node) / 2;
      case ObjectKind::kList:
      case ObjectKind::kTuple:
      case ObjectKind::kDeque:
        return graph_.reference_count(node);
      default:
        return std::nullopt;
    }
  }

  // Objects that the collector knows and to which no name leads: those that only refer to each
  // other are garbage; those to which there are more references, and what they lead to, are held by
  // native code.
  void add_unreachable() {
    if (collector_.is_collecting || collector_.lists.empty() || graph_.is_partial()) {
      return;
    }
    std::vector<Root> seeds;
    for (const std::uint64_t head : collector_.lists) {
      for (const std::uint64_t object : read_collector_list(image_, head, 1U << 30U).objects) {
        if (graph_.find(object) == ObjectGraph::kNone && seeds.size() < kMostUnreachable) {
          seeds.push_back({object, "", 0, true, true});
        }
      }
    }
    const std::size_t first = graph_.order().size();
    graph_.add_unreachable(std::move(seeds), limits_);
    const auto nodes = graph_.order().subspan(first);
    knows_unreachable_ = true;
    const std::vector<bool> is_held = held_by_native(nodes);
    add_unnamed(OwnerKind::kGarbage, nodes, [&](Node node) { return !is_held[node]; });
    add_unnamed(OwnerKind::kNativeHold, nodes, [&](Node node) { return is_held[node]; });
  }

  std::vector<bool> held_by_native(std::span<const Node> nodes) {
    std::unordered_map<Node, std::uint64_t> inner;  // references from among them
    for (const Node node : nodes) {
      objects_.references(graph_.address(node), graph_.type_index(node),
                          [&](std::span<const Reference> references) {
                            for (const Reference& reference : references) {
                              if (const Node target = graph_.find(reference.target);
                                  target != ObjectGraph::kNone) {
                                ++inner[target];
                              }
                            }
                          });
    }
    std::vector<bool> is_held(graph_.size());
    std::vector<Node> waiting;
    const auto take = [&](Node node) {
      if (!is_held[node]) {
        is_held[node] = true;
        waiting.push_back(node);
      }
    };
    for (const Node node : nodes) {
      if (graph_.type(node).has(kHasGcFlag) &&
          objects_.reference_count(graph_.address(node)) > inner[node]) {
        take(node);
      }
    }
    while (!waiting.empty()) {
      const Node node = waiting.back();
      waiting.pop_back();
      for (const Node target : graph_.targets(node)) {
        take(target);
      }
    }
    return is_held;
  }

  template <typename IsOne>
  void add_unnamed(OwnerKind kind, std::span<const Node> nodes, IsOne is_one) {
    GrowingOwner owner;
    std::unordered_map<PythonTypes::Index, std::uint64_t> by_type;
    std::uint64_t bytes = 0;
    for (const Node node : nodes) {
      if (is_one(node)) {
        owner.new_nodes.push_back(node);
        bytes += graph_.bytes(node);
        by_type[graph_.type_index(node)] += graph_.bytes(node);
      }
    }
    const auto [found, is_first] =
        analysis_.unnamed_.try_emplace(kind, Unnamed{bytes, bytes, false});
    Unnamed& unnamed = found->second;
    unnamed.has_fallen = unnamed.has_fallen || bytes < unnamed.last_bytes;
    unnamed.last_bytes = bytes;
    if (owner.new_nodes.empty()) {
      return;
    }
    OwnerSample sample;
    sample.owner = analysis_.number_of(kind, {}, "", facts_);
    sample.entries = owner.new_nodes.size();
    sample.reached_bytes = bytes;
    sample.retained_bytes = bytes;
    sample.grown_bytes = unnamed.has_fallen ? 0 : bytes - unnamed.first_bytes;
    sample.grown_bytes_alone = sample.grown_bytes;
    sample.holds = held_by(owner);
    if (sample.grown_bytes > 0) {
      add_blocks(owner.new_nodes,
                 static_cast<double>(sample.grown_bytes) / static_cast<double>(bytes));
    }
    of_process_.owners.push_back(std::move(sample));
  }

  // Tensors, and what of them and of arrays nothing in Python leads to.
  void add_native() {
    CppObjects::ScanOptions options;
    // Else what is garbage cannot be told from what native code holds.
    options.type = knows_unreachable_ ? objects_.type_of_arrays() : 0;
    if (!objects_.cpp().has_torch() && options.type == 0) {
      return;
    }
    std::vector<std::uint64_t> tensors;
    std::vector<std::uint64_t> storages;
    for (const Node node : graph_.order()) {
      const ObjectKind kind = graph_.type(node).kind;
      if (kind == ObjectKind::kCppTensor) {
        tensors.push_back(graph_.address(node));
      } else if (kind == ObjectKind::kCppStorage) {
        storages.push_back(graph_.address(node));
      } else if (kind == ObjectKind::kNumpyArray) {
        const NativeArray array = objects_.native_array(graph_.address(node));
        options.data.push_back({array.data, array.data + array.held.bytes});
      }
    }
    CppObjects::Found others = objects_.cpp().scan(storages, limits_.is_over, options);
    const auto is_reached = [&](std::uint64_t address) {
      return graph_.find(address) != ObjectGraph::kNone;
    };
    std::erase_if(others.tensors, is_reached);
    std::erase_if(others.storages, is_reached);
    std::erase_if(others.instances, is_reached);
    tensors.insert(tensors.end(), others.tensors.begin(), others.tensors.end());
    if (objects_.cpp().has_torch()) {
      analysis_.add_tensors(objects_.cpp(), tensors, of_process_);
    }
    if (!others.is_partial && !graph_.is_partial()) {
      analysis_.add_native(objects_.cpp(), others, native_arrays(others.instances), facts_);
    }
  }

  std::vector<NativeArray> native_arrays(std::span<const std::uint64_t> instances) {
    std::vector<NativeArray> arrays;
    for (const std::uint64_t instance : instances) {
      NativeArray array = objects_.native_array(instance);
      if (array.held.bytes > 0 && objects_.reference_count(instance) > 0) {
        arrays.push_back(std::move(array));
      }
    }
    return arrays;
  }

  HeapAnalysis& analysis_;
  MemoryImage& image_;
  ProcessObjects& objects_;
  const GraphLimits& limits_;
  HeapFacts& facts_;
  HeapFacts::OfProcess& of_process_;
  ObjectGraph graph_;
  ObjectPaths paths_;
  CollectorState collector_;
  std::vector<std::uint64_t> below_;
  std::size_t blocks_ = 0;  // of owners, that were found
  bool knows_unreachable_ = false;
};

bool HeapAnalysis::run(MemoryImage& image, ProcessObjects& objects, const GraphLimits& limits,
                       const std::function<bool()>& is_sound, const HeapExports& exports,
                       HeapFacts& facts) {
  Look look(*this, image, objects, limits, facts);
  if (!is_sound()) {
    return false;
  }
  look.run(exports);
  return true;
}

bool HeapAnalysis::run_native(MemoryImage& image, const GraphLimits& limits,
                              const std::function<bool()>& is_sound, HeapFacts& facts) {
  CppObjects objects(image);
  const CppObjects::Found found = objects.scan({}, limits.is_over, {});
  if (!is_sound()) {
    return false;
  }
  HeapFacts::OfProcess& of_process = facts.looks.front();
  of_process.look.objects = found.tensors.size() + found.storages.size();
  of_process.look.is_partial = found.is_partial;
  of_process.look.unread_bytes = image.unread_bytes();
  add_tensors(objects, found.tensors, of_process);
  if (!found.is_partial) {
    add_native(objects, found, {}, facts);
  }
  return true;
}

void HeapAnalysis::add_tensors(CppObjects& objects, std::span<const std::uint64_t> tensors,
                               HeapFacts::OfProcess& of_process) const {
  const auto counted = count_tensors(objects, tensors, [](std::uint64_t) { return true; });
  of_process.tensors = group_tensors(counted, options_.most_tensors);
}

void HeapAnalysis::add_native(CppObjects& objects, const CppObjects::Found& found,
                              std::span<const NativeArray> arrays, HeapFacts& facts) {
  NativeTensors::Change change = native_.compare(objects, found.tensors, found.storages, arrays);
  HeapFacts::OfProcess& of_process = facts.looks.front();
  of_process.look.heap_bytes += change.bytes;
  of_process.look.new_bytes += change.new_bytes;
  of_process.look.gone_bytes += change.gone_bytes;
  for (NativeTensors::Group& group : change.groups) {
    if (group.bytes < kLeastNameBytes || of_process.owners.size() >= options_.most_owners) {
      continue;
    }
    ObjectPath path;
    path.text = group.path;
    path.steps.push_back({group.path, group.held.type});
    OwnerSample sample;
    sample.owner = number_of(OwnerKind::kNative, path, group.held.type, facts);
    sample.entries = group.count;
    sample.grown_bytes = group.held.bytes;
    sample.grown_bytes_alone = group.held.bytes;
    sample.reached_bytes = group.bytes;
    sample.retained_bytes = group.bytes;
    if (group.held.count > 0) {
      sample.holds.push_back(group.held);
    }
    if (with_blocks_ && sample.grown_bytes > 0 && blocks_.size() < kMostWithBlocks) {
      const double share = static_cast<double>(sample.grown_bytes) /
                           static_cast<double>(std::max<std::uint64_t>(group.new_bytes, 1));
      blocks_.push_back(
          {of_process.owners.size(), std::min(1.0, share), std::move(group.new_data)});
    }
    of_process.owners.push_back(std::move(sample));
  }
}

}  // namespace tidemark::heap
