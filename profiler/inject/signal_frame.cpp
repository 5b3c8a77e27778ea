// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/signal_frame.h"

namespace tidemark::inject {

SignalContext signal_context(const Registers& from, std::uint64_t mask, std::uint64_t extended) {
  SignalContext context = {};
  context.flags = 1 | 2 | 4;    // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
  context.alternate_flags = 5;  // not valid: the alternate stack stays as it is
  context.r8 = from.r8;
  context.r9 = from.r9;
  context.r10 = from.r10;
  context.r11 = from.r11;
  context.r12 = from.r12;
  context.r13 = from.r13;
  context.r14 = from.r14;
  context.r15 = from.r15;
  context.rdi = from.rdi;
  context.rsi = from.rsi;
  context.rbp = from.rbp;
  context.rbx = from.rbx;
  context.rdx = from.rdx;
  context.rax = from.rax;
  context.rcx = from.rcx;
  context.rsp = from.rsp;
  context.rip = from.rip;
  context.eflags = from.eflags;
  context.cs = static_cast<std::uint16_t>(from.cs);
  context.gs = static_cast<std::uint16_t>(from.gs);
  context.fs = static_cast<std::uint16_t>(from.fs);
  context.ss = static_cast<std::uint16_t>(from.ss);
  context.extended = extended;
  context.mask = mask;
  return context;
}

}  // namespace tidemark::inject
