// SPDX-License-Identifier: Apache-2.0
#include "guard/resume_helper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "monitor/procfs/process_signal.h"

namespace tidemark::guard {
namespace {

// Until the other end is closed. Nothing is ever written to it.
void wait_for_the_end(int life) {
  char nothing = 0;
  while (::read(life, &nothing, 1) != 0) {
    if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

Result<ResumeHelper> ResumeHelper::start(std::size_t most) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error("cannot talk to a helper", errno);
  }
  Fd theirs(ends[0]);
  Fd ours(ends[1]);
  const std::size_t bytes = sizeof(Shared) + most * sizeof(ProcessKey);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return system_error("no memory to share with a helper", errno);
  }
  auto* const shared = new (memory) Shared{};
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int error = errno;
    ::munmap(memory, bytes);
    return system_error("cannot start a helper", error);
  }
  if (pid == 0) {
    ::prctl(PR_SET_NAME, "tidemark-resume");
    ::setsid();  // what is sent to the guard's group or terminal does not end it
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      ::signal(number, SIG_IGN);
    }
    ours.reset();
    wait_for_the_end(theirs.get());
    const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (std::uint32_t i = shared->count.load(std::memory_order_acquire); i > 0; --i) {
      monitor::signal_process(proc, shared->keys[i - 1], SIGCONT);
    }
    ::_exit(0);
  }
  return ResumeHelper(pid, std::move(ours), shared, most, bytes);
}

ResumeHelper::ResumeHelper(ResumeHelper&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      life_(std::move(other.life_)),
      shared_(std::exchange(other.shared_, nullptr)),
      most_(other.most_),
      bytes_(other.bytes_) {}

ResumeHelper::~ResumeHelper() {
  if (shared_ == nullptr) {
    return;
  }
  life_.reset();
  ::waitpid(pid_, nullptr, 0);
  ::munmap(shared_, bytes_);
}

void ResumeHelper::will_stop(const ProcessKey& key) {
  const std::uint32_t count = shared_->count.load(std::memory_order_relaxed);
  if (count <= most_) {
    shared_->keys[count] = key;
    shared_->count.store(count + 1, std::memory_order_release);
  }
}

void ResumeHelper::forget_all() { shared_->count.store(0, std::memory_order_release); }

}  // namespace tidemark::guard
