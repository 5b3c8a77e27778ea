// SPDX-License-Identifier: Apache-2.0
// A timer interrupts allocations, and its handler forks: the child returns from the handler into
// what was interrupted, allocates once more and ends. Prints how many children ended otherwise.
// handler_forks malloc|realloc|mremap|mmap HOW: what takes most of the time, and one of kWays.
#include <linux/sched.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kChildren = 100;
volatile std::sig_atomic_t g_is_child = 0;
int g_children[kChildren];
volatile std::sig_atomic_t g_forked = 0;

pid_t by_syscall() { return static_cast<pid_t>(::syscall(SYS_fork)); }
pid_t by_clone() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
pid_t by_clone3() {
  clone_args how = {};
  how.exit_signal = SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof(how)));
}

enum class Stack { kSame, kFurtherOut, kAbove };  // of the handler

struct Way {
  std::string_view name;
  pid_t (*fork)() = ::fork;
  Stack stack = Stack::kSame;
};
constexpr Way kWays[] = {
    {"fork"},
    {"_Fork", ::_Fork},
    {"syscall", by_syscall},
    {"clone", by_clone},
    {"clone3", by_clone3},
    {"stack_further_out", ::fork, Stack::kFurtherOut},
    {"stack_above", ::fork, Stack::kAbove},
};
pid_t (*g_fork)() = ::fork;
bool g_may_allocate = false;  // the handler: it does not interrupt the allocator

void fork_here(int /*signal*/) {
  if (g_is_child != 0 || g_forked == kChildren) {
    return;
  }
  if (g_may_allocate) {  // on another stack that hook may seem to be outside of the interrupted one
    std::free(seen(std::malloc(100)));
  }
  const pid_t child = g_fork();
  if (child == 0) {
    g_is_child = 1;
  } else {
    g_children[g_forked] = child;
    g_forked = g_forked + 1;
  }
}

// More call stacks than a child has room for at first: the numbers of later ones are beyond it.
[[gnu::noinline]] void use_many_stacks(int depth, unsigned path) {
  if (depth == 0) {
    seen(std::malloc(10));
  } else if ((path & 1U) != 0) {
    use_many_stacks(depth - 1, path >> 1U);
    asm volatile("nop");
  } else {
    use_many_stacks(depth - 1, path >> 1U);
    asm volatile("" ::: "memory");
  }
}

constexpr std::size_t kLarge = 4U << 20U;

void allocate() { std::free(seen(std::malloc(100))); }

// Copies: another block follows the one that grows.
void reallocate() {
  void* const block = seen(std::malloc(kLarge));
  void* const next = seen(std::malloc(100));
  std::free(seen(std::realloc(block, 2 * kLarge)));
  std::free(next);
}

// To and fro between two places.
void move_mapping() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  static void* from = nullptr;
  static void* to = nullptr;
  if (from == nullptr) {
    from = ::mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    to = ::mmap(nullptr, kLarge, PROT_NONE, kFlags, -1, 0);
    std::memset(from, 1, kLarge);
  }
  ::mremap(from, kLarge, kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  std::swap(from, to);
}

// To and from the kernel.
void map() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  ::munmap(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, kFlags, -1, 0), 4096);
}

void use_for_handlers(void* stack, std::size_t bytes) {
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = bytes;
  ::sigaltstack(&other, nullptr);
}

[[gnu::noinline]] void be_interrupted(void (*work)()) {
  const itimerval often = {{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  while (g_forked < kChildren && g_is_child == 0) {
    work();
  }
  if (g_is_child != 0) {
    for (int i = 0; i < 1000; ++i) {
      std::free(seen(std::malloc(50)));
    }
    ::_exit(0);
  }
}

constexpr std::size_t kStackBytes = 256U << 10U;

// The stack of the handlers is a buffer of a caller of what they interrupt.
void be_interrupted_below(void (*work)()) {
  alignas(16) char stack[kStackBytes];
  use_for_handlers(seen(stack), sizeof(stack));
  be_interrupted(work);
}

// The signals come to the thread that runs here, on a stack below that of its handlers.
void be_interrupted_in_thread(void (*work)()) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  static char* const stacks =
      static_cast<char*>(::mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  pthread_attr_t where;
  ::pthread_attr_init(&where);
  ::pthread_attr_setstack(&where, stacks, kStackBytes);
  const auto run = [](void* what) -> void* {
    use_for_handlers(stacks + kStackBytes, kStackBytes);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    be_interrupted(reinterpret_cast<void (*)()>(what));
    return nullptr;
  };
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  pthread_t thread = 0;
  ::pthread_create(&thread, &where, run, reinterpret_cast<void*>(work));
  ::pthread_join(thread, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (unsigned path = 0; path < 1024; ++path) {
    use_many_stacks(10, path);
  }
  const std::string_view what = count > 1 ? arguments[1] : "malloc";
  const auto work = what == "realloc"  ? reallocate
                    : what == "mremap" ? move_mapping
                    : what == "mmap"   ? map
                                       : allocate;
  Way way = kWays[0];
  for (const Way& known : kWays) {
    way = count > 2 && known.name == arguments[2] ? known : way;
  }
  g_fork = way.fork;
  g_may_allocate = work == map;
  struct sigaction action = {};
  action.sa_handler = fork_here;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGALRM, &action, nullptr);
  if (way.stack == Stack::kFurtherOut) {
    be_interrupted_below(work);
  } else if (way.stack == Stack::kAbove) {
    be_interrupted_in_thread(work);
  } else {
    be_interrupted(work);
  }
  int bad = 0;
  for (const int child : g_children) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    bad += status != 0 ? 1 : 0;
  }
  std::printf("%d of %d children ended badly\n", bad, kChildren);
  return bad == 0 ? 0 : 1;
}
