// SPDX-License-Identifier: Apache-2.0
#include "dashboard/key_decoder.h"

#include <array>
#include <optional>
#include <utility>

#include "common/text.h"

namespace tidemark::dashboard {
namespace {

constexpr char kEscapeByte = '\x1b';
constexpr std::size_t kLongestSequence = 32;

struct Decoded {
  std::size_t bytes = 0;  // 0: more is needed
  std::optional<Key> key;
};

struct Named {
  std::string_view sequence;  // after ESC [ or ESC O
  Key::Kind kind;
};

// xterm, the Linux console, rxvt; application and normal mode.
constexpr std::array<Named, 13> kNamed{{
    {"A", Key::Kind::kUp},
    {"B", Key::Kind::kDown},
    {"C", Key::Kind::kRight},
    {"D", Key::Kind::kLeft},
    {"H", Key::Kind::kHome},
    {"F", Key::Kind::kEnd},
    {"Z", Key::Kind::kTab},
    {"1~", Key::Kind::kHome},
    {"4~", Key::Kind::kEnd},
    {"5~", Key::Kind::kPageUp},
    {"6~", Key::Kind::kPageDown},
    {"7~", Key::Kind::kHome},
    {"8~", Key::Kind::kEnd},
}};

Key plain(Key::Kind kind) { return Key{kind, {}, 0, 0}; }

// Column and line from 1; nullopt for what we do not listen to.
std::optional<Key> mouse_event(int button, int x, int y) {
  if (x < 1 || y < 1) {
    return std::nullopt;
  }
  switch (button) {
    case 0:
      return Key{Key::Kind::kMousePress, {}, x - 1, y - 1};
    case 64:
      return Key{Key::Kind::kWheelUp, {}, x - 1, y - 1};
    case 65:
      return Key{Key::Kind::kWheelDown, {}, x - 1, y - 1};
    default:
      return std::nullopt;
  }
}

// "<0;12;5M": button; column; line, both from 1; M pressed, m released.
std::optional<Key> mouse_key(std::string_view body) {
  const bool pressed = body.back() == 'M';
  const auto fields = split(body.substr(1, body.size() - 2), ';');
  if (fields.size() != 3 || !pressed) {
    return std::nullopt;
  }
  const auto button = parse_number<int>(fields[0]);
  const auto x = parse_number<int>(fields[1]);
  const auto y = parse_number<int>(fields[2]);
  if (!button || !x || !y) {
    return std::nullopt;
  }
  return mouse_event(*button, *x, *y);
}

// Three bytes after ESC [ M, each 32 more than it means: of terminals that do not know the other
// kind of report (mode 1006). Whatever they are, they are no keys.
Decoded decode_old_mouse(std::string_view bytes) {
  constexpr std::size_t kLength = 6;
  if (bytes.size() < kLength) {
    return {};
  }
  const auto number = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]) - 32; };
  return {kLength, mouse_event(number(3), number(4), number(5))};
}

// ESC [ parameters final, or ESC O final.
Decoded decode_sequence(std::string_view bytes) {
  if (bytes[2] == 'M') {
    return bytes[1] == 'O' ? Decoded{3, plain(Key::Kind::kEnter)} : decode_old_mouse(bytes);
  }
  std::size_t end = 2;
  if (bytes[1] == '[') {
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) {
      ++end;
    }
  }
  if (end >= bytes.size()) {
    return bytes.size() > kLongestSequence ? Decoded{bytes.size(), std::nullopt} : Decoded{};
  }
  const std::string_view body = bytes.substr(2, end - 1);
  Decoded decoded{end + 1, std::nullopt};
  if (body.front() == '<') {
    decoded.key = mouse_key(body);
    return decoded;
  }
  for (const Named& named : kNamed) {
    if (named.sequence == body) {
      decoded.key = plain(named.kind);
    }
  }
  return decoded;
}

Decoded decode_control(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return {1, plain(Key::Kind::kEnter)};
    case '\t':
      return {1, plain(Key::Kind::kTab)};
    case '\x7f':
    case '\b':
      return {1, plain(Key::Kind::kBackspace)};
    default:
      break;
  }
  if (byte >= 1 && byte <= 26) {
    return {1, Key{Key::Kind::kControl, std::string(1, static_cast<char>('a' + byte - 1)), 0, 0}};
  }
  return {1, std::nullopt};
}

Decoded decode(std::string_view bytes) {
  const char first = bytes.front();
  if (first == kEscapeByte) {
    if (bytes.size() == 1) {
      return {};
    }
    if (bytes[1] == '[' || bytes[1] == 'O') {
      return bytes.size() == 2 ? Decoded{} : decode_sequence(bytes);
    }
    return {1, plain(Key::Kind::kEscape)};  // what follows is a key of its own
  }
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x20 || byte == 0x7f) {
    return decode_control(first);
  }
  if (const std::size_t length = utf8_sequence_length(bytes); length > 0) {
    return {length, Key{Key::Kind::kText, std::string(bytes.substr(0, length)), 0, 0}};
  }
  const std::size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
  return byte >= 0xc2 && byte < 0xf5 && bytes.size() < wanted ? Decoded{}
                                                              : Decoded{1, std::nullopt};
}

}  // namespace

void KeyDecoder::feed(std::string_view bytes, std::vector<Key>& keys) {
  waiting_ += bytes;
  std::size_t at = 0;
  while (at < waiting_.size()) {
    Decoded decoded = decode(std::string_view(waiting_).substr(at));
    if (decoded.bytes == 0) {
      break;
    }
    at += decoded.bytes;
    if (decoded.key) {
      keys.push_back(*std::move(decoded.key));
    }
  }
  waiting_.erase(0, at);
}

void KeyDecoder::flush(std::vector<Key>& keys) {
  if (!waiting_.empty() && waiting_.front() == kEscapeByte) {
    keys.push_back(plain(Key::Kind::kEscape));
  }
  waiting_.clear();
}

}  // namespace tidemark::dashboard
