// SPDX-License-Identifier: Apache-2.0
// Filters its system calls, then allocates: a call that it does not make itself would end it.
// usage: traced_sandboxed HOW BLOCKS
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* in_the_sandbox() { return seen(std::malloc(24)); }

// From deeper down the stack than the process has been before.
VICTIM_SITE std::uint64_t from_below(int depth, std::uint64_t blocks) {
  char room[2048];
  std::memset(room, depth, sizeof(room));
  asm volatile("" : : "r"(room) : "memory");
  std::uint64_t made = depth > 0 ? from_below(depth - 1, blocks) : 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    made += in_the_sandbox() != nullptr ? 1U : 0U;
  }
  return made;
}

[[noreturn]] void leave(long status) {
  asm volatile("syscall" : : "a"(SYS_exit), "D"(status) : "memory");
  __builtin_unreachable();
}

// Allows what the program needs from then on; `other` happens to everything else.
bool filter(unsigned other, bool by_prctl, unsigned flags) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, other),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog all = {sizeof(program) / sizeof(program[0]), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (by_prctl) {
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
  }
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &all) == 0;
}

// A child of vfork is ended for one call from then on, and becomes another program, at once or
// after one that is not there.
bool start_filtered(bool fails_first) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog all = {sizeof(program) / sizeof(program[0]), program};
  const pid_t child = ::vfork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) {
      ::_exit(77);
    }
    if (fails_first) {
      ::execl("/nowhere", "nowhere", nullptr);
    }
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

bool lock_in(std::string_view how) {
  if (how == "vfork" || how == "vfork_fails") {
    return start_filtered(how == "vfork_fails");
  }
  if (how == "strict") {
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
  }
  if (how == "refused") {  // by the kernel: nothing changes
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 1) != 0 &&
           !filter(SECCOMP_RET_KILL_PROCESS, false, 0xffffU);
  }
  if (how == "fails") {
    return filter(SECCOMP_RET_ERRNO | 1, false, 0);
  }
  if (how == "trap") {
    return filter(SECCOMP_RET_TRAP, false, 0);
  }
  return filter(SECCOMP_RET_KILL_PROCESS, how == "kill_by_prctl",
                how == "kill_all_threads" ? SECCOMP_FILTER_FLAG_TSYNC : 0);
}

int main(int argc, char** argv) {
  constexpr int kDepth = 40;
  const std::string_view how = argc > 1 ? argv[1] : "kill";
  const std::uint64_t each = std::strtoul(argc > 2 ? argv[2] : "1000", nullptr, 10);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);  // malloc needs no system call later
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::free(seen(std::malloc(64 << 20)));
  const bool two_threads = how == "kill_all_threads";
  const std::uint64_t blocks = (kDepth + 1) * each * (two_threads ? 2U : 1U);
  print_held("sandboxed", {{"in_the_sandbox", 24 * blocks, blocks}});
  std::atomic<int> step = 0;
  std::thread other;
  if (two_threads) {
    ::mallopt(M_ARENA_MAX, 1);
    other = std::thread([&] {
      step = 1;
      while (step != 2) {
      }
      from_below(kDepth, each);
      step = 3;
      for (;;) {
      }
    });
    while (step != 1) {
    }
  }
  if (!lock_in(how)) {
    leave(77);
  }
  step = 2;
  const std::uint64_t made = from_below(kDepth, each);
  while (two_threads && step != 3) {
  }
  if (two_threads) {
    std::_Exit(0);
  }
  leave(made == blocks ? 0 : 1);
}
