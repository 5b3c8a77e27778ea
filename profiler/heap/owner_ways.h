// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "common/result.h"
#include "profiler/heap/object_graph.h"
#include "profiler/heap/paths.h"

namespace tidemark::heap {

// The object that a path leads to, as ObjectPath::text or ::grouped has it; kNone: there is none.
// `is_over` ends the search.
ObjectGraph::Node find_object(const ObjectGraph& graph, ObjectPaths& paths, std::string_view path,
                              const std::function<bool()>& is_over);

inline constexpr std::size_t kMostOtherWays = 12;

// Writes the ways that lead to one object as a graph for Graphviz: the one that a person would name
// first, and those through up to kMostOtherWays other holders, the closest first.
// `below`: ObjectGraph::bytes_below(). The error: the file could not be written.
Status write_ways(const ObjectGraph& graph, ObjectPaths& paths, ObjectGraph::Node owner,
                  std::span<const std::uint64_t> below, int fd);

}  // namespace tidemark::heap
