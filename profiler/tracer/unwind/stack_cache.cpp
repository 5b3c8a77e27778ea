// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_cache.h"

#include "profiler/tracer/sys.h"
#include "profiler/tracer/unwind/rule_cache.h"

namespace tidemark::tracer {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint64_t kWord = 8;
constexpr std::uint16_t kInRegister = 0xffff;  // the frame pointer was not saved
constexpr std::uint64_t kMaxPlace = 0xfff0;

constexpr std::uint64_t mix(std::uint64_t tag, std::uint64_t more) noexcept {
  const std::uint64_t mixed = (tag ^ more) * 0x9e3779b97f4a7c15;
  return mixed ^ (mixed >> 32U);
}

// What a lookup starts with. Never 0.
std::uint64_t first_tag(std::uint64_t ip, std::uint64_t depth, std::uint64_t context) noexcept {
  return mix(mix(context, ip), depth);
}

// A polynomial of the scrambled words, as hash_with_frame() is.
[[gnu::always_inline]] inline std::uint64_t hash_with_word(std::uint64_t hash,
                                                           std::uint64_t word) noexcept {
  const std::uint64_t product = word * 0x9e3779b97f4a7c15;
  return hash * 5 + (product ^ (product >> 32U));
}

// If two frames that differ have the same hash, their stacks replace each other in one entry.
std::uint16_t short_hash(std::uint64_t pc) noexcept {
  return static_cast<std::uint16_t>((pc * 0x9e3779b97f4a7c15) >> 48U);
}

}  // namespace

// The places, relative to the sp of the innermost frame, of all words that the steps read. False: a
// step read something else.
bool StackCache::measure(const StackTrace& trace, const Stack& stack, Shape& shape) noexcept {
  const FrameStates& frames = trace.frames;
  std::uint16_t bp_place = kInRegister;
  std::uint16_t pointer[kMaxPlaces];
  std::uint64_t pointer_hash = 0;
  shape.hash = 0;
  for (std::size_t i = kMaxFrames - trace.depth; i + 1 < kMaxFrames; ++i) {
    const Rule rule = return_rule(frames.pc[i]);
    const std::uint64_t place = (frames.sp[i + 1] - stack.sp) / kWord - 1;
    const std::uint16_t bp_from = frames.bp_from[i + 1];
    if (!is_plain_rule(pack_rule(rule)) || frames.sp[i + 1] <= frames.sp[i] || place > kMaxPlace ||
        bp_from == kCannotCheck || bp_from > place + 1 ||
        shape.addresses + shape.pointers + 2U > kMaxPlaces) {
      return false;
    }
    if (rule.kind == RuleKind::kFromBp) {
      pointer[shape.pointers++] = bp_place;
      pointer_hash = hash_with_word(pointer_hash, frames.bp[i] - stack.sp);
    }
    shape.place[shape.addresses++] = static_cast<std::uint16_t>(place);
    shape.hash = hash_with_word(shape.hash, frames.pc[i + 1]);
    bp_place = bp_from == kBpKept ? bp_place : static_cast<std::uint16_t>(place + 1 - bp_from);
  }
  for (std::size_t i = 0; i < shape.pointers; ++i) {
    shape.place[shape.addresses + i] = pointer[i];
  }
  shape.hash ^= mix(shape.pointers, pointer_hash);
  return true;
}

void StackCache::enable() noexcept {
  if (is_enabled()) {
    return;
  }
  auto* const fresh = static_cast<Tables*>(sys::map_private(sizeof(Tables)));
  Tables* none = nullptr;
  if (fresh != nullptr &&
      !tables_.compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) {
    sys::unmap(fresh, sizeof(Tables));  // another thread was faster
  }
}

std::uint64_t StackCache::follow_branches(const Tables& tables, std::uint64_t tag,
                                          const Stack& stack) noexcept {
  constexpr int kMost = 32;
  for (int i = 0; i < kMost; ++i) {
    const std::uint64_t branch = tables.branches[tag % kBranches].load(kRelaxed);
    const std::uint64_t place = (branch & kPlaceMask) - 1;
    if ((branch ^ tag) >> 16U != 0 || place >= stack.words) {
      break;
    }
    tag = mix(tag, load_word(stack.sp + place * kWord));
  }
  return tag;
}

// The entry that has this tag; kEntries: none.
std::size_t StackCache::find_tag(const Tables& tables, std::uint64_t tag) noexcept {
  const std::size_t first = tag % kEntries & ~(kWays - 1);
  unsigned same = 0;
#pragma GCC unroll 8
  for (std::size_t way = 0; way < kWays; ++way) {  // without a branch, which could not be predicted
    same |= (tables.tags[first + way].load(kRelaxed) == tag ? 1U : 0U) << way;
  }
  return same == 0 ? kEntries : first + static_cast<std::size_t>(__builtin_ctz(same));
}

bool StackCache::touches(const Entry& entry, const Stack& stack, std::uint64_t ip,
                         ByteRange excluded) noexcept {
  bool is_in = ip >= excluded.begin && ip < excluded.end;
  const std::size_t addresses = entry.addresses.load(kRelaxed);
  for (std::size_t i = 0; i < addresses && i < kMaxPlaces && !is_in; ++i) {
    const std::uint64_t place = entry.place[i].load();
    const std::uint64_t pc = place < stack.words ? load_word(stack.sp + place * kWord) : 0;
    is_in = pc >= excluded.begin && pc < excluded.end;
  }
  return is_in;
}

bool StackCache::find(const Registers& registers, StackBounds bounds, std::uint64_t context,
                      ByteRange excluded, std::uint64_t& number) noexcept {
  Tables* const memory = tables_.load(std::memory_order_acquire);
  if (memory == nullptr || registers.sp % kWord != 0 || bounds.high <= registers.sp) {
    return false;
  }
  Tables& tables = *memory;
  const Stack stack = {registers.sp, registers.bp, (bounds.high - registers.sp) / kWord};
  const std::uint64_t tag =
      follow_branches(tables, first_tag(registers.ip, bounds.high - registers.sp, context), stack);
  const std::size_t index = find_tag(tables, tag);
  if (index == kEntries) {
    return false;
  }
  Entry& entry = tables.entries[index];
  const std::uint32_t before = entry.sequence.load(std::memory_order_acquire);
  const std::size_t addresses = entry.addresses.load(kRelaxed);
  const std::size_t all = addresses + entry.pointers.load(kRelaxed);
  if (tables.tags[index].load(kRelaxed) != tag || before % 2 != 0 || all > kMaxPlaces ||
      entry.generation.load(kRelaxed) != rule_generation()) {
    return false;
  }
  std::uint64_t hash = 0;
  const std::uint64_t sp = stack.sp;
  const std::uint64_t words = stack.words;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < addresses; ++i) {
    const std::uint64_t place = entry.place[i].load();
    if (place >= words) [[unlikely]] {
      return false;
    }
    hash = hash_with_word(hash, load_word(sp + place * kWord));
  }
  std::uint64_t pointer_hash = 0;
  for (std::size_t i = addresses; i < all; ++i) {
    const std::uint64_t place = entry.place[i].load();
    if (place >= stack.words && place != kInRegister) {
      return false;
    }
    const std::uint64_t bp = place == kInRegister ? stack.bp : load_word(stack.sp + place * kWord);
    pointer_hash = hash_with_word(pointer_hash, bp - stack.sp);
  }
  const std::uint64_t kept_hash = entry.hash.load(kRelaxed);
  number = entry.number.load(kRelaxed);
  if (kept_hash != (hash ^ mix(all - addresses, pointer_hash)) ||
      (excluded.end != 0 && touches(entry, stack, registers.ip, excluded))) {
    return false;
  }
  if (!entry.was_found.load(kRelaxed)) {
    entry.was_found.store(true, kRelaxed);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return entry.sequence.load(kRelaxed) == before;
}

// If another stack has this tag: adds a branch at the first frame in which the two differ.
void StackCache::add_branch(Tables& tables, std::uint64_t tag, const StackTrace& trace) noexcept {
  const std::size_t index = find_tag(tables, tag);
  if (index == kEntries) {
    return;  // there is none
  }
  const FrameStates& frames = trace.frames;
  const std::size_t first = kMaxFrames - trace.depth;
  const FrameHashes& hashes = tables.frame_hashes[index];
  for (std::size_t i = 1; i < trace.depth; ++i) {
    if (hashes.of[i].load() != short_hash(frames.pc[first + i])) {
      const std::uint64_t place = (frames.sp[first + i] - frames.sp[first]) / kWord - 1;
      if (place < kMaxPlace) {
        tables.branches[tag % kBranches].store((tag & ~kPlaceMask) | (place + 1), kRelaxed);
      }
      return;
    }
  }
}

// The entry to write for a tag: the one that has it, else an outdated one, else one that was not
// found for long. kEntries: none.
std::size_t StackCache::choose_entry(Tables& tables, std::uint64_t tag,
                                     std::uint32_t generation) noexcept {
  const auto is_good = [&](std::size_t index) {
    return tables.entries[index].generation.load(kRelaxed) == generation;
  };
  if (const std::size_t same = find_tag(tables, tag); same != kEntries) {
    // Two stacks with the same addresses at other places: the present one stays while it is found.
    const bool stays = is_good(same) && tables.entries[same].was_found.exchange(false, kRelaxed);
    return stays ? kEntries : same;
  }
  const std::size_t first = tag % kEntries & ~(kWays - 1);
  for (std::size_t way = 0; way < kWays; ++way) {
    if (!is_good(first + way)) {
      return first + way;
    }
  }
  const std::size_t start = next_way_.load(kRelaxed);
  next_way_.store(static_cast<std::uint32_t>(start + 1), kRelaxed);
  for (std::size_t way = 0; way < kWays; ++way) {
    const std::size_t index = first + (start + way) % kWays;
    if (!tables.entries[index].was_found.exchange(false, kRelaxed)) {
      return index;
    }
  }
  return first + start % kWays;
}

void StackCache::add(const Registers& registers, StackBounds bounds, std::uint64_t context,
                     const StackTrace& trace, std::uint64_t number) noexcept {
  const Stack stack = {registers.sp, registers.bp, (bounds.high - registers.sp) / kWord};
  const std::size_t first = kMaxFrames - trace.depth;
  Tables* const memory = tables_.load(std::memory_order_acquire);
  Shape shape;
  if (memory == nullptr || !trace.is_plain || !(trace.end_is_final || trace.truncated) ||
      trace.depth < 2 || registers.sp % kWord != 0 || bounds.high <= registers.sp ||
      trace.generation != rule_generation() || trace.frames.sp[first] != registers.sp ||
      !measure(trace, stack, shape)) {
    return;
  }
  Tables& tables = *memory;
  const std::uint64_t start = first_tag(registers.ip, bounds.high - registers.sp, context);
  add_branch(tables, follow_branches(tables, start, stack), trace);
  const std::uint64_t tag = follow_branches(tables, start, stack);
  const std::size_t index = choose_entry(tables, tag, trace.generation);
  if (index == kEntries) {
    return;
  }
  Entry& entry = tables.entries[index];
  std::uint32_t sequence = entry.sequence.load(kRelaxed);
  if (tag == 0 || sequence % 2 != 0 ||
      !entry.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire)) {
    return;  // another thread is writing it
  }
  std::atomic_thread_fence(std::memory_order_release);
  if (tables.tags[index].load(kRelaxed) == 0) {
    used_.fetch_add(1, kRelaxed);
  }
  entry.hash.store(shape.hash, kRelaxed);
  entry.number.store(number, kRelaxed);
  entry.addresses.store(shape.addresses, kRelaxed);
  entry.pointers.store(shape.pointers, kRelaxed);
  for (std::size_t i = 0; i < shape.addresses + std::size_t{shape.pointers}; ++i) {
    entry.place[i].store(shape.place[i]);
  }
  FrameHashes& hashes = tables.frame_hashes[index];
  for (std::size_t i = 0; i < trace.depth; ++i) {
    hashes.of[i].store(short_hash(trace.frames.pc[first + i]));
  }
  entry.generation.store(trace.generation, kRelaxed);
  tables.tags[index].store(tag, kRelaxed);
  entry.sequence.store(sequence + 2, std::memory_order_release);
}

}  // namespace tidemark::tracer
