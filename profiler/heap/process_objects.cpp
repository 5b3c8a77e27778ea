// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/process_objects.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/owner_records.h"
#include "profiler/heap/python_roots.h"

namespace tidemark::heap {
namespace {

bool is_cpp(ObjectKind kind) {
  return kind == ObjectKind::kCpp || kind == ObjectKind::kCppTensor ||
         kind == ObjectKind::kCppStorage;
}

ObjectKind kind_of(CppRole role) {
  return role == CppRole::kTensor    ? ObjectKind::kCppTensor
         : role == CppRole::kStorage ? ObjectKind::kCppStorage
                                     : ObjectKind::kCpp;
}

}  // namespace

ProcessObjects::ProcessObjects(MemoryImage& image, PythonRuntime runtime)
    : image_(image),
      runtime_(std::move(runtime)),
      types_(image_, runtime_.layout),
      objects_(image_, runtime_.layout, types_),
      sizes_(image_, runtime_.layout, types_),
      cpp_(image_) {}

std::vector<Root> ProcessObjects::roots() {
  return python_roots(image_, runtime_, types_, objects_);
}

std::uint64_t ProcessObjects::type_of_arrays() {
  return runtime_.layout.is_free_threaded
             ? 0
             : module_value(image_, runtime_, types_, "numpy", "ndarray");
}

// What lies there may be anything.
NativeArray ProcessObjects::native_array(std::uint64_t address) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 42U;
  NumpyArrays& arrays = objects_.arrays();
  NativeArray array;
  array.address = address;
  array.data = arrays.data(address);
  const bool is_own = arrays.owns_data(address) && image_.mapping_at(array.data) != nullptr;
  const std::uint64_t items = is_own && arrays.has_dimensions(address) ? arrays.items(address) : 0;
  if (items == 0 || items > kMostBytes) {
    return array;
  }
  array.held = this->array(address);
  array.held.type = "numpy.ndarray";
  array.held.count = 1;
  const std::uint64_t bytes = items * arrays.item_bytes(address);
  array.held.bytes = bytes < kMostBytes ? bytes : 0;
  return array;
}

std::uint64_t ProcessObjects::reference_count(std::uint64_t object) {
  constexpr std::uint64_t kForEver = std::uint64_t{1} << 30U;
  if (runtime_.layout.is_free_threaded) {
    return 0;
  }
  const std::uint64_t word = image_.word(object);
  const std::uint64_t count = runtime_.layout.minor >= 12 ? word & 0xffffffffU : word;
  return count >= kForEver ? 0 : count;
}

PythonTypes::Index ProcessObjects::type_of(std::uint64_t address, ReferenceKind kind) {
  if (kind == ReferenceKind::kCpp) {
    const PythonTypes::Index cpp = cpp_type_of(address);
    return cpp != PythonTypes::kNone ? cpp : type_held_by_cpp(address);
  }
  const PythonTypes::Index python = python_type_of(address);
  return python == PythonTypes::kNone && kind == ReferenceKind::kWord ? cpp_type_of(address)
                                                                      : python;
}

PythonTypes::Index ProcessObjects::python_type_of(std::uint64_t address) {
  constexpr std::int64_t kMostReferences = std::int64_t{1} << 40U;
  const PythonTypes::Index type = types_.of(address);
  if (type == PythonTypes::kNone || runtime_.layout.is_free_threaded) {
    return type;
  }
  const auto count = image_.load<std::int64_t>(address);
  const bool is_object = count > 0 && (runtime_.layout.minor >= 12 || count < kMostReferences);
  return is_object ? type : PythonTypes::kNone;
}

// Any word of an object of C++ may be one: only what the collector knows, and what has memory to
// lend, counts.
PythonTypes::Index ProcessObjects::type_held_by_cpp(std::uint64_t address) {
  const PythonTypes::Index type = python_type_of(address);
  if (type == PythonTypes::kNone || types_[type].has(kHasGcFlag)) {
    return type;
  }
  const ObjectKind kind = types_[type].kind;
  const bool can_lend = kind == ObjectKind::kNumpyArray || kind == ObjectKind::kBytes ||
                        kind == ObjectKind::kByteArray || kind == ObjectKind::kArray;
  return can_lend ? type : PythonTypes::kNone;
}

PythonTypes::Index ProcessObjects::cpp_type_of(std::uint64_t address) {
  const CppClass* const of = cpp_.has_torch() ? cpp_.find(address) : nullptr;
  if (of == nullptr) {
    return PythonTypes::kNone;
  }
  if (of->number >= cpp_types_.size()) {
    cpp_types_.resize(of->number + std::size_t{1}, PythonTypes::kNone);
  }
  PythonTypes::Index& type = cpp_types_[of->number];
  if (type == PythonTypes::kNone) {
    type = types_.of_cpp(of->mangled, kind_of(of->role));
  }
  return type;
}

void ProcessObjects::references(std::uint64_t address, PythonTypes::Index type,
                                VisitReferences visit) {
  const ObjectKind kind = types_[type].kind;
  if (is_cpp(kind)) {
    if (const CppClass* const of = cpp_.find(address); of != nullptr) {
      cpp_.references(address, *of, visit);
    }
    return;
  }
  objects_.references(address, types_[type], visit);
  if (kind == ObjectKind::kTensor) {
    // The tensor of C++, or a word and that; later versions have an object of Python behind it.
    const std::uint64_t begin = address + 16 + runtime_.layout.shift;
    const std::array references = {Reference{image_.word(begin), 0, "", ReferenceKind::kCpp},
                                   Reference{image_.word(begin + 8), 0, "", ReferenceKind::kCpp}};
    visit(references);
  }
}

std::uint64_t ProcessObjects::bytes(std::uint64_t address, PythonTypes::Index type) {
  const ObjectKind kind = types_[type].kind;
  if (!is_cpp(kind)) {
    return sizes_.bytes(address, types_[type]);
  }
  const CppClass* const of = cpp_.find(address);
  const std::uint64_t own = of == nullptr ? 0 : cpp_.bytes(address, *of);
  return kind == ObjectKind::kCppStorage ? own + storage_bytes(address) : own;
}

// What another object has lent counts for that, and memory of devices is none of the process.
std::uint64_t ProcessObjects::storage_bytes(std::uint64_t storage) {
  const auto facts = cpp_.storage(storage);
  if (!facts || !facts->is_host) {
    return 0;
  }
  const auto lenders = cpp_.lenders(storage);
  const bool is_lent = std::any_of(lenders.begin(), lenders.end(), [&](std::uint64_t lender) {
    return type_held_by_cpp(lender) != PythonTypes::kNone;
  });
  return is_lent ? 0 : facts->bytes;
}

std::string ProcessObjects::text(std::uint64_t address) {
  return types_.text(address, kMostOwnerTextBytes);
}

std::string ProcessObjects::name(std::uint64_t address, PythonTypes::Index type) {
  const PythonLayout& layout = runtime_.layout;
  const auto text_at = [&](std::uint64_t at) { return text(image_.word(at)); };
  const auto name_of_code = [&](std::uint64_t code) {
    return text_at(code + (layout.code_qualname != PythonLayout::kNone ? layout.code_qualname
                                                                       : layout.code_name));
  };
  switch (types_[type].kind) {
    case ObjectKind::kFunction:
      return text_at(address + layout.function_qualname);
    case ObjectKind::kGenerator:
      return text_at(address + layout.generator_qualname);
    case ObjectKind::kFrame: {
      const std::uint64_t frame = layout.frame_object_frame == PythonLayout::kNone
                                      ? address
                                      : image_.word(address + layout.frame_object_frame);
      return name_of_code(objects_.frames().code_of(frame));
    }
    case ObjectKind::kModule:
      return text_at(address + layout.module_name);
    case ObjectKind::kType: {
      const PythonTypes::Index of = types_.find(address);
      return of == PythonTypes::kNone ? "" : types_[of].name;
    }
    default:
      return "";
  }
}

std::string ProcessObjects::variable_name(std::uint64_t function, PythonTypes::Index /*type*/,
                                          bool is_closure, std::uint64_t index) {
  constexpr std::uint64_t kMostNames = 10'000;
  const PythonLayout& layout = runtime_.layout;
  const std::uint64_t code = image_.word(function + layout.function_code);
  const auto name_at = [&](std::uint64_t names, std::uint64_t i) {
    return i < kMostNames ? text(image_.word(names + layout.tuple_items + 8 * i)) : "";
  };
  const std::uint64_t names = image_.word(code + layout.code_local_names);
  if (is_closure) {
    if (layout.code_free_names != PythonLayout::kNone) {
      return name_at(image_.word(code + layout.code_free_names), index);
    }
    const std::uint64_t cells = image_.word(function + layout.function_closure);
    return name_at(names, image_.load<std::uint32_t>(code + layout.code_local_count) -
                              image_.word(cells + layout.object_size) + index);
  }
  const std::uint64_t arguments =
      image_.load<std::uint32_t>(code + (layout.minor <= 10 ? 16 : layout.code_stack_size - 12));
  const std::uint64_t defaults = image_.word(function + layout.function_defaults);
  return name_at(names, arguments - image_.word(defaults + layout.object_size) + index);
}

}  // namespace tidemark::heap
