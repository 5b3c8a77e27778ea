// SPDX-License-Identifier: Apache-2.0
#include "api/tidemark.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/support/in_child.h"
#include "tests/support/marker_dump.h"
#include "tests/unit/api/second_unit.h"

// Every test marks in a forked child of its own: it starts without a ring, and the test program
// itself never marks.
namespace tidemark {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using tests::dump_markers;
using tests::EndBy;
using tests::in_child;
using tests::marker_directory;
using tests::marker_files;

void remove_markers_of(pid_t pid) {
  for (const auto& name : marker_files(pid)) {
    std::filesystem::remove(marker_directory() + "/" + name);
  }
}

// What `body` marked, then no trace of it.
std::string marked_by(void (*body)()) {
  return in_child([body] {
    body();
    const std::string lines = dump_markers(::getpid());
    remove_markers_of(::getpid());
    return lines;
  });
}

TEST(TidemarkHeader, WritesOneRecordPerCall) {
  const std::string lines = marked_by([] {
    tidemark_epoch(1);
    tidemark_step(41);
    tidemark_phase_begin("eval");
    tidemark_phase_end("eval");
    tidemark_step(-1);
    tidemark_gauge("cache_bytes", INT64_C(5000000000));
  });

  EXPECT_EQ(lines,
            "c: epoch 1\nc: step 41\nc: begin eval\nc: end eval\nc: step -1\n"
            "c: gauge cache_bytes 5000000000\n");
}

// In KiB, with the whole ring in it from the first call on.
long shared_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kib = -1;
  while (status >> word) {
    if (word == "RssShmem:") {
      status >> kib;
    }
  }
  return kib;
}

TEST(TidemarkHeader, IsAllInMemoryFromTheFirstCallOn) {
  const std::string grown = in_child([] {
    const long before = shared_kib();
    tidemark_step(0);
    const long first = shared_kib();
    for (unsigned i = 1; i < 3 * TIDEMARK_RING_CAPACITY; ++i) {
      tidemark_step(i);
    }
    const long last = shared_kib();
    remove_markers_of(::getpid());
    return fmt::format("{} then {}", first - before >= 256 ? "all" : "some", last - first);
  });
  EXPECT_EQ(grown, "all then 0");
}

TEST(TidemarkHeader, CutsLongNamesAndSurvivesNone) {
  const std::string lines = marked_by([] {
    tidemark_phase_begin("a name of more than thirty-two bytes");
    tidemark_phase_begin(nullptr);
  });

  EXPECT_EQ(lines, "c: begin a name of more than thirty-two b\nc: begin \n");
}

TEST(TidemarkHeader, KeepsTheLastRecordsWhenTheRingWraps) {
  const std::string lines = marked_by([] {
    for (int n = 0; n < 10'000; ++n) {
      tidemark_step(n);
    }
  });

  EXPECT_THAT(lines, testing::StartsWith(fmt::format("c: step {}\n", 10'000 - 4096)));
  EXPECT_THAT(lines, testing::EndsWith("c: step 9999\n"));
}

TEST(TidemarkHeader, SharesOneFileBetweenTranslationUnits) {
  const std::string lines = marked_by([] {
    tidemark_step(1);
    mark_from_second_unit(2);
    tidemark_step(3);
  });

  EXPECT_EQ(lines, "c: step 1\nc: step 2\nc: step 3\n");
}

TEST(TidemarkHeader, LosesNoRecordOfManyThreads) {
  const std::string lines = marked_by([] {
    tidemark_step(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int n = 0; n < 1000; ++n) {
          tidemark_step(1);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  });

  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4001);
  EXPECT_THAT(lines, testing::Not(HasSubstr("not published")));
}

TEST(TidemarkHeader, KeepsErrno) {
  const std::string result = in_child([] {
    errno = ENOTTY;
    tidemark_step(1);
    const int after_open = errno;
    tidemark_step(2);
    const int after_mark = errno;
    remove_markers_of(::getpid());
    return fmt::format("{} {}", after_open == ENOTTY, after_mark == ENOTTY);
  });

  EXPECT_EQ(result, "true true");
}

TEST(TidemarkHeader, MakesAPrivateFileInAPrivateDirectory) {
  const std::string modes = in_child([] {
    tidemark_step(1);
    struct stat directory {};
    struct stat file {};
    const std::string path = marker_directory() + "/" + marker_files(::getpid()).front();
    ::stat(marker_directory().c_str(), &directory);
    ::stat(path.c_str(), &file);
    remove_markers_of(::getpid());
    return fmt::format("{:o} {:o}", directory.st_mode & 07777, file.st_mode & 07777);
  });

  EXPECT_EQ(modes, "700 600");
}

std::string mark_across_fork() {
  tidemark_step(1);
  const pid_t parent = ::getpid();
  const std::string of_child = in_child([parent] {
    tidemark_step(100);
    const std::string lines =
        "child " + dump_markers(::getpid()) + "parent " + dump_markers(parent);
    remove_markers_of(::getpid());
    return lines;
  });
  tidemark_step(2);
  const std::string lines = of_child + "then " + dump_markers(parent);
  remove_markers_of(parent);
  return lines;
}

constexpr const char* kApartAcrossFork =
    "child c: step 100\nparent c: step 1\nthen c: step 1\nc: step 2\n";

TEST(TidemarkHeader, GivesAForkedChildItsOwnFile) {
  EXPECT_EQ(in_child(&mark_across_fork), kApartAcrossFork);
}

// From here on madvise(..., MADV_WIPEONFORK) fails in this process, as on a kernel before 4.14.
bool refuse_wipe_on_fork() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(TidemarkHeader, GivesAForkedChildItsOwnFileOnOldKernels) {
  const std::string lines = in_child([] {
    if (!refuse_wipe_on_fork()) {
      return std::string("no seccomp");
    }
    return mark_across_fork();
  });
  if (lines == "no seccomp") {
    GTEST_SKIP() << "the kernel refuses seccomp filters";
  }

  EXPECT_EQ(lines, kApartAcrossFork);
}

TEST(TidemarkHeader, RemovesItsFileAtExit) {
  const std::string pid = in_child(
      [] {
        tidemark_step(1);
        mark_from_second_unit(2);
        return marker_files(::getpid()).empty() ? "no file" : std::to_string(::getpid());
      },
      EndBy::kExit);

  ASSERT_NE(pid, "no file");
  EXPECT_THAT(marker_files(std::stoi(pid)), IsEmpty());
}

TEST(TidemarkHeader, DoesNotTouchTheFileOfItsParentAtExit) {
  const std::string files = in_child([] {
    tidemark_step(1);
    in_child([] { return std::string(); }, EndBy::kExit);
    const auto names = marker_files(::getpid());
    remove_markers_of(::getpid());
    return std::to_string(names.size());
  });

  EXPECT_EQ(files, "1");
}

using MarkFunction = void (*)(std::int64_t);

void mark_from_a_module_that_is_closed_again(std::int64_t step) {
  void* module = ::dlopen(TIDEMARK_MARKING_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << ::dlerror();
  reinterpret_cast<MarkFunction>(::dlsym(module, "mark_from_module"))(step);
  ::dlclose(module);
}

TEST(TidemarkHeader, KeepsTheFileWhenAModuleOfSeveralUsersIsClosed) {
  const std::string lines = marked_by([] {
    tidemark_step(1);
    mark_from_a_module_that_is_closed_again(2);
    tidemark_step(3);
  });

  EXPECT_EQ(lines, "c: step 1\nc: step 2\nc: step 3\n");
}

TEST(TidemarkHeader, RemovesTheFileWhenTheModuleThatUsedItIsClosed) {
  const std::string files = in_child([] {
    mark_from_a_module_that_is_closed_again(2);
    return std::to_string(marker_files(::getpid()).size());
  });

  EXPECT_EQ(files, "0");
}

TEST(TidemarkHeader, DoesNothingWhenSwitchedOff) {
  const std::string files = in_child([] {
    ::setenv("TIDEMARK_MARKERS", "off", 1);  // NOLINT(concurrency-mt-unsafe): one thread
    tidemark_step(1);
    return std::to_string(marker_files(::getpid()).size());
  });

  EXPECT_EQ(files, "0");
}

TEST(TidemarkHeader, DoesNothingUnderAFileSizeLimitThatIsTooSmall) {
  const std::string result = in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit small{64U << 10U, 64U << 10U};
    ::setrlimit(RLIMIT_FSIZE, &small);
    tidemark_step(1);
    return fmt::format("alive, {} files", marker_files(::getpid()).size());
  });

  EXPECT_EQ(result, "alive, 0 files");
}

// Runs `body` where /dev/shm is a small tmpfs that nobody else sees.
std::string with_own_shm(const char* options, const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    const bool root = ::geteuid() == 0;
    if (::unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/dev/shm", "tmpfs", 0, options) != 0) {
      return "no mount";
    }
    return body();
  });
}

TEST(TidemarkHeader, DoesNothingOnAFullFileSystem) {
  const std::string result = with_own_shm("size=64k", [] {
    for (int n = 0; n < 5000; ++n) {
      tidemark_step(n);
      tidemark_phase_begin("eval");
    }
    return fmt::format("alive, {} files", marker_files(::getpid()).size());
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "alive, 0 files");
}

pid_t pid_of_a_dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  return pid;
}

TEST(TidemarkHeader, RemovesWhatTheDeadLeftBehindAndNothingElse) {
  const std::string result = with_own_shm("size=4m", [] {
    struct stat own {};
    ::stat("/proc/self/ns/pid", &own);
    const pid_t dead = pid_of_a_dead_process();
    const std::vector<std::string> names = {
        fmt::format("{}-1-{}.c.markers", dead, own.st_ino),
        fmt::format("{}-1-{}.py.7f00.new", dead, own.st_ino),
        fmt::format("{}-1-{}.other_namespace.markers", dead, own.st_ino + 1),
        fmt::format("{}-1-{}.living.markers", ::getppid(), own.st_ino),
        fmt::format("{}-notes", dead),
    };
    ::mkdir(marker_directory().c_str(), 0700);
    for (const std::string& name : names) {
      std::ofstream(marker_directory() + "/" + name) << "x";
    }
    tidemark_step(1);
    std::string left = std::to_string(marker_files(::getpid()).size());
    for (const std::string& name : names) {
      left += std::filesystem::exists(marker_directory() + "/" + name) ? " kept" : " gone";
    }
    return left;
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "1 gone gone kept kept kept");
}

TEST(TidemarkHeader, RemovesABoundedNumberOfFilesOfTheDead) {
  const std::string result = with_own_shm("size=4m", [] {
    struct stat own {};
    ::stat("/proc/self/ns/pid", &own);
    const pid_t dead = pid_of_a_dead_process();
    ::mkdir(marker_directory().c_str(), 0700);
    for (int n = 0; n < 100; ++n) {
      std::ofstream(fmt::format("{}/{}-{}-{}.c.markers", marker_directory(), dead, n, own.st_ino));
    }
    tidemark_step(1);
    return std::to_string(marker_files(dead).size());
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "36");
}

TEST(TidemarkHeader, RefusesADirectoryThatOthersCanUse) {
  const std::string result = with_own_shm("size=4m", [] {
    ::mkdir(marker_directory().c_str(), 0755);
    tidemark_step(1);
    return std::to_string(marker_files(::getpid()).size());
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "0");
}

// The name is known, and /dev/shm is everybody's.
TEST(TidemarkHeader, TakesAnotherDirectoryWhereSomebodyHasTakenItsName) {
  const std::string result = with_own_shm("size=4m", []() -> std::string {
    ::mkdir(marker_directory().c_str(), 0777);
    ::mkdir("/dev/shm/run", 0700);
    ::setenv("XDG_RUNTIME_DIR", "/dev/shm/run", 1);
    tidemark_step(1);
    const std::string own = fmt::format("/dev/shm/run/tidemark-{}", ::geteuid());
    return fmt::format("{} {}", marker_files(::getpid()).size(),
                       std::distance(std::filesystem::directory_iterator(own),
                                     std::filesystem::directory_iterator()));
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "0 1");
}

TEST(TidemarkHeader, DoesNotFollowASymbolicLink) {
  const std::string result = with_own_shm("size=4m", [] {
    ::mkdir("/dev/shm/elsewhere", 0700);
    [[maybe_unused]] const int linked = ::symlink("elsewhere", marker_directory().c_str());
    tidemark_step(1);
    return std::to_string(std::distance(std::filesystem::directory_iterator("/dev/shm/elsewhere"),
                                        std::filesystem::directory_iterator()));
  });
  if (result == "no mount") {
    GTEST_SKIP() << "may not mount a tmpfs";
  }

  EXPECT_EQ(result, "0");
}

}  // namespace
}  // namespace tidemark
