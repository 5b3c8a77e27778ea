// SPDX-License-Identifier: Apache-2.0
// Imitates the processes around a trainer: small, without libtorch, under the argv of the real
// ones. TIDEMARK_HARNESS_HELPER says which one; see helper_process.h.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/io.h"
#include "common/text.h"
#include "trainer_harness/helper_process.h"

namespace {

using tidemark::parse_number;
using tidemark::write_all;

constexpr int kFailed = 70;

// Resident anonymous memory, held to the end of the process.
bool allocate_memory(std::uint64_t bytes) {
  if (bytes == 0) {
    return true;
  }
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  std::memset(memory, 0x5A, bytes);
  return true;
}

// ---- Compile workers: a sidecar and its pool ----

struct PoolOptions {
  int read_fd = -1;
  int write_fd = -1;
  std::uint64_t workers = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t private_bytes = 0;
};

[[noreturn]] void run_worker(const PoolOptions& options, pid_t sidecar, int ready_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(options.read_fd);
  ::close(options.write_fd);
  if (::getppid() != sidecar || !allocate_memory(options.private_bytes)) {
    ::_exit(kFailed);
  }
  (void)write_all(ready_fd, "r");
  ::close(ready_fd);
  while (true) {
    ::pause();
  }
}

void kill_all(std::vector<pid_t>& workers) {
  for (const pid_t worker : workers) {
    ::kill(worker, SIGKILL);
    while (::waitpid(worker, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  workers.clear();
}

// Forks the pool and waits until each worker has its memory.
bool fork_pool(const PoolOptions& options, std::vector<pid_t>& workers) {
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) {
    return false;
  }
  const pid_t sidecar = ::getpid();
  for (std::uint64_t i = 0; i < options.workers; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      run_worker(options, sidecar, ready[1]);
    }
    if (pid < 0) {
      return false;
    }
    workers.push_back(pid);
  }
  ::close(ready[1]);
  std::uint64_t count = 0;
  std::array<char, 64> buffer{};
  while (count < options.workers) {
    const auto size = tidemark::read_some(ready[0], buffer);
    if (!size || *size == 0) {
      return false;
    }
    count += *size;
  }
  ::close(ready[0]);
  return true;
}

int run_sidecar(const PoolOptions& options) {
  std::vector<pid_t> workers;
  if (!allocate_memory(options.shared_bytes) || !fork_pool(options, workers)) {
    kill_all(workers);
    return kFailed;
  }
  std::string pids;
  for (const pid_t worker : workers) {
    pids += std::to_string(worker) + " ";
  }
  (void)write_all(options.write_fd, pids + "\n");
  std::array<char, 1> order{};
  while (true) {
    const auto size = tidemark::read_some(options.read_fd, order);
    kill_all(workers);
    if (!size || *size == 0) {
      return 0;  // the trainer has ended
    }
    (void)write_all(options.write_fd, "quiet\n");
  }
}

// ---- Shared memory manager ----

// Ends only when the trainer has ended: a signal to the trainer's group or to a whole service must
// not end the process that cleans up.
int run_shm_manager(int read_fd, std::string_view prefix) {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ::signal(number, SIG_IGN);
  }
  std::array<char, 1> nothing{};
  while (true) {
    const auto size = tidemark::read_some(read_fd, nothing);
    if (!size || *size == 0) {
      break;
    }
  }
  DIR* const directory = ::opendir("/dev/shm");
  if (directory == nullptr) {
    return kFailed;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    if (std::string_view(entry->d_name).starts_with(prefix)) {
      names.emplace_back(std::string("/") + entry->d_name);
    }
  }
  ::closedir(directory);
  for (const std::string& name : names) {
    ::shm_unlink(name.c_str());
  }
  return 0;
}

// ---- Wrapper ----

volatile sig_atomic_t g_trainer = 0;

void forward_signal(int number) {
  if (g_trainer > 0) {
    ::kill(static_cast<pid_t>(g_trainer), number);
  }
}

// argv: uv run PROGRAM ARGUMENTS...; `program` is the path of PROGRAM.
int run_wrapper(const std::string& program, char** argv) {
  const pid_t wrapper = ::getpid();
  sigset_t passed;
  sigset_t before;
  ::sigemptyset(&passed);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&passed, number);
  }
  ::sigprocmask(SIG_BLOCK, &passed, &before);
  const pid_t trainer = ::fork();
  if (trainer < 0) {
    return kFailed;
  }
  if (trainer == 0) {
    // SIGTERM, so that it writes a checkpoint when the wrapper is killed.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != wrapper) {
      ::_exit(kFailed);
    }
    ::unsetenv(tidemark::harness::kHelperVariable);
    ::setenv(tidemark::harness::kWrappedVariable, std::to_string(wrapper).c_str(), 1);
    ::execv(program.c_str(), argv + 2);
    ::_exit(127);
  }
  g_trainer = trainer;
  struct sigaction action {};
  action.sa_handler = forward_signal;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaction(number, &action, nullptr);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(trainer, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <typename Number>
Number number_at(const std::vector<std::string_view>& words, std::size_t at) {
  return at < words.size() ? parse_number<Number>(words[at]).value_or(0) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const role = std::getenv(tidemark::harness::kHelperVariable);
  if (role == nullptr) {
    (void)write_all(2, "This program is a part of tidemark-harness and is started by it.\n");
    return 2;
  }
  const std::vector<std::string_view> words = tidemark::split(role, ' ');
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, std::string(tidemark::basename_of(argv[0])).c_str());
  if (words[0] == "compile-sidecar") {
    return run_sidecar({number_at<int>(words, 1), number_at<int>(words, 2),
                        number_at<std::uint64_t>(words, 3), number_at<std::uint64_t>(words, 4),
                        number_at<std::uint64_t>(words, 5)});
  }
  if (words[0] == "shm-manager" && words.size() > 2) {
    return run_shm_manager(number_at<int>(words, 1), words[2]);
  }
  if (words[0] == "wrapper" && words.size() > 1 && argc > 2) {
    return run_wrapper(std::string(std::string_view(role).substr(words[0].size() + 1)), argv);
  }
  return 2;
}
