// SPDX-License-Identifier: Apache-2.0
#include "live/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/units.h"

namespace tidemark::live {
namespace {

using monitor::Candidate;
using monitor::Confidence;
using monitor::FindResult;
using testing::HasSubstr;
using testing::Not;

Candidate candidate(pid_t pid, Confidence confidence) {
  Candidate one;
  one.key = {pid, 900};
  one.confidence = confidence;
  one.score = 45;
  one.argv = {"python3", "train.py", "--token", "abc", "\x1b[31m"};
  one.footprint_bytes = 3U << 20U;
  one.compile_workers = 20;
  one.dataloader_workers = 1;
  one.wrappers = {11};
  one.watch = {pid};
  one.reasons = {"maps libtorch_cpu.so", "20 compile workers below it"};
  return one;
}

FindResult one_pick() {
  FindResult result;
  result.candidates = {candidate(12, Confidence::kCertain), candidate(90, Confidence::kWeak)};
  result.picked = 0;
  result.processes = 300;
  return result;
}

TEST(FindView, PutsThePickFirstAndTheNextCommandLast) {
  EXPECT_EQ(find_text(one_pick(), {}),
            "training job: pid 12, trainer, certain, footprint 3.00 MiB\n"
            "  command   python3 train.py --token *** \\x1b[31m\n"
            "  below it  20 compile workers, 1 DataLoader worker\n"
            "  above it  11 (wrappers and launchers, not the job)\n"
            "  because   maps libtorch_cpu.so; 20 compile workers below it\n"
            "next: tidemark monitor --pid 12\n");
}

TEST(FindView, ShowsWeakCandidatesOnlyWhenAskedOrWhenThereIsNothingBetter) {
  FindOptions all;
  all.all = true;
  EXPECT_THAT(find_text(one_pick(), {}), Not(HasSubstr("pid 90")));
  EXPECT_THAT(find_text(one_pick(), all), HasSubstr("other candidates:\npid 90, trainer, weak"));

  FindResult weak;
  weak.candidates = {candidate(90, Confidence::kWeak)};
  EXPECT_THAT(find_text(weak, {}), HasSubstr("candidates:\npid 90, trainer, weak"));
  EXPECT_THAT(find_text(weak, {}), Not(HasSubstr("next:")));
}

TEST(FindView, ListsTheRanksOfAJob) {
  FindResult result = one_pick();
  result.candidates[0].role = Role::kRank;
  result.candidates[0].ranks = {{12, 0}, {13, std::nullopt}};
  result.candidates[0].watch = {11};

  EXPECT_THAT(find_text(result, {}), HasSubstr("  ranks     12 (rank 0), 13\n"));
  EXPECT_THAT(find_text(result, {}), HasSubstr("next: tidemark monitor --pid 11\n"));
}

TEST(FindView, ListsOrphanedWorkers) {
  FindResult result;
  for (pid_t pid = 40; pid < 51; ++pid) {
    result.orphans.push_back({{pid, 7}, Role::kDataloaderWorker, {"python3"}, 2 * kMiB});
  }

  EXPECT_THAT(find_text(result, {}),
              HasSubstr("orphan: pid 49, dataloader_worker, footprint 2.00 MiB; its trainer has "
                        "exited\nand 1 more orphan\n"));
}

TEST(FindView, WritesTheDocumentedJson) {
  FindResult result = one_pick();
  result.candidates.pop_back();
  result.candidates[0].argv = {"python3", "train.py", "--token=abc"};
  result.candidates[0].ranks = {{12, 0}};
  result.orphans = {{{40, 7}, Role::kDataloaderWorker, {"python3", "train.py"}, 2 * kMiB}};

  EXPECT_EQ(find_json(result, {}),
            R"({"schema":1,"picked":12,"candidates":[{"pid":12,"start_ticks":900,)"
            R"("role":"trainer","score":45,"confidence":"certain",)"
            R"("argv":"python3 train.py --token=***","footprint_bytes":3145728,)"
            R"("compile_workers":20,"dataloader_workers":1,"below":[11],)"
            R"("ranks":[{"pid":12,"rank":0}],"watch":[12],)"
            R"("reasons":["maps libtorch_cpu.so","20 compile workers below it"]}],)"
            R"("orphans":[{"pid":40,"start_ticks":7,"role":"dataloader_worker",)"
            R"("argv":"python3 train.py","footprint_bytes":2097152}],)"
            R"("processes":300,"not_permitted":0})"
            "\n");
}

TEST(FindView, KeepsSecretsOnlyOnRequest) {
  FindOptions open;
  open.no_redact = true;

  EXPECT_THAT(find_text(one_pick(), open), HasSubstr("--token abc"));
  EXPECT_THAT(find_json(one_pick(), {}), Not(HasSubstr("abc")));
}

TEST(FindView, SaysNothingWithoutCandidates) {
  EXPECT_EQ(find_text({}, {}), "");
  EXPECT_EQ(find_json({}, {}),
            "{\"schema\":1,\"picked\":null,\"candidates\":[],\"orphans\":[],\"processes\":0,"
            "\"not_permitted\":0}\n");
}

}  // namespace
}  // namespace tidemark::live
