// SPDX-License-Identifier: Apache-2.0
// A parent with a large heap forks workers that write a little into every page of it, as reference
// counts do in DataLoader workers: each page that is written becomes a copy of its own. RSS of
// every process stands still from the first moment; the memory of all together grows until each
// worker has a full copy.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kPageBytes = 4096;

// The step of the parent, where its workers see it.
std::atomic<long>& shared_step() {
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    std::perror("mmap");
    std::_Exit(1);
  }
  return *new (page) std::atomic<long>(0);
}

// Has written the part of the heap that belongs to each step when the parent is there.
[[noreturn]] void work(Block& heap, const std::atomic<long>& step, double copy_steps) {
  const std::size_t pages = heap.size() / kPageBytes;
  std::size_t written = 0;
  while (true) {
    const double share = static_cast<double>(step.load()) / copy_steps;
    const auto due =
        share >= 1 ? pages : static_cast<std::size_t>(share * static_cast<double>(pages));
    for (; written < due; ++written) {
      heap.data()[written * kPageBytes] = 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

pid_t fork_worker(Block& heap, const std::atomic<long>& step, double copy_steps) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("fork");
    std::_Exit(1);
  }
  if (pid > 0) {
    return pid;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    std::_Exit(0);
  }
  ::prctl(PR_SET_NAME, "pt_data_worker");
  work(heap, step, copy_steps);
}

}  // namespace

int main(int argc, char** argv) {
  Pace pace;
  double heap_mb = 60;
  double workers = 4;
  double copy_steps = 150;  // until every worker has copied all of it
  parse_options(argc, argv, pace,
                {{"--heap-mb", &heap_mb}, {"--workers", &workers}, {"--copy-steps", &copy_steps}});
  const bool ends = copy_steps < pace.count;
  print_truth("cow_workers", ends ? "warmup" : "growing", pace,
              {{"base_bytes", heap_mb * kMegabyte},
               {"workers", workers},
               {"settled_step", copy_steps},
               {"settled_bytes", heap_mb * (workers + 1) * kMegabyte}});

  Block heap(heap_mb);
  std::atomic<long>& step = shared_step();
  std::vector<pid_t> children;
  for (int i = 0; i < static_cast<int>(workers); ++i) {
    children.push_back(fork_worker(heap, step, copy_steps));
  }
  run_steps(pace, [&](long n) { step.store(n); });
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}
