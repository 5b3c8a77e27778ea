// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/cow_workers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

// Anonymous pages that are unmapped at the end.
class Mapping {
 public:
  Mapping(std::uint64_t bytes, int sharing)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() {
    if (memory_ != MAP_FAILED) {
      ::munmap(memory_, bytes_);
    }
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool is_there() const { return memory_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(memory_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
  void* memory_;
};

}  // namespace

struct CowWorkers::Memory {
  explicit Memory(std::uint64_t heap_bytes)
      : heap(heap_bytes, MAP_PRIVATE), page(kPageBytes, MAP_SHARED) {}
  Mapping heap;
  Mapping page;                                // that holds:
  std::atomic<std::uint64_t>* step = nullptr;  // where the workers see it
};

CowWorkers::CowWorkers(const Plan::CopyOnWrite& plan)
    : plan_(plan), memory_(std::make_unique<Memory>(std::max(plan.heap_bytes, kPageBytes))) {}

CowWorkers::~CowWorkers() {
  for (const pid_t worker : workers_) {
    ::kill(worker, SIGKILL);
    while (::waitpid(worker, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<std::unique_ptr<CowWorkers>> CowWorkers::start(const Plan::CopyOnWrite& plan) {
  std::unique_ptr<CowWorkers> pool(new CowWorkers(plan));
  Memory& memory = *pool->memory_;
  if (!memory.heap.is_there() || !memory.page.is_there()) {
    return system_error("memory for the dataset", errno);
  }
  // A copy of one page is then a copy of 4 KiB, not of 2 MiB.
  ::madvise(memory.heap.data(), memory.heap.bytes(), MADV_NOHUGEPAGE);
  std::memset(memory.heap.data(), 0x5A, memory.heap.bytes());
  memory.step = new (memory.page.data()) std::atomic<std::uint64_t>(0);
  const pid_t parent = ::getpid();
  for (std::uint64_t i = 0; i < plan.workers; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      return system_error("fork", errno);
    }
    if (pid == 0) {
      pool->work(parent);
    }
    pool->workers_.push_back(pid);
  }
  return pool;
}

void CowWorkers::on_step(std::uint64_t step) { memory_->step->store(step); }

void CowWorkers::work(pid_t parent) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "pt_data_worker");
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  const std::uint64_t pages = memory_->heap.bytes() / kPageBytes;
  std::uint64_t written = 0;
  while (::getppid() == parent) {
    const double share = copied_share(plan_, memory_->step->load());
    for (const auto due = static_cast<std::uint64_t>(share * static_cast<double>(pages));
         written < due; ++written) {
      memory_->heap.data()[written * kPageBytes] = 1;
    }
    const timespec pause{0, 5'000'000};
    ::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

}  // namespace tidemark::harness
