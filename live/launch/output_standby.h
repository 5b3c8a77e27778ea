// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "common/fd.h"
#include "common/result.h"
#include "live/launch/output_channel.h"

namespace tidemark::live {

// A small process that takes over the output of a command when this process has exited, whether it
// left or was killed: without it whoever still writes would get SIGPIPE. It ends with the last
// writer. Until then it waits, and takes nothing.
class OutputStandby {
 public:
  // Before the command has the channels. None could be started: an object that does nothing.
  static OutputStandby start(std::span<const OutputChannel> channels);

  // A channel is at its end, or nobody reads what comes through it: the standby closes it as well.
  void drop(std::size_t channel) const;

 private:
  Fd lifeline_;  // a pipe that is at its end when this process is
};

}  // namespace tidemark::live
