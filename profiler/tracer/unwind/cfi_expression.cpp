// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/cfi.h"

#include <cstddef>

namespace tidemark::tracer {
namespace {

using Base = ExpressionValue::Base;

// DWARF 5, section 7.7.1.
enum : std::uint8_t {
  kOpDeref = 0x06,
  kOpConst1u = 0x08,
  kOpConst1s = 0x09,
  kOpConst2u = 0x0a,
  kOpConst2s = 0x0b,
  kOpConst4u = 0x0c,
  kOpConst4s = 0x0d,
  kOpConst8u = 0x0e,
  kOpConst8s = 0x0f,
  kOpConstu = 0x10,
  kOpConsts = 0x11,
  kOpAnd = 0x1a,
  kOpMinus = 0x1c,
  kOpOr = 0x21,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpEq = 0x29,
  kOpGe = 0x2a,
  kOpGt = 0x2b,
  kOpLe = 0x2c,
  kOpLt = 0x2d,
  kOpNe = 0x2e,
  kOpLit0 = 0x30,
  kOpLit31 = 0x4f,
  kOpBreg0 = 0x70,
  kOpBreg31 = 0x8f,
};
// The numbers of registers in the x86-64 psABI, figure 3.36.
constexpr unsigned kRbp = 6;
constexpr unsigned kRsp = 7;
constexpr unsigned kRip = 16;

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

class Evaluation {
 public:
  Evaluation(ByteRange expression, std::uint64_t pc) noexcept : reader_(expression), pc_(pc) {}

  void push(ExpressionValue value) noexcept {
    if (depth_ == kMaxDepth) {
      failed_ = true;
      return;
    }
    stack_[depth_++] = value;
  }

  ExpressionValue run() noexcept {
    while (!failed_ && !reader_.at_end()) {
      operation(reader_.u8());
    }
    if (failed_ || !reader_.ok() || depth_ == 0) {
      return {};
    }
    return stack_[depth_ - 1];
  }

 private:
  static constexpr std::size_t kMaxDepth = 8;

  ExpressionValue pop() noexcept {
    if (depth_ == 0) {
      failed_ = true;
      return {};
    }
    return stack_[--depth_];
  }

  void push_constant(std::int64_t value) noexcept { push({Base::kConstant, value}); }

  void operation(std::uint8_t op) noexcept {
    if (op >= kOpLit0 && op <= kOpLit31) {
      push_constant(op - kOpLit0);
    } else if (op >= kOpBreg0 && op <= kOpBreg31) {
      push_register(op - kOpBreg0, reader_.sleb128());
    } else if (op >= kOpConst1u && op <= kOpConsts) {
      push_constant(operand(op));
    } else if (op == kOpPlusUconst) {
      push_constant(static_cast<std::int64_t>(reader_.uleb128()));
      binary(kOpPlus);
    } else if (op == kOpDeref) {
      const ExpressionValue address = pop();
      push({address.base == Base::kBp ? Base::kAtBp : Base::kUnsupported, address.offset});
    } else {
      binary(op);
    }
  }

  void push_register(unsigned number, std::int64_t offset) noexcept {
    switch (number) {
      case kRbp:
        push({Base::kBp, offset});
        break;
      case kRsp:
        push({Base::kSp, offset});
        break;
      case kRip:
        push_constant(wrapping_add(static_cast<std::int64_t>(pc_), offset));
        break;
      default:
        failed_ = true;
    }
  }

  std::int64_t operand(std::uint8_t op) noexcept {
    switch (op) {
      case kOpConst1u:
        return reader_.u8();
      case kOpConst1s:
        return static_cast<std::int8_t>(reader_.u8());
      case kOpConst2u:
        return reader_.u16();
      case kOpConst2s:
        return static_cast<std::int16_t>(reader_.u16());
      case kOpConst4u:
        return reader_.u32();
      case kOpConst4s:
        return reader_.s32();
      case kOpConstu:
        return static_cast<std::int64_t>(reader_.uleb128());
      case kOpConsts:
        return reader_.sleb128();
      default:  // kOpConst8u, kOpConst8s
        return static_cast<std::int64_t>(reader_.u64());
    }
  }

  void binary(std::uint8_t op) noexcept {
    const ExpressionValue right = pop();
    const ExpressionValue left = pop();
    if (failed_) {
      return;
    }
    if (left.base == Base::kConstant && right.base == Base::kConstant) {
      constants(op, left.offset, right.offset);
    } else if (op == kOpPlus && may_shift(left.base) && right.base == Base::kConstant) {
      push({left.base, wrapping_add(left.offset, right.offset)});
    } else if (op == kOpPlus && left.base == Base::kConstant && may_shift(right.base)) {
      push({right.base, wrapping_add(left.offset, right.offset)});
    } else {
      failed_ = true;
    }
  }

  static bool may_shift(Base base) noexcept {
    return base == Base::kSp || base == Base::kBp || base == Base::kCfa;
  }

  void constants(std::uint8_t op, std::int64_t left, std::int64_t right) noexcept {
    switch (op) {
      case kOpAnd:
        return push_constant(left & right);
      case kOpOr:
        return push_constant(left | right);
      case kOpPlus:
        return push_constant(wrapping_add(left, right));
      case kOpMinus:
        return push_constant(static_cast<std::int64_t>(static_cast<std::uint64_t>(left) -
                                                       static_cast<std::uint64_t>(right)));
      case kOpShl:
        return push_constant(right < 0 || right > 63
                                 ? 0
                                 : static_cast<std::int64_t>(static_cast<std::uint64_t>(left)
                                                             << static_cast<unsigned>(right)));
      case kOpEq:
        return push_constant(left == right ? 1 : 0);
      case kOpGe:
        return push_constant(left >= right ? 1 : 0);
      case kOpGt:
        return push_constant(left > right ? 1 : 0);
      case kOpLe:
        return push_constant(left <= right ? 1 : 0);
      case kOpLt:
        return push_constant(left < right ? 1 : 0);
      case kOpNe:
        return push_constant(left != right ? 1 : 0);
      default:
        failed_ = true;
    }
  }

  ByteReader reader_;
  std::uint64_t pc_;
  ExpressionValue stack_[kMaxDepth] = {};
  std::size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace

ExpressionValue evaluate_expression(ByteRange expression, std::uint64_t pc,
                                    bool starts_with_cfa) noexcept {
  Evaluation evaluation(expression, pc);
  if (starts_with_cfa) {
    evaluation.push({Base::kCfa, 0});
  }
  return evaluation.run();
}

}  // namespace tidemark::tracer
