// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::harness {
namespace {

// One line from the sidecar.
Result<std::string> read_line(int fd) {
  std::string line;
  std::array<char, 512> buffer{};
  while (line.find('\n') == std::string::npos) {
    TIDEMARK_TRY_ASSIGN(const auto size, read_some(fd, buffer));
    if (size == 0) {
      return Error{Errc::kGone, "the compile workers ended before they had allocated their memory"};
    }
    line.append(buffer.data(), size);
  }
  line.resize(line.find('\n'));
  return line;
}

constexpr std::uint64_t kPageBytes = 4096;

// Anonymous pages, unmapped by the destructor.
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

  bool is_mapped() const { return memory_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(memory_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
  void* memory_;
};

// torch_PID_RANDOM_, as torch names them. The pid alone could be that of another run: an earlier
// job of the same process, or one in another pid namespace that shares /dev/shm.
std::string random_prefix() {
  return fmt::format("torch_{}_{}_", ::getpid(), std::random_device{}());
}

}  // namespace

Result<CompilePool> CompilePool::start(const Plan::Pool& plan) {
  const std::string count = std::to_string(plan.workers);
  TIDEMARK_TRY_ASSIGN(
      auto helper,
      start_helper({"/usr/bin/python3",
                    "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py",
                    "--pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler",
                    "--kind=fork", "--workers=" + count, "--parent=" + std::to_string(::getpid()),
                    "--read-fd=READ_FD", "--write-fd=WRITE_FD"},
                   "compile-sidecar READ_FD WRITE_FD " + count + " " +
                       std::to_string(plan.shared_bytes) + " " +
                       std::to_string(plan.private_bytes)));
  CompilePool pool(std::move(helper));
  TIDEMARK_TRY_ASSIGN(const auto pids, read_line(pool.helper_.from_helper.get()));
  for (const std::string_view word : split(pids, ' ')) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pool.workers_.push_back(*pid);
    }
  }
  return pool;
}

Status CompilePool::quiesce() {
  TIDEMARK_TRY(write_all(helper_.to_helper.get(), "q"));
  TIDEMARK_TRY(read_line(helper_.from_helper.get()));
  return ok();
}

bool compile_is_disabled() {
  const char* const value = std::getenv("TORCH_COMPILE_DISABLE");
  return value != nullptr && std::string_view(value) == "1";
}

struct CowWorkers::Memory {
  explicit Memory(std::uint64_t heap_bytes)
      : heap(heap_bytes, MAP_PRIVATE), page(kPageBytes, MAP_SHARED) {}
  Mapping heap;
  Mapping page;
  std::atomic<std::uint64_t>* step = nullptr;  // in `page`, which the workers share
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
  if (!memory.heap.is_mapped() || !memory.page.is_mapped()) {
    return system_error("memory for the dataset", errno);
  }
  // So that a write copies 4 KiB, not 2 MiB.
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

Result<ShmSegments> ShmSegments::start(bool keep) {
  std::string prefix = random_prefix();
  if (keep) {
    return ShmSegments(std::move(prefix), std::nullopt);
  }
  TIDEMARK_TRY_ASSIGN(
      auto manager, start_helper({"/usr/bin/torch_shm_manager"}, "shm-manager READ_FD " + prefix));
  return ShmSegments(std::move(prefix), std::move(manager));
}

Status ShmSegments::leak_one(std::uint64_t bytes, LeakLines& lines) {
  if (bytes == 0) {
    return ok();
  }
  const std::string name = "/" + prefix_ + std::to_string(count_++);
  const Fd segment(
      noted(lines.retaining, ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)));
  if (!segment) {
    return system_error("/dev/shm" + name, errno);
  }
  // Not ftruncate: touching a hole of a full file system is SIGBUS.
  const auto size = static_cast<off_t>(bytes);
  const int error = noted(lines.allocating, ::posix_fallocate(segment.get(), 0, size));
  if (error != 0) {
    return system_error("/dev/shm" + name, error);
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (memory == MAP_FAILED) {
    return system_error("/dev/shm" + name, errno);
  }
  std::memset(memory, 0x5A, bytes);
  ::munmap(memory, bytes);
  return ok();
}

std::optional<pid_t> ShmSegments::manager() const {
  return manager_ ? std::optional(manager_->pid) : std::nullopt;
}

}  // namespace tidemark::harness
