// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace tidemark::dashboard
