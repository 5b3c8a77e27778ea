// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/finder.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidemark::monitor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Argv = std::vector<std::string>;

// A machine that a test writes down: init, an ssh session, a login shell with pid 100.
class Machine {
 public:
  Machine() {
    add(1, 0, {"/sbin/init"});
    add(50, 1, {"sshd: alice@pts/0"});
    add(100, 50, {"-bash"});
  }
  ProcessEvidence& add(pid_t pid, pid_t ppid, Argv argv, std::uint64_t mib = 10) {
    ProcessEvidence process;
    process.facts.key = {pid, static_cast<std::uint64_t>(pid) * 100};
    process.facts.ppid = ppid;
    process.facts.comm = argv[0].substr(argv[0].rfind('/') + 1, 15);
    process.facts.argv = std::move(argv);
    process.facts.threads = 1;
    process.facts.footprint_bytes = mib * kMiB;
    evidence.processes.push_back(std::move(process));
    return evidence.processes.back();
  }
  // A trainer with libtorch in memory and one DataLoader worker, pid + 1.
  void add_training(pid_t pid, pid_t ppid, const Argv& argv = {"python3", "train.py"},
                    std::uint64_t mib = 900) {
    add(pid, ppid, argv, mib).libraries.framework = "libtorch_cpu.so";
    add(pid + 1, pid, argv, mib / 2).facts.comm = "pt_data_worker";
  }
  FindResult find() const { return rank_candidates(evidence); }

  Evidence evidence;
};

pid_t picked_pid(const FindResult& result) {
  return result.picked ? result.candidates[*result.picked].key.pid : 0;
}

TEST(Finder, NamesTheTrainerAndNotItsWrapper) {
  Machine machine;
  machine.add(200, 100, {"uv", "run", "train.py"}, 40);
  machine.add_training(201, 200);

  const FindResult result = machine.find();

  ASSERT_EQ(picked_pid(result), 201);
  const Candidate& candidate = result.candidates[0];
  EXPECT_EQ(candidate.role, Role::kTrainer);
  EXPECT_EQ(candidate.confidence, Confidence::kCertain);
  EXPECT_THAT(candidate.wrappers, ElementsAre(200));
  EXPECT_THAT(candidate.watch, ElementsAre(201));
  EXPECT_EQ(candidate.dataloader_workers, 1U);
  EXPECT_THAT(candidate.reasons, Contains("maps libtorch_cpu.so"));
  EXPECT_THAT(candidate.reasons, Contains("1 DataLoader worker below it"));
  EXPECT_EQ(result.candidates.size(), 1U);
}

TEST(Finder, JoinsTheRanksOfOneJob) {
  Machine machine;
  machine.add(200, 100, {"python3", "/venv/bin/torchrun", "t.py"}, 300).libraries.framework =
      "libtorch_cpu.so";
  for (pid_t rank = 0; rank < 2; ++rank) {
    const pid_t pid = 220 - rank * 10;  // the pid says nothing about the rank
    machine.add_training(pid, 200, {"python3", "-u", "t.py"}, 1000);
    machine.evidence.processes[machine.evidence.processes.size() - 2].facts.rank = rank;
  }

  const FindResult result = machine.find();

  ASSERT_EQ(result.candidates.size(), 1U);
  ASSERT_EQ(picked_pid(result), 220);
  const Candidate& job = result.candidates[0];
  EXPECT_EQ(job.role, Role::kRank);
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].pid, 220);
  EXPECT_EQ(job.ranks[1].pid, 210);
  EXPECT_EQ(job.ranks[1].rank, 1);
  EXPECT_EQ(job.footprint_bytes, 2000 * kMiB);
  EXPECT_EQ(job.dataloader_workers, 2U);
  EXPECT_THAT(job.watch, ElementsAre(200)) << "the launcher's tree holds all ranks";
}

// Slurm's step daemon starts each task on its own.
void add_slurm_task(Machine& machine, pid_t pid, int rank, const char* job = "slurm 77.0") {
  machine.add_training(pid, 60);
  ProcessFacts& facts = machine.evidence.processes[machine.evidence.processes.size() - 2].facts;
  facts.rank = rank;
  facts.job = job;
}

TEST(Finder, JoinsTheRanksOfOneStepOfSlurm) {
  Machine machine;
  machine.add(60, 1, {"slurmstepd: [77.0]"});
  add_slurm_task(machine, 200, 1);
  add_slurm_task(machine, 300, 0);

  const FindResult result = machine.find();

  ASSERT_EQ(picked_pid(result), 300);
  ASSERT_EQ(result.candidates.size(), 1U);
  const Candidate& job = result.candidates[0];
  EXPECT_EQ(job.role, Role::kRank);
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[1].pid, 200);
  EXPECT_THAT(job.watch, ElementsAre(300, 200));
  EXPECT_EQ(job.dataloader_workers, 2U);
}

TEST(Finder, KeepsTheRanksOfTwoStepsApart) {
  Machine machine;
  machine.add(60, 1, {"slurmstepd: [77.0]"});
  add_slurm_task(machine, 200, 0);
  add_slurm_task(machine, 300, 1, "slurm 77.1");

  EXPECT_FALSE(machine.find().picked);
}

TEST(Finder, DoesNotJoinTwoJobsOfOneShellInAStep) {
  Machine machine;
  machine.add(60, 1, {"slurmstepd: [77.0]"});
  add_slurm_task(machine, 200, 0);
  add_slurm_task(machine, 300, 0);

  const FindResult result = machine.find();

  EXPECT_FALSE(result.picked);
  EXPECT_EQ(result.candidates.size(), 2U);
}

TEST(Finder, WatchesTheMainProcessThatStartedTheOtherRanks) {
  Machine machine;
  machine.add_training(200, 100);
  machine.add_training(210, 200);
  machine.evidence.processes[machine.evidence.processes.size() - 2].facts.rank = 1;

  const FindResult result = machine.find();

  ASSERT_EQ(picked_pid(result), 200);
  EXPECT_THAT(result.candidates[0].watch, ElementsAre(200));
}

TEST(Finder, PicksNoneOfTwoEquallyGoodJobsAndSaysWhichThereAre) {
  Machine machine;
  machine.add_training(200, 100, {"python3", "train.py", "--token", "abc"});
  machine.add_training(300, 100, {"python3", "pretrain.py"}, 9000);

  const FindResult result = machine.find();

  EXPECT_FALSE(result.picked);
  const std::string why = explain_no_pick(result).one_line();
  EXPECT_THAT(why, HasSubstr("equally"));
  EXPECT_THAT(why, HasSubstr("--pid 200 (python3 train.py --token ***"));
  EXPECT_THAT(why, HasSubstr("--pid 300"));
  EXPECT_THAT(why, Not(HasSubstr("\n")));
}

TEST(Finder, PrefersATrainingRunToANotebookThatHasTorchLoaded) {
  Machine machine;
  machine.add_training(200, 100);
  machine.add(300, 100, {"python3", "-m", "ipykernel_launcher", "-f", "k.json"}, 5000)
      .libraries.framework = "libtorch_cpu.so";

  const FindResult result = machine.find();

  EXPECT_EQ(picked_pid(result), 200);
  EXPECT_EQ(result.candidates.size(), 2U);
  EXPECT_EQ(result.candidates[1].confidence, Confidence::kLikely);
}

TEST(Finder, IsHonestAboutAPythonThatIsJustBig) {
  Machine machine;
  machine.add(200, 100, {"python3", "etl.py"}, 20000).facts.cpu_ticks = 900000;

  const FindResult result = machine.find();

  EXPECT_FALSE(result.picked);
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(result.candidates[0].confidence, Confidence::kWeak);
  EXPECT_THAT(explain_no_pick(result).one_line(), HasSubstr("weak"));
}

TEST(Finder, FindsATrainingScriptThatHasNotLoadedAnythingYet) {
  Machine machine;
  machine.add(200, 100, {"python3", "finetune_llama.py"}, 8);

  const FindResult result = machine.find();

  EXPECT_EQ(picked_pid(result), 200);
  EXPECT_EQ(result.candidates[0].confidence, Confidence::kLikely);
}

TEST(Finder, FindsANativeProgramByTheFrameworkThatItMaps) {
  Machine machine;
  machine.add(190, 100, {"/bin/sh", "./go.sh"}, 1);
  machine.add(200, 190, {"./segmenter", "--fast"}, 500).libraries.framework = "libtorch_cpu.so";

  const FindResult result = machine.find();

  EXPECT_EQ(picked_pid(result), 200);
  EXPECT_THAT(result.candidates[0].wrappers, ElementsAre(190));
}

TEST(Finder, SaysWhatItLookedForWhenThereIsNothing) {
  Machine machine;
  machine.evidence.not_permitted = 7;
  machine.add(200, 100, {"vim", "train.py"}, 2000);
  machine.add(201, 100, {"/usr/bin/postgres", "-D", "train"}, 3000);
  machine.add(202, 100, {"/usr/bin/python3", "/usr/bin/fail2ban-server"}, 20);

  const FindResult result = machine.find();

  EXPECT_THAT(result.candidates, IsEmpty());
  const NoPick why = explain_no_pick(result);
  EXPECT_THAT(why.what, HasSubstr("among 6 processes (7 more"));
  EXPECT_THAT(why.one_line(), HasSubstr("libtorch"));
  EXPECT_THAT(why.hint, HasSubstr("--pid"));
}

TEST(Finder, SaysSudoWhereRootWouldSeeMore) {
  FindResult result;
  result.processes = 1;
  EXPECT_THAT(explain_no_pick(result).what, HasSubstr("among 1 process"));
  EXPECT_THAT(explain_no_pick(result).what, Not(HasSubstr("processes")));
  EXPECT_THAT(explain_no_pick(result).hint, Not(HasSubstr("sudo")));

  result.not_permitted = 7;
  EXPECT_THAT(explain_no_pick(result).hint, HasSubstr("sudo tidemark find"));

  result.is_root = true;
  EXPECT_THAT(explain_no_pick(result).hint, Not(HasSubstr("sudo")));
}

TEST(Finder, NamesTheCommandForAWeakCandidate) {
  Machine machine;
  machine.add(200, 100, {"python3", "etl.py"}, 20000).facts.cpu_ticks = 900000;

  EXPECT_THAT(explain_no_pick(machine.find()).hint, HasSubstr("tidemark track --pid 200"));
}

TEST(Finder, NeverProposesEditorsLanguageServersOrItself) {
  Machine machine;
  machine.add(200, 1, {"/home/u/.vscode-server/bin/x/node", "server.js"}, 900);
  machine
      .add(201, 200, {"/usr/bin/python3", "/home/u/.vscode-server/extensions/p/lsp_server.py"}, 900)
      .libraries.framework = "libtorch_cpu.so";
  machine.add(202, 100, {"tidemark", "monitor", "--find-training"}, 900);
  machine.add(203, 100, {"python3", "/venv/bin/tensorboard", "--logdir", "train"}, 900);

  EXPECT_THAT(machine.find().candidates, IsEmpty());
}

TEST(Finder, TakesTheTrainerAndNotTheEvaluationBelowIt) {
  Machine machine;
  machine.add_training(200, 100);
  machine.add(210, 200, {"python3", "evaluate.py", "--batch-size", "8"}, 3000).libraries.framework =
      "libtorch_cpu.so";

  const FindResult result = machine.find();

  EXPECT_EQ(picked_pid(result), 200);
  EXPECT_EQ(result.candidates.size(), 1U);
}

TEST(Finder, TakesTheTrainersAndNotTheServerAboveThem) {
  Machine machine;
  machine.add(200, 100, {"python3", "train_server.py"}, 300);
  machine.add_training(210, 200);

  EXPECT_EQ(picked_pid(machine.find()), 210);
}

TEST(Finder, DoesNotTakeThePoolOfAServiceForWorkers) {
  Machine machine;
  machine.add(200, 1, {"python3", "/usr/bin/gunicorn", "app"}, 60);
  for (pid_t pid = 210; pid < 214; ++pid) {
    machine.add(pid, 200, {"python3", "/usr/bin/gunicorn", "app"}, 60).facts.key.start_ticks = 500;
  }

  EXPECT_THAT(machine.find().candidates, IsEmpty());
}

TEST(Finder, TakesTheProcessesOfAServerForOneJob) {
  Machine machine;
  const Argv gunicorn = {"python3", "/usr/bin/gunicorn", "jobs:app"};
  machine.add(200, 1, gunicorn, 30);
  for (pid_t pid = 210; pid < 212; ++pid) {
    machine.add(pid, 200, gunicorn, 600).libraries.framework = "libtorch_cpu.so";
  }

  const FindResult result = machine.find();

  ASSERT_TRUE(result.picked);
  EXPECT_THAT(result.candidates[0].watch, ElementsAre(200));
  EXPECT_THAT(result.candidates[0].reasons, Contains("one of 2 processes of the server 200"));
}

TEST(Finder, FindsAServerThatTrainsInItsOwnProcess) {
  Machine machine;
  machine.add(200, 100, {"python3", "-m", "uvicorn", "jobs:app"}, 600).libraries.framework =
      "libtorch_cpu.so";

  EXPECT_EQ(picked_pid(machine.find()), 200);
}

TEST(Finder, NamesTheServerAboveAJobThatItStarted) {
  Machine machine;
  machine.add(200, 100, {"python3", "-m", "flask", "run"}, 40);
  machine.add_training(210, 200, {"python3", "job.py"});

  const FindResult result = machine.find();

  EXPECT_EQ(picked_pid(result), 210);
  EXPECT_THAT(result.candidates[0].wrappers, ElementsAre(200));
}

TEST(Finder, ReportsAnOrphanedWorkerAndDoesNotTakeInitForItsTrainer) {
  Machine machine;
  machine.evidence.processes.clear();
  machine.add(1, 0, {"/process_api", "--init"}, 60);
  machine.add(20, 1, {"python3", "train.py"}, 300).facts.comm = "pt_data_worker";
  machine.add(21, 1, {"python3", "train.py"}, 400).facts.comm = "pt_data_worker";

  const FindResult result = machine.find();

  EXPECT_THAT(result.candidates, IsEmpty());
  ASSERT_EQ(result.orphans.size(), 2U);
  EXPECT_EQ(result.orphans[0].key.pid, 21);
  EXPECT_EQ(result.orphans[0].role, Role::kDataloaderWorker);
  EXPECT_EQ(result.orphans[0].footprint_bytes, 400 * kMiB);
}

TEST(Finder, CountsGpuMemoryAsWorkOnAGpu) {
  Machine machine;
  ProcessEvidence& process = machine.add(200, 100, {"python3", "run.py"}, 3000);
  process.libraries.framework = "libtorch_cpu.so";
  process.gpu_bytes = 12000 * kMiB;

  const FindResult result = machine.find();

  ASSERT_EQ(picked_pid(result), 200);
  EXPECT_EQ(result.candidates[0].confidence, Confidence::kCertain);
  EXPECT_THAT(result.candidates[0].reasons, Contains("holds 11.7 GiB of GPU memory"));
}

}  // namespace
}  // namespace tidemark::monitor
