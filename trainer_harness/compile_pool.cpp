// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/compile_pool.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::harness {
namespace {

// What the sidecar says, up to the end of the line.
Result<std::string> read_line(int fd) {
  std::string line;
  std::array<char, 512> buffer{};
  while (line.find('\n') == std::string::npos) {
    const auto size = read_some(fd, buffer);
    if (!size) {
      return size.error();
    }
    if (*size == 0) {
      return Error{Errc::kGone, "the compile workers ended before they had their memory"};
    }
    line.append(buffer.data(), *size);
  }
  line.resize(line.find('\n'));
  return line;
}

}  // namespace

Result<CompilePool> CompilePool::start(const Plan::Pool& plan) {
  const std::string count = std::to_string(plan.workers);
  auto helper = start_helper(
      {"/usr/bin/python3",
       "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py",
       "--pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler", "--kind=fork",
       "--workers=" + count, "--parent=" + std::to_string(::getpid()), "--read-fd=READ_FD",
       "--write-fd=WRITE_FD"},
      "compile-sidecar READ_FD WRITE_FD " + count + " " + std::to_string(plan.shared_bytes) + " " +
          std::to_string(plan.private_bytes));
  if (!helper) {
    return helper.error();
  }
  CompilePool pool(std::move(*helper));
  const auto pids = read_line(pool.helper_.from_helper.get());
  if (!pids) {
    return pids.error();
  }
  for (const std::string_view word : split(*pids, ' ')) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pool.workers_.push_back(*pid);
    }
  }
  return pool;
}

Status CompilePool::quiesce() {
  if (const Status sent = write_all(helper_.to_helper.get(), "q"); !sent) {
    return sent;
  }
  if (const auto answer = read_line(helper_.from_helper.get()); !answer) {
    return answer.error();
  }
  return ok();
}

bool compile_is_disabled() {
  const char* const value = std::getenv("TORCH_COMPILE_DISABLE");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace tidemark::harness
