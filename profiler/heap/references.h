// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tidemark::heap {

enum class ReferenceKind : std::uint8_t {
  kItem,       // of a list, tuple, set, deque, array of objects
  kKey,        // of a dict
  kValue,      // of a dict; `detail`: the key
  kDict,       // the dict of the attributes of an instance, a module or a function
  kAttribute,  // of an instance without such a dict; `detail`: the name, a str
  kMember,     // what a type names; `name`
  kGlobals,    // of a function or a frame; `name`
  kBuiltins,   // likewise
  kBases,      // of a type: what it derives from and what derives from it; `name`
  kBack,       // of a frame: its caller; `name`
  kClass,      // of an instance: its type
  kLocal,      // of a frame; `detail`: the name, a str
  kStack,      // of a frame: a value in between
  kWord,       // somewhere in an object of a C extension; `detail`: the offset
  kState,      // of a module of C
  kCpp,        // between objects of C++, and from those of Python to them; `name`
};

struct Reference {
  std::uint64_t target = 0;
  std::uint64_t detail = 0;
  const char* name = "";  // as long as the types live
  ReferenceKind kind = ReferenceKind::kItem;
};
// Something to call with some references after some, until there are no more. It refers to a
// function object that must outlive it.
class VisitReferences {
 public:
  template <typename Visit>
  requires(!std::is_same_v<std::remove_cvref_t<Visit>, VisitReferences>)
      // Implicit, so that a lambda can be passed.
      VisitReferences(Visit&& visit)  // NOLINT(google-explicit-constructor,bugprone-forwarding-*)
      : object_(&visit), call_([](void* object, std::span<const Reference> references) {
          (*static_cast<std::remove_reference_t<Visit>*>(object))(references);
        }) {}
  void operator()(std::span<const Reference> references) const { call_(object_, references); }

 private:
  void* object_;
  void (*call_)(void* object, std::span<const Reference> references);
};

// References on their way to who has asked for them, some after some.
class ReferenceBatch {
 public:
  // Takes the memory of the buffer, and gives it back.
  ReferenceBatch(std::vector<Reference>& buffer, VisitReferences visit)
      : buffer_(buffer), visit_(visit), references_(std::move(buffer)) {
    references_.clear();
  }
  ~ReferenceBatch() {
    flush();
    buffer_ = std::move(references_);
  }
  ReferenceBatch(const ReferenceBatch&) = delete;
  ReferenceBatch& operator=(const ReferenceBatch&) = delete;

  // What can be no address of an object is left out.
  void add(std::uint64_t target, ReferenceKind kind, std::uint64_t detail = 0) {
    add({target, detail, "", kind});
  }
  void add(std::uint64_t target, const char* name, ReferenceKind kind = ReferenceKind::kMember) {
    add({target, 0, name, kind});
  }

 private:
  void add(const Reference& reference) {
    constexpr std::size_t kMost = 256;
    constexpr std::uint64_t kLowestAddress = 4096;
    if (reference.target > kLowestAddress && reference.target % 8 == 0) {
      references_.push_back(reference);
      if (references_.size() == kMost) {
        flush();
      }
    }
  }
  void flush() {
    if (!references_.empty()) {
      visit_(references_);
      references_.clear();
    }
  }

  std::vector<Reference>& buffer_;
  VisitReferences visit_;
  std::vector<Reference> references_;
};

}  // namespace tidemark::heap
