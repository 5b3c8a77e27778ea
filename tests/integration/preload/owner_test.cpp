// SPDX-License-Identifier: Apache-2.0
// The run that reads the traces is killed, and its job runs on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstdint>
#include <filesystem>

#include "common/fd.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

// Forks and starts programs before and after it has read a line; prints what the last one sees.
constexpr char kScript[] =
    "f() { for i in {1..20}; do (:); /bin/true; done; }; "
    "f; echo ready; read line; f; exec /usr/bin/env";

std::size_t files_in(const TempTree& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                                std::filesystem::directory_iterator()));
}

class JobOfARun : public testing::Test {
 protected:
  JobOfARun() {
    folder_.write(wire::kOwnerLock, "");
    owner_ = Fd(::open(folder_.path(wire::kOwnerLock).c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(owner_.get(), LOCK_EX | LOCK_NB), 0);
    ask_.directory = folder_.path();
  }
  // What the job leaves in the folder before and after `between`.
  template <typename Between>
  std::pair<std::size_t, std::size_t> run(Between between) {
    Subprocess job(traced_command({"/bin/bash", "-c", kScript}, ask_));
    job.read_until("ready");
    const std::size_t before = files_in(folder_);
    between();
    job.send("\n");
    EXPECT_EQ(job.wait(), 0);
    EXPECT_EQ(job.errors(), "");
    output_ = job.output();
    return {before, files_in(folder_)};
  }

  TempTree folder_;
  Fd owner_;
  TraceAsk ask_;
  std::string output_;
};

TEST_F(JobOfARun, IsTracedWhileThatIsAlive) {
  const auto [before, after] = run([] {});

  EXPECT_GT(before, 40U);
  EXPECT_GT(after, before + 40);
  EXPECT_THAT(output_, HasSubstr("LD_PRELOAD="));
}

TEST_F(JobOfARun, LeavesNoFilesOnceThatWasKilled) {
  const auto [before, after] = run([this] { owner_.reset(); });

  EXPECT_GT(before, 40U);
  EXPECT_EQ(after, before);
  EXPECT_THAT(output_, Not(HasSubstr("LD_PRELOAD="))) << "what it starts is left alone";
  EXPECT_THAT(output_, Not(HasSubstr("TIDEMARK_TRACE=")));
}

}  // namespace
}  // namespace tidemark::tests
