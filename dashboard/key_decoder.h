// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::dashboard {

// One key, or one event of the mouse.
struct Key {
  enum class Kind {
    kText,     // a printable character, UTF-8 in `text`
    kControl,  // Ctrl and the letter in `text`
    kUp,
    kDown,
    kLeft,
    kRight,
    kHome,
    kEnd,
    kPageUp,
    kPageDown,
    kEnter,
    kEscape,
    kTab,
    kBackspace,
    kMousePress,
    kWheelUp,
    kWheelDown,
  };
  Kind kind = Kind::kText;
  std::string text;
  int x = 0;  // of the mouse, from 0
  int y = 0;

  bool operator==(const Key&) const = default;
};

// Turns what a terminal sends into keys. Sequences that it does not know are swallowed.
class KeyDecoder {
 public:
  // Appends the keys that `bytes` complete.
  void feed(std::string_view bytes, std::vector<Key>& keys);
  // Nothing more came for a while: an escape character that waits was the key of that name.
  void flush(std::vector<Key>& keys);
  bool is_waiting() const { return !waiting_.empty(); }

 private:
  std::string waiting_;  // the beginning of a sequence
};

}  // namespace tidemark::dashboard
