// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "live/launch/signal_inbox.h"
#include "trainer_harness/demo/grade.h"
#include "trainer_harness/demo/scenarios.h"
#include "trainer_harness/demo/table.h"

namespace tidemark::demo {

// One scenario that runs. A process of its own watches the harness, with the code of `tidemark
// profile -- COMMAND`, or of `track` where the tracer was not built; so two can run at a time, each
// with a tree of its own. The verdict is the one on the recording.
class DemoRun {
 public:
  // Leaves NAME.tidemark, NAME.truth.json and NAME.log in `folder`. `inbox` is ours; the watcher
  // gets the signals as we found them.
  static Result<DemoRun> start(const DemoScenario& scenario, std::uint64_t seed,
                               const std::string& harness, const std::string& folder,
                               const live::SignalInbox& inbox);
  // Ends it when it still runs.
  ~DemoRun();
  DemoRun(DemoRun&& other) noexcept;
  DemoRun& operator=(DemoRun&&) = delete;

  const DemoPlace& place() const { return place_; }
  // Readable when it has got further, or has ended.
  int news_fd() const { return news_.get(); }
  // Takes in what there is; false once it has ended.
  bool take_news();
  // To the watcher, which hands it on to the job.
  void signal(int number) const;

  // After its end: reads what it left behind.
  DemoGrade grade();
  double seconds() const;  // since it was started

 private:
  DemoRun(const DemoScenario& scenario, std::string base, bool traced, pid_t watcher, Fd news);
  std::string last_words() const;

  DemoPlace place_;
  std::string base_;  // of its files: FOLDER/NAME
  bool traced_ = false;
  pid_t watcher_ = 0;
  Fd news_;
  std::int64_t start_ns_ = 0;
};

}  // namespace tidemark::demo
