// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/paths.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "profiler/heap/python_roots.h"

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;

// In a larger one no element has a name of its own.
constexpr std::uint32_t kMostNamedKeys = 64;
constexpr std::size_t kMostKeyBytes = 40;
// Of a long way (a linked list) only its ends are named.
constexpr std::size_t kMostFirstSteps = 48;
constexpr std::size_t kMostLastSteps = 8;

bool is_container(ObjectKind kind) {
  return kind == ObjectKind::kDict || kind == ObjectKind::kList || kind == ObjectKind::kTuple ||
         kind == ObjectKind::kSet || kind == ObjectKind::kDeque;
}

constexpr std::string_view kThreadLocal = "_thread._local";
constexpr std::string_view kLruCache = "functools._lru_cache_wrapper";
constexpr std::string_view kLruLink = "functools._lru_list_elem";

}  // namespace

const ObjectPaths::Label& ObjectPaths::label_of(Node node) {
  if (const auto found = labels_.find(node); found != labels_.end()) {
    return found->second;
  }
  return labels_.emplace(node, read_label(node)).first->second;
}

ObjectPaths::Label ObjectPaths::read_label(Node node) const {
  const Node parent = graph_.parent(node);
  Label label;
  bool is_found = false;
  std::uint64_t counts[32] = {};
  const std::uint64_t address = graph_.address(node);
  ObjectSource& source = graph_.source();
  source.references(graph_.address(parent), graph_.type_index(parent),
                    [&](std::span<const Reference> references) {
                      for (const Reference& reference : references) {
                        const std::uint64_t index =
                            counts[static_cast<std::size_t>(reference.kind) % 32]++;
                        if (is_found || reference.target != address) {
                          continue;
                        }
                        is_found = true;
                        label.kind = reference.kind;
                        label.index = index;
                        label.text = reference.name;
                        if (reference.kind == ReferenceKind::kValue ||
                            reference.kind == ReferenceKind::kAttribute ||
                            reference.kind == ReferenceKind::kLocal) {
                          label.text = source.text(reference.detail).substr(0, kMostOwnerTextBytes);
                        }
                      }
                    });
  return label;
}

// Writes a path step by step. What Python needs in between (dictionaries of attributes, cells,
// tuples of closures) has no step of its own.
class ObjectPaths::Writer {
 public:
  Writer(ObjectPaths& paths, const ObjectGraph& graph) : paths_(paths), graph_(graph) {}

  void begin(Node first) {
    const Root& root = graph_.root(first);
    path_.text = root.label;
    path_.grouped = root.label;
    path_.is_library = root.is_library;
    is_module_ = !root.is_variable;
    path_.steps.push_back({root.is_variable ? root.label : "module " + root.label,
                           root.is_variable ? graph_.type(first).name : ""});
    prefix_ = is_module_ && !root.label.starts_with("__") ? root.label + "." : "";
  }

  void step(Node parent, Node node) {
    const ObjectKind kind = graph_.type(parent).kind;
    const bool is_in_namespace = std::exchange(is_namespace_, false);
    if (std::exchange(is_thread_local_, false)) {  // a dictionary of those of all threads
      is_namespace_ = true;
      return;
    }
    const std::uint64_t function = std::exchange(function_, 0);
    if (is_container(kind) && !is_in_namespace && function == 0 &&
        graph_.reference_count(parent) > kMostNamedKeys) {
      return element("", node);
    }
    const Label& label = paths_.label_of(node);
    if (function != 0) {
      return variable_of_function(function, label, node);
    }
    switch (label.kind) {
      case ReferenceKind::kDict:
        is_namespace_ = true;
        return;
      case ReferenceKind::kValue:
        return is_in_namespace ? attribute(label.text, node) : element(label.text, node);
      case ReferenceKind::kItem:
        return element("", node);
      case ReferenceKind::kKey:
        return add("<key>", node);
      case ReferenceKind::kLocal:
        return variable(parent, "locals", label.text, node);
      case ReferenceKind::kStack:
        return add(" stack", node);
      case ReferenceKind::kWord:
        return word(parent, node);
      case ReferenceKind::kClass:
        return add(".__class__", node);
      case ReferenceKind::kState:
        return add(".<state>", node);
      case ReferenceKind::kMember:
        return member(parent, label, node);
      case ReferenceKind::kCpp:
        return part_of_cpp(label.text, node);
      default:
        return attribute(label.text, node);
    }
  }

  void leave_out() {
    if (!is_repeated_) {  // else what is left out is more of the same
      add("...", ObjectGraph::kNone);
    }
  }
  ObjectPath take() {
    path_.text = path_.text.substr(0, kMostOwnerTextBytes);
    path_.grouped = path_.grouped.substr(0, kMostOwnerTextBytes);
    return std::move(path_);
  }

 private:
  void add(const std::string& text, const std::string& grouped, Node node) {
    if (text == last_ && text.size() > 3) {
      if (is_repeated_) {
        return;
      }
      is_repeated_ = true;
    } else {
      is_repeated_ = false;
    }
    last_ = text;
    path_.text += text;
    path_.grouped += grouped;
    path_.steps.push_back({text, node == ObjectGraph::kNone ? "" : graph_.type(node).name});
  }
  void add(const std::string& text, Node node) { add(text, text, node); }
  void attribute(const std::string& name, Node node) { add("." + name, node); }
  void element(const std::string& key, Node node) {
    add(key.empty() ? "[*]" : fmt::format("[{}]", key.substr(0, kMostKeyBytes)), "[*]", node);
  }

  // What has no name is a part of the object before it.
  void part_of_cpp(const std::string& name, Node node) {
    if (name == "grad_fn") {
      add(fmt::format(".{} ({})", name, graph_.type(node).name), node);
    } else if (!name.empty()) {
      attribute(name, node);
    }
  }

  // The path of a variable begins anew: its function says more than the way to that.
  void variable(Node of, std::string_view what, const std::string& name, Node node) {
    const std::string function = graph_.source().name(graph_.address(of), graph_.type_index(of));
    const std::string text =
        fmt::format("{}{}() {}: {}", prefix_, without_outer_functions(function), what, name);
    path_.text = text;
    path_.grouped = text;
    last_.clear();
    path_.steps.push_back({fmt::format("{} {}", what, name), graph_.type(node).name});
  }

  void member(Node parent, const Label& label, Node node) {
    const ObjectKind kind = graph_.type(parent).kind;
    if (kind == ObjectKind::kFunction &&
        (label.text == "__closure__" || label.text == "__defaults__" ||
         label.text == "__kwdefaults__")) {
      function_ = static_cast<std::uint64_t>(parent) + 1;
      is_closure_ = label.text == "__closure__";
    } else if (kind != ObjectKind::kCell) {
      attribute(label.text, node);
    }
  }

  void variable_of_function(std::uint64_t function, const Label& label, Node node) {
    const Node of = static_cast<Node>(function - 1);
    const std::string name =
        label.kind == ReferenceKind::kValue
            ? label.text
            : graph_.source().variable_name(graph_.address(of), graph_.type_index(of), is_closure_,
                                            label.index);
    variable(of, is_closure_ ? "closure" : "default", name, node);
  }

  void word(Node parent, Node node) {
    const TypeInfo& type = graph_.type(parent);
    if (type.name == kLruCache) {
      add(" (lru_cache)", node);
    } else if (type.name == kThreadLocal) {
      is_thread_local_ = true;
    } else if (type.name != kLruLink) {
      attribute(fmt::format("<{}>", graph_.type(node).name), node);
    }
  }

  ObjectPaths& paths_;
  const ObjectGraph& graph_;
  ObjectPath path_;
  std::string prefix_;
  std::string last_;
  bool is_repeated_ = false;
  bool is_module_ = false;
  bool is_namespace_ = false;
  bool is_closure_ = false;
  bool is_thread_local_ = false;
  std::uint64_t function_ = 0;  // 1 + the node of a function whose variables come next
};

ObjectPath ObjectPaths::of(Node node) {
  std::vector<Node> way;
  for (Node at = node; at != ObjectGraph::kNone && way.size() <= graph_.size();
       at = graph_.parent(at)) {
    way.push_back(at);
  }
  std::reverse(way.begin(), way.end());
  Writer writer(*this, graph_);
  writer.begin(way.front());
  for (std::size_t i = 1; i < way.size(); ++i) {
    if (i == kMostFirstSteps && way.size() - i > kMostLastSteps) {
      writer.leave_out();
      i = way.size() - kMostLastSteps;
    }
    writer.step(way[i - 1], way[i]);
  }
  return writer.take();
}

}  // namespace tidemark::heap
