// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/python/layout.h"
#include "profiler/tracer/python/layout_check.h"
#include "profiler/tracer/unwind/byte_reader.h"

struct link_map;

namespace tidemark::tracer {

inline constexpr std::size_t kMaxPythonFrames = 256;

// A frame of the calling thread that runs Python code.
struct PythonFrame {
  std::uint64_t code = 0;      // address of the code object
  std::uint64_t identity = 0;  // tells it from another one that had this address before; never 0
  std::uint64_t anchor = 0;    // an address in the native frame that evaluates it; 0: not known
  std::uint32_t unit = 0;      // of the instruction, in units of two bytes, or wire::kNoUnit
  bool ends_call = false;      // the outermost that its native frame evaluates
};

struct PythonFrames {
  std::uint32_t depth = 0;
  bool truncated = false;  // there are more, further out
  PythonFrame frame[kMaxPythonFrames] = {};
};

// The Python interpreter of this process. It reads the frames of the calling thread only, which no
// other thread changes and whose code objects live as long as they do, by plain loads: it takes no
// lock, not even the interpreter's, and calls only functions of it that return one word.
//
// Two things take that away. An interpreter that ends frees the states of threads that still run
// outside of it, but not their frames: from then on no state is read. When the module of the
// interpreter is unloaded, it is forgotten.
//
// Nothing is read before the layout was checked on the frames of a real thread, with loads that
// cannot fail. If that goes wrong, it is off for good and problem() says why.
class PythonInterpreter {
 public:
  enum class State : std::uint32_t { kNone, kFound, kOn, kOff };

  // A module was loaded: it may have the interpreter in it. Not by two threads at a time. Only for
  // one that is in the stack of the calling thread.
  void consider(const link_map& linked, ByteRange range) noexcept;
  // Around a call that may unload the module of the interpreter. Nothing is read in between.
  void before_unload() noexcept;
  void after_unload() noexcept;
  void forget() noexcept;                                                    // it was unloaded
  void on_fork() noexcept { unloads_.store(0, std::memory_order_relaxed); }  // in the child
  ByteRange module() const noexcept { return symbols_.module; }
  // What the module of an interpreter exports.
  struct Symbols {
    ByteRange module = {};
    ByteRange evaluate = {};  // the function that evaluates frames; may be empty
    void* (*get_thread_state)() = nullptr;
    int (*is_ending)() = nullptr;
    PythonTypes types;
    std::uint16_t minor = 0;  // of Python 3
    ByteRange runtime = {};   // _PyRuntime
  };
  void adopt(const Symbols& symbols) noexcept;

  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  // While kOff, for people; else nullptr.
  const char* problem() const noexcept { return problem_; }
  const PythonLayout& layout() const noexcept { return layout_; }
  const PythonTypes& types() const noexcept { return symbols_.types; }

  // Of the frames of the calling thread, to tell stacks apart. 0: it has none, or they are not
  // read.
  std::uint64_t hash_frames() noexcept;
  // The frames of the calling thread. False: none.
  bool read_frames(PythonFrames& frames) noexcept;

  // Whether an address is in the module of the interpreter, and in the function that evaluates.
  bool is_own_code(std::uint64_t pc) const noexcept {
    return pc >= symbols_.module.begin && pc < symbols_.module.end;
  }
  bool is_evaluation(std::uint64_t pc) const noexcept {
    return pc > symbols_.evaluate.begin && pc <= symbols_.evaluate.end;
  }

 private:
  struct Innermost {
    std::uint64_t frame = 0;
    std::uint64_t c_frame = 0;
  };
  bool find_innermost(Innermost& innermost) noexcept;
  bool find_layout(const Symbols& symbols) noexcept;
  void check(std::uint64_t thread) noexcept;
  void turn_off(const char* problem) noexcept;
  bool is_live_code(std::uint64_t code) const noexcept;
  // The name of a file: many frames in a row have the same.
  struct FileName {
    std::uint64_t text = 0;
    std::uint64_t hash = 0;
  };
  std::uint64_t identity_of(std::uint64_t code, FileName& last) const noexcept;
  template <typename Add, typename EndCall>
  void walk(Innermost from, Add add, EndCall end_call) const noexcept;

  std::atomic<State> state_ = State::kNone;
  std::atomic<std::uint32_t> unloads_ = 0;  // calls that may unload it, now
  Symbols symbols_;
  PythonLayout layout_;
  const char* problem_ = nullptr;
  bool can_be_unloaded_ = false;
};

}  // namespace tidemark::tracer
