// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::live {

// One way from a command to one of our descriptors.
struct OutputChannel {
  Fd ours;        // to read from
  Fd theirs;      // for the command to write to
  int sink = -1;  // where the bytes go; not owned
  bool is_terminal = false;

  // A pseudo-terminal when `sink` is a terminal, else a pipe.
  static Result<OutputChannel> open(int sink);

  // Gives the pseudo-terminal the size of the terminal; nothing for a pipe.
  void copy_window_size() const;
};

// True when what is written to one comes out where the other does.
bool same_destination(int sink, int other_sink);

}  // namespace tidemark::live
