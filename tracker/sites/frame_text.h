// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "tracker/sites/site_ranking.h"
#include "tracker/sites/stack_lines.h"

// Frames and lines in words. All of it is escaped.
namespace tidemark::tracker {

// The stack of a site, for people.
ShownStack shown_stack(const RunSites& run, const RankedSite& site);

// In a stack: "collate(Batch&) train.cpp:42", "malloc_consolidate [libc.so.6]", "collate
// train.py:42".
std::string frame_text(const ShownFrame& frame, std::size_t columns);
// By itself: "train.py:42 in collate"; what is native as in a stack.
std::string place_text(const ShownFrame& frame, std::size_t columns);

// The library function that a line of Python calls on its way to the allocation:
// "torch.functional.stack", "import torch", "at::_ops::cat"; "": none, or the line is native.
std::string call_text(const ShownStack& stack, std::size_t line);

// The frame that stands for the stack, that of a line, else the first one, with what it calls where
// there is room: "train.py:42 in collate calling torch.functional.stack", "train.py:42 in collate
// (arena of small objects)"; "" when the stack is not known.
std::string headline(const ShownStack& stack, const std::string& line, std::size_t columns);

}  // namespace tidemark::tracker
