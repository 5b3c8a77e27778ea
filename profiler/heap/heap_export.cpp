// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/heap_export.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/io.h"
#include "common/text.h"
#include "profiler/heap/python_roots.h"
#include "profiler/heap/reference_names.h"

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;

// Writes to a file through a buffer. What follows an error is dropped.
class BufferedFile {
 public:
  explicit BufferedFile(int fd) : fd_(fd) { buffer_.reserve(kBufferBytes + kBufferBytes / 4); }

  BufferedFile& add(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kBufferBytes) {
      flush();
    }
    return *this;
  }
  // Numbers with commas between them.
  template <typename... Numbers>
  void add_numbers(std::uint64_t first, Numbers... rest) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, first).ptr;
    add({digits, static_cast<std::size_t>(end - digits)});
    if constexpr (sizeof...(rest) > 0) {
      add(",").add_numbers(static_cast<std::uint64_t>(rest)...);
    }
  }
  bool has_failed() const { return !status_; }
  Status finish() {
    flush();
    return status_;
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18U;

  void flush() {
    if (status_) {
      status_ = write_all(fd_, buffer_);
    }
    buffer_.clear();
  }

  int fd_;
  std::string buffer_;
  Status status_ = ok();
};

// Texts by number, each once. When there are too many, all others are "...": a job may keep
// millions of them. What objects say leaves room for the names
// of types and variables.
class TextTable {
 public:
  using Index = std::uint32_t;

  explicit TextTable(std::size_t most_bytes) : most_bytes_(most_bytes) { add("...", most_bytes); }

  Index of_name(std::string_view text) { return add(text, most_bytes_); }
  Index of_content(std::string_view text) { return add(text, most_bytes_ / 4 * 3); }
  void write(BufferedFile& file) const {
    std::string escaped;
    for (Index i = 0; i + 1 < begins_.size(); ++i) {
      escaped = i == 0 ? "\"" : ",\n\"";
      append_json_escaped(escaped, at(i));
      escaped += '"';
      file.add(escaped);
    }
  }

 private:
  static constexpr std::size_t kBytesPerText = 16;  // what it takes beside its characters
  static constexpr Index kNone = 0xffffffff;

  std::string_view at(Index index) const {
    return std::string_view(bytes_).substr(begins_[index], begins_[index + 1] - begins_[index]);
  }

  Index add(std::string_view text, std::size_t most_bytes) {
    std::size_t slot = std::hash<std::string_view>()(text) & (slots_.size() - 1);
    while (slots_[slot] != kNone) {
      if (at(slots_[slot]) == text) {
        return slots_[slot];
      }
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const auto index = static_cast<Index>(begins_.size() - 1);
    if (bytes_.size() + text.size() + kBytesPerText * index > most_bytes) {
      return 0;
    }
    bytes_ += text;
    begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    slots_[slot] = index;
    if (2 * begins_.size() > slots_.size()) {
      grow();
    }
    return index;
  }

  void grow() {
    slots_.assign(2 * slots_.size(), kNone);
    for (Index i = 0; i + 1 < begins_.size(); ++i) {
      std::size_t slot = std::hash<std::string_view>()(at(i)) & (slots_.size() - 1);
      while (slots_[slot] != kNone) {
        slot = (slot + 1) & (slots_.size() - 1);
      }
      slots_[slot] = i;
    }
  }

  std::size_t most_bytes_;
  std::string bytes_;
  std::vector<std::uint32_t> begins_ = {0};  // and the end of the last
  std::vector<Index> slots_ = std::vector<Index>(std::size_t{1} << 12U, kNone);
};

// DevTools keeps 32 bits of an id and takes what has the same id in two snapshots for the same
// object: it has to come from the address alone. Of a million objects some hundred meet another in
// 31 bits; the later one takes the next id that its address leads to.
class IdTable {
 public:
  static constexpr std::uint32_t kFirst = 16;  // smaller ones are not of objects

  explicit IdTable(std::size_t count) {
    std::size_t slots = 1024;
    while (slots < count + count / 4) {
      slots *= 2;
    }
    taken_.assign(slots, 0);
  }

  // Odd: even ones are of what is not the program's own.
  std::uint32_t take(std::uint64_t address) {
    for (std::uint64_t hash = mixed(address);; hash = mixed(hash)) {
      const auto id = static_cast<std::uint32_t>(hash >> 32U) | 1U;
      if (id >= kFirst && put(id)) {
        return id;
      }
    }
  }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 31U)) * 0x9e3779b97f4a7c15U + 0x632be59bd9b4e019U;
    return (x ^ (x >> 29U)) * 0xd6e8feb86659fd93U;
  }

  bool put(std::uint32_t id) {
    std::size_t slot = (id * std::uint64_t{0x9e3779b97f4a7c15U} >> 20U) & (taken_.size() - 1);
    while (taken_[slot] != 0) {
      if (taken_[slot] == id) {
        return false;
      }
      slot = (slot + 1) & (taken_.size() - 1);
    }
    taken_[slot] = id;
    return true;
  }

  std::vector<std::uint32_t> taken_;
};

// Their places in the lists of `meta` below.
enum NodeType : std::uint8_t {
  kString = 2,
  kObject = 3,
  kCode = 4,
  kClosure = 5,
  kNative = 8,
  kSynthetic = 9,
};
enum EdgeType : std::uint8_t { kElement = 1, kProperty = 2, kInternal = 3 };

constexpr std::string_view kMeta =
    R"("meta":{"node_fields":["type","name","id","self_size","edge_count","trace_node_id",)"
    R"("detachedness"],"node_types":[["hidden","array","string","object","code","closure",)"
    R"("regexp","number","native","synthetic","concatenated string","sliced string","symbol",)"
    R"("bigint","object shape"],"string","number","number","number","number","number"],)"
    R"("edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element",)"
    R"("property","internal","hidden","shortcut","weak"],"string_or_number","node"],)"
    R"("trace_function_info_fields":["function_id","name","script_name","script_id","line",)"
    R"("column"],"trace_node_fields":["id","function_info_index","count","size","children"],)"
    R"("sample_fields":["timestamp_us","last_assigned_id"],)"
    R"("location_fields":["object_index","script_id","line","column"]})";
constexpr std::uint64_t kNodeFields = 7;

// Nodes that stand before those of objects.
constexpr std::uint64_t kRoots = 1;    // refers to what names lead to, by these names
constexpr std::uint64_t kUnnamed = 2;  // refers to what nothing leads to
constexpr std::uint64_t kFirstObject = 3;

class SnapshotWriter {
 public:
  SnapshotWriter(const ObjectGraph& graph, int fd, const SnapshotLimits& limits)
      : graph_(graph),
        is_cancelled_(limits.is_cancelled),
        file_(fd),
        names_(graph),
        texts_(limits.most_text_bytes) {}

  Status write() {
    find_roots();
    std::uint64_t edges = start_edges() + named_.size() + unnamed_.size();
    for (Node node = 0; node < graph_.size(); ++node) {
      edges += graph_.targets(node).size();
    }
    file_.add("{\"snapshot\":{").add(kMeta).add(",\"node_count\":");
    file_.add_numbers(kFirstObject + graph_.size());
    file_.add(",\"edge_count\":").add_numbers(edges);
    file_.add(",\"trace_function_count\":0},\n\"nodes\":[");
    write_nodes();
    file_.add("],\n\"edges\":[");
    write_root_edges();
    write_edges();
    file_.add("],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n");
    file_.add("\"locations\":[],\n\"strings\":[");
    texts_.write(file_);
    file_.add("]}\n");
    if (is_over_ || is_cancelled_()) {  // or before: there is only a part of the graph then
      return Error{Errc::kIo, "it was given up"};
    }
    return file_.finish();
  }

 private:
  // Asked now and then.
  bool is_over() {
    constexpr std::size_t kBetweenQuestions = 4096;
    if (++asked_ % kBetweenQuestions == 0) {
      is_over_ = is_over_ || is_cancelled_();
    }
    return is_over_ || file_.has_failed();
  }

  void find_roots() {
    for (const Root& root : graph_.roots()) {
      if (const Node node = graph_.find(root.address); node != ObjectGraph::kNone) {
        (root.label.empty() ? unnamed_ : named_).push_back({&root, node});
        is_near_ += is_near(root) ? 1U : 0U;
      }
    }
  }
  // What modules and functions refer to is one step away; what belongs to the interpreter has no
  // distance.
  static bool is_near(const Root& root) {
    return !root.label.empty() && root.cost < kInternalRootCost;
  }
  std::uint64_t start_edges() const { return 2 + is_near_; }

  void write_nodes() {
    file_.add_numbers(kSynthetic, texts_.of_name(""), 1, 0, start_edges(), 0, 0);
    const auto add = [&](std::uint64_t type, TextTable::Index name, std::uint64_t id,
                         std::uint64_t bytes, std::uint64_t edges) {
      file_.add(",\n").add_numbers(type, name, id, bytes, edges, 0, 0);
    };
    add(kSynthetic, texts_.of_name("(roots)"), 3, 0, named_.size());
    add(kSynthetic, texts_.of_name("(nothing in Python leads here)"), 5, 0, unnamed_.size());
    IdTable ids(graph_.size());
    for (Node node = 0; node < graph_.size() && !is_over(); ++node) {
      // Larger ones do not fit into what DevTools has for them.
      const std::uint64_t bytes = std::min<std::uint64_t>(graph_.bytes(node), 0xfffffff8U);
      const auto [type, name] = type_and_name(node);
      add(type, name, ids.take(graph_.address(node)), bytes, graph_.targets(node).size());
    }
  }

  // Objects of the same type are shown as one class: its name is the name of each.
  std::pair<NodeType, TextTable::Index> type_and_name(Node node) {
    const TypeInfo& type = graph_.type(node);
    const auto named = [&](NodeType if_named) {
      const std::string name = graph_.source().name(graph_.address(node), graph_.type_index(node));
      return name.empty() ? std::pair(kObject, texts_.of_name(cut_name(type.name)))
                          : std::pair(if_named, texts_.of_content(cut_name(name)));
    };
    switch (type.kind) {
      case ObjectKind::kText:
        return {kString, texts_.of_content(cut_name(graph_.source().text(graph_.address(node))))};
      case ObjectKind::kFunction:
        return named(kClosure);
      case ObjectKind::kCode:
        return {kCode, texts_.of_name("code")};
      case ObjectKind::kCpp:
      case ObjectKind::kCppTensor:
      case ObjectKind::kCppStorage:
        return {kNative, texts_.of_name(cut_name(type.name))};
      default:
        return {kObject, texts_.of_name(cut_name(type.name))};
    }
  }

  void add_edge(EdgeType type, std::uint64_t name_or_index, std::uint64_t to_node) {
    file_.add(std::exchange(is_first_edge_, false) ? "" : ",\n");
    file_.add_numbers(type, name_or_index, kNodeFields * to_node);
  }

  void write_root_edges() {
    add_edge(kElement, 1, kRoots);
    add_edge(kElement, 2, kUnnamed);
    const auto name_of = [&](const Root& root) { return texts_.of_name(cut_name(root.label)); };
    for (const auto& [root, node] : named_) {
      if (is_near(*root)) {
        add_edge(kProperty, name_of(*root), kFirstObject + node);
      }
    }
    for (const auto& [root, node] : named_) {
      add_edge(kProperty, name_of(*root), kFirstObject + node);
    }
    for (std::uint64_t i = 0; i < unnamed_.size(); ++i) {
      add_edge(kElement, i, kFirstObject + unnamed_[i].second);
    }
  }

  void write_edges() {
    for (Node node = 0; node < graph_.size() && !is_over(); ++node) {
      names_.of(node, [&](Node target, const ReferenceName& name) {
        switch (name.sort) {
          case ReferenceName::Sort::kElement:
            return add_edge(kElement, std::min<std::uint64_t>(name.index, 0xffffffffU),
                            kFirstObject + target);
          case ReferenceName::Sort::kProperty:
            return add_edge(kProperty,
                            name.kind == ReferenceKind::kValue ? texts_.of_content(name.text)
                                                               : texts_.of_name(name.text),
                            kFirstObject + target);
          case ReferenceName::Sort::kInternal:
            return add_edge(kInternal, texts_.of_name(name.text), kFirstObject + target);
        }
      });
    }
  }

  const ObjectGraph& graph_;
  const std::function<bool()>& is_cancelled_;
  BufferedFile file_;
  ReferenceNames names_;
  TextTable texts_;
  std::vector<std::pair<const Root*, Node>> named_;
  std::vector<std::pair<const Root*, Node>> unnamed_;
  std::uint64_t is_near_ = 0;
  std::size_t asked_ = 0;
  bool is_over_ = false;
  bool is_first_edge_ = true;
};

}  // namespace

Status write_heap_snapshot(const ObjectGraph& graph, int fd, const SnapshotLimits& limits) {
  const FileSizeSignalBlock no_signal;
  return SnapshotWriter(graph, fd, limits).write();
}

}  // namespace tidemark::heap
