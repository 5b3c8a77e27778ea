// SPDX-License-Identifier: Apache-2.0
// A job whose threads do what notices a child, a signal or a stop that is not the job's own. Runs
// until its standard input ends, then prints what it has noticed, and "done" if that is nothing.
//   busy_job           children exit without notice
//   busy_job handler   has a handler for the end of children, which interrupts other calls
//   busy_job stopped   is stopped by others: calls that any stop may end are no surprise, nor are
//                      children of theirs that a wait for children of all sorts finds
//   busy_job write MIB instead writes to so much memory at each line of input
//   busy_job registers MIB  instead looks at its registers and at the results of its calls, in its
//                      first thread, with so much memory in small pages
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kWaitMs = 3, kMostChildren = 64 };
enum Mode { kPlain, kHandler, kStopped };

static atomic_bool g_is_over;
static atomic_long g_rounds;
static atomic_long g_damaged;      // blocks that have changed
static atomic_long g_foreign;      // children that it has not started
static atomic_long g_odd_results;  // of waits and locks
static atomic_long g_disordered;   // signals
static atomic_long g_sent;
static atomic_long g_received;
static atomic_bool g_has_sent_all;
static atomic_long g_ticks;     // of its timer
static atomic_long g_children;  // that it has started
static atomic_long g_ended;     // as its handler was told
static atomic_long g_interrupted[5];
static const char* const kCalls[] = {"nanosleep", "epoll_wait", "poll", "semtimedop", "recv"};

static void count_interruption(int call, long result) {
  atomic_fetch_add(&g_rounds, 1);
  if (result < 0 && errno == EINTR) {
    atomic_fetch_add(&g_interrupted[call], 1);
  }
}

static void* allocate(void* unused) {
  (void)unused;
  unsigned seed = 1;
  enum { kBlocks = 500 };
  unsigned char* blocks[kBlocks] = {0};
  size_t sizes[kBlocks] = {0};
  for (size_t i = 0; !g_is_over; i = (i + 1) % kBlocks) {
    if (blocks[i] &&
        (blocks[i][0] != (unsigned char)i || blocks[i][sizes[i] - 1] != (unsigned char)i)) {
      atomic_fetch_add(&g_damaged, 1);
    }
    free(blocks[i]);
    sizes[i] = 16 + (size_t)rand_r(&seed) % 20000;
    blocks[i] = malloc(sizes[i]);
    memset(blocks[i], (unsigned char)i, sizes[i]);
    atomic_fetch_add(&g_rounds, 1);
    if (i % 50 == 0) {
      usleep(500);
    }
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    free(blocks[i]);
  }
  return NULL;
}

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static long g_turn;

static void* take_turns(void* own) {
  const long parity = (long)(size_t)own;
  pthread_mutex_lock(&g_mutex);
  while (!g_is_over) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while (g_turn % 2 != parity && !g_is_over) {
      const int result = pthread_cond_timedwait(&g_changed, &g_mutex, &until);
      if (result != 0 && result != ETIMEDOUT) {
        atomic_fetch_add(&g_odd_results, 1);
      }
      if (result == ETIMEDOUT) {
        break;
      }
    }
    ++g_turn;
    pthread_cond_broadcast(&g_changed);
    atomic_fetch_add(&g_rounds, 1);
    pthread_mutex_unlock(&g_mutex);
    usleep(300);
    pthread_mutex_lock(&g_mutex);
  }
  pthread_mutex_unlock(&g_mutex);
  return NULL;
}

static void* sleep_often(void* unused) {
  (void)unused;
  const struct timespec nap = {0, kWaitMs * 1000000L};
  while (!g_is_over) {
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    const int result = nanosleep(&nap, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    count_interruption(0, result);
    const long slept =
        (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
    if (result == 0 && slept < nap.tv_nsec) {
      atomic_fetch_add(&g_odd_results, 1);
    }
  }
  return NULL;
}

static void* wait_for_events(void* unused) {
  (void)unused;
  const int descriptor = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  while (!g_is_over) {
    count_interruption(1, epoll_wait(descriptor, &event, 1, kWaitMs));
  }
  close(descriptor);
  return NULL;
}

static void* wait_for_others(void* unused) {
  (void)unused;
  int ends[2];
  const int set = semget(IPC_PRIVATE, 1, 0600);
  const struct timespec most = {0, kWaitMs * 1000000L};
  const struct timeval longest = {0, kWaitMs * 1000};
  if (set < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    abort();
  }
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
  while (!g_is_over) {
    struct pollfd one = {ends[0], POLLIN, 0};
    struct sembuf take = {0, -1, 0};
    char byte;
    count_interruption(2, poll(&one, 1, kWaitMs));
    count_interruption(3, semtimedop(set, &take, 1, &most));
    count_interruption(4, recv(ends[0], &byte, 1, 0));
  }
  semctl(set, 0, IPC_RMID);
  close(ends[0]);
  close(ends[1]);
  return NULL;
}

// Children that it has started, until somebody has waited for them.
static pthread_mutex_t g_children_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t g_own[kMostChildren];

static bool change_own(pid_t from, pid_t to) {
  bool is_found = false;
  pthread_mutex_lock(&g_children_mutex);
  for (int i = 0; i < kMostChildren && !is_found; ++i) {
    is_found = g_own[i] == from;
    g_own[i] = is_found ? to : g_own[i];
  }
  pthread_mutex_unlock(&g_children_mutex);
  return is_found;
}

static void count_child(pid_t waited) {
  if (waited > 0 && !change_own(waited, 0)) {
    atomic_fetch_add(&g_foreign, 1);
  }
}

static void* start_children(void* unused) {
  (void)unused;
  while (!g_is_over) {
    int ends[2];
    if (pipe(ends) != 0) {
      abort();
    }
    const pid_t child = fork();
    if (child == 0) {  // waits until it is known
      char byte;
      close(ends[1]);
      (void)!read(ends[0], &byte, 1);
      _exit(0);
    }
    if (child > 0) {
      atomic_fetch_add(&g_children, 1);
      if (!change_own(0, child)) {
        abort();
      }
    }
    close(ends[0]);
    close(ends[1]);
    pid_t waited;
    while ((waited = waitpid(-1, NULL, 0)) > 0) {
      count_child(waited);
    }
    atomic_fetch_add(&g_rounds, 1);
    usleep(1000);
  }
  return NULL;
}

static void* wait_for_children(void* unused) {
  (void)unused;
  bool blocks = false;
  while (!g_is_over) {
    count_child(waitpid(-1, NULL, blocks ? __WALL : __WALL | WNOHANG));
    blocks = !blocks;
    usleep(200);
  }
  return NULL;
}

static atomic_long g_last;

static void on_queued(int number, siginfo_t* information, void* context) {
  (void)number;
  (void)context;
  const long value = information->si_value.sival_int;
  if (value != g_last + 1) {
    atomic_fetch_add(&g_disordered, 1);
  }
  g_last = value;
  atomic_fetch_add(&g_received, 1);
}

static void on_tick(int number) {
  (void)number;
  atomic_fetch_add(&g_ticks, 1);
}

static void on_end(int number) {
  (void)number;
  atomic_fetch_add(&g_ended, 1);
}

static void handle(int number, void (*plain)(int), void (*full)(int, siginfo_t*, void*)) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_flags = SA_RESTART;
  if (plain) {
    action.sa_handler = plain;
  } else {
    action.sa_sigaction = full;
    action.sa_flags |= SA_SIGINFO;
  }
  sigaction(number, &action, NULL);
}

static void* take_signals(void* unused) {
  (void)unused;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (!g_has_sent_all || g_received < g_sent) {
    usleep(2000);
  }
  return NULL;
}

static void* send_signals(void* unused) {
  (void)unused;
  while (!g_is_over) {
    const union sigval value = {.sival_int = (int)g_sent + 1};
    if (g_sent - g_received < 200 && sigqueue(getpid(), SIGRTMIN, value) == 0) {
      atomic_fetch_add(&g_sent, 1);
    }
    usleep(500);
  }
  atomic_store(&g_has_sent_all, true);
  return NULL;
}

// Linux ends epoll_wait, semtimedop, and recv with a timeout, at any stop (man 7 signal).
static bool may_interrupt(enum Mode mode, int call) {
  const bool any_stop = call == 1 || call > 2;
  return mode == kHandler || (mode == kStopped && any_stop);
}

static bool report(enum Mode mode) {
  long interrupted = 0;
  for (int i = 0; i < 5; ++i) {
    printf("%s=%ld ", kCalls[i], (long)g_interrupted[i]);
    interrupted += may_interrupt(mode, i) ? 0 : g_interrupted[i];
  }
  // Of its own it has waited for all by now.
  const bool has_children = waitpid(-1, NULL, __WALL | WNOHANG) >= 0;
  printf(
      "rounds=%ld children=%ld ended=%ld foreign=%ld damaged=%ld odd=%ld sent=%ld lost=%ld "
      "disordered=%ld ticks=%ld left=%d\n",
      (long)g_rounds, (long)g_children, (long)g_ended, (long)g_foreign, (long)g_damaged,
      (long)g_odd_results, (long)g_sent, g_sent - g_received, (long)g_disordered, (long)g_ticks,
      has_children);
  return interrupted == 0 && (g_foreign == 0 || mode == kStopped) && g_damaged == 0 &&
         g_odd_results == 0 && g_sent == g_received && g_disordered == 0 && !has_children &&
         g_ended <= g_children;
}

static int write_often(size_t bytes) {
  char* const memory = malloc(bytes);
  char value = 1;
  memset(memory, value, bytes);
  printf("ready\n");
  fflush(stdout);
  while (getchar() != EOF) {
    memset(memory, ++value, bytes);
    printf("written\n");
    fflush(stdout);
  }
  printf("%d done\n", memory[bytes - 1]);
  return 0;
}

static void* wait_for_end(void* unused) {
  (void)unused;
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  atomic_store(&g_is_over, true);
  return NULL;
}

// Fills the registers and the red zone, runs for so many rounds, and returns 0 if all is the same.
static long look_at_registers(long rounds) {
  long result;
  __asm__ volatile(
      "lea -1024(%%rsp), %%rsp\n push %%rbp\n push %%rbx\n"
      "movq $101, -8(%%rsp)\n movq $102, -64(%%rsp)\n movq $103, -128(%%rsp)\n"
      "mov $1, %%eax\n movq %%rax, %%xmm0\n mov $2, %%eax\n movq %%rax, %%xmm7\n"
      "mov $3, %%eax\n movq %%rax, %%xmm15\n fld1\n"
      "mov $4, %%eax\n mov $5, %%ebx\n mov $6, %%edx\n mov $7, %%esi\n mov $8, %%edi\n"
      "mov $9, %%ebp\n mov $10, %%r8d\n mov $11, %%r9d\n mov $12, %%r10d\n mov $13, %%r11d\n"
      "mov $14, %%r12d\n mov $15, %%r13d\n mov $16, %%r14d\n mov $17, %%r15d\n"
      "1: dec %%rcx\n jnz 1b\n"
      "sub $4, %%rax\n sub $5, %%rbx\n sub $6, %%rdx\n sub $7, %%rsi\n sub $8, %%rdi\n"
      "sub $9, %%rbp\n sub $10, %%r8\n sub $11, %%r9\n sub $12, %%r10\n sub $13, %%r11\n"
      "sub $14, %%r12\n sub $15, %%r13\n sub $16, %%r14\n sub $17, %%r15\n"
      "or %%rbx, %%rax\n or %%rdx, %%rax\n or %%rsi, %%rax\n or %%rdi, %%rax\n"
      "or %%rbp, %%rax\n or %%r8, %%rax\n or %%r9, %%rax\n or %%r10, %%rax\n"
      "or %%r11, %%rax\n or %%r12, %%rax\n or %%r13, %%rax\n or %%r14, %%rax\n"
      "or %%r15, %%rax\n"
      "mov -8(%%rsp), %%rcx\n sub $101, %%rcx\n or %%rcx, %%rax\n"
      "mov -64(%%rsp), %%rcx\n sub $102, %%rcx\n or %%rcx, %%rax\n"
      "mov -128(%%rsp), %%rcx\n sub $103, %%rcx\n or %%rcx, %%rax\n"
      "movq %%xmm0, %%rcx\n sub $1, %%rcx\n or %%rcx, %%rax\n"
      "movq %%xmm7, %%rcx\n sub $2, %%rcx\n or %%rcx, %%rax\n"
      "movq %%xmm15, %%rcx\n sub $3, %%rcx\n or %%rcx, %%rax\n"
      "fistpq -8(%%rsp)\n mov -8(%%rsp), %%rcx\n sub $1, %%rcx\n or %%rcx, %%rax\n"
      "pop %%rbx\n pop %%rbp\n lea 1024(%%rsp), %%rsp\n"
      : "=&a"(result), "+c"(rounds)
      :
      : "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm7",
        "xmm15", "st", "cc", "memory");
  return result;
}

static int keep_registers(size_t bytes) {
  const struct timespec nap = {0, 1000000};
  char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) != 0) {
    abort();
  }
  memset(memory, 1, bytes);
  pthread_t reader;
  pthread_create(&reader, NULL, wait_for_end, NULL);
  const pid_t parent = getppid();
  printf("ready\n");
  fflush(stdout);
  long changed = 0;
  long naps = 0;
  long polls = 0;
  for (; !g_is_over; atomic_fetch_add(&g_rounds, 1)) {
    for (int i = 0; i < 5; ++i) {
      changed += look_at_registers(1000000) != 0;
      atomic_fetch_add(&g_odd_results, getppid() != parent);
    }
    naps += nanosleep(&nap, NULL) != 0;
    polls += poll(NULL, 0, kWaitMs) != 0;
  }
  pthread_join(reader, NULL);
  printf("rounds=%ld changed=%ld odd=%ld naps=%ld polls=%ld\n", (long)g_rounds, changed,
         (long)g_odd_results, naps, polls);
  const bool is_well = changed == 0 && g_odd_results == 0 && naps == 0 && polls == 0;
  printf(is_well ? "done\n" : "odd\n");
  return is_well ? 0 : 1;
}

static enum Mode mode_of(const char* name) {
  return strcmp(name, "handler") == 0 ? kHandler : strcmp(name, "stopped") == 0 ? kStopped : kPlain;
}

int main(int count, char** arguments) {
  if (count > 2 && strcmp(arguments[1], "write") == 0) {
    return write_often((size_t)atol(arguments[2]) << 20U);
  }
  if (count > 2 && strcmp(arguments[1], "registers") == 0) {
    return keep_registers((size_t)atol(arguments[2]) << 20U);
  }
  void* (*const works[])(void*) = {
      allocate,          sleep_often,  wait_for_events, wait_for_others, start_children,
      wait_for_children, take_signals, send_signals,    take_turns,      take_turns};
  enum { kThreads = sizeof(works) / sizeof(works[0]) };
  pthread_t threads[kThreads];
  const enum Mode mode = mode_of(count > 1 ? arguments[1] : "");
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  handle(SIGRTMIN, NULL, on_queued);
  handle(SIGALRM, on_tick, NULL);
  if (mode == kHandler) {
    handle(SIGCHLD, on_end, NULL);
  }
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, works[i], (void*)(i % 2));
  }
  printf("ready\n");
  fflush(stdout);
  char byte;
  long got;
  while ((got = read(STDIN_FILENO, &byte, 1)) > 0 || (got < 0 && errno == EINTR)) {
  }
  atomic_store(&g_is_over, true);
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  const bool is_well = report(mode);
  printf(is_well ? "done\n" : "odd\n");
  return is_well ? 0 : 1;
}
