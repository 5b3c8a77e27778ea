// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/site_records.h"

// Whose code a frame of Python is, and how people call it. All text is raw bytes.
namespace tidemark::tracker {

enum class CodeOwner {
  kUser,
  kLibrary,    // the standard library, an installed package, what starts programs
  kGenerated,  // by a library: torch.compile, torch.fx, dataclasses, ...
  kString,     // "<string>": exec() of anybody, or all of a program after `python -c`
};

struct PythonCode {
  CodeOwner owner = CodeOwner::kUser;
  std::string library;  // "torch", "the standard library", "torch.compile"; the user's: empty
  std::string module;   // of a library, as in an import: "torch.functional"
  // Its file for people: of the user's the last part of the path ("train.py"), of a library the
  // path in its package ("torch/functional.py"), of generated code what made it ("<dataclass>").
  std::string place;
};
PythonCode python_code(const FrameRecord& frame);

// "make.inner" of "make.<locals>.inner", "forward" of "torch_dynamo_resume_in_forward_at_12".
std::string python_function(std::string_view qualified_name);
// "torch.functional.stack", "import torch", "__init__ of a dataclass".
std::string python_call(const FrameRecord& frame);

// "numpy" of ".../dist-packages/numpy/core/_multiarray_umath.so"; "": it is in no package.
std::string package_of(std::string_view path);

// "/usr/..." but where people install their own. Distributions put the sources of their packages
// into /usr/src/debug.
bool is_of_the_system(std::string_view path);

// The user's own source files, each called by the shortest end of its path that no other has.
class FileNames {
 public:
  void add(const FrameRecord& frame);
  // "train.py"; "data/utils.py" where there is "model/utils.py" too.
  std::string short_name(std::string_view path) const;

 private:
  std::unordered_map<std::string, std::vector<std::string>> paths_;  // by their last part
};

}  // namespace tidemark::tracker
