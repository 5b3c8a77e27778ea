// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/python_code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::tracker {
namespace {

constexpr std::string_view kStandardLibrary = "the standard library";
constexpr std::string_view kModuleLevel = "<module>";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What stands behind the last `part` of a path; nullopt: it has none.
std::optional<std::string_view> after_last(std::string_view path, std::string_view part) {
  const std::size_t at = path.rfind(part);
  return at == std::string_view::npos ? std::nullopt : std::optional(path.substr(at + part.size()));
}

// "torch/functional.py" of ".../site-packages/torch/functional.py"; eggs are folders in between.
std::optional<std::string_view> path_in_packages(std::string_view path) {
  for (const std::string_view folder : {"site-packages/", "dist-packages/"}) {
    if (auto rest = after_last(path, folder)) {
      const std::size_t slash = rest->find('/');
      if (slash != std::string_view::npos && rest->substr(0, slash).ends_with(".egg")) {
        rest->remove_prefix(slash + 1);
      }
      return rest;
    }
  }
  return std::nullopt;
}

// "json/decoder.py" of "/usr/lib/python3.11/json/decoder.py" and of "/x/python311.zip/json/...".
std::optional<std::string_view> path_in_standard_library(std::string_view path) {
  for (const std::string_view folder : {"lib/python3.", "lib64/python3.", "/python3"}) {
    std::size_t at = path.rfind(folder);
    if (at == std::string_view::npos || (at > 0 && folder[0] != '/' && path[at - 1] != '/')) {
      continue;
    }
    at += folder.size();
    while (at < path.size() && is_digit(path[at])) {
      ++at;
    }
    const std::string_view rest = path.substr(at);
    const std::string_view end = folder[0] == '/' ? ".zip/" : rest.starts_with("t/") ? "t/" : "/";
    if (rest.starts_with(end)) {
      return rest.substr(end.size());
    }
  }
  return std::nullopt;
}

// "torch.functional" of "torch/functional.py", "torch" of "torch/__init__.py".
std::string module_of(std::string_view path) {
  path = path.substr(0, path.rfind(".py"));
  constexpr std::string_view kPackage = "/__init__";
  if (path.ends_with(kPackage)) {
    path.remove_suffix(kPackage.size());
  }
  std::string module(path);
  std::replace(module.begin(), module.end(), '/', '.');
  return module;
}

PythonCode library_code(std::string_view library, std::string_view path) {
  return {CodeOwner::kLibrary, std::string(library), module_of(path), std::string(path)};
}

PythonCode package_code(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  return library_code(first.substr(0, first.find(".py")), path);
}

PythonCode standard_code(std::string_view path) {
  return library_code(path.starts_with("importlib/") ? "importlib" : kStandardLibrary, path);
}

PythonCode generated_code(std::string_view library, std::string place) {
  return {CodeOwner::kGenerated, std::string(library), "", std::move(place)};
}

// "<frozen importlib._bootstrap>" and the like: `name` is what follows "frozen ".
PythonCode frozen_code(std::string_view name) {
  const bool is_import = name.starts_with("importlib") || name == "zipimport";
  return {CodeOwner::kLibrary, is_import ? "importlib" : std::string(kStandardLibrary),
          std::string(name), std::string(name)};
}

// What a person has typed: a prompt, a notebook, a doctest.
std::optional<std::string> typed_place(std::string_view file) {
  constexpr std::array<std::string_view, 5> kPrompts{"<stdin>", "<console>", "<input>",
                                                     "<python-input-", "<command-"};
  if (std::any_of(kPrompts.begin(), kPrompts.end(),
                  [&](std::string_view prompt) { return file.starts_with(prompt); })) {
    return std::string(file);
  }
  constexpr std::string_view kCell = "<ipython-input-";
  if (file.starts_with(kCell)) {
    const std::string_view rest = file.substr(kCell.size());
    return fmt::format("In[{}]", rest.substr(0, rest.find_first_of("->")));
  }
  constexpr std::string_view kDoctest = "<doctest ";
  if (file.starts_with(kDoctest)) {
    return std::string(file.substr(1, file.rfind('>') - 1));
  }
  if (file.find("/ipykernel_") != std::string_view::npos) {
    const std::string_view name = basename_of(file);
    return fmt::format("notebook cell {}", name.substr(0, name.rfind(".py")));
  }
  return std::nullopt;
}

// Code of torch.compile, wherever its cache is: "ab/cabXYZ...py", a hash behind the 'c'.
bool is_of_torch_compile(std::string_view file) {
  constexpr std::size_t kHashLength = 40;  // at least
  if (file.find("/torchinductor_") != std::string_view::npos) {
    return true;
  }
  const std::string_view name = basename_of(file);
  const std::string_view folder =
      basename_of(file.substr(0, file.size() - name.size() - (name.size() < file.size())));
  return name.size() > kHashLength && name.starts_with('c') && folder.size() == 2 &&
         name.substr(1, 2) == folder;
}

// "<...>" that is of no file.
PythonCode code_without_file(std::string_view file, std::string_view function) {
  struct Maker {
    std::string_view prefix;
    std::string_view library;
  };
  constexpr std::array<Maker, 6> kMakers{{{"<attrs generated", "attrs"},
                                          {"<__array_function__", "numpy"},
                                          {"<decorator-gen", "decorator"},
                                          {"<lambdifygenerated", "sympy"},
                                          {"<template>", "jinja2"},
                                          {"<torch.jit", "torch.jit"}}};
  constexpr std::string_view kFrozen = "<frozen ";
  constexpr std::string_view kGraph = "<eval_with_key>";
  constexpr std::string_view kTorchPackage = "<torch_package_";
  if (file.starts_with(kFrozen)) {
    return frozen_code(file.substr(kFrozen.size(), file.rfind('>') - kFrozen.size()));
  }
  if (file.starts_with(kGraph)) {  // "<eval_with_key>.12 from /x.py:3"
    const std::string_view rest = file.substr(kGraph.size());
    const std::string_view number = rest.substr(0, rest.find(' '));
    return generated_code("torch.fx", fmt::format("<torch.fx graph{}{}>", number.empty() ? "" : " ",
                                                  number.substr(number.starts_with('.') ? 1 : 0)));
  }
  if (file.starts_with(kTorchPackage)) {  // "<torch_package_0>.model/net.py"
    if (const auto path = after_last(file, ">."); path && !path->empty()) {
      return package_code(*path);
    }
    return generated_code("torch.package", std::string(file));
  }
  if (file == "<string>") {
    return function.starts_with("__create_fn__.")
               ? generated_code("dataclasses", "<dataclass>")
               : PythonCode{CodeOwner::kString, std::string(file), "", std::string(file)};
  }
  const auto* const maker = std::find_if(kMakers.begin(), kMakers.end(), [&](const Maker& each) {
    return file.starts_with(each.prefix);
  });
  return generated_code(maker == kMakers.end() ? file : maker->library, std::string(file));
}

// "/usr/local/bin/torchrun": made when a package is installed. Functions in such a file are
// somebody's own script.
bool is_launcher(std::string_view file, std::string_view function) {
  return function == kModuleLevel && file.find("/bin/") != std::string_view::npos &&
         basename_of(file).find('.') == std::string_view::npos;
}

}  // namespace

std::string package_of(std::string_view path) {
  const auto inside = path_in_packages(path);
  return inside && inside->find('/') != std::string_view::npos
             ? std::string(inside->substr(0, inside->find('/')))
             : "";
}

bool is_of_the_system(std::string_view path) {
  const auto is_below = [&](std::string_view folder) { return path.starts_with(folder); };
  const bool is_own = (is_below("/usr/src/") && !is_below("/usr/src/debug/")) ||
                      (is_below("/usr/local/") && !is_below("/usr/local/cuda"));
  return is_below("/usr/") && !is_own;
}

PythonCode python_code(const FrameRecord& frame) {
  const std::string_view file = frame.file;
  if (auto typed = typed_place(file)) {
    return {CodeOwner::kUser, "", "", std::move(*typed)};
  }
  if (file.starts_with('<')) {
    return code_without_file(file, frame.function);
  }
  if (is_of_torch_compile(file)) {
    constexpr std::size_t kEnough = 9;  // of the hash
    return generated_code("torch.compile",
                          fmt::format("<torch.compile {}>", basename_of(file).substr(0, kEnough)));
  }
  if (const auto path = path_in_packages(file)) {
    return package_code(*path);
  }
  if (const auto path = path_in_standard_library(file)) {
    return standard_code(*path);
  }
  const std::string_view name = basename_of(file);
  if (file.find("/extensions/ms-python.") != std::string_view::npos) {
    return library_code("debugpy", name);
  }
  if (is_of_the_system(file) || is_launcher(file, frame.function)) {
    return library_code(name, name);
  }
  if (file.empty()) {
    return {CodeOwner::kLibrary, "Python", "", ""};
  }
  return {CodeOwner::kUser, "", "", std::string(name)};
}

std::string python_function(std::string_view qualified_name) {
  constexpr std::string_view kResume = "torch_dynamo_resume_in_";
  constexpr std::string_view kMade = "__create_fn__.";
  constexpr std::string_view kLocals = "<locals>.";
  std::string name(qualified_name);
  for (std::size_t at = 0; (at = name.find(kLocals, at)) != std::string::npos;) {
    name.erase(at, kLocals.size());
  }
  if (name.starts_with(kMade)) {
    name.erase(0, kMade.size());
  }
  const std::size_t line = name.rfind("_at_");
  if (const std::size_t at = name.find(kResume);
      at != std::string::npos && line != std::string::npos && line > at + kResume.size()) {
    name = name.substr(0, at) + name.substr(at + kResume.size(), line - at - kResume.size());
  }
  return name;
}

std::string python_call(const FrameRecord& frame) {
  const PythonCode code = python_code(frame);
  std::string function = python_function(frame.function);
  switch (code.owner) {
    case CodeOwner::kUser:
      return function;
    case CodeOwner::kLibrary:
      return function == kModuleLevel ? "import " + code.module
             : code.module.empty()    ? function
                                      : code.module + '.' + function;
    case CodeOwner::kGenerated:
    case CodeOwner::kString:
      return fmt::format("{} in {}", function, code.place);
  }
  return function;
}

void FileNames::add(const FrameRecord& frame) {
  if (frame.kind != FrameKind::kPython || python_code(frame).owner != CodeOwner::kUser) {
    return;
  }
  std::vector<std::string>& paths = paths_[std::string(basename_of(frame.file))];
  if (std::find(paths.begin(), paths.end(), frame.file) == paths.end()) {
    paths.push_back(frame.file);
  }
}

std::string FileNames::short_name(std::string_view path) const {
  const std::string_view name = basename_of(path);
  const auto same = paths_.find(std::string(name));
  std::size_t from = path.size() - name.size();
  const auto widen = [&] { from = from < 2 ? 0 : path.rfind('/', from - 2) + 1; };
  if (name == "__init__.py" || name == "__main__.py") {
    widen();
  }
  // A relative path may be the end of another: then they are, most likely, one file.
  const auto is_of_another = [&](const std::string& other) {
    return other != path && !other.ends_with(path) && !path.ends_with(other) &&
           ('/' + other).ends_with('/' + std::string(path.substr(from)));
  };
  while (same != paths_.end() && from > 1 &&
         std::any_of(same->second.begin(), same->second.end(), is_of_another)) {
    widen();
  }
  return std::string(path.substr(from));
}

}  // namespace tidemark::tracker
