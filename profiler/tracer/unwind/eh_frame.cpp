// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/cfi.h"

namespace tidemark::tracer {
namespace {

// LSB 5, "DWARF exception header encoding": the low half is the format, the high half the base.
enum : std::uint8_t {
  kAbsolute = 0x00,
  kUleb128 = 0x01,
  kUdata2 = 0x02,
  kUdata4 = 0x03,
  kUdata8 = 0x04,
  kSleb128 = 0x09,
  kSdata2 = 0x0a,
  kSdata4 = 0x0b,
  kSdata8 = 0x0c,
  kRelativeToPosition = 0x10,
  kRelativeToHeader = 0x30,
  kIndirect = 0x80,
  kFormatMask = 0x0f,
  kBaseMask = 0x70,
};
constexpr std::uint8_t kUnknownEncoding = 0xff;

std::uint64_t extended(std::int64_t value) noexcept { return static_cast<std::uint64_t>(value); }

// Reads the bytes of a pointer as its format says, before any base is added.
bool read_raw(ByteReader& reader, std::uint8_t encoding, std::uint64_t& value) noexcept {
  switch (encoding & kFormatMask) {
    case kAbsolute:
    case kUdata8:
    case kSdata8:
      value = reader.u64();
      break;
    case kUleb128:
      value = reader.uleb128();
      break;
    case kUdata2:
      value = reader.u16();
      break;
    case kUdata4:
      value = reader.u32();
      break;
    case kSleb128:
      value = extended(reader.sleb128());
      break;
    case kSdata2:
      value = extended(static_cast<std::int16_t>(reader.u16()));
      break;
    case kSdata4:
      value = extended(reader.s32());
      break;
    default:
      return false;
  }
  return reader.ok();
}

bool read_pointer(ByteReader& reader, std::uint8_t encoding, std::uint64_t header,
                  std::uint64_t& value) noexcept {
  const std::uint64_t position = reader.at();
  if ((encoding & kIndirect) != 0 || !read_raw(reader, encoding, value)) {
    return false;
  }
  switch (encoding & kBaseMask) {
    case kAbsolute:
      return true;
    case kRelativeToPosition:
      value += position;
      return true;
    case kRelativeToHeader:
      value += header;
      return true;
    default:
      return false;
  }
}

// The sorted table of .eh_frame_hdr: pairs of 32-bit distances from the header.
struct SearchTable {
  std::uint64_t header = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

bool open_table(const LoadedModule& module, SearchTable& table) noexcept {
  if (module.eh_frame_hdr < module.start || module.eh_frame_hdr >= module.end) {
    return false;
  }
  ByteReader reader({module.eh_frame_hdr, module.end});
  const std::uint8_t version = reader.u8();
  const std::uint8_t frame_encoding = reader.u8();
  const std::uint8_t count_encoding = reader.u8();
  const std::uint8_t table_encoding = reader.u8();
  std::uint64_t ignored = 0;
  if (version != 1 || table_encoding != (kRelativeToHeader | kSdata4) ||
      !read_raw(reader, frame_encoding, ignored) ||
      !read_pointer(reader, count_encoding, module.eh_frame_hdr, table.count)) {
    return false;
  }
  table.header = module.eh_frame_hdr;
  table.first = reader.at();
  return table.count > 0 && table.count <= (module.end - table.first) / 8;
}

std::uint64_t table_value(const SearchTable& table, std::uint64_t address) noexcept {
  return table.header + extended(ByteReader({address, address + 4}).s32());
}

// The address of the last entry that begins at or before `pc`; 0 when all begin later.
std::uint64_t search(const SearchTable& table, std::uint64_t pc) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = table.count;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (table_value(table, table.first + 8 * middle) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : table_value(table, table.first + 8 * (low - 1) + 4);
}

// Length and range of the entry at `address`; false for the terminator, for the 64-bit format (no
// linker writes it) and for what leaves the module.
bool open_entry(const LoadedModule& module, std::uint64_t address, ByteRange& body) noexcept {
  if (address < module.start || address >= module.end) {
    return false;
  }
  ByteReader reader({address, module.end});
  const std::uint32_t length = reader.u32();
  if (length == 0 || length == 0xffffffffU) {
    return false;
  }
  body = reader.take(length);
  return reader.ok();
}

struct Augmentation {
  std::uint8_t pointer_encoding = kAbsolute;
  bool has_length = false;  // 'z': entries carry a length of their own augmentation
};

bool read_augmentation(ByteRange letters, ByteReader& data, std::uint64_t header, CfiEntry& entry,
                       Augmentation& augmentation) noexcept {
  ByteReader reader(letters);
  while (!reader.at_end()) {
    std::uint64_t personality = 0;
    switch (reader.u8()) {
      case 'z':
        break;
      case 'R':
        augmentation.pointer_encoding = data.u8();
        break;
      case 'P': {
        const std::uint8_t encoding = data.u8();
        if (!read_pointer(data, encoding & static_cast<std::uint8_t>(~kIndirect), header,
                          personality)) {
          return false;
        }
        break;
      }
      case 'L':
        data.u8();
        break;
      case 'S':
        entry.is_signal_frame = true;
        break;
      default:
        return false;
    }
  }
  return data.ok();
}

bool read_common(const LoadedModule& module, std::uint64_t address, CfiEntry& entry,
                 Augmentation& augmentation) noexcept {
  ByteRange body;
  if (!open_entry(module, address, body)) {
    return false;
  }
  ByteReader reader(body);
  const std::uint32_t id = reader.u32();
  const std::uint8_t version = reader.u8();
  ByteRange letters{reader.at(), reader.at()};
  while (reader.ok() && reader.u8() != 0) {
    letters.end = reader.at();
  }
  if (!reader.ok() || id != 0 || (version != 1 && version != 3)) {
    return false;
  }
  entry.code_alignment = reader.uleb128();
  entry.data_alignment = reader.sleb128();
  entry.return_address_register = version == 1 ? reader.u8() : reader.uleb128();
  if (letters.begin != letters.end) {
    if (ByteReader(letters).u8() != 'z') {
      return false;
    }
    augmentation.has_length = true;
    ByteReader data(reader.take(reader.uleb128()));
    if (!reader.ok() ||
        !read_augmentation(letters, data, module.eh_frame_hdr, entry, augmentation)) {
      return false;
    }
  }
  entry.common_program = {reader.at(), reader.end()};
  return reader.ok();
}

}  // namespace

bool find_cfi_entry(const LoadedModule& module, std::uint64_t pc, CfiEntry& entry) noexcept {
  SearchTable table;
  ByteRange body;
  if (!open_table(module, table) || !open_entry(module, search(table, pc), body)) {
    return false;
  }
  ByteReader reader(body);
  const std::uint64_t distance = reader.u32();  // back to the CIE, from this field; 0 in a CIE
  Augmentation augmentation;
  if (!reader.ok() || distance == 0 ||
      !read_common(module, body.begin - distance, entry, augmentation)) {
    return false;
  }
  std::uint64_t length = 0;
  if (augmentation.pointer_encoding == kUnknownEncoding ||
      !read_pointer(reader, augmentation.pointer_encoding, module.eh_frame_hdr, entry.pc_begin) ||
      !read_raw(reader, augmentation.pointer_encoding, length)) {
    return false;
  }
  entry.pc_end = entry.pc_begin + length;
  if (augmentation.has_length) {
    reader.take(reader.uleb128());
  }
  entry.program = {reader.at(), reader.end()};
  return reader.ok() && pc >= entry.pc_begin && pc < entry.pc_end;
}

Rule rule_from_tables(const LoadedModule& module, std::uint64_t pc) noexcept {
  CfiEntry entry;
  if (!find_cfi_entry(module, pc, entry)) {
    return {RuleKind::kNoTable};
  }
  return run_cfi(entry, pc);
}

}  // namespace tidemark::tracer
