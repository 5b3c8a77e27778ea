// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/roles.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Argv = std::vector<std::string>;

const Argv kTrainer = {"python3", "train.py", "--epochs", "3"};
const Argv kForkserver = {
    "python3", "-c",
    "import sys; from multiprocessing.forkserver import main; main(10, 11, ['__main__'], "
    "**{'sys_path': ['/x']})",
    "train.py", "--args"};
const Argv kSpawned = {
    "/usr/bin/python3", "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, pipe_handle=20)",
    "--multiprocessing-fork"};
const Argv kTracker = {"python3", "-c",
                       "from multiprocessing.resource_tracker import main;main(7)"};

Argv compile_worker(pid_t owner) {
  return {"/usr/bin/python3",
          "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py",
          "--workers=20",
          "--parent=" + std::to_string(owner),
          "--read-fd=4",
          "--write-fd=7"};
}

// A process tree that a test writes down line by line.
class Tree {
 public:
  ProcessFacts& add(pid_t pid, pid_t ppid, Argv argv, std::uint64_t mib = 10) {
    ProcessFacts facts;
    facts.key = {pid, static_cast<std::uint64_t>(pid) * 100};  // far apart in time
    facts.ppid = ppid;
    facts.comm = argv.empty() ? "" : argv[0].substr(argv[0].rfind('/') + 1, 15);
    facts.argv = std::move(argv);
    facts.threads = 1;
    facts.footprint_bytes = mib * kMiB;
    processes_.push_back(std::move(facts));
    return processes_.back();
  }

  RoleAssignment of(pid_t pid) const {
    const auto assignments = assign_roles(processes_);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].key.pid == pid) {
        return assignments[i];
      }
    }
    return {};
  }
  std::string role(pid_t pid) const { return std::string(role_name(of(pid).role)); }
  std::vector<std::string> roles() const {
    std::vector<std::string> names;
    for (const auto& assignment : assign_roles(processes_)) {
      names.emplace_back(role_name(assignment.role));
    }
    return names;
  }
  const std::vector<ProcessFacts>& processes() const { return processes_; }

 private:
  std::vector<ProcessFacts> processes_;
};

TEST(Roles, NameTheOwnerOfTheWorkersTheTrainerAndWhatIsAboveItAWrapper) {
  Tree tree;
  tree.add(10, 1, {"uv", "run", "train.py"}, 30);
  tree.add(11, 10, kTrainer, 900);
  tree.add(12, 11, compile_worker(11), 200);
  tree.add(13, 12, compile_worker(11), 5);
  tree.add(14, 11, kTrainer, 700).comm = "pt_data_worker";
  tree.add(15, 11, kTracker, 8);

  EXPECT_THAT(tree.roles(), ElementsAre("wrapper", "trainer", "compile_worker", "compile_worker",
                                        "dataloader_worker", "resource_tracker"));
  EXPECT_EQ(tree.of(12).reason, "argv runs torch/_inductor/compile_worker");
  EXPECT_FALSE(tree.of(12).inferred);
}

TEST(Roles, GiveCompileWorkersToTheProcessThatTheyName) {
  Tree tree;
  tree.add(11, 1, {"python3", "launch_all.py"}, 5000);
  tree.add(20, 11, kTrainer, 300);
  tree.add(30, 11, compile_worker(20), 200);  // reparented: its ppid is not its owner

  EXPECT_EQ(tree.role(20), "trainer");
  EXPECT_EQ(tree.role(11), "other");
}

// torch before 2.4, such as Debian 12's 1.13, gives its workers no name.
TEST(Roles, TakeANamelessPoolWithTheTrainersArgvForDataloaderWorkers) {
  for (const std::uint64_t cpu_ticks : {4U, 9000U}) {
    Tree tree;
    tree.add(11, 1, kTrainer, 900).threads = 80;
    for (pid_t pid = 20; pid < 24; ++pid) {
      ProcessFacts& worker = tree.add(pid, 11, kTrainer, 880);
      worker.key.start_ticks = 5000 + static_cast<std::uint64_t>(pid);
      worker.cpu_ticks = cpu_ticks;
      worker.threads = 2;
    }

    EXPECT_EQ(tree.role(11), "trainer");
    for (pid_t pid = 20; pid < 24; ++pid) {
      EXPECT_EQ(tree.role(pid), "dataloader_worker");
      EXPECT_TRUE(tree.of(pid).inferred);
    }
  }
}

TEST(Roles, TakeABusyPoolThatRunsCompilersForCompileWorkers) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  for (pid_t pid = 20; pid < 24; ++pid) {
    ProcessFacts& worker = tree.add(pid, 11, kTrainer, 880);
    worker.key.start_ticks = 5000 + static_cast<std::uint64_t>(pid);
    worker.cpu_ticks = 9000;
  }
  tree.add(40, 22, {"/v/triton/backends/nvidia/bin/ptxas", "-lineinfo"}, 60);

  EXPECT_EQ(tree.role(21), "compile_worker");
  EXPECT_EQ(tree.role(40), "compile_worker");
}

TEST(Roles, RememberThatANamelessPoolHasRunCompilers) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  for (pid_t pid = 20; pid < 24; ++pid) {
    ProcessFacts& worker = tree.add(pid, 11, kTrainer, 880);
    worker.key.start_ticks = 5000 + static_cast<std::uint64_t>(pid);
    worker.earlier = Role::kCompileWorker;
  }

  EXPECT_EQ(tree.role(21), "compile_worker");
}

TEST(Roles, DoNotTakeChildrenOfDifferentMomentsForOnePool) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(20, 11, kTrainer, 880).key.start_ticks = 5000;
  tree.add(21, 11, kTrainer, 880).key.start_ticks = 5011;  // 110 ms later

  EXPECT_EQ(tree.role(20), "other");
  EXPECT_EQ(tree.role(21), "other");
}

TEST(Roles, TakeANewbornBesideNamedWorkersForADataloaderWorker) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(20, 11, kTrainer, 880).comm = "pt_data_worker";
  tree.add(21, 11, kTrainer, 880).comm = "python3";
  tree.add(22, 11, kTrainer, 880).comm = "python3";

  EXPECT_EQ(tree.role(21), "dataloader_worker");
  EXPECT_TRUE(tree.of(21).inferred);
}

TEST(Roles, FollowAWorkerThatRenamesItself) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  ProcessFacts& worker = tree.add(20, 11, kTrainer, 880);

  worker.comm = "pt_multiprocess";

  EXPECT_EQ(tree.role(20), "dataloader_worker");
}

TEST(Roles, KnowForkserverWorkersByTheForkserversArgv) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(12, 11, kTracker, 8);
  tree.add(13, 11, kForkserver, 20);
  tree.add(14, 13, kForkserver, 570).comm = "pt_data_worker";
  tree.add(15, 13, kForkserver, 570);  // not renamed yet

  EXPECT_THAT(tree.roles(), ElementsAre("trainer", "resource_tracker", "forkserver",
                                        "dataloader_worker", "dataloader_worker"));
}

TEST(Roles, KnowSpawnedDataloaderWorkersBelowATrainer) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(14, 11, kSpawned, 300);
  tree.add(15, 11, kSpawned, 300);

  EXPECT_THAT(tree.roles(), ElementsAre("trainer", "dataloader_worker", "dataloader_worker"));
}

TEST(Roles, TakeASpawnedOrphanForNothing) {
  Tree tree;
  tree.add(10, 1, {"bash", "-c", "x"}, 2);
  tree.add(11, 10, {"./native_job"}, 400);
  tree.add(14, 10, kSpawned, 30);
  tree.add(20, 0, {"/process_api", "--init"}, 60);
  tree.add(21, 20, kSpawned, 30);

  EXPECT_NE(tree.role(14), "dataloader_worker");
  EXPECT_NE(tree.role(21), "dataloader_worker");
}

TEST(Roles, TakeSpawnedProcessesThatHaveWorkersForRanks) {
  Tree tree;
  tree.add(11, 1, kTrainer, 300);
  for (pid_t rank = 20; rank < 22; ++rank) {
    tree.add(rank, 11, kSpawned, 250);
    tree.add(rank + 10, rank, kSpawned, 200).comm = "pt_data_worker";
  }

  EXPECT_THAT(tree.roles(),
              ElementsAre("launcher", "rank", "dataloader_worker", "rank", "dataloader_worker"));
}

TEST(Roles, TakeSpawnedProcessesThatOutweighTheirParentForRanks) {
  Tree tree;
  tree.add(11, 1, kTrainer, 300);
  tree.add(20, 11, kSpawned, 4000);
  tree.add(21, 11, kSpawned, 4000);

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "rank", "rank"));
}

TEST(Roles, PutCompilersBelowTheTrainerToTheCompileWorkersWithAndWithoutAPool) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(12, 11, {"/bin/sh", "-c", "g++ a.cpp"}, 1);
  tree.add(13, 12, {"g++", "a.cpp"}, 1);
  tree.add(14, 13, {"/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "-quiet", "a.cpp"}, 187);
  tree.add(15, 13, {"as", "--64"}, 3);

  EXPECT_THAT(tree.roles(), ElementsAre("trainer", "compile_worker", "compile_worker",
                                        "compile_worker", "compile_worker"));
}

TEST(Roles, LeaveCompilersOfABuildAlone) {
  Tree tree;
  tree.add(11, 1, {"make", "-j8"}, 5);
  tree.add(12, 11, {"g++", "a.cpp"}, 1);
  tree.add(13, 12, {"/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "a.cpp"}, 20);

  EXPECT_NE(tree.role(13), "compile_worker");
}

TEST(Roles, CallAShellBelowTheTrainerNoWrapper) {
  Tree tree;
  tree.add(11, 1, kTrainer, 900);
  tree.add(12, 11, {"/bin/sh", "-c", "nvidia-smi"}, 1);

  EXPECT_EQ(tree.role(12), "other");
}

TEST(Roles, GiveRanksTheirNumbersBelowTorchrun) {
  Tree tree;
  tree.add(10, 1, {"/usr/bin/python3", "/venv/bin/torchrun", "--nproc-per-node=2", "t.py"}, 400);
  tree.add(11, 10, {"/usr/bin/python3", "-u", "t.py"}, 4000).rank = 0;
  tree.add(12, 10, {"/usr/bin/python3", "-u", "t.py"}, 4000).rank = 1;
  ProcessFacts& loader = tree.add(13, 12, {"/usr/bin/python3", "-u", "t.py"}, 900);
  loader.comm = "pt_data_worker";
  loader.rank = 1;  // inherited

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "rank", "rank", "dataloader_worker"));
  EXPECT_EQ(tree.of(11).rank, 0);
  EXPECT_EQ(tree.of(12).rank, 1);
  EXPECT_EQ(tree.of(13).rank, std::nullopt);
}

TEST(Roles, ReadTheRankOfDeepspeedFromTheArguments) {
  Tree tree;
  tree.add(9, 1, {"/usr/bin/python3", "/venv/bin/deepspeed", "t.py"}, 80);
  tree.add(10, 9, {"/usr/bin/python3", "-u", "-m", "deepspeed.launcher.launch", "t.py"}, 80);
  tree.add(11, 10, {"numactl", "-N", "0", "python3", "-u", "t.py", "--local_rank=0"}, 1);
  tree.add(12, 11, {"python3", "-u", "t.py", "--local_rank=0"}, 4000);
  tree.add(13, 10, {"python3", "-u", "t.py", "--local-rank", "1"}, 4000);

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "launcher", "wrapper", "rank", "rank"));
  EXPECT_EQ(tree.of(12).rank, 0);
  EXPECT_EQ(tree.of(13).rank, 1);
}

TEST(Roles, StepThroughShellsThatInheritTheRank) {
  Tree tree;
  tree.add(10, 1, {"python3", "-m", "torch.distributed.run", "--no-python", "./run.sh"}, 300);
  for (pid_t shell = 20; shell < 22; ++shell) {
    tree.add(shell, 10, {"/bin/bash", "./run.sh"}, 2).rank = shell - 20;
    tree.add(shell + 10, shell, kTrainer, 3000).rank = shell - 20;
  }

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "wrapper", "rank", "wrapper", "rank"));
}

TEST(Roles, CallTheOnlyRankHereATrainerAndKeepItsNumber) {
  Tree tree;
  tree.add(10, 1, {"bash", "entry.sh"}, 2).rank = 3;  // set for the whole container
  tree.add(11, 10, kTrainer, 3000).rank = 3;

  EXPECT_THAT(tree.roles(), ElementsAre("wrapper", "trainer"));
  EXPECT_EQ(tree.of(11).rank, 3);
}

TEST(Roles, TakeAMainProcessThatStartsTheOtherRanksForRankZero) {
  Tree tree;  // Lightning: rank 0 is the parent of rank 1
  tree.add(10, 1, kTrainer, 3000);
  tree.add(11, 10, kTrainer, 3000).rank = 1;
  tree.add(12, 10, kTrainer, 900).comm = "pt_data_worker";

  EXPECT_THAT(tree.roles(), ElementsAre("rank", "rank", "dataloader_worker"));
  EXPECT_EQ(tree.of(10).rank, 0);
}

TEST(Roles, KeepTheRanksOfTwoJobsApart) {
  Tree tree;
  tree.add(5, 1, {"bash", "sweep.sh"}, 2);
  for (pid_t launcher : {10, 20}) {
    tree.add(launcher, 5, {"python3", "/venv/bin/torchrun", "t.py"}, 300);
    tree.add(launcher + 1, launcher, kTrainer, 3000).rank = 0;
  }

  EXPECT_EQ(tree.role(11), "trainer");
  EXPECT_EQ(tree.role(21), "trainer");
}

TEST(Roles, GuessTheHeaviestPythonWhereNobodyOwnsWorkers) {
  Tree tree;
  tree.add(10, 1, {"bash", "-c", "python3 train.py"}, 2);
  tree.add(11, 10, {"python3", "upload_logs.py"}, 60);
  tree.add(12, 10, kTrainer, 700);

  EXPECT_EQ(tree.role(12), "trainer");
  EXPECT_TRUE(tree.of(12).inferred);
  EXPECT_EQ(tree.role(11), "other");
}

TEST(Roles, CallASmallParentOfTheHeavyTrainerAWrapperWhateverItsName) {
  Tree tree;
  tree.add(10, 1, {"/opt/site/bin/jobctl", "exec"}, 40);
  tree.add(11, 10, {"python3", "run_one.py"}, 15);
  tree.add(12, 11, kTrainer, 700);

  EXPECT_THAT(tree.roles(), ElementsAre("wrapper", "wrapper", "trainer"));
  EXPECT_TRUE(tree.of(10).inferred);
}

TEST(Roles, CallAParentOfSeveralTrainersNoWrapper) {
  Tree tree;
  tree.add(10, 1, {"python3", "job_server.py"}, 40);
  for (pid_t pid : {20, 30}) {
    tree.add(pid, 10, kTrainer, 700);
    tree.add(pid + 1, pid, kTrainer, 600).comm = "pt_data_worker";
  }

  EXPECT_EQ(tree.role(10), "other");
  EXPECT_EQ(tree.role(20), "trainer");
  EXPECT_EQ(tree.role(30), "trainer");
}

TEST(Roles, TakeTheOnlyProcessThatIsNoWrapperForTheTrainer) {
  Tree tree;
  tree.add(10, 1, {"/bin/sh", "./train.sh"}, 1);
  tree.add(11, 10, {"./libtorch_trainer", "--steps", "100"}, 20);
  tree.add(12, 11, {"./libtorch_trainer", "--steps", "100"}, 10);
  tree.add(13, 10, {"tee", "log"}, 1);

  EXPECT_THAT(tree.roles(), ElementsAre("wrapper", "trainer", "other", "wrapper"));
}

TEST(Roles, LeaveAnInteractiveShellWithALightChildAlone) {
  Tree tree;
  tree.add(10, 1, {"-bash"}, 3);
  tree.add(11, 10, {"sleep", "1000"}, 1);

  EXPECT_THAT(tree.roles(), ElementsAre("other", "other"));
}

TEST(Roles, FindTheTrainerBelowAnInteractiveShell) {
  Tree tree;
  tree.add(10, 1, {"-bash"}, 3);
  tree.add(11, 10, kTrainer, 900);

  EXPECT_THAT(tree.roles(), ElementsAre("other", "trainer"));
}

TEST(Roles, DoNotTakeThePoolOfAServiceForWorkersWhenTheWholeMachineIsLookedAt) {
  Tree tree;
  tree.add(1, 0, {"/sbin/init"}, 10);
  tree.add(10, 1, {"python3", "/usr/bin/gunicorn", "app"}, 60);
  for (pid_t pid = 20; pid < 24; ++pid) {
    tree.add(pid, 10, {"python3", "/usr/bin/gunicorn", "app"}, 60).key.start_ticks = 700;
  }

  EXPECT_THAT(tree.roles(), testing::Each("other"));
}

const Argv kServeJobs = {"/usr/bin/tidemark-harness", "serve-jobs", "--jobs", "3"};

TEST(Roles, TellAServerFromTheJobThatItStarted) {
  Tree tree;
  tree.add(10, 1, kServeJobs, 60);
  tree.add(11, 10, {"/usr/bin/tidemark-harness", "train", "leak"}, 2);  // it has just started

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "trainer"));
}

TEST(Roles, TakeAServerThatOwnsWorkersForTheTrainer) {
  const Argv flask = {"python3", "-m", "flask", "run"};
  Tree tree;
  tree.add(10, 1, flask, 600);
  tree.add(11, 10, flask, 500).comm = "pt_data_worker";

  EXPECT_THAT(tree.roles(), ElementsAre("trainer", "dataloader_worker"));
}

TEST(Roles, TakeAServerForTheTrainerWhileItTrainsItself) {
  Tree tree;
  tree.add(10, 1, kServeJobs, 300);
  tree.add(11, 10, {"/usr/bin/helper"}, 5);

  EXPECT_THAT(tree.roles(), ElementsAre("trainer", "other"));
}

TEST(Roles, KeepAServerApartBetweenTwoJobs) {
  Tree tree;
  tree.add(10, 1, kServeJobs, 20).earlier = Role::kLauncher;

  EXPECT_THAT(tree.roles(), ElementsAre("launcher"));
}

TEST(Roles, TakeTheProcessOfAWebServerThatDoesTheWorkForTheTrainer) {
  const Argv gunicorn = {"python3", "/usr/bin/gunicorn", "app"};
  Tree tree;
  tree.add(10, 1, gunicorn, 30);
  tree.add(11, 10, gunicorn, 32).key.start_ticks = 700;
  tree.add(12, 10, gunicorn, 800).key.start_ticks = 700;

  EXPECT_THAT(tree.roles(), ElementsAre("launcher", "other", "trainer"));
}

TEST(Roles, GiveAnOrphanedWorkerToNobody) {
  const Argv init = {"/process_api", "--init"};
  const std::vector<std::pair<Argv, std::string>> workers = {
      {kTrainer, "pt_data_worker"}, {kSpawned, "pt_data_worker"}, {compile_worker(77), "python3"}};
  for (const auto& [argv, comm] : workers) {
    Tree tree;
    tree.add(1, 0, init, 60);
    tree.add(20, 1, argv, 700).comm = comm;

    EXPECT_TRUE(tree.of(20).role == Role::kDataloaderWorker ||
                tree.of(20).role == Role::kCompileWorker);
    EXPECT_NE(tree.of(1).reason, "owns the compile or DataLoader workers");
    EXPECT_THAT(orphaned_workers(tree.processes()), ElementsAre(1U));
  }
}

TEST(Roles, KnowTheOwnWorkersOfATrainerThatIsInit) {
  Tree tree;
  tree.add(1, 0, kTrainer, 900);
  tree.add(20, 1, kTrainer, 700).comm = "pt_data_worker";
  tree.add(21, 1, kSpawned, 700).comm = "pt_data_worker";
  tree.add(22, 1, compile_worker(1), 200);
  tree.add(23, 22, compile_worker(1), 200);

  EXPECT_EQ(tree.role(1), "trainer");
  EXPECT_THAT(orphaned_workers(tree.processes()), testing::IsEmpty());
}

TEST(Roles, LeaveCompileWorkersToATrainerWhosePidIsAnotherInItsContainer) {
  Tree tree;
  tree.add(1007, 900, kTrainer, 900);
  tree.add(1020, 1007, compile_worker(7), 200);

  EXPECT_EQ(tree.role(1007), "trainer");
  EXPECT_THAT(orphaned_workers(tree.processes()), testing::IsEmpty());
}

TEST(Roles, LeaveTheWorkersToATrainerThatHasGivenItselfATitle) {
  Tree tree;
  tree.add(11, 1, {"my job: epoch 3", "", ""}, 900);
  tree.add(20, 11, kTrainer, 700).comm = "pt_data_worker";

  EXPECT_EQ(tree.role(11), "trainer");
}

TEST(Roles, ChangeWithExec) {
  Tree tree;
  tree.add(10, 1, {"bash", "-c", "exec python3 train.py"}, 2);
  tree.add(11, 10, {"bash", "-c", "exec python3 train.py"}, 2);
  EXPECT_EQ(tree.role(11), "wrapper");

  Tree after;
  after.add(10, 1, {"bash", "-c", "exec python3 train.py"}, 2);
  after.add(11, 10, kTrainer, 200);
  EXPECT_EQ(after.role(11), "trainer");
}

TEST(Roles, KeepRayAndInferenceProcessesAsTheyAre) {
  Tree tree;
  tree.add(10, 1, {"/usr/bin/python3", "/venv/bin/vllm", "serve", "m"}, 900);
  tree.add(11, 10, {"VLLM::EngineCore", "", ""}, 2000);
  tree.add(12, 11, {"VLLM::Worker_TP0", ""}, 2000);
  tree.add(20, 1, {"ray::TrainWorker.run()", "", ""}, 2000);
  tree.add(21, 20, {"ray::TrainWorker.run()", "", ""}, 900).comm = "pt_data_worker";

  EXPECT_THAT(tree.roles(),
              ElementsAre("inference", "inference", "inference", "ray", "dataloader_worker"));
}

TEST(Roles, KnowOrphanedWorkersByTheirName) {
  Tree tree;
  tree.add(20, 1, kTrainer, 700).comm = "pt_data_worker";

  EXPECT_EQ(tree.role(20), "dataloader_worker");
  EXPECT_THAT(orphaned_workers(tree.processes()), ElementsAre(0U)) << "init is another user's";
}

TEST(Roles, SurviveATornSnapshot) {
  Tree tree;
  tree.add(10, 11, kTrainer, 10);
  tree.add(11, 10, kTrainer, 10);
  tree.add(12, 12, {}, 0);
  tree.add(10, 1, {""}, 0);

  EXPECT_EQ(tree.roles().size(), 4U);
  EXPECT_TRUE(assign_roles({}).empty());
}

TEST(Roles, ReadTheRankFromTheBestVariable) {
  EXPECT_EQ(rank_from_environment(Argv{"LOCAL_RANK=1", "RANK=9"}), 9);
  EXPECT_EQ(rank_from_environment(Argv{"LOCAL_RANK=1"}), 1);
  EXPECT_EQ(rank_from_environment(Argv{"SLURM_PROCID=4", "LOCAL_RANK=0"}), 4);
  EXPECT_EQ(rank_from_environment(Argv{"RANK=", "RANKING=3"}), std::nullopt);
  EXPECT_EQ(rank_from_environment(Argv{"RANK=-1"}), std::nullopt);
}

TEST(Roles, ReadTheJobThatRanksShare) {
  EXPECT_EQ(job_from_environment(Argv{"SLURM_JOB_ID=77", "SLURM_STEP_ID=0"}), "slurm 77.0");
  EXPECT_EQ(job_from_environment(Argv{"SLURM_JOB_ID=77"}), "") << "all of an allocation";
  EXPECT_EQ(job_from_environment(Argv{"TORCHELASTIC_RUN_ID=night"}), "torchrun night");
  EXPECT_EQ(job_from_environment(Argv{"TORCHELASTIC_RUN_ID=none"}), "") << "torchrun's default";
}

TEST(JobTrees, SeparateWhatRunsInDifferentSessions) {
  Tree tree;
  tree.add(1, 0, {"/sbin/init"}, 10);
  tree.add(2, 0, {}, 0);
  tree.add(3, 2, {}, 0);  // a kernel thread
  tree.add(10, 1, {"sshd: alice@pts/0"}, 5);
  tree.add(11, 10, {"-bash"}, 3);
  tree.add(12, 11, {"uv", "run", "train.py"}, 30);
  tree.add(13, 12, kTrainer, 900);
  tree.add(20, 1, {"tmux", "new"}, 5);
  tree.add(21, 20, {"sh", "-c", "python3 train.py"}, 1);
  tree.add(22, 21, kTrainer, 900);

  EXPECT_THAT(job_trees(tree.processes()), ElementsAre(ElementsAre(5, 6), ElementsAre(8, 9)));
}

}  // namespace
}  // namespace tidemark::monitor
