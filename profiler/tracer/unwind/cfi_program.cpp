// SPDX-License-Identifier: Apache-2.0

#include <cstddef>

#include "profiler/tracer/unwind/cfi.h"

namespace tidemark::tracer {
namespace {

// DWARF 5, section 7.24, and the GNU additions in the LSB's description of .eh_frame.
enum : std::uint8_t {
  kNop = 0x00,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
  kAdvanceLoc = 0x40,  // these three carry an operand in their low 6 bits
  kOffset = 0x80,
  kRestore = 0xc0,
};
constexpr std::uint64_t kRbp = 6;
constexpr std::uint64_t kRsp = 7;
constexpr std::uint64_t kRip = 16;

struct RegisterRule {
  enum class Kind : std::uint8_t { kUnset, kUndefined, kSame, kOffset, kExpression, kOther };
  Kind kind = Kind::kUnset;
  std::int64_t offset = 0;
  ByteRange expression = {};
};
using RegisterKind = RegisterRule::Kind;

// What holds at one place of the function. Only the registers that a step needs.
struct Row {
  bool cfa_is_expression = false;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  ByteRange cfa_expression;
  RegisterRule bp;
  RegisterRule return_address;
};

std::int64_t multiply(std::uint64_t factor, std::int64_t alignment) noexcept {
  return static_cast<std::int64_t>(factor * static_cast<std::uint64_t>(alignment));
}

class CfiMachine {
 public:
  explicit CfiMachine(const CfiEntry& entry, std::uint64_t pc) noexcept
      : entry_(entry), pc_(pc), location_(entry.pc_begin) {}

  Rule run() noexcept {
    execute(entry_.common_program);
    initial_ = row_;
    if (!failed_) {
      execute(entry_.program);
    }
    return failed_ ? Rule{RuleKind::kUnsupported} : rule();
  }

 private:
  static constexpr std::size_t kMaxRemembered = 8;

  void execute(ByteRange program) noexcept {
    ByteReader reader(program);
    while (!failed_ && !reader.at_end() && location_ <= pc_) {
      const std::uint8_t byte = reader.u8();
      const std::uint8_t operand = byte & 0x3fU;
      switch (byte & 0xc0U) {
        case kAdvanceLoc:
          advance(operand);
          break;
        case kOffset:
          set(operand, {RegisterKind::kOffset, multiply(reader.uleb128(), entry_.data_alignment)});
          break;
        case kRestore:
          restore(operand);
          break;
        default:
          extended(byte, reader);
      }
    }
    failed_ = failed_ || !reader.ok();
  }

  void extended(std::uint8_t op, ByteReader& reader) noexcept {
    if (op >= kDefCfa && op <= kDefCfaExpression) {
      define_cfa(op, reader);
    } else if (op == kDefCfaSf || op == kDefCfaOffsetSf) {
      define_cfa_factored(op, reader);
    } else if (op == kNop || op == kGnuArgsSize || (op >= kAdvanceLoc1 && op <= kAdvanceLoc4)) {
      move(op, reader);
    } else if (op == kRememberState || op == kRestoreState) {
      remember(op);
    } else {
      set_register(op, reader);
    }
  }

  void move(std::uint8_t op, ByteReader& reader) noexcept {
    switch (op) {
      case kAdvanceLoc1:
        return advance(reader.u8());
      case kAdvanceLoc2:
        return advance(reader.u16());
      case kAdvanceLoc4:
        return advance(reader.u32());
      case kGnuArgsSize:
        reader.uleb128();  // pushed arguments: the CFA rule already knows them
        return;
      default:
        return;
    }
  }

  void advance(std::uint64_t delta) noexcept {
    if (__builtin_mul_overflow(delta, entry_.code_alignment, &delta) ||
        __builtin_add_overflow(location_, delta, &location_)) {
      failed_ = true;
    }
  }

  void remember(std::uint8_t op) noexcept {
    if (op == kRememberState && remembered_ < kMaxRemembered) {
      states_[remembered_++] = row_;
    } else if (op == kRestoreState && remembered_ > 0) {
      row_ = states_[--remembered_];
    } else {
      failed_ = true;
    }
  }

  void define_cfa(std::uint8_t op, ByteReader& reader) noexcept {
    switch (op) {
      case kDefCfa:
        row_.cfa_register = reader.uleb128();
        row_.cfa_offset = static_cast<std::int64_t>(reader.uleb128());
        row_.cfa_is_expression = false;
        return;
      case kDefCfaRegister:
        row_.cfa_register = reader.uleb128();
        row_.cfa_is_expression = false;
        return;
      case kDefCfaOffset:
        row_.cfa_offset = static_cast<std::int64_t>(reader.uleb128());
        return;
      default:  // kDefCfaExpression
        row_.cfa_expression = reader.take(reader.uleb128());
        row_.cfa_is_expression = true;
        return;
    }
  }

  void define_cfa_factored(std::uint8_t op, ByteReader& reader) noexcept {
    if (op == kDefCfaSf) {
      row_.cfa_register = reader.uleb128();
      row_.cfa_is_expression = false;
    }
    row_.cfa_offset = multiply(static_cast<std::uint64_t>(reader.sleb128()), entry_.data_alignment);
  }

  void set_register(std::uint8_t op, ByteReader& reader) noexcept {
    const std::uint64_t number = reader.uleb128();
    switch (op) {
      case kOffsetExtended:
        return set(number,
                   {RegisterKind::kOffset, multiply(reader.uleb128(), entry_.data_alignment)});
      case kOffsetExtendedSf:
        return set(number,
                   {RegisterKind::kOffset,
                    multiply(static_cast<std::uint64_t>(reader.sleb128()), entry_.data_alignment)});
      case kGnuNegativeOffsetExtended:
        return set(number,
                   {RegisterKind::kOffset, multiply(0 - reader.uleb128(), entry_.data_alignment)});
      case kRestoreExtended:
        return restore(number);
      case kUndefined:
        return set(number, {RegisterKind::kUndefined});
      case kSameValue:
        return set(number, {RegisterKind::kSame});
      case kRegister:
      case kValOffset:
        reader.uleb128();
        return set(number, {RegisterKind::kOther});
      case kValOffsetSf:
        reader.sleb128();
        return set(number, {RegisterKind::kOther});
      case kExpression:
        return set(number, {RegisterKind::kExpression, 0, reader.take(reader.uleb128())});
      case kValExpression:
        reader.take(reader.uleb128());
        return set(number, {RegisterKind::kOther});
      default:  // DW_CFA_set_loc (never in .eh_frame of this architecture) and what is unknown
        failed_ = true;
    }
  }

  void set(std::uint64_t number, RegisterRule rule) noexcept {
    if (number == kRbp) {
      row_.bp = rule;
    } else if (number == entry_.return_address_register) {
      row_.return_address = rule;
    }
  }

  void restore(std::uint64_t number) noexcept {
    if (number == kRbp) {
      row_.bp = initial_.bp;
    } else if (number == entry_.return_address_register) {
      row_.return_address = initial_.return_address;
    }
  }

  Rule rule() const noexcept {
    if (entry_.is_signal_frame) {
      return {RuleKind::kSignalFrame};
    }
    if (row_.return_address.kind == RegisterKind::kUndefined) {
      return {RuleKind::kEndOfStack};
    }
    Rule result;
    if (entry_.return_address_register != kRip ||
        row_.return_address.kind != RegisterKind::kOffset || row_.return_address.offset != -8 ||
        !cfa_rule(result) || !bp_rule(result)) {
      return {RuleKind::kUnsupported};
    }
    return result;
  }

  bool cfa_rule(Rule& result) const noexcept {
    result.cfa_offset = row_.cfa_offset;
    if (!row_.cfa_is_expression) {
      result.kind = row_.cfa_register == kRsp   ? RuleKind::kFromSp
                    : row_.cfa_register == kRbp ? RuleKind::kFromBp
                                                : RuleKind::kUnsupported;
      return result.kind != RuleKind::kUnsupported;
    }
    const ExpressionValue value = evaluate_expression(row_.cfa_expression, pc_, false);
    result.cfa_offset = value.offset;
    switch (value.base) {
      case ExpressionValue::Base::kSp:
        result.kind = RuleKind::kFromSp;
        return true;
      case ExpressionValue::Base::kBp:
        result.kind = RuleKind::kFromBp;
        return true;
      case ExpressionValue::Base::kAtBp:
        result.kind = RuleKind::kAtBp;
        return true;
      default:
        return false;
    }
  }

  bool bp_rule(Rule& result) const noexcept {
    switch (row_.bp.kind) {
      case RegisterKind::kUnset:
      case RegisterKind::kSame:
        result.bp = BpRule::kSame;
        return true;
      case RegisterKind::kOffset:
        result.bp = BpRule::kAtCfa;
        result.bp_offset = row_.bp.offset;
        return true;
      case RegisterKind::kExpression: {
        const ExpressionValue value = evaluate_expression(row_.bp.expression, pc_, true);
        result.bp = value.base == ExpressionValue::Base::kBp    ? BpRule::kAtBp
                    : value.base == ExpressionValue::Base::kCfa ? BpRule::kAtCfa
                                                                : BpRule::kUndefined;
        result.bp_offset = result.bp == BpRule::kUndefined ? 0 : value.offset;
        return true;
      }
      default:
        result.bp = BpRule::kUndefined;
        return true;
    }
  }

  const CfiEntry& entry_;
  std::uint64_t pc_;
  std::uint64_t location_;
  Row row_;
  Row initial_;
  Row states_[kMaxRemembered];
  std::size_t remembered_ = 0;
  bool failed_ = false;
};

}  // namespace

Rule run_cfi(const CfiEntry& entry, std::uint64_t pc) noexcept {
  return CfiMachine(entry, pc).run();
}

}  // namespace tidemark::tracer
