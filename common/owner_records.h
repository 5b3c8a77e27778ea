// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/process_key.h"

// What a look at the heap of a process adds to a run: which objects hold its memory. All text is
// raw bytes from the memory of a stranger, cut off after kMostOwnerTextBytes. Owners are numbered
// in each process, from 1 on.
namespace tidemark {

inline constexpr std::size_t kMostOwnerTextBytes = 512;

// How the heap was read. The names are written to run files and JSON: they never change.
enum class HeapReading {
  kRunning,  // while the process ran, or stood still by itself
  kStopped,  // while all its threads were held
  kFrozen,   // a copy of the process that never runs
};

// What an owner is. The names are written to run files and JSON: they never change.
enum class OwnerKind {
  kContainer,   // an object that was there at the first look and refers to more and more others
  kVariable,    // a variable or attribute that is assigned anew and leads to more and more
  kName,        // whatever is reached from this name first; given for what does not grow, too
  kGarbage,     // objects that only refer to each other, and that no collection has freed yet
  kNativeHold,  // objects that nothing in Python leads to, but that native code has references to
  kNative,      // objects of C++ (tensors) that no Python object leads to
};

// Objects of one sort. Of tensors and arrays the memory of their elements counts, once.
struct HeldObjects {
  std::string type;   // "dict", "torch.Tensor", "numpy.ndarray"
  std::string dtype;  // these three of tensors and arrays: "float32"
  std::vector<std::int64_t> shape;
  std::string device;  // "cpu", "cuda:0"; empty: not of a device
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// A step of a path: ".cache", "[*]", "local history", with the type of what it leads to.
struct PathStep {
  std::string label;
  std::string type;
};

struct OwnerRecord {
  std::uint32_t owner = 0;
  ProcessKey key;
  OwnerKind kind = OwnerKind::kContainer;
  std::string path;  // "__main__.collator.cache"
  std::string type;  // of the object itself: "dict"
  std::vector<PathStep> steps;
  bool is_library = false;  // it belongs to a library, not to the job's own code
};

// A call stack that has allocated what an owner holds; known where the tracer runs as well.
struct OwnerSite {
  std::uint32_t site = 0;
  std::uint64_t bytes = 0;
};

// An owner at one look.
struct OwnerSample {
  std::uint32_t owner = 0;
  std::optional<std::uint64_t> entries;  // references that it has; nullopt: it is none of many
  // The same at the first look of the process, where the owner may not have been named.
  std::optional<std::uint64_t> first_entries;
  // What it holds more than at the first look of the process. What several growing owners lead to
  // counts for the one that stands first.
  std::uint64_t grown_bytes = 0;
  // Of these, what no other growing owner leads to.
  std::uint64_t grown_bytes_alone = 0;
  // All that it leads to and that goes free with it; nullopt: not measured at this look.
  std::optional<std::uint64_t> retained_bytes;
  // All that it leads to through what no other owner was closer to.
  std::optional<std::uint64_t> reached_bytes;
  std::string shared_with;         // path of the owner that leads to most of the rest; empty: none
  std::vector<HeldObjects> holds;  // of the new bytes, the most first; a few
  std::vector<OwnerSite> sites;    // the most bytes first; a few
};

// Objects of one type at one look.
struct TypeSample {
  std::string type;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// Tensors that look the same, at one look. Memory that several share counts once, for the first.
struct TensorSample {
  std::string device;
  std::string dtype;
  std::vector<std::int64_t> shape;
  bool requires_grad = false;
  bool is_graph = false;   // made by an operation that is kept for its gradient
  bool is_view = false;    // shares the memory of another
  bool is_pinned = false;  // page-locked memory of the host
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// What is known of the interpreter and of libraries in a process.
struct InterpreterFacts {
  std::string python;  // "3.11.2"; empty: there is no Python
  bool is_free_threaded = false;
  std::optional<bool> gc_enabled;
  std::vector<std::int64_t> gc_thresholds;
  std::optional<std::uint64_t> gc_frozen_objects;
  std::string torch;  // "1.13.1"; empty: not loaded, or not known
  std::string numpy;
};

// One look at the heap of one process.
struct HeapLook {
  ProcessKey key;
  double t_s = 0.0;  // when the memory was as it was read
  std::optional<std::int64_t> step;
  HeapReading reading = HeapReading::kRunning;
  double paused_s = 0.0;  // how long the process stood still
  double took_s = 0.0;    // until the result was there
  std::uint64_t objects = 0;
  std::uint64_t heap_bytes = 0;  // of all objects that were reached, with what they lead to
  std::uint64_t new_bytes = 0;   // of those that were not there at the first look
  std::uint64_t gone_bytes = 0;  // of those that were there at the first look, and no longer are
  // Of the process, right before: the number that verdicts use.
  std::optional<std::uint64_t> footprint_bytes;
  // What the process had to copy because a frozen copy of it was there; nullopt: not measured.
  std::optional<std::uint64_t> copied_bytes;
  std::optional<std::uint64_t> unread_bytes;  // memory that could not be read; 0: all was
  bool is_partial = false;                    // the budget was used up
  std::string detour;   // why it was not read in the way that was asked for; empty: it was
  std::string problem;  // why there is nothing, or only a part; empty: no problem
  InterpreterFacts interpreter;
};

// What looks add to one tick. Owners come before their first use; samples, types and tensors are of
// the look of the same process that stands here.
struct HeapFacts {
  struct OfProcess {
    HeapLook look;
    std::vector<OwnerSample> owners;
    std::vector<TypeSample> types;      // those with the most bytes
    std::vector<TensorSample> tensors;  // likewise
  };
  std::vector<OwnerRecord> owners;
  std::vector<OfProcess> looks;

  bool empty() const { return looks.empty(); }
};

// "running", "stopped", "frozen"; "container", "variable", ...
std::string_view heap_reading_name(HeapReading reading);
std::optional<HeapReading> heap_reading_from_name(std::string_view name);
std::string_view owner_kind_name(OwnerKind kind);
std::optional<OwnerKind> owner_kind_from_name(std::string_view name);

}  // namespace tidemark
