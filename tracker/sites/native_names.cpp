// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/native_names.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::tracker {
namespace {

// How CPython begins the names of the functions of a type.
struct TypePrefix {
  std::string_view prefix;
  std::string_view type;
};
constexpr std::array<TypePrefix, 25> kTypes{{{"bytearray_", "bytearray"},
                                             {"PyByteArray_", "bytearray"},
                                             {"bytes_", "bytes"},
                                             {"PyBytes_", "bytes"},
                                             {"complex_", "complex"},
                                             {"deque_", "deque"},
                                             {"dict_", "dict"},
                                             {"dictresize", "dict"},
                                             {"insertdict", "dict"},
                                             {"insertion_resize", "dict"},
                                             {"PyDict_", "dict"},
                                             {"float_", "float"},
                                             {"frozenset_", "frozenset"},
                                             {"list_", "list"},
                                             {"PyList_", "list"},
                                             {"long_", "int"},
                                             {"PyLong_", "int"},
                                             {"memory_", "memoryview"},
                                             {"PyMemoryView_", "memoryview"},
                                             {"set_", "set"},
                                             {"PySet_", "set"},
                                             {"tuple", "tuple"},
                                             {"PyTuple_", "tuple"},
                                             {"unicode_", "str"},
                                             {"PyUnicode_", "str"}}};

bool is_method(std::string_view name) {
  constexpr std::array<std::string_view, 20> kMethods{
      "add",    "append", "appendleft", "copy",       "decode", "encode",  "extend",
      "format", "insert", "join",       "ljust",      "lower",  "popitem", "replace",
      "rjust",  "split",  "splitlines", "setdefault", "union",  "update"};
  return std::find(kMethods.begin(), kMethods.end(), name) != kMethods.end();
}

std::string_view word_at(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

std::string name_in_interpreter(std::string_view function) {
  constexpr std::string_view kBuiltin = "builtin_";
  if (function.starts_with(kBuiltin)) {
    return std::string(word_at(function.substr(kBuiltin.size())));
  }
  if (function.starts_with("marshal_load")) {
    return "marshal.loads";
  }
  function.remove_prefix(function.starts_with("_Py") ? 1 : 0);
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypePrefix& each) {
    return function.starts_with(each.prefix);
  });
  if (found == kTypes.end()) {
    return "";
  }
  const std::string_view method = word_at(function.substr(found->prefix.size()));
  return is_method(method) ? fmt::format("{}.{}", found->type, method) : std::string(found->type);
}

// Between Python and a function in C that it calls through ctypes or cffi.
bool is_of_a_foreign_call(std::string_view module) {
  return module.starts_with("libffi") || module.starts_with("_ctypes.") ||
         module.starts_with("_cffi_backend.");
}

// Without arguments, templates and what all operators of torch end with: "at::_ops::cat" of
// "at::_ops::cat::call(c10::ArrayRef<at::Tensor>, long)+0x1c".
std::string short_name(std::string_view function) {
  std::string name;
  int depth = 0;  // of templates
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    const bool is_end = c == '(' && i > 0 && function[i - 1] != ' ' && function[i - 1] != ':';
    if (depth == 0 && (is_end || c == '@' || function.substr(i).starts_with("+0x"))) {
      break;
    }
    depth += c == '<' ? 1 : 0;
    if (depth == 0) {
      name += c;
    }
    depth -= c == '>' && depth > 0 ? 1 : 0;
  }
  for (const std::string_view end : {"::call", "::redispatch"}) {
    if (name.ends_with(end)) {
      name.erase(name.size() - end.size());
    }
  }
  return name;
}

}  // namespace

std::string name_for_python(const ShownFrame& native) {
  const std::string_view module = basename_of(native.module);
  if (is_of_the_interpreter(native)) {
    return has_name(native) ? name_in_interpreter(native.frame->function) : "";
  }
  if (is_of_a_foreign_call(module)) {
    return "";
  }
  if (has_name(native)) {
    return short_name(native.frame->function);
  }
  const std::string package = package_of(native.module);
  return package.empty() ? std::string(module.substr(0, module.find('.'))) : package;
}

}  // namespace tidemark::tracker
