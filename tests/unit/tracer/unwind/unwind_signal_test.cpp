// SPDX-License-Identifier: Apache-2.0
// Stacks that go through a signal handler, to code that may stand at any instruction.
#include <ctype.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiler/tracer/unwind/unwind.h"
#include "tests/unit/tracer/unwind/call_chains.h"
#include "tests/unit/tracer/unwind/unwind_hooks.h"

// A function whose first instruction traps. What stands before it has another frame size, so that
// looking one byte too early finds a wrong rule.
asm(R"(
  .text
  .p2align 4
  .type unwind_test_before, @function
unwind_test_before:
  .cfi_startproc
  .cfi_def_cfa_offset 4096
  nop
  .cfi_endproc
  .size unwind_test_before, . - unwind_test_before
  .type unwind_test_trap, @function
unwind_test_trap:
  .cfi_startproc
  ud2
  ret
  .cfi_endproc
  .size unwind_test_trap, . - unwind_test_trap
)");
extern "C" void unwind_test_trap();

namespace tidemark::tracer {
namespace {

using tests::g_last_noted;
using tests::g_last_pcs;
using tests::Pcs;

// For the time of a test.
class Handler {
 public:
  Handler(int signal, int flags, void (*handler)(int, siginfo_t*, void*)) : signal_(signal) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO;
    sigaction(signal, &action, &before_);
  }
  ~Handler() { sigaction(signal_, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  int signal_;
  struct sigaction before_ = {};
};

bool contains(const Pcs& stack, const Pcs& part) {
  return std::search(stack.begin(), stack.end(), part.begin(), part.end()) != stack.end();
}

class UnwindSignal : public testing::Test {
 protected:
  void SetUp() override {
    if (!start_unwinder()) {
      GTEST_SKIP() << "glibc before 2.35 has no _dl_find_object";
    }
  }
};

TEST_F(UnwindSignal, FindsWhatWasInterrupted) {
  const Handler handler(SIGUSR1, 0, [](int, siginfo_t*, void*) { tests::hook_fresh(); });

  tests::call_plain(5, [] { raise(SIGUSR1); });

  ASSERT_EQ(g_last_noted.size(), 6U);
  EXPECT_TRUE(contains(g_last_pcs, g_last_noted));
  EXPECT_TRUE(tests::g_last_trace.end_is_final);
  EXPECT_FALSE(tests::g_last_trace.reusable);
}

TEST_F(UnwindSignal, ChangesOverFromTheStackOfSignals) {
  std::vector<char> memory(64 * 1024);
  stack_t stack = {memory.data(), 0, memory.size()};
  stack_t before = {};
  sigaltstack(&stack, &before);
  const Handler handler(SIGUSR1, SA_ONSTACK, [](int, siginfo_t*, void*) { tests::hook_fresh(); });

  tests::call_plain(5, [] { raise(SIGUSR1); });
  sigaltstack(&before, nullptr);

  ASSERT_EQ(g_last_noted.size(), 6U);
  EXPECT_TRUE(contains(g_last_pcs, g_last_noted));
  EXPECT_TRUE(tests::g_last_trace.end_is_final);
}

TEST_F(UnwindSignal, TakesTheInterruptedInstructionAsItIs) {
  const Handler handler(SIGILL, 0, [](int, siginfo_t*, void* context) {
    tests::hook_fresh();
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // behind the ud2
  });

  tests::call_plain(5, [] { unwind_test_trap(); });

  EXPECT_TRUE(contains(g_last_pcs, g_last_noted));
}

// Single steps: a trap behind every instruction, each of which must find the functions that were
// running when it began.
Pcs g_expected;
StackTrace g_step_trace;
int g_steps = 0;
int g_wrong_steps = 0;

[[gnu::noinline]] void check_step(int, siginfo_t*, void*) {
  const Registers registers = capture_registers();
  unwind(registers, stack_bounds(registers.sp), g_step_trace);
  const std::uint64_t* const end = g_step_trace.pc + g_step_trace.depth;
  const bool found = std::search(g_step_trace.pc, end, g_expected.begin(), g_expected.end()) != end;
  g_wrong_steps += found ? 0 : 1;
  ++g_steps;
}

// The trap flag; the stack pointer first steps over the red zone.
void trap_after_every_instruction() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      :
      : "memory", "cc");
}

void trap_no_more() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      :
      : "memory", "cc");
}

TEST_F(UnwindSignal, FindsTheCallersFromEveryInstruction) {
  const Handler handler(SIGTRAP, 0, check_step);
  volatile int letter = 'a';
  letter = toupper(letter);  // bound now: the way through ld.so is not followed everywhere
  g_steps = 0;
  g_wrong_steps = 0;

  tests::call_plain(4, [] {
    g_expected = tests::noted_returns();
    tests::call_plain(0, [] {});
    volatile int other = 'a';
    trap_after_every_instruction();
    other = toupper(other);  // through .plt
    tests::call_plain(2, [] {});
    tests::call_with_alloca(100, [] {});
    trap_no_more();
  });

  ASSERT_EQ(g_expected.size(), 5U);
  EXPECT_GT(g_steps, 100);
  EXPECT_EQ(g_wrong_steps, 0);
}

}  // namespace
}  // namespace tidemark::tracer
