// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cli/command.h"
#include "common/exit_code.h"
#include "common/messages.h"
#include "live/quick_look.h"
#include "monitor/gpu/gpu_watch.h"

namespace tidemark::cli {

// Each in the file of its name. The help lists them in the order of the calls below.
using AddCommand = void(Program& program);
AddCommand add_find, add_monitor, add_track, add_profile, add_owners, add_explain, add_diagnose,
    add_rule_out, add_guard, add_check, add_export, add_diff, add_demo;

}  // namespace tidemark::cli

namespace {

int run(int argc, char** argv) {
  tidemark::cli::Program program;
  for (tidemark::cli::AddCommand* const add :
       {tidemark::cli::add_find, tidemark::cli::add_monitor, tidemark::cli::add_track,
        tidemark::cli::add_profile, tidemark::cli::add_owners, tidemark::cli::add_explain,
        tidemark::cli::add_diagnose, tidemark::cli::add_rule_out, tidemark::cli::add_guard,
        tidemark::cli::add_check, tidemark::cli::add_export, tidemark::cli::add_diff,
        tidemark::cli::add_demo}) {
    add(program);
  }
  program.run_alone_by(
      [&program] { return tidemark::live::run_quick_look({.commands = program.commands()}); });
  return program.run(argc, argv);
}

// Where somebody has closed one of the first three descriptors, a file that we open would get its
// number, and what we print would be written into it. Reading and writing fail as they would
// without; what we start does not inherit these.
void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) {
      (void)::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
  }
}

// A GPU driver that hangs must not keep us: its library cleans up at exit, and would wait for it.
int leave(int code) {
  if (tidemark::monitor::GpuWatch::left_a_thread_behind()) {
    (void)std::fflush(nullptr);
    ::_exit(code);
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  try {
    return leave(run(argc, argv));
  } catch (const std::exception& error) {
    tidemark::print_error(error.what(), "this is a bug in tidemark, please report it");
  } catch (...) {
    tidemark::print_error("unknown exception", "this is a bug in tidemark, please report it");
  }
  return tidemark::kExitBug;
}
