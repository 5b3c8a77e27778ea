// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/stack_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "report/profile_report.h"
#include "report/profile_text.h"
#include "tests/support/site_run.h"

namespace tidemark::tracker {
namespace {

using tests::SiteRun;
using tests::trainer_record;

// Whether a stack of one frame has a line of the user's own.
bool is_own(const std::string& file, const std::string& module) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("work", file, 7, module)}, tests::constant(1));
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(2)) {
    (void)builder.add(tick);
  }
  const tracker::RunSites& sites = builder.sites();
  return shown_stack(sites, sites.sites.at(0).record.frames).own_line.has_value();
}

TEST(ShownStack, KnowsWhatTheUserHasBuilt) {
  struct Case {
    const char* file;
    const char* module;
    bool is_own;
  };
  for (const Case& each : {
           Case{"/home/me/a.cpp", "/home/me/train", true},
           Case{"/usr/src/app/a.cpp", "/usr/src/app/train", true},
           Case{"/usr/local/src/job/a.cpp", "/usr/local/bin/train", true},
           Case{"/usr/src/debug/glibc/a.c", "/home/me/train", false},
           Case{"/usr/include/a.h", "/home/me/train", false},
           Case{"/usr/local/include/a.h", "/home/me/train", false},
           Case{"/usr/local/lib/python3.11/a.h", "/home/me/train", false},
           Case{"/usr/local/cuda-12.4/include/a.h", "/home/me/train", false},
           Case{"/usr/lib/a.cpp", "/home/me/train", false},
           Case{"/home/me/a.cpp", "/usr/lib/liba.so", false},
           Case{"/home/me/a.cpp", "/usr/local/cuda/lib64/libcufft.so", false},
       }) {
    EXPECT_EQ(is_own(each.file, each.module), each.is_own) << each.file << " in " << each.module;
  }
}

TEST(ProfileList, IsNoHigherThanTheTerminal) {
  SiteRun run;
  run.add_process(trainer_record());
  for (std::uint32_t line = 1; line <= 20; ++line) {
    run.add_site(trainer_record().key, {run.add_frame("work", "/home/me/a.cpp", line)},
                 tests::constant(1'000 * line));
  }
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(10)) {
    (void)builder.add(tick);
  }
  const report::ProfileReport report = report::make_report(builder.sites(), {}, /*top=*/15);

  const auto rows_in = [&](std::size_t rows) {
    const std::string list = report::profile_list(report, 9.0, 100, rows);
    return std::count(list.begin(), list.end(), '\n');
  };

  EXPECT_EQ(rows_in(8), 8);
  EXPECT_EQ(rows_in(1), 1);
  EXPECT_EQ(rows_in(100), 16);  // --top, and the line above
}

}  // namespace
}  // namespace tidemark::tracker
