// SPDX-License-Identifier: Apache-2.0
// Programs that are hard to stop or to call functions in. They check themselves.
//   hard_to_stop vfork         one thread waits for a child of vfork, until standard input ends
//   hard_to_stop exec ROUNDS   starts itself again and again, from any of several threads
//   hard_to_stop coroutine     runs on a small stack within other data, until standard input ends
//   hard_to_stop compute       keeps all vector registers in use, until standard input ends
//   hard_to_stop plugin FOLDER has a plugin with an allocator of its own, which it gets from there
//   hard_to_stop filtered      has a filter that ends it for a call that it does not make
//   hard_to_stop sleep|read|semaphore  waits until a signal comes, and is odd if it then waits on
//   hard_to_stop errno         may open no file, and is odd if its errno changes
//   hard_to_stop deep          keeps blocks from far down on its first stack, beside a busy thread
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string>
#include <thread>

namespace {

bool input_has_ended() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) == 0;
}

void say(const char* text) {
  std::printf("%s\n", text);
  std::fflush(stdout);
}

int wait_in_vfork() {
  say("ready");
  const pid_t child = ::vfork();  // NOLINT: a wait that cannot be interrupted
  if (child == 0) {
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
    ::_exit(0);
  }
  say("done");
  return 0;
}

int start_again(const char* program, long rounds) {
  if (rounds == 0) {
    say("done");
    return 0;
  }
  if (rounds % 50 == 0) {
    say("ready");
  }
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (std::atomic<long> count = 0;; ++count) {
      }
    }).detach();
  }
  const auto start = [&] {
    const std::string left = std::to_string(rounds - 1);
    ::execl(program, program, "exec", left.c_str(), nullptr);
  };
  if (rounds % 2 == 0) {
    start();
  }
  std::thread(start).join();
  return 1;
}

constexpr std::size_t kAreaBytes = 4U << 20U;
constexpr std::size_t kStackBytes = 32U << 10U;
ucontext_t g_first;
ucontext_t g_second;

void count_on_small_stack() {
  asm volatile(".cfi_undefined rip");  // whoever walks the stack gets to its end here
  say("ready");
  for (std::atomic<long> count = 0;; ++count) {
    if (count % 1'000'000 == 0 && input_has_ended()) {
      break;
    }
  }
}

// The stack lies in the middle of an area that must not change.
int run_coroutine() {
  auto* const area = static_cast<char*>(
      ::mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(area, 'x', kAreaBytes);
  ::getcontext(&g_second);
  g_second.uc_stack.ss_sp = area + kAreaBytes / 2;
  g_second.uc_stack.ss_size = kStackBytes;
  g_second.uc_link = &g_first;
  ::makecontext(&g_second, count_on_small_stack, 0);
  ::swapcontext(&g_first, &g_second);
  const bool is_whole = std::all_of(area, area + kAreaBytes / 2, [](char c) { return c == 'x'; });
  say(is_whole ? "done" : "odd: the area was written to");
  return is_whole ? 0 : 1;
}

// Eight registers of the widest kind that all processors of today have.
[[gnu::target("avx2"), gnu::noinline]] bool registers_stay(long rounds) {
  using Vector [[gnu::vector_size(32)]] = long long;
  Vector values[8];
  for (long long i = 0; i < 8; ++i) {
    values[i] = Vector{i, i + 100, i + 200, i + 300};
  }
  for (long round = 0; round < rounds; ++round) {
    asm volatile(""
                 : "+x"(values[0]), "+x"(values[1]), "+x"(values[2]), "+x"(values[3]),
                   "+x"(values[4]), "+x"(values[5]), "+x"(values[6]), "+x"(values[7]));
  }
  for (long long i = 0; i < 8; ++i) {
    if (values[i][0] != i || values[i][1] != i + 100 || values[i][2] != i + 200 ||
        values[i][3] != i + 300) {
      return false;
    }
  }
  return true;
}

int compute() {
  say("ready");
  while (!input_has_ended()) {
    if (!registers_stay(20'000'000)) {
      say("odd: a register has changed");
      return 1;
    }
  }
  say("done");
  return 0;
}

int run_plugin(const std::string& folder) {
  void* const plugin = ::dlopen((folder + "/lazy_plugin.so").c_str(), RTLD_LAZY | RTLD_DEEPBIND);
  if (plugin == nullptr) {
    say(::dlerror());
    return 2;
  }
  const auto call = [plugin](const char* name) {
    reinterpret_cast<void (*)()>(::dlsym(plugin, name))();
  };
  call("plugin_allocate");
  say("ready");
  for (std::atomic<long> count = 0; count % 1'000'000 != 0 || !input_has_ended(); ++count) {
  }
  call("plugin_free");  // bound only now
  say("done");
  return 0;
}

int run_filtered() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(std::size(rules)), rules};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    say("may not filter");
    return 2;
  }
  say("ready");
  while (!input_has_ended()) {
    ::usleep(1000);
  }
  say("done");
  return 0;
}

bool is_woken_from(const std::string& wait) {
  constexpr unsigned kLong = 60;
  if (wait == "sleep") {
    return ::sleep(kLong) > 0;
  }
  char byte = 0;
  if (wait == "read") {
    return ::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR;
  }
  sem_t semaphore;
  ::sem_init(&semaphore, 0, 0);
  timespec end = {};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += kLong;
  return ::sem_timedwait(&semaphore, &end) < 0 && errno == EINTR;
}

int wait_for_signal(const std::string& wait) {
  struct sigaction action = {};
  action.sa_handler = [](int /*signal*/) {};
  ::sigaction(SIGUSR1, &action, nullptr);
  say("ready");
  const bool is_woken = is_woken_from(wait);
  say(is_woken ? "done" : "odd: it waited on");
  return is_woken ? 0 : 1;
}

// As between a call that fails and the look at why.
int keep_errno() {
  constexpr int kFound = ENOTTY;
  const rlimit none = {3, 3};
  ::setrlimit(RLIMIT_NOFILE, &none);
  say("ready");
  do {
    errno = kFound;
    for (std::atomic<long> count = 0; count < 20'000'000; ++count) {
    }
    if (errno != kFound) {
      say("odd: errno has changed");
      return 1;
    }
  } while (!input_has_ended());
  say("done");
  return 0;
}

// A page on each of forty frames.
[[gnu::noinline]] void keep_far_down(int depth) {
  volatile char page[4096] = {};
  if (depth > 0) {
    keep_far_down(depth - 1);
  } else {
    void* block = std::malloc(100'000);
    asm volatile("" : : "r"(block));  // kept by nobody
  }
  page[depth] = page[0];
}

[[gnu::noinline]] void begin_deep_down() {
  constexpr int kDepth = 40;
  keep_far_down(kDepth);
  asm volatile("");  // no tail call
}

int keep_blocks() {
  std::thread([] {
    for (std::atomic<long> count = 0;; ++count) {
    }
  }).detach();
  say("ready");
  while (!input_has_ended()) {
    begin_deep_down();
    ::usleep(5000);
  }
  say("done");
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "vfork") {
    return wait_in_vfork();
  }
  if (mode == "exec" && count > 2) {
    return start_again(arguments[0], std::atol(arguments[2]));
  }
  if (mode == "coroutine") {
    return run_coroutine();
  }
  if (mode == "plugin" && count > 2) {
    return run_plugin(arguments[2]);
  }
  if (mode == "filtered") {
    return run_filtered();
  }
  if (mode == "sleep" || mode == "read" || mode == "semaphore") {
    return wait_for_signal(mode);
  }
  if (mode == "errno") {
    return keep_errno();
  }
  if (mode == "deep") {
    return keep_blocks();
  }
  return mode == "compute" ? compute() : 2;
}
