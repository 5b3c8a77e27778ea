// SPDX-License-Identifier: Apache-2.0
// A thread whose stack lies in an arena with those of two coroutines. One of them is unmapped; then
// the other allocates by generated code, which keeps an address in the unmapped one where compiled
// code would have its frame pointer.
#include <pthread.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kStack = 1U << 20U;
constexpr std::size_t kBlock = 500'000;

char* g_arena = nullptr;
void* g_in_unmapped = nullptr;
using Generated = void* (*)(void* (*)(std::size_t), std::size_t, void*);
Generated g_generated = nullptr;

// Calls `function` on another stack. Without unwind tables, as libraries of coroutines have it.
[[gnu::naked]] void call_on(void* /*top*/, void (*)(), void** /*saved*/) {
  asm("push %rbp\n"
      "push %rbx\n"
      "push %r12\n"
      "push %r13\n"
      "push %r14\n"
      "push %r15\n"
      "mov %rsp, (%rdx)\n"
      "mov %rdx, %r12\n"
      "mov %rdi, %rsp\n"
      "call *%rsi\n"
      "mov (%r12), %rsp\n"
      "pop %r15\n"
      "pop %r14\n"
      "pop %r13\n"
      "pop %r12\n"
      "pop %rbx\n"
      "pop %rbp\n"
      "ret\n");
}

void allocate() {
  void* volatile block = std::malloc(kBlock);
  std::free(block);
}

void allocate_by_generated_code() {
  void* volatile block = g_generated(std::malloc, kBlock, g_in_unmapped);
  std::free(block);
}

void* run(void* /*unused*/) {
  allocate();
  char* const higher = g_arena + 2 * kStack;
  char* const lower = g_arena + kStack;
  void* saved = nullptr;
  call_on(higher + kStack - 64, allocate, &saved);
  call_on(lower + kStack - 64, allocate, &saved);
  g_in_unmapped = higher + kStack / 2;
  ::munmap(higher, kStack);
  call_on(lower + kStack - 64, allocate_by_generated_code, &saved);
  return nullptr;
}

}  // namespace

int main() {
  g_arena = static_cast<char*>(
      ::mmap(nullptr, 4 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void* const code =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g_arena == MAP_FAILED || code == MAP_FAILED) {
    return 77;
  }
  // push rbp; mov rbp, rdx; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret
  constexpr unsigned char kCode[] = {0x55, 0x48, 0x89, 0xd5, 0x48, 0x89, 0xf8,
                                     0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
  std::memcpy(code, kCode, sizeof(kCode));
  g_generated = reinterpret_cast<Generated>(code);
  pthread_attr_t where;
  pthread_attr_init(&where);
  pthread_attr_setstack(&where, g_arena + 3 * kStack, kStack);
  pthread_t thread = 0;
  if (pthread_create(&thread, &where, run, nullptr) != 0) {
    return 1;
  }
  pthread_join(thread, nullptr);
  std::puts("ok");
  return 0;
}
