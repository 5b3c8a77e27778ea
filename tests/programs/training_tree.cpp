// SPDX-License-Identifier: Apache-2.0
// A process tree that looks like a PyTorch training job and really uses the memory that it says:
//
//   [wrapper: uv or bash] -> trainer -> compile worker sidecar -> N pool workers
//                                    -> N DataLoader workers
//
// Each process carries the argv and comm of the real thing. When all of them have touched their
// memory the trainer prints one JSON line with the truth (pids by role, sizes in bytes). The tree
// ends after --seconds, on SIGTERM of its first process, or when that process or its parent dies.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/tidemark.h"

namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr int kReadyFd = 8;  // where every process reports; also the --write-fd of the sidecar

struct Options {
  int workers = 4;
  double worker_mb = 4;   // private to each pool worker
  double shared_mb = 16;  // of the sidecar, shared with its pool by fork
  double trainer_mb = 64;
  int dataloaders = 2;
  double dataloader_mb = 4;
  double grow_mb_per_s = 0;
  double steps_per_s = 0;  // above 0: prints and marks its steps
  double seconds = 60;     // 0: until it is told to stop
  std::string wrapper = "none";
  // 1.13: no compile workers, and DataLoader workers without a name; 2.6, 2.14: as they are there
  std::string torch = "2.14";
  std::string map;  // a file that the trainer maps, for example a libtorch_cpu.so
};

constexpr const char* kUsage =
    "usage: training_tree [--workers N] [--worker-mb M] [--shared-mb M] [--trainer-mb M]\n"
    "                     [--dataloaders N] [--dataloader-mb M] [--grow-mb-per-s R]\n"
    "                     [--steps-per-s R] [--seconds S] [--wrapper uv|bash|none]\n"
    "                     [--torch 1.13|2.6|2.14] [--map FILE]\n";

[[noreturn]] void fail(const std::string& what) {
  std::perror(("training_tree: " + what).c_str());
  std::_Exit(1);
}

template <typename T>
struct Named {
  std::string_view name;
  T Options::*field;
};

constexpr Named<int> kCounts[] = {{"--workers", &Options::workers},
                                  {"--dataloaders", &Options::dataloaders}};
constexpr Named<double> kNumbers[] = {{"--worker-mb", &Options::worker_mb},
                                      {"--shared-mb", &Options::shared_mb},
                                      {"--trainer-mb", &Options::trainer_mb},
                                      {"--dataloader-mb", &Options::dataloader_mb},
                                      {"--grow-mb-per-s", &Options::grow_mb_per_s},
                                      {"--steps-per-s", &Options::steps_per_s},
                                      {"--seconds", &Options::seconds}};
constexpr Named<std::string> kTexts[] = {
    {"--wrapper", &Options::wrapper}, {"--torch", &Options::torch}, {"--map", &Options::map}};

template <typename T, std::size_t N>
T* find_field(const Named<T> (&table)[N], std::string_view name, Options& options) {
  for (const Named<T>& entry : table) {
    if (entry.name == name) {
      return &(options.*entry.field);
    }
  }
  return nullptr;
}

Options parse_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const bool has_value = i + 1 < words.size();
    if (int* const count = find_field(kCounts, words[i], options); count != nullptr && has_value) {
      *count = std::atoi(words[i + 1].c_str());
    } else if (double* const number = find_field(kNumbers, words[i], options);
               number != nullptr && has_value) {
      *number = std::atof(words[i + 1].c_str());
    } else if (std::string* const text = find_field(kTexts, words[i], options);
               text != nullptr && has_value) {
      *text = words[i + 1];
    } else {
      std::fputs(kUsage, stderr);
      std::exit(2);
    }
  }
  return options;
}

volatile sig_atomic_t g_stop = 0;

void stop_on_sigterm() {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_stop = 1; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

void set_comm(const char* name) { ::prctl(PR_SET_NAME, name); }

// The process that started this one, as it knew itself: getppid() may already name another.
pid_t starter() {
  const char* const pid = std::getenv("TRAINING_TREE_STARTER");
  return pid != nullptr ? static_cast<pid_t>(std::atoi(pid)) : 0;
}

// For every process but the first: die with `parent`, also when it was already gone.
void die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) {
    std::_Exit(0);
  }
}

void touch(double megabytes) {
  const auto size = static_cast<std::size_t>(megabytes * static_cast<double>(kMegabyte));
  if (size == 0) {
    return;
  }
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail("mmap");
  }
  ::madvise(memory, size, MADV_NOHUGEPAGE);  // what is touched is what is resident
  std::memset(memory, 0x5A, size);
}

// Runs this program again under another argv; what it then is, `role` tells it.
[[noreturn]] void become(const char* role, pid_t starter_pid,
                         const std::vector<std::string>& argv) {
  ::setenv("TRAINING_TREE_ROLE", role, 1);
  ::setenv("TRAINING_TREE_STARTER", std::to_string(starter_pid).c_str(), 1);
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
  fail("execv");
}

pid_t start(const char* role, const std::vector<std::string>& argv) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail("fork");
  }
  if (pid == 0) {
    become(role, parent, argv);
  }
  return pid;
}

std::vector<std::string> trainer_argv() { return {"python3", "train.py", "--epochs", "3"}; }

std::vector<std::string> wrapper_argv(std::string_view kind) {
  if (kind == "uv") {
    return {"uv", "run", "train.py", "--epochs", "3"};
  }
  return {"bash", "-c", "python3 train.py --epochs 3; echo finished"};
}

std::vector<std::string> sidecar_argv(const Options& options) {
  std::vector<std::string> argv = {
      "/usr/bin/python3",
      "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py"};
  if (options.torch != "2.6") {
    argv.emplace_back("--pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler");
    argv.emplace_back("--kind=fork");
  }
  argv.emplace_back("--workers=" + std::to_string(options.workers));
  argv.emplace_back("--parent=" + std::to_string(::getpid()));
  argv.emplace_back("--read-fd=5");
  argv.emplace_back("--write-fd=" + std::to_string(kReadyFd));
  if (options.torch != "2.6") {
    argv.emplace_back("--torch-key=pLw3Q2zJ0v1kXnS8dYb5TgHc6RfUa9eMmB7iKq4oWxE=");
  }
  return argv;
}

enum class Kind { kSidecar, kPool, kDataloader };

// What a process tells the trainer once its memory is in place.
struct Ready {
  pid_t pid;
  Kind kind;
};

void report_ready(Kind kind) {
  const Ready ready = {::getpid(), kind};
  if (::write(kReadyFd, &ready, sizeof ready) != static_cast<ssize_t>(sizeof ready)) {
    fail("report");
  }
  ::close(kReadyFd);
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

pid_t fork_worker(Kind kind, double megabytes, const char* comm) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail("fork");
  }
  if (pid > 0) {
    return pid;
  }
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  die_with(parent);
  set_comm(comm);
  touch(megabytes);
  report_ready(kind);
  while (true) {
    ::pause();
  }
}

void end_children(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    ::kill(child, SIGTERM);
  }
  for (const pid_t child : children) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

int run_sidecar(const Options& options) {
  set_comm("python3");
  die_with(starter());
  stop_on_sigterm();
  touch(options.shared_mb);
  std::vector<pid_t> pool;
  for (int i = 0; i < options.workers; ++i) {
    pool.push_back(fork_worker(Kind::kPool, options.worker_mb, "python3"));
  }
  report_ready(Kind::kSidecar);
  while (g_stop == 0) {
    sleep_ms(20);
  }
  end_children(pool);
  return 0;
}

// The trainer's children, in the order of their birth.
std::vector<pid_t> start_children(const Options& options) {
  std::vector<pid_t> children;
  if (options.workers > 0) {
    children.push_back(start("sidecar", sidecar_argv(options)));
  }
  const char* const comm = options.torch == "1.13" ? "python3" : "pt_data_worker";
  for (int i = 0; i < options.dataloaders; ++i) {
    children.push_back(fork_worker(Kind::kDataloader, options.dataloader_mb, comm));
  }
  return children;
}

std::string json_list(std::vector<pid_t> pids) {
  std::sort(pids.begin(), pids.end());
  std::string text = "[";
  for (const pid_t pid : pids) {
    text += (text.size() > 1 ? "," : "") + std::to_string(pid);
  }
  return text + "]";
}

std::string json_bytes(double megabytes) {
  return std::to_string(static_cast<std::size_t>(megabytes * static_cast<double>(kMegabyte)));
}

// Waits until everybody below the trainer is ready, then prints who they are.
void print_truth(const Options& options, int ready_fd) {
  std::string sidecar = "null";
  std::vector<pid_t> compile_workers;
  std::vector<pid_t> dataloaders;
  Ready ready = {};
  while (::read(ready_fd, &ready, sizeof ready) == static_cast<ssize_t>(sizeof ready)) {
    (ready.kind == Kind::kDataloader ? dataloaders : compile_workers).push_back(ready.pid);
    if (ready.kind == Kind::kSidecar) {
      sidecar = std::to_string(ready.pid);
    }
  }
  const int expected = options.workers + options.dataloaders + (sidecar != "null" ? 1 : 0);
  if (static_cast<int>(compile_workers.size() + dataloaders.size()) != expected) {
    std::fputs("training_tree: a worker did not start\n", stderr);
    std::_Exit(1);
  }
  const std::string wrapper = options.wrapper == "none" ? "null" : std::to_string(::getppid());
  const std::string line =
      "{\"wrapper\":" + wrapper + ",\"trainer\":" + std::to_string(::getpid()) +
      ",\"compile_worker\":" + json_list(std::move(compile_workers)) + ",\"sidecar\":" + sidecar +
      ",\"dataloader_worker\":" + json_list(std::move(dataloaders)) +
      ",\"trainer_bytes\":" + json_bytes(options.trainer_mb) +
      ",\"compile_worker_private_bytes\":" + json_bytes(options.worker_mb) +
      ",\"compile_worker_shared_bytes\":" + json_bytes(options.shared_mb) +
      ",\"dataloader_worker_private_bytes\":" + json_bytes(options.dataloader_mb) + "}\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void train(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  double grown_mb = 0;
  long steps = 0;
  while (g_stop == 0 && ::getppid() == starter()) {
    const double t_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (options.seconds > 0 && t_s >= options.seconds) {
      break;
    }
    for (; static_cast<double>(steps) < t_s * options.steps_per_s; ++steps) {
      std::printf("Step %ld loss=%.4f\n", steps, 1.0 / static_cast<double>(steps + 1));
      std::fflush(stdout);
      tidemark_step(steps);
    }
    const double due_mb = t_s * options.grow_mb_per_s;
    if (due_mb - grown_mb >= 0.25) {
      touch(due_mb - grown_mb);
      grown_mb = due_mb;
    }
    sleep_ms(10);
  }
}

int run_trainer(const Options& options) {
  set_comm("python3");
  if (options.wrapper != "none") {
    die_with(starter());
  }
  stop_on_sigterm();
  if (!options.map.empty()) {
    const int fd = ::open(options.map.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
      fail(options.map);
    }
    ::close(fd);
  }
  touch(options.trainer_mb);
  int ready[2] = {-1, -1};
  if (::pipe(ready) != 0 || ::fcntl(ready[0], F_SETFD, FD_CLOEXEC) != 0 ||
      ::dup2(ready[1], kReadyFd) < 0) {
    fail("pipe");
  }
  if (ready[1] != kReadyFd) {
    ::close(ready[1]);
  }
  const std::vector<pid_t> children = start_children(options);
  ::close(kReadyFd);
  print_truth(options, ready[0]);
  train(options);
  end_children(children);
  return 0;
}

int run_wrapper(const Options& options) {
  set_comm(options.wrapper.c_str());
  stop_on_sigterm();
  const pid_t trainer = start("trainer", trainer_argv());
  int status = 0;
  bool told = false;
  while (::waitpid(trainer, &status, WNOHANG) == 0) {
    if (!told && (g_stop != 0 || ::getppid() != starter())) {
      ::kill(trainer, SIGTERM);
      told = true;
    }
    sleep_ms(20);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const role = std::getenv("TRAINING_TREE_ROLE");
  if (role == nullptr) {
    const Options options = parse_options({argv + 1, argv + argc});
    std::string all;
    for (int i = 1; i < argc; ++i) {
      all += std::string(argv[i]) + "\n";
    }
    ::setenv("TRAINING_TREE_OPTIONS", all.c_str(), 1);
    if (options.wrapper == "none") {
      become("trainer", ::getppid(), trainer_argv());
    }
    become("wrapper", ::getppid(), wrapper_argv(options.wrapper));
  }
  const char* const all = std::getenv("TRAINING_TREE_OPTIONS");
  const Options options = parse_options(lines_of(all != nullptr ? all : ""));
  if (std::string_view(role) == "wrapper") {
    return run_wrapper(options);
  }
  return std::string_view(role) == "trainer" ? run_trainer(options) : run_sidecar(options);
}
