// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_watch_system.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "monitor/procfs/launch_mark.h"

namespace tidemark::tests {
namespace {

constexpr int kLongestRealWaitMs = 10'000;
constexpr std::uint64_t kKibPerMib = 1024;

Fd memory_file() { return Fd(::memfd_create("tidemark-test", MFD_CLOEXEC)); }

std::string text_of(int fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

bool any_ready(std::span<pollfd> fds, int timeout_ms) {
  return ::poll(fds.data(), fds.size(), timeout_ms) > 0;
}

FakeProcess process_of(pid_t pid, std::uint64_t mib, pid_t ppid) {
  FakeProcess process;
  process.pid = pid;
  process.ppid = ppid;
  process.anon_kib = mib * kKibPerMib;
  process.pss_anon_kib = process.anon_kib;
  process.private_dirty_kib = process.anon_kib;
  return process;
}

// The loop owns its source; the test writes the table.
class SharedSource final : public monitor::ProcessSource {
 public:
  explicit SharedSource(FakeProcessSource& source) : source_(source) {}
  Result<std::vector<monitor::ProcessEntry>> snapshot() override { return source_.snapshot(); }

 private:
  FakeProcessSource& source_;
};

// As a descriptor of /proc fails when its process has ended.
ssize_t pread_of_what_exists(int fd, void* buffer, std::size_t size, off_t offset) {
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0) {
    errno = ESRCH;
    return -1;
  }
  return ::pread(fd, buffer, size, offset);
}

}  // namespace

class FakeWatchSystem::FakeCommand final : public live::Command {
 public:
  explicit FakeCommand(FakeWatchSystem& system) : system_(system) {}
  ~FakeCommand() override { system_.command_ = nullptr; }

  const ProcessKey& key() const override { return key_; }
  void handle(const live::ReceivedSignal& signal) override {
    if (signal.number == SIGCHLD) {
      if (exiting_ && !wait_status_) {
        wait_status_ = exiting_;
        reaped_.push_back({key_.pid, *exiting_});
      }
    } else {
      system_.passed_on.push_back(signal.number);
    }
  }
  std::optional<int> exit_code() const override {
    if (!wait_status_) {
      return std::nullopt;
    }
    return WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
  }
  std::vector<live::ReapedChild> take_reaped() override { return std::exchange(reaped_, {}); }
  void exit_with(int wait_status) { exiting_ = wait_status; }

 private:
  FakeWatchSystem& system_;
  const ProcessKey key_{kCommandPid, 100};
  std::optional<int> exiting_;
  std::optional<int> wait_status_;
  std::vector<live::ReapedChild> reaped_;
};

FakeWatchSystem::FakeWatchSystem()
    : start_ns_(fake_clock.now_ns),
      real_syscalls_(replace_syscalls({})),
      stdout_(memory_file()),
      stderr_(memory_file()) {
  Syscalls calls = real_syscalls_;
  calls.pread = pread_of_what_exists;
  replace_syscalls(calls);
  machine.write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 16000000 kB\n");
  machine.write("proc/vmstat", "oom_kill 0\n");
  put(::getpid(), 10);
}

FakeWatchSystem::~FakeWatchSystem() { replace_syscalls(real_syscalls_); }

void FakeWatchSystem::at(double t_s, std::function<void()> happens) {
  script_.emplace(start_ns_ + static_cast<std::int64_t>(t_s * 1e9), std::move(happens));
}

void FakeWatchSystem::deliver(int number, bool from_kernel) {
  waiting_.push_back({number, from_kernel, from_kernel ? 0 : 1});
}

void FakeWatchSystem::put(pid_t pid, std::uint64_t mib, pid_t ppid) {
  FakeProcess process = process_of(pid, mib, ppid);
  process.environ = ppid == ::getpid() ? "A=1\0TIDEMARK_LAUNCH=" + monitor::launch_mark() : "";
  proc.put(process);
}

void FakeWatchSystem::put_stranger(pid_t pid, std::uint64_t mib) {
  proc.put(process_of(pid, mib, ::getpid()));
}

void FakeWatchSystem::end(pid_t pid) { proc.end(pid); }

void FakeWatchSystem::end_command(int wait_status) {
  ASSERT_NE(command_, nullptr);
  end(kCommandPid);
  command_->exit_with(wait_status);
  deliver(SIGCHLD);
}

double FakeWatchSystem::now_s() const { return to_seconds(fake_clock.now_ns - start_ns_); }
std::string FakeWatchSystem::stdout_text() const { return text_of(stdout_.get()); }
std::string FakeWatchSystem::stderr_text() const { return text_of(stderr_.get()); }

Status FakeWatchSystem::open_signals(live::SignalInbox::For /*purpose*/) {
  ::signal(SIGPIPE, SIG_IGN);
  return ok();
}

std::optional<live::ReceivedSignal> FakeWatchSystem::next_signal() {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  const live::ReceivedSignal first = waiting_.front();
  waiting_.erase(waiting_.begin());
  return first;
}

bool FakeWatchSystem::wait(std::int64_t due_ns, std::span<pollfd> fds) {
  constexpr double kLongestRunS = 10'000;
  if (now_s() > kLongestRunS) {
    ADD_FAILURE() << "the loop does not end";
    ::exit(1);
  }
  if (any_ready(fds, 0) || !waiting_.empty()) {
    return !waiting_.empty();
  }
  if (!script_.empty() && script_.begin()->first <= due_ns) {
    const auto next = script_.extract(script_.begin());
    fake_clock.now_ns = std::max(fake_clock.now_ns, next.key());
    next.mapped()();
    return !waiting_.empty();
  }
  if (due_ns < INT64_MAX) {
    fake_clock.now_ns = std::max(fake_clock.now_ns, due_ns);
    return false;
  }
  if (!any_ready(fds, kLongestRealWaitMs)) {  // a thread that writes lines is all that is left
    ADD_FAILURE() << "the loop waits, and nothing is left to happen";
    ::exit(1);
  }
  return false;
}

Result<std::unique_ptr<monitor::ProcessSource>> FakeWatchSystem::open_processes() {
  return std::unique_ptr<monitor::ProcessSource>(std::make_unique<SharedSource>(proc.source()));
}

monitor::SessionOptions FakeWatchSystem::session_options() const {
  monitor::SessionOptions options;
  options.sampler.proc_root = proc.root();
  options.sampler.shm_root = shm.path();
  options.machine_root = machine.path();
  return options;
}

Result<std::unique_ptr<live::Command>> FakeWatchSystem::launch(const live::LaunchOptions& options) {
  if (launch_error) {
    return *launch_error;
  }
  launched = options;
  put(kCommandPid, 50, ::getpid());
  auto command = std::make_unique<FakeCommand>(*this);
  command_ = command.get();
  return std::unique_ptr<live::Command>(std::move(command));
}

}  // namespace tidemark::tests
