// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {

constexpr std::uint64_t kRedZone = 128;  // below the stack pointer, used by leaf functions

// What the kernel reads from the stack when a signal handler ends (rt_sigreturn): the stack pointer
// is at it then. As arch/x86/include/asm/sigframe.h and uapi/asm/sigcontext.h lay it out.
struct SignalContext {
  std::uint64_t flags;
  std::uint64_t link;
  std::uint64_t alternate_stack;
  std::uint64_t alternate_flags;
  std::uint64_t alternate_bytes;
  std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  std::uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  std::uint16_t cs, gs, fs, ss;
  std::uint64_t error, trap, old_mask, cr2;
  std::uint64_t extended;
  std::uint64_t reserved[8];
  std::uint64_t mask;
};
static_assert(offsetof(SignalContext, r8) == 40);
static_assert(offsetof(SignalContext, mask) == 40 + 256);

// With which a thread goes on with these registers, this signal mask, and the extended state that
// lies at an address (see for_signal_frame()); 0: with none. Its alternate stack stays as it is.
SignalContext signal_context(const Registers& registers, std::uint64_t mask,
                             std::uint64_t extended);

}  // namespace tidemark::inject
