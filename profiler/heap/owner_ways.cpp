// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/owner_ways.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "profiler/heap/reference_names.h"

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;
constexpr Node kNone = ObjectGraph::kNone;

constexpr std::size_t kMostLevels = 8;         // of holders of holders
constexpr std::size_t kMostAskedHolders = 64;  // of one object
// Of a long way (a linked list) only its ends are drawn.
constexpr std::size_t kMostFirstSteps = 8;
constexpr std::size_t kMostLastSteps = 24;

// Lines of a label in double quotes, each as a stranger has named it.
std::string label_of(std::initializer_list<std::string> lines) {
  std::string out = "\"";
  for (const std::string& line : lines) {
    if (line.empty()) {
      continue;
    }
    out += out.size() > 1 ? "\\n" : "";
    for (const char c : escape_text(cut_name(line))) {
      out += c == '"' || c == '\\' ? "\\" : "";
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(const ReferenceName& name) {
  switch (name.sort) {
    case ReferenceName::Sort::kElement:
      return fmt::format("[{}]", name.index);
    case ReferenceName::Sort::kProperty:
      return name.text;
    case ReferenceName::Sort::kInternal:
      return fmt::format("({})", name.text);
  }
  return "";
}

// What nearly everything refers to so; it does not hold memory in a way that one could change.
bool is_common(ReferenceKind kind) {
  return kind == ReferenceKind::kGlobals || kind == ReferenceKind::kBuiltins ||
         kind == ReferenceKind::kBases || kind == ReferenceKind::kBack ||
         kind == ReferenceKind::kClass;
}

class WaysWriter {
 public:
  WaysWriter(const ObjectGraph& graph, Node owner, std::span<const std::uint64_t> below)
      : graph_(graph), owner_(owner), below_(below), names_(graph) {}

  std::string write(const std::string& title) {
    is_first_ = true;
    draw_way(owner_);
    is_first_ = false;
    draw_other_ways();
    return fmt::format(
        "digraph ways {{\n  label={};\n  labelloc=t;\n  rankdir=LR;\n"
        "  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9, color=gray40];\n{}{}}}\n",
        label_of({"ways to " + title}), nodes_, edges_);
  }

 private:
  // An object that refers to one that is drawn.
  struct Holder {
    Node holder = kNone;
    Node target = kNone;
  };
  struct Holders {
    std::vector<Node> first;  // up to kMostAskedHolders
    std::size_t count = 0;
  };

  bool is_drawn(Node node) const { return drawn_.contains(node); }

  void draw(Node node) {
    if (!drawn_.insert(node).second) {
      return;
    }
    to_ask_.push_back(node);
    const TypeInfo& type = graph_.type(node);
    const std::string name = graph_.source().name(graph_.address(node), graph_.type_index(node));
    std::string size = format_bytes(graph_.bytes(node));
    if (node < below_.size() && below_[node] > graph_.bytes(node)) {
      size += fmt::format(", leads to {}", format_bytes(below_[node]));
    }
    const std::uint32_t references = graph_.reference_count(node);
    nodes_ += fmt::format(
        "  n{} [label={}{}];\n", node,
        label_of({type.name, name, references > 1 ? format_grouped(references) + " references" : "",
                  size}),
        node == owner_ ? ", style=filled, fillcolor=gold, penwidth=2" : "");
  }

  void draw_edge(const std::string& from, Node to, const std::string& label) {
    edges_ += fmt::format("  {} -> n{} [label={}{}];\n", from, to, label_of({label}),
                          is_first_ ? ", penwidth=2, color=black" : "");
  }

  void draw_reference(Node holder, Node target) {
    if (!drawn_edges_.insert(std::uint64_t{holder} << 32U | target).second) {
      return;
    }
    draw_edge(fmt::format("n{}", holder), target, text_of(name_of(holder, target)));
  }

  ReferenceName name_of(Node holder, Node target) const {
    ReferenceName found;
    bool is_found = false;
    names_.of(holder, [&](Node each, const ReferenceName& name) {
      if (each == target && (!is_found || is_common(found.kind))) {
        found = name;
        is_found = true;
      }
    });
    return found;
  }

  void draw_root(Node node) {
    const std::size_t index = graph_.root_index(node);
    if (drawn_roots_.insert(index).second) {
      const Root& root = graph_.roots()[index];
      const std::string text = root.label.empty() ? "nothing in Python leads here"
                               : root.is_variable ? root.label
                                                  : "module " + root.label;
      nodes_ += fmt::format("  r{} [label={}, shape=ellipse];\n", index, label_of({text}));
    }
    if (drawn_root_edges_.insert(node).second) {
      draw_edge(fmt::format("r{}", index), node, "");
    }
  }

  // Its way from its root on, as far as it is not drawn yet.
  void draw_way(Node node) {
    std::vector<Node> way = {node};
    while (!is_drawn(way.back()) && !hidden_.contains(way.back()) &&
           graph_.parent(way.back()) != kNone && way.size() <= graph_.size()) {
      way.push_back(graph_.parent(way.back()));
    }
    const bool is_whole = !is_drawn(way.back()) && !hidden_.contains(way.back());
    for (std::size_t i = 0; i < way.size(); ++i) {
      const std::size_t left = way.size() - 1 - i;
      draw(way[i]);
      if (i >= kMostLastSteps && left > kMostFirstSteps) {
        const std::size_t next = way.size() - kMostFirstSteps;
        for (std::size_t hidden = i + 1; hidden < next; ++hidden) {
          hidden_.emplace(way[hidden], way[next]);
        }
        draw(way[next]);
        draw_edge(fmt::format("n{}", way[next]), way[i], fmt::format("{} steps", next - i));
        i = next - 1;
      } else if (left > 0) {
        draw_reference(way[i + 1], way[i]);
      }
    }
    if (is_whole) {
      draw_root(way.back());
    } else if (const auto hidden = hidden_.find(way.back()); hidden != hidden_.end()) {
      draw_edge(fmt::format("n{}", hidden->second), way.back(), "...");
      hidden_.erase(hidden);
    }
  }

  // Modules, and what is a root itself, have no holders that tell more.
  bool is_end(Node node) const {
    const Node parent = graph_.parent(node);
    return parent == kNone || graph_.type(node).kind == ObjectKind::kModule ||
           graph_.type(parent).kind == ObjectKind::kModule;
  }

  // What refers to something on a way, in the order of the graph: the closest to a name first.
  std::unordered_map<Node, Holders> holders_of(const std::vector<Node>& nodes) const {
    std::vector<bool> is_wanted(graph_.size());
    for (const Node node : nodes) {
      is_wanted[node] = true;
    }
    std::unordered_map<Node, Holders> found;
    for (const Node holder : graph_.order()) {
      for (const Node target : graph_.targets(holder)) {
        if (!is_wanted[target]) {
          continue;
        }
        Holders& holders = found[target];
        if (holders.first.empty() || holders.first.back() != holder) {
          ++holders.count;
          if (holders.first.size() < kMostAskedHolders) {
            holders.first.push_back(holder);
          }
        }
      }
    }
    return found;
  }

  void draw_other_ways() {
    for (std::size_t level = 0; level < kMostLevels && !to_ask_.empty(); ++level) {
      std::vector<Node> nodes;
      nodes.swap(to_ask_);
      std::erase_if(nodes, [&](Node node) { return node != owner_ && is_end(node); });
      const auto holders = holders_of(nodes);
      for (const Node node : nodes) {
        if (const auto found = holders.find(node); found != holders.end()) {
          draw_holders(node, found->second);
        }
      }
    }
  }

  void draw_holders(Node node, const Holders& holders) {
    std::size_t left_out = holders.count - holders.first.size();
    for (const Node holder : holders.first) {
      if (hidden_.contains(holder) || leads_through_owner(holder) ||
          is_common(name_of(holder, node).kind)) {
        continue;
      }
      if (is_drawn(holder)) {
        draw_reference(holder, node);
      } else if (ways_ < kMostOtherWays) {
        ++ways_;
        draw_way(holder);
        draw_reference(holder, node);
      } else {
        ++left_out;
      }
    }
    if (left_out > 0) {
      nodes_ += fmt::format("  m{} [label={}, style=dashed];\n", node,
                            label_of({format_count(left_out, "further holder")}));
      edges_ += fmt::format("  m{0} -> n{0} [style=dashed];\n", node);
    }
  }

  // Then it is no way to the owner: a child that knows its parent.
  bool leads_through_owner(Node node) const {
    for (std::size_t steps = 0; node != kNone && steps <= graph_.size(); ++steps) {
      if (node == owner_) {
        return true;
      }
      node = graph_.parent(node);
    }
    return false;
  }

  const ObjectGraph& graph_;
  const Node owner_;
  const std::span<const std::uint64_t> below_;
  const ReferenceNames names_;
  std::string nodes_;
  std::string edges_;
  std::unordered_set<Node> drawn_;
  std::unordered_set<std::uint64_t> drawn_edges_;
  std::unordered_set<std::size_t> drawn_roots_;
  std::unordered_set<Node> drawn_root_edges_;
  std::unordered_map<Node, Node> hidden_;  // left out of a way, and what is drawn above them
  std::vector<Node> to_ask_;               // drawn, and their holders are not known yet
  std::size_t ways_ = 0;
  bool is_first_ = false;
};

}  // namespace

// Parents stand before what they lead to: what cannot be on the way is left out in one pass. The
// path of a variable of a function does not begin with that of the function, so that the search
// goes on everywhere below functions where such a variable is asked for.
ObjectGraph::Node find_object(const ObjectGraph& graph, ObjectPaths& paths, std::string_view path,
                              const std::function<bool()>& is_over) {
  constexpr std::size_t kMostEverywhere = 200'000;
  const auto order = graph.order().first(graph.reachable());
  for (const bool is_everywhere : {false, true}) {
    std::vector<bool> is_on_way(graph.size());
    std::size_t asked = 0;
    for (const Node node : order) {
      const Node parent = graph.parent(node);
      if (parent != kNone && !is_on_way[parent]) {
        continue;
      }
      if ((is_everywhere && asked > kMostEverywhere) || (++asked % 1024 == 0 && is_over())) {
        break;
      }
      const ObjectPath at = paths.of(node);
      if (at.text == path || at.grouped == path) {
        return node;
      }
      is_on_way[node] = is_everywhere || path.starts_with(at.text) || path.starts_with(at.grouped);
    }
    if (path.find("() ") == std::string_view::npos) {
      break;
    }
  }
  return kNone;
}

Status write_ways(const ObjectGraph& graph, ObjectPaths& paths, ObjectGraph::Node owner,
                  std::span<const std::uint64_t> below, int fd) {
  const FileSizeSignalBlock no_signal;
  return write_all(fd, WaysWriter(graph, owner, below).write(paths.of(owner).text));
}

}  // namespace tidemark::heap
