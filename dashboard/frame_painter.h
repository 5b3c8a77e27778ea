// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dashboard/terminal.h"

namespace tidemark::dashboard {

// What to send to a terminal so that it shows these lines, given what it shows already: only lines
// that differ.
class FramePainter {
 public:
  std::string paint(std::vector<std::string> lines, const TerminalSize& size);
  // The terminal shows something else: everything is sent again.
  void forget() { shown_.clear(); }

 private:
  std::vector<std::string> shown_;
  TerminalSize size_;
};

}  // namespace tidemark::dashboard
