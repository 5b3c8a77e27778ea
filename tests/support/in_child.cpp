// SPDX-License-Identifier: Apache-2.0
#include "tests/support/in_child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/check.h"
#include "common/fd.h"
#include "common/io.h"

namespace tidemark::tests {

std::string in_child(const std::function<std::string()>& body, EndBy end_by) {
  int ends[2] = {-1, -1};
  TIDEMARK_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  TIDEMARK_CHECK(pid >= 0, "cannot fork");
  if (pid == 0) {
    const std::string answer = body();
    const bool written = static_cast<bool>(write_all(write_end.get(), answer));
    write_end.reset();
    if (end_by == EndBy::kExit) {
      std::exit(written ? 0 : 1);  // NOLINT(concurrency-mt-unsafe): one thread after fork
    }
    ::_exit(written ? 0 : 1);
  }
  write_end.reset();
  auto answer = read_to_end(read_end.get());
  int status = 0;
  TIDEMARK_CHECK(::waitpid(pid, &status, 0) == pid, "lost the child");
  if (WIFSIGNALED(status)) {
    return "killed by signal " + std::to_string(WTERMSIG(status));
  }
  return answer ? *answer : answer.error().what;
}

}  // namespace tidemark::tests
