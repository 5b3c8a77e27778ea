// SPDX-License-Identifier: Apache-2.0
// What `tidemark profile --pid` refuses, and what other users may do.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/proc_files.h"
#include "tests/integration/profile/attach_support.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using tests::attach_to;
using tests::Output;
using tests::report_of;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;
using tests::victim_path;

constexpr uid_t kNobody = 65534;

std::string refusal(pid_t pid) {
  const Output output = run_tool({"profile", "--pid", std::to_string(pid)});
  EXPECT_EQ(output.exit_code, 3) << output.err;
  EXPECT_THAT(output.err, HasSubstr("hint: "));
  return output.err;
}

// A folder that all users may look into.
class OpenFolder {
 public:
  OpenFolder() { fs::permissions(tree_.path(), kForAll); }
  const TempTree& tree() const { return tree_; }
  std::string path(const std::string& name) const { return tree_.path(name); }
  std::string add(const std::string& name, const std::string& text) const {
    tree_.write(name, text);
    fs::permissions(path(name), kForAll);
    return path(name);
  }

 private:
  static constexpr fs::perms kForAll = static_cast<fs::perms>(0755);
  TempTree tree_;
};

std::vector<std::string> as_nobody(const std::vector<std::string>& command) {
  std::vector<std::string> all{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                               "--clear-groups"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

// Why no test as another user can run; "": they can.
std::string why_no_other_user() {
  if (::geteuid() != 0) {
    return "only root can become another user";
  }
  Subprocess attempt(as_nobody({"/usr/bin/test", "-x", tests::tool_path()}));
  return attempt.wait() == 0 ? "" : "may not become another user here";
}

// What user 65534 has left, once its processes have exited.
struct TidyUp {
  ~TidyUp() {
    std::error_code ignored;
    fs::remove_all(fmt::format("/dev/shm/tidemark-{}", kNobody), ignored);
  }
};

// Runs a program of its own that was compiled like this; "" where that is not possible.
std::string compile(const TempTree& folder, const std::vector<std::string>& compiler,
                    const std::string& source) {
  folder.write("program.c", source);
  std::vector<std::string> command = compiler;
  command.insert(command.end(), {folder.path("program.c"), "-o", folder.path("program")});
  Subprocess compiling(command);
  return compiling.wait() == 0 ? folder.path("program") : "";
}

// After an exec: until the process runs this program.
void wait_for_program(pid_t pid, const std::string& program) {
  std::error_code error;
  for (int i = 0; i < 2000; ++i) {
    if (fs::read_symlink(fmt::format("/proc/{}/exe", pid), error) == program) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its libraries
}

TEST(AttachRefuses, KernelThreads) {
  const auto status = read_file("/proc/2/status");
  if (!status || status->find("kthreadd") == std::string::npos) {
    GTEST_SKIP() << "no kernel threads are visible here";
  }

  const std::string text = refusal(2);

  EXPECT_THAT(text, HasSubstr("process 2 is a kernel thread"));
  EXPECT_THAT(text, Not(HasSubstr("track")));
}

// Before anything is done to their process.
TEST(AttachRefuses, Threads) {
  std::promise<pid_t> id;
  std::promise<void> end;
  std::thread thread([&] {
    id.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
    end.get_future().wait();
  });
  const pid_t tid = id.get_future().get();

  const std::string text = refusal(tid);
  end.set_value();
  thread.join();

  EXPECT_THAT(text, HasSubstr(fmt::format("{0} is a thread of process {1}: use --pid {1}", tid,
                                          ::getpid())));
  EXPECT_THAT(text, Not(HasSubstr("attached")));
}

TEST(AttachRefuses, Zombies) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);

  const std::string text = refusal(pid);
  ::waitpid(pid, nullptr, 0);

  EXPECT_THAT(text, HasSubstr(fmt::format("process {} has exited", pid)));
  EXPECT_THAT(text, Not(HasSubstr("track")));
}

TEST(AttachRefuses, ProcessesThatAreNotThere) {
  const std::string text = refusal(::getpid() + 4'000'000);

  EXPECT_THAT(text, HasSubstr("there is no process"));
  EXPECT_THAT(text, Not(HasSubstr("track")));
}

TEST(AttachRefuses, StrictSeccomp) {
  Subprocess strict({victim_path("restricted"), "strict"});
  if (strict.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "the kernel refuses seccomp filters";
  }

  EXPECT_THAT(refusal(strict.pid()), HasSubstr("may do no more than read and write (seccomp)"));
  EXPECT_EQ(::kill(strict.pid(), 0), 0);
}

TEST(AttachRefuses, ProgramsOf32Bits) {
  const TempTree folder;
  const std::string program = compile(
      folder,
      {"/usr/bin/gcc", "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie",
       "-fno-stack-protector", "-w"},
      "void _start(void) { for (;;) { __asm__ volatile(\"int $0x80\" : : \"a\"(29)); } }\n");
  if (program.empty()) {
    GTEST_SKIP() << "cannot build 32-bit programs here";
  }
  const Subprocess process({program});
  wait_for_program(process.pid(), program);

  EXPECT_THAT(refusal(process.pid()), HasSubstr("is not an x86-64 program"));
}

TEST(AttachRefuses, ProgramsOfMusl) {
  if (::access("/usr/bin/musl-gcc", X_OK) != 0) {
    GTEST_SKIP() << "/usr/bin/musl-gcc is not installed";
  }
  const TempTree folder;
  const std::string program =
      compile(folder, {"/usr/bin/musl-gcc"},
              "#include <unistd.h>\nint main(void) { for (;;) { pause(); } return 0; }\n");
  ASSERT_FALSE(program.empty());
  const Subprocess process({program});
  wait_for_program(process.pid(), program);

  EXPECT_THAT(refusal(process.pid()), HasSubstr("uses musl, not glibc"));
}

TEST(AttachRefuses, ProgramsWithAnAllocatorOfTheirOwn) {
  const TempTree folder;
  const std::string program =
      compile(folder, {"/usr/bin/gcc", "-fno-builtin"},
              "#include <string.h>\n#include <unistd.h>\n"
              "static char pool[1 << 20];\nstatic unsigned long used;\n"
              "void* malloc(unsigned long n) {\n"
              "  used += (n + 31) / 16 * 16;\n  return pool + used - (n + 31) / 16 * 16;\n}\n"
              "void free(void* p) { (void)p; }\n"
              "void* calloc(unsigned long n, unsigned long m) { return malloc(n * m); }\n"
              "void* realloc(void* p, unsigned long n) { return p ? memcpy(malloc(n), p, n) : "
              "malloc(n); }\n"
              "int main(void) { for (;;) { pause(); } return 0; }\n");
  ASSERT_FALSE(program.empty());
  const Subprocess process({program});
  wait_for_program(process.pid(), program);

  EXPECT_THAT(refusal(process.pid()), HasSubstr("has an allocator of its own linked into it"));
  EXPECT_EQ(::kill(process.pid(), 0), 0);
}

// For root as well: what such a program does must not depend on us.
TEST(AttachRefuses, SetUserIdPrograms) {
  if (const std::string why = why_no_other_user(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const OpenFolder folder;
  const std::string program = folder.path("raised");
  fs::copy_file("/usr/bin/sleep", program);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  const Subprocess process(as_nobody({program, "100"}));
  wait_for_program(process.pid(), program);
  if (!monitor::has_raised_privileges(fmt::format("/proc/{}", process.pid()))) {
    GTEST_SKIP() << "may not mount a folder for set-user-ID programs: " << folder.path("");
  }

  EXPECT_THAT(refusal(process.pid()), HasSubstr("has raised privileges (set-user-ID"));
}

TEST(AttachAsAnotherUser, WorksOnItsOwnProcesses) {
  if (const std::string why = why_no_other_user(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TidyUp tidy_up;
  const OpenFolder folder;
  const std::string script = folder.add("train.py", std::string(tests::kTraining));
  const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (scope && !scope->starts_with('0')) {
    GTEST_SKIP() << "only root can trace here (Yama)";
  }
  Subprocess python(as_nobody({"/usr/bin/python3", script}));
  python.read_until("ready\n");

  auto command = tests::attach_command(python.pid());
  command.insert(command.begin(), tests::tool_path());
  Subprocess tool(as_nobody(command));
  tool.wait();

  const auto report = report_of({0, tool.output(), tool.errors()});
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("lines").at(0).at("line"), tests::kTrainingLine) << tool.errors();
}

TEST(AttachAsAnotherUser, IsRefusedForProcessesOfOthers) {
  if (const std::string why = why_no_other_user(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Subprocess victim({victim_path("leak_by_line"), "--count", "100000", "--step-ms", "5"});

  Subprocess tool(
      as_nobody({tests::tool_path(), "profile", "--pid", std::to_string(victim.pid())}));

  EXPECT_EQ(tool.wait(), 3);
  EXPECT_THAT(tool.errors(), HasSubstr(fmt::format("process {} belongs to user 0, not to user {}",
                                                   victim.pid(), kNobody)));
  EXPECT_THAT(tool.errors(), HasSubstr("hint: run it with sudo, or start the job below it"));
}

TEST(AttachAsAnotherUser, RootWithoutTheCapabilityIsToldSo) {
  if (const std::string why = why_no_other_user(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Subprocess victim(as_nobody({"/usr/bin/sleep", "100"}));
  wait_for_program(victim.pid(), "/usr/bin/sleep");

  Subprocess tool({"/usr/bin/setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace",
                   tests::tool_path(), "profile", "--pid", std::to_string(victim.pid())});

  EXPECT_EQ(tool.wait(), 3);
  EXPECT_THAT(tool.errors(), HasSubstr("root lacks the capability SYS_PTRACE"));
  EXPECT_THAT(tool.errors(), HasSubstr("--cap-add SYS_PTRACE"));
}

// The path of the trace file that a process has mapped.
fs::path trace_file_of(pid_t pid) {
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  for (const std::string_view line : split(*maps, '\n')) {
    if (line.ends_with(".trace")) {
      return fs::path(line.substr(line.find('/')));
    }
  }
  return {};
}

TEST(AttachAsRoot, WorksOnProcessesOfOtherUsers) {
  if (const std::string why = why_no_other_user(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const OpenFolder folder;
  const std::string script = folder.add("train.py", std::string(tests::kTraining));
  Subprocess python(as_nobody({"/usr/bin/python3", script}));
  python.read_until("ready\n");

  const Output output = attach_to(python.pid());

  const auto report = report_of(output);
  EXPECT_EQ(report.at("lines").at(0).at("line"), tests::kTrainingLine) << output.err;
  const fs::path file = trace_file_of(python.pid());
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0) << file;
  EXPECT_EQ(info.st_uid, kNobody);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(tests::hooked_places(python.pid()), 0U);
  fs::remove_all(file.parent_path());
}

// A process in namespaces of its own, with a folder for shared memory of its own and without our
// library: its pid as we see it, or 0.
pid_t pid_below(const Subprocess& process) {
  const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", process.pid()));
  return children && !children->empty() ? std::stoi(*children) : 0;
}

TEST(AttachToContainers, ReachesPidAndUserNamespaces) {
  TempTree folder;
  folder.write("train.py", std::string(tests::kTraining));
  const std::string hide = fmt::format(
      "mount -t tmpfs tmpfs /dev/shm && mount --bind {0} {1} && exec /usr/bin/python3 {0}/train.py",
      folder.path(), TIDEMARK_BINARY_DIR "/lib");
  for (const std::vector<std::string>& namespaces :
       {std::vector<std::string>{"-p"}, std::vector<std::string>{"-p", "-U", "--map-root-user"}}) {
    std::vector<std::string> command{"/usr/bin/unshare", "-m", "-f", "--kill-child"};
    command.insert(command.end(), namespaces.begin(), namespaces.end());
    command.insert(command.end(), {"/bin/sh", "-c", hide});
    Subprocess python(command);
    if (python.read_until("ready\n").find("ready") == std::string::npos) {
      GTEST_SKIP() << "may not make namespaces";
    }

    const pid_t pid = pid_below(python);
    const Output output = attach_to(pid);
    const Output again = attach_to(pid);

    EXPECT_EQ(report_of(output).at("lines").at(0).at("line"), tests::kTrainingLine)
        << namespaces.size() << output.out << output.err;
    EXPECT_EQ(report_of(again).at("lines").at(0).at("line"), tests::kTrainingLine) << again.err;
    EXPECT_EQ(tests::hooked_places(pid), 0U);
  }
}

// The filter is that of the whole container: its first process has it.
TEST(AttachToContainers, NeedsNoneOfTheCallsThatDockerForbids) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make pid namespaces";
  }
  TempTree folder;
  folder.write("train.py", std::string(tests::kTraining));
  Subprocess python({"/usr/bin/unshare", "-p", "-f", "--kill-child", victim_path("restricted"),
                     "docker", "/usr/bin/python3", folder.path("train.py")});
  if (python.read_until("ready\n").find("ready") == std::string::npos) {
    GTEST_SKIP() << "the kernel refuses seccomp filters";
  }

  const pid_t pid = pid_below(python);
  const Output output = attach_to(pid);

  EXPECT_EQ(report_of(output).at("lines").at(0).at("line"), tests::kTrainingLine)
      << output.out << output.err;
  EXPECT_EQ(tests::hooked_places(pid), 0U);
}

}  // namespace
}  // namespace tidemark
