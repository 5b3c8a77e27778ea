// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

// The vector registers and the like of a thread.
namespace tidemark::inject {

// Where a part of the extended state is, by its number in the processor's list; 0 bytes: it has no
// such part.
struct StatePart {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};
using StateParts = std::array<StatePart, 63>;
// Of this machine's processor.
StateParts state_parts();

// The extended state as ptrace gives it, in the form that the kernel takes from the frame of a
// signal. Cut behind the last part that is in use: ptrace leaves room for all that the processor
// has, and of a frame that is larger than the thread may have (without AMX) the kernel restores
// nothing but SSE. Empty: this is no extended state.
std::vector<char> for_signal_frame(std::vector<char> state, const StateParts& parts);

}  // namespace tidemark::inject
