// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/unwind.h"

#include <bit>
#include <cstddef>

#include "profiler/tracer/unwind/module_lookup.h"
#include "profiler/tracer/unwind/rule_cache.h"

#if defined(__x86_64__)
#include <sys/ucontext.h>
#endif

namespace tidemark::tracer {

bool start_unwinder() noexcept {
  resolve_stack_end();
  return resolve_module_lookup();
}

#if defined(__x86_64__)

namespace {

constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kRedZoneBytes =
    128;  // below sp; signal handlers do not use it (psABI 3.2.2)
constexpr std::uint64_t kGeneralRegisters = offsetof(ucontext_t, uc_mcontext.gregs);
constexpr std::uint64_t kContextBytes = kGeneralRegisters + sizeof(gregset_t);

struct Frame {
  std::uint64_t pc;
  std::uint64_t sp;
  std::uint64_t bp;
  std::uint16_t bp_from;
  bool was_interrupted;  // pc is an instruction that a signal interrupted, not a return address
};

std::uint64_t last_word_below(std::uint64_t high) noexcept {
  return high >= kWord ? (high - kWord) & ~(kWord - 1) : 0;
}

enum class Step { kDone, kOutermost, kLost };

class StackWalk {
 public:
  StackWalk(StackTrace& trace, StackBounds bounds) noexcept
      : trace_(trace),
        frames_(trace.frames),
        bounds_(bounds),
        last_word_(last_word_below(bounds.high)),
        generation_(rule_generation()) {}

  void run(const Registers& registers) noexcept;

 private:
  Step step(Frame& frame) noexcept;
  Step step_by_rule(Frame& frame, const Rule& rule) noexcept;
  Step step_to(Frame& frame, std::uint64_t cfa, const Rule& rule) noexcept;
  Step step_over_signal(Frame& frame) noexcept;
  Step step_by_frame_pointer(Frame& frame) noexcept;
  bool follow_chain(const Frame& frame) noexcept;

  bool is_on_stack(std::uint64_t address, std::uint64_t sp) noexcept {
    return address >= sp && address % kWord == 0 && (address <= last_word_ || reach(address));
  }
  bool reach(std::uint64_t address) noexcept;

  // In an epilogue the tables may still name the address from which the register was just popped.
  static bool is_in_red_zone(std::uint64_t address, const Frame& frame) noexcept {
    return frame.was_interrupted && address < frame.sp && frame.sp - address <= kRedZoneBytes &&
           address % kWord == 0 && is_readable(address);
  }

  bool old_frame_matches(const Frame& frame) noexcept;
  std::size_t first_changed() noexcept;
  bool reuse(Frame& frame) noexcept;
  void put(const Frame& frame) noexcept;
  void copy_frame(std::size_t from, std::size_t to) noexcept {
    frames_.pc[to] = frames_.pc[from];
    frames_.sp[to] = frames_.sp[from];
    frames_.bp[to] = frames_.bp[from];
    frames_.bp_from[to] = frames_.bp_from[from];
  }
  void move_inwards(std::size_t from, std::size_t to, std::size_t count) noexcept;
  void finish(std::size_t hashed_from) noexcept;

  StackTrace& trace_;
  FrameStates& frames_;
  StackBounds bounds_;
  std::uint64_t last_word_;  // the highest address that may be loaded from; 0: none
  std::uint32_t generation_;
  std::size_t new_count_ = 0;      // new frames are collected at [0, new_count_)
  std::size_t old_ = kMaxFrames;   // the next frame of the last trace that may be the same
  std::uint64_t chain_until_ = 0;  // below this sp the frame pointers are known to be valid
  bool reusable_ = true;
};

// The fast path of nearly all frames: the rule is in the cache, and plain. The next step depends on
// this one, so every cycle from one pc to the next counts. The slow path gets a copy of the frame,
// because a frame whose address is taken would be kept in memory.
[[gnu::always_inline]] inline Step StackWalk::step(Frame& frame) noexcept {
  const std::uint64_t slot = cached_slot(frame.pc);
  const std::uint32_t packed = packed_rule_of(slot);
  if (is_plain_rule(packed) && !frame.was_interrupted) [[likely]] {
    const Rule rule = unpack_rule(packed);
    std::uint64_t cfa = cfa_offset_of(slot);
    if (rule.kind == RuleKind::kFromSp) [[likely]] {
      cfa += frame.sp;
      asm("" : "+r"(cfa));  // keeps the branch, which is predicted; a cmov would add latency
    } else {
      cfa += frame.bp;
    }
    if (cfa - kWord < frame.sp || cfa - kWord > last_word_ || cfa % kWord != 0) [[unlikely]] {
      if (!is_on_stack(cfa - kWord, frame.sp)) {
        return Step::kLost;
      }
    }
    if (rule.bp == BpRule::kAtCfa) {
      const std::uint64_t bp_at = cfa + static_cast<std::uint64_t>(rule.bp_offset);
      if (bp_at < frame.sp || bp_at >= cfa) [[unlikely]] {
        return Step::kLost;
      }
      frame.bp = load_word(bp_at);
    }
    frame.bp_from = bp_words_below_cfa(packed);
    frame.pc = load_word(cfa - kWord);
    frame.sp = cfa;
    return frame.pc != 0 ? Step::kDone : Step::kLost;
  }
  Frame next = frame;
  const Step result = step_by_rule(
      next, frame.was_interrupted ? instruction_rule(frame.pc) : return_rule(frame.pc));
  frame = next;
  return result;
}

// Extends the bounds to a word after the last one that may be read. False: it is not readable.
[[gnu::noinline, gnu::cold]] bool StackWalk::reach(std::uint64_t address) noexcept {
  const bool reached = extend_bounds(bounds_, address);
  last_word_ = last_word_below(bounds_.high);
  return reached;
}

[[gnu::noinline]] Step StackWalk::step_by_rule(Frame& frame, const Rule& rule) noexcept {
  switch (rule.kind) {
    case RuleKind::kFromSp:
      return step_to(frame, frame.sp + static_cast<std::uint64_t>(rule.cfa_offset), rule);
    case RuleKind::kFromBp:
      return step_to(frame, frame.bp + static_cast<std::uint64_t>(rule.cfa_offset), rule);
    case RuleKind::kAtBp: {
      const std::uint64_t cfa_at = frame.bp + static_cast<std::uint64_t>(rule.cfa_offset);
      return is_on_stack(cfa_at, frame.sp) ? step_to(frame, load_word(cfa_at), rule) : Step::kLost;
    }
    case RuleKind::kSignalFrame:
      return step_over_signal(frame);
    case RuleKind::kEndOfStack:
      return Step::kOutermost;
    case RuleKind::kNone:
    case RuleKind::kNoTable:
      return step_by_frame_pointer(frame);
    default:
      return Step::kLost;
  }
}

Step StackWalk::step_to(Frame& frame, std::uint64_t cfa, const Rule& rule) noexcept {
  if (!is_on_stack(cfa - kWord, frame.sp)) {
    return Step::kLost;
  }
  Frame next = {load_word(cfa - kWord), cfa, frame.bp, kBpKept, false};
  if (rule.bp == BpRule::kUndefined) {
    next.bp = 0;
  } else if (rule.bp != BpRule::kSame) {
    const std::uint64_t at =
        (rule.bp == BpRule::kAtCfa ? cfa : frame.bp) + static_cast<std::uint64_t>(rule.bp_offset);
    if (at >= cfa || !(is_on_stack(at, frame.sp) || is_in_red_zone(at, frame))) {
      return Step::kLost;
    }
    next.bp = load_word(at);
  }
  if (!is_plain_rule(pack_rule(rule))) {
    next.bp_from = kCannotCheck;
  } else if (rule.bp == BpRule::kAtCfa) {
    next.bp_from = bp_words_below_cfa(pack_rule(rule));
  }
  frame = next;
  return frame.pc != 0 ? Step::kDone : Step::kLost;
}

// The kernel pushed a ucontext, and the handler returned to the code that calls rt_sigreturn: sp is
// at the ucontext. What was interrupted may be on another stack.
Step StackWalk::step_over_signal(Frame& frame) noexcept {
  reusable_ = false;
  old_ = kMaxFrames;
  chain_until_ = 0;
  if (!is_on_stack(frame.sp, frame.sp) ||
      !is_on_stack(frame.sp + kContextBytes - kWord, frame.sp)) {
    return Step::kLost;
  }
  const std::uint64_t registers = frame.sp + kGeneralRegisters;
  const Frame interrupted = {load_word(registers + REG_RIP * kWord),
                             load_word(registers + REG_RSP * kWord),
                             load_word(registers + REG_RBP * kWord), kCannotCheck, true};
  if (interrupted.sp % kWord != 0 || interrupted.sp == 0 || interrupted.pc == 0) {
    return Step::kLost;
  }
  if (interrupted.sp <= frame.sp || interrupted.sp > last_word_) {
    bounds_ = bounds_of_interrupted(interrupted.sp);
    last_word_ = last_word_below(bounds_.high);
  }
  frame = interrupted;
  return Step::kDone;
}

// For code without tables, from a JIT or in assembly. Most of it has frame pointers; this frame has
// one if the chain of frame pointers leads back to a module.
Step StackWalk::step_by_frame_pointer(Frame& frame) noexcept {
  if (frame.sp >= chain_until_ && !follow_chain(frame)) {
    return Step::kLost;
  }
  const std::uint64_t cfa = frame.bp + 2 * kWord;
  if (!is_on_stack(frame.bp, frame.sp) || !is_on_stack(cfa - kWord, frame.sp)) {
    return Step::kLost;
  }
  const std::uint64_t pc = load_word(cfa - kWord);
  frame = {pc, cfa, load_word(frame.bp), 2, false};
  return pc != 0 ? Step::kDone : Step::kLost;
}

// Whether some return address along the frame pointers is in a module. The chain is valid up to
// there.
bool StackWalk::follow_chain(const Frame& frame) noexcept {
  std::uint64_t sp = frame.sp;
  std::uint64_t bp = frame.bp;
  for (std::size_t i = 0; i < kMaxFrames; ++i) {
    if (!is_on_stack(bp, sp) || !is_on_stack(bp + kWord, sp)) {
      return false;
    }
    LoadedModule module;
    const std::uint64_t pc = load_word(bp + kWord);
    sp = bp + 2 * kWord;
    bp = load_word(bp);
    if (pc != 0 && find_module(pc - 1, module)) {
      chain_until_ = sp;
      return true;
    }
  }
  return false;
}

// Whether the frame of the last trace with the sp of `frame` is the same. Both only go outwards.
[[gnu::always_inline]] inline bool StackWalk::old_frame_matches(const Frame& frame) noexcept {
  while (old_ < kMaxFrames && frames_.sp[old_] < frame.sp) {
    ++old_;
  }
  return old_ < kMaxFrames && frames_.sp[old_] == frame.sp && frames_.pc[old_] == frame.pc &&
         frames_.bp[old_] == frame.bp && !frame.was_interrupted;
}

// The frame `old_` is the same. A step reads two words only, so the outer frames are the same as
// long as these words are.
std::size_t StackWalk::first_changed() noexcept {
  const std::uint64_t last = frames_.sp[kMaxFrames - 1] - kWord;
  if (last > last_word_ && !reach(last)) {
    return old_ + 1;
  }
  for (std::size_t i = old_ + 1; i < kMaxFrames; ++i) {
    const std::uint64_t sp = frames_.sp[i];
    const std::uint16_t bp_from = frames_.bp_from[i];
    if (bp_from == kCannotCheck || load_word(sp - kWord) != frames_.pc[i] ||
        (bp_from != kBpKept && load_word(sp - bp_from * kWord) != frames_.bp[i])) {
      return i;
    }
  }
  return kMaxFrames;
}

// Takes the frame `old_` and the outer ones that did not change from the last trace. True: the
// trace is complete. False: `frame` is the last one taken, from which the walk continues.
[[gnu::noinline]] bool StackWalk::reuse(Frame& frame) noexcept {
  const std::size_t changed = first_changed();
  const std::size_t last = changed - 1;
  const std::uint16_t bp_from = frame.bp_from;
  frame = {frames_.pc[last], frames_.sp[last], frames_.bp[last], frames_.bp_from[last], false};
  frames_.bp_from[old_] = bp_from;
  if (changed == kMaxFrames) {
    Frame beyond = frame;
    if (trace_.end_is_final || step(beyond) != Step::kDone) {
      return true;
    }
  }
  const std::size_t count = changed - old_;
  move_inwards(old_, new_count_, count);
  new_count_ += count;
  old_ = changed;
  return false;
}

[[gnu::always_inline]] inline void StackWalk::put(const Frame& frame) noexcept {
  frames_.pc[new_count_] = frame.pc;
  frames_.sp[new_count_] = frame.sp;
  frames_.bp[new_count_] = frame.bp;
  frames_.bp_from[new_count_] = frame.bp_from;
  ++new_count_;
  if (new_count_ > old_) {
    old_ = new_count_;  // the old frame was overwritten
  }
}

void StackWalk::move_inwards(std::size_t from, std::size_t to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count && from != to; ++i) {
    copy_frame(from + i, to + i);
  }
}

// Puts the new frames before those from `hashed_from` on, whose hashes are known.
void StackWalk::finish(std::size_t hashed_from) noexcept {
  std::uint64_t hash = hashed_from < kMaxFrames ? frames_.hash[hashed_from] : kHashOfNoFrames;
  const std::size_t first = hashed_from - new_count_;
  for (std::size_t i = new_count_; i > 0; --i) {
    hash = hash_with_frame(hash, frames_.pc[i - 1]);
    frames_.hash[first + i - 1] = hash;
    copy_frame(i - 1, first + i - 1);
  }
  trace_.is_plain = reusable_;
  trace_.has_stack_pointers = true;
  trace_.reusable = reusable_ && !trace_.truncated;
  trace_.generation = generation_;
  set_first_frame(trace_, first);
}

void StackWalk::run(const Registers& registers) noexcept {
  if (trace_.reusable && trace_.generation == generation_ && trace_.depth <= kMaxFrames) {
    old_ = kMaxFrames - trace_.depth;
  }
  trace_.truncated = false;
  Frame frame = {registers.ip, registers.sp, registers.bp, kCannotCheck, false};
  if (!is_on_stack(frame.sp, frame.sp) || last_word_ == 0) {
    old_ = kMaxFrames;
    put(frame);
    trace_.end_is_final = false;
    return finish(kMaxFrames);
  }
  for (;;) {
    if (old_frame_matches(frame)) {
      Frame last = frame;
      if (reuse(last)) {
        return finish(old_);
      }
      frame = last;
    } else if (new_count_ < kMaxFrames) {
      put(frame);
    } else {
      trace_.truncated = true;
      trace_.end_is_final = false;
      break;
    }
    if (const Step result = step(frame); result != Step::kDone) {
      trace_.end_is_final = result == Step::kOutermost;
      break;
    }
  }
  finish(kMaxFrames);
}

}  // namespace

void unwind(const Registers& registers, StackBounds bounds, StackTrace& trace) noexcept {
  StackWalk(trace, bounds).run(registers);
}

#else

void unwind(const Registers& registers, StackBounds, StackTrace& trace) noexcept {
  assign_frames(trace, &registers.ip, 1);
}

#endif

}  // namespace tidemark::tracer
