// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracker/sites/stack_lines.h"

// What native functions are called by people who write Python. All text is raw bytes.
namespace tidemark::tracker {

// "bytearray" of "bytearray___init__", "list.append" of "list_append", "sorted" of
// "builtin_sorted", "at::_ops::cat" of "at::_ops::cat::call(...)", "numpy" of a module of numpy
// that has no names. "": it only passes a call on, or it is inside of the interpreter and says
// nothing.
std::string name_for_python(const ShownFrame& native);

}  // namespace tidemark::tracker
