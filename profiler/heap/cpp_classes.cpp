// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/cpp_classes.h"

#include <algorithm>
#include <string_view>

namespace tidemark::heap {
namespace {

constexpr std::size_t kMostClasses = 1U << 18U;
constexpr std::size_t kMostOthers = 1U << 20U;
constexpr std::size_t kMostNameBytes = 500;
constexpr int kMostBases = 12;

// As compilers write them, with the lengths of the parts.
constexpr std::string_view kTensor = "N3c1010TensorImplE";
constexpr std::string_view kUndefinedTensor = "N3c1019UndefinedTensorImplE";
constexpr std::string_view kStorage = "N3c1011StorageImplE";
constexpr std::string_view kGradients = "N5torch8autograd12AutogradMetaE";
constexpr std::string_view kView = "N5torch8autograd22DifferentiableViewMetaE";
constexpr std::string_view kNode = "N5torch8autograd4NodeE";
constexpr std::string_view kAccumulator = "N5torch8autograd14AccumulateGradE";
constexpr std::string_view kGenerated = "N5torch8autograd9generated";
constexpr std::string_view kOneBase = "N10__cxxabiv120__si_class_type_infoE";
constexpr std::string_view kSomeBases = "N10__cxxabiv121__vmi_class_type_infoE";

CppRole role_of(std::string_view mangled) {
  if (mangled == kTensor) {
    return CppRole::kTensor;
  }
  if (mangled == kStorage) {
    return CppRole::kStorage;
  }
  if (mangled == kGradients) {
    return CppRole::kGradients;
  }
  if (mangled == kNode) {
    return CppRole::kNode;
  }
  const bool is_of_torch =
      mangled.starts_with("N5torch") || mangled.starts_with("N2at") || mangled.starts_with("N3c10");
  return is_of_torch ? CppRole::kPart : CppRole::kNone;
}

bool is_file(const Mapping& mapping) {
  const std::string& name = mapping.name;
  return name.starts_with('/') && !name.starts_with("/dev/") && !name.starts_with("/memfd:") &&
         !mapping.is_shared;
}

bool is_of_torch(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libtorch") || name.starts_with("libc10");
}

}  // namespace

CppClasses::CppClasses(MemoryImage& image) : image_(image) {
  for (const Mapping& mapping : image.mappings()) {
    if (!is_file(mapping)) {
      continue;
    }
    has_torch_ = has_torch_ || is_of_torch(mapping.name);
    if (!files_.empty() && files_.back().end == mapping.range.begin) {
      files_.back().end = mapping.range.end;
    } else {
      files_.push_back(mapping.range);
    }
  }
  if (!files_.empty()) {
    lowest_ = files_.front().begin;
    highest_ = files_.back().end;
  }
}

bool CppClasses::is_in_range(std::uint64_t address) const {
  const auto next =
      std::upper_bound(files_.begin(), files_.end(), address,
                       [](std::uint64_t at, const AddressRange& range) { return at < range.end; });
  return next != files_.end() && next->begin <= address;
}

const CppClass* CppClasses::find(std::uint64_t table) {
  if (const auto found = by_table_.find(table); found != by_table_.end()) {
    return found->second;
  }
  if (others_.contains(table)) {
    return nullptr;
  }
  const CppClass* const read_class = classes_.size() < kMostClasses ? read(table) : nullptr;
  if (read_class != nullptr) {
    by_table_.emplace(table, read_class);
    return read_class;
  }
  if (others_.size() >= kMostOthers) {
    others_.clear();
  }
  others_.insert(table);
  return nullptr;
}

// Before a table of virtual functions stand the offset of the object in the whole one, 0 for this
// itself, and the address of the type information. 0: there is no such table.
std::uint64_t CppClasses::type_information(std::uint64_t table) {
  const std::uint64_t information = image_.word(table - 8);
  const bool is_table = is_in_file(table) && image_.word(table - 16) == 0 &&
                        is_in_file(image_.word(table)) && information % 8 == 0 &&
                        is_in_file(information) && is_in_file(image_.word(information)) &&
                        is_in_file(image_.word(information + 8));
  return is_table ? information : 0;
}

std::string CppClasses::name_of(std::uint64_t information) {
  std::string name = image_.text(image_.word(information + 8), kMostNameBytes);
  if (name.starts_with('*')) {  // compared by its address only
    name.erase(0, 1);
  }
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$';
  };
  return std::all_of(name.begin(), name.end(), is_letter) ? name : "";
}

// The first of the classes from which one derives: it begins where the whole does. 0: there is
// none.
std::uint64_t CppClasses::base_of(std::uint64_t information) {
  const std::uint64_t kind = type_information(image_.word(information));
  if (kind == 0) {
    return 0;
  }
  const std::string name = name_of(kind);
  std::uint64_t base = 0;
  if (name == kOneBase) {
    base = image_.word(information + 16);
  } else if (name == kSomeBases && image_.load<std::uint32_t>(information + 20) > 0 &&
             image_.word(information + 32) >> 8U == 0) {
    base = image_.word(information + 24);
  }
  return base % 8 == 0 && is_in_file(base) ? base : 0;
}

const CppClass* CppClasses::read(std::uint64_t table) {
  std::uint64_t information = type_information(table);
  if (information == 0) {
    return nullptr;
  }
  CppClass made;
  made.mangled = name_of(information);
  if (made.mangled.empty()) {
    return nullptr;
  }
  made.number = static_cast<std::uint32_t>(classes_.size());
  for (int i = 0; i < kMostBases && information != 0; ++i, information = base_of(information)) {
    const std::string name = name_of(information);
    const CppRole role = role_of(name);
    if (made.role == CppRole::kNone || role != CppRole::kPart) {
      made.role = role == CppRole::kNone ? made.role : role;
    }
    made.is_undefined_tensor = made.is_undefined_tensor || name == kUndefinedTensor;
    made.is_accumulator = made.is_accumulator || name == kAccumulator;
    made.is_view = made.is_view || name == kView;
  }
  made.may_lead_to_python =
      made.role == CppRole::kPart || (made.role == CppRole::kNode && !made.is_accumulator &&
                                      !made.mangled.starts_with(kGenerated));
  return &classes_.emplace_back(std::move(made));
}

}  // namespace tidemark::heap
