// SPDX-License-Identifier: Apache-2.0
// Records ticks as fast as it can, to be killed: record_forever FILE TICKS. TICKS 0 never ends.
// After each tick that is safe it prints the number of ticks so far, on a line of its own.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/io.h"
#include "recording/run_writer.h"
#include "tests/support/numbered_ticks.h"

namespace {

int fail(const tidemark::Error& error) {
  std::fprintf(stderr, "record_forever: %s\n", error.what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: record_forever FILE TICKS\n", stderr);
    return 2;
  }
  const std::uint64_t limit = std::strtoull(argv[2], nullptr, 10);
  auto writer = tidemark::recording::RunWriter::create(argv[1]);
  if (!writer) {
    return fail(writer.error());
  }
  if (const auto status = (*writer)->begin({}); !status) {
    return fail(status.error());
  }
  std::uint64_t n = 0;
  for (; limit == 0 || n < limit; ++n) {
    if (const auto status = (*writer)->add(tidemark::tests::numbered_tick(n)); !status) {
      return fail(status.error());
    }
    if (!tidemark::write_all(STDOUT_FILENO, std::to_string(n + 1) + "\n")) {
      return 1;
    }
  }
  if (const auto status = (*writer)->end(static_cast<double>(n)); !status) {
    return fail(status.error());
  }
  return 0;
}
