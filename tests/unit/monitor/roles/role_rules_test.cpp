// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/role_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

// One command line as /proc shows it and the role that the table gives to it alone.
struct Example {
  std::vector<std::string> argv;
  Role role;
  std::string comm = "";  // "": what exec sets, the name of the program
};

const RoleRule* rule_for(const std::vector<std::string>& argv, const std::string& comm) {
  const std::string_view argv0 = argv.empty() ? std::string_view() : std::string_view(argv[0]);
  const std::string exec_comm(basename_of(argv0).substr(0, 15));
  return match_rule(parse_command(argv), argv0, comm.empty() ? exec_comm : comm);
}

constexpr std::string_view kWorkerPath =
    "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py";

std::vector<std::string> python(std::initializer_list<std::string> rest) {
  std::vector<std::string> argv = {"/usr/bin/python3"};
  argv.insert(argv.end(), rest);
  return argv;
}

const std::vector<Example>& workers() {
  static const std::vector<Example> examples = {
      // torch 2.4
      {python({std::string(kWorkerPath), "--workers=32", "--parent=4711"}), Role::kCompileWorker},
      // torch 2.6
      {python({std::string(kWorkerPath), "--workers=20", "--parent=1387", "--read-fd=4",
               "--write-fd=7"}),
       Role::kCompileWorker},
      // torch 2.14
      {python({std::string(kWorkerPath),
               "--pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler",
               "--kind=fork", "--workers=20", "--parent=4610", "--read-fd=5", "--write-fd=8",
               "--torch-key=pLw3Q2zJ0v1kXnS8dYb5TgHc6RfUa9eMmB7iKq4oWxE="}),
       Role::kCompileWorker},
      {python({"-m", "torch._inductor.compile_worker", "--workers=4"}), Role::kCompileWorker},
      {python({"train.py", "--epochs", "3"}), Role::kDataloaderWorker, "pt_data_worker"},
      {python({"train.py", "--epochs", "3"}), Role::kDataloaderWorker, "pt_multiprocess"},
      {python({"train.py"}), Role::kOther, "pt_data_pin"},
      {python({"-c",
               "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, "
               "pipe_handle=20)",
               "--multiprocessing-fork"}),
       Role::kDataloaderWorker},
      {python({"-c", "from multiprocessing.resource_tracker import main;main(7)"}),
       Role::kResourceTracker},
      {python({"-c", "from multiprocessing.semaphore_tracker import main;main(4)"}),
       Role::kResourceTracker},
      {python({"-c",
               "import sys; from multiprocessing.forkserver import main; main(10, 11, "
               "['__main__'], **{'sys_path': ['/x']})",
               "train.py", "--args"}),
       Role::kForkserver},
      {{"/usr/lib/python3/dist-packages/torch/bin/torch_shm_manager"}, Role::kShmManager},
      {{"ray::TrainWorker.run()", "", "", ""}, Role::kRay},
      {{"ray::IDLE", "", ""}, Role::kRay},
      {{"VLLM::EngineCore", "", ""}, Role::kInference},
      {{"VLLM::Worker_TP0"}, Role::kInference},
      {python({"worker.py"}), Role::kRay, "ray::DashboardA"},
      {python({"serve.py"}), Role::kInference, "VLLM::Worker_TP"},
      {{"/opt/ray/core/src/ray/raylet/raylet", "--raylet_socket_name=/tmp/r"}, Role::kRay},
      {{"/opt/ray/core/src/ray/gcs/gcs_server", "--log_dir=/tmp"}, Role::kRay},
      {python({"/venv/bin/ray", "start", "--head"}), Role::kRay},
      {python({"-u", "/v/site-packages/ray/_private/workers/default_worker.py"}), Role::kRay},
      {python({"/v/site-packages/ray/dashboard/dashboard.py"}), Role::kRay},
      {python({"/v/site-packages/ray/autoscaler/_private/monitor.py"}), Role::kRay},
      {python({"/venv/bin/vllm", "serve", "model"}), Role::kInference},
      {python({"-m", "vllm.entrypoints.openai.api_server"}), Role::kInference},
  };
  return examples;
}

const std::vector<Example>& launchers() {
  static const std::vector<Example> examples = {
      {python({"/venv/bin/torchrun", "--nproc-per-node=8", "train.py"}), Role::kLauncher},
      {python({"whatever.py"}), Role::kLauncher, "pt_elastic"},
      {python({"-m", "torch.distributed.run", "train.py"}), Role::kLauncher},
      {python({"-m", "torch.distributed.launch", "--nproc_per_node=2", "t.py"}), Role::kLauncher},
      {python({"/v/site-packages/torch/distributed/run.py", "t.py"}), Role::kLauncher},
      {python({"/v/site-packages/torch/distributed/launch.py", "t.py"}), Role::kLauncher},
      {python({".venv/bin/accelerate", "launch", "t.py"}), Role::kLauncher},
      {{"/home/u/.venv/bin/accelerate", "launch", "t.py"}, Role::kLauncher},
      {python({".venv/bin/accelerate-launch", "t.py"}), Role::kLauncher},
      {python({"-m", "accelerate.commands.launch", "t.py"}), Role::kLauncher},
      {python({"/v/site-packages/accelerate/commands/launch.py", "t.py"}), Role::kLauncher},
      {python({"/venv/bin/deepspeed", "--num_gpus=2", "t.py"}), Role::kLauncher},
      {python({"-m", "deepspeed.launcher.runner", "t.py"}), Role::kLauncher},
      {python({"-u", "-m", "deepspeed.launcher.launch", "--world_info=eyJsb2NhbGhvc3QiOiBbMF19",
               "--master_addr=127.0.0.1", "--master_port=29500", "t.py"}),
       Role::kLauncher},
      {python({"/v/site-packages/deepspeed/launcher/launch.py"}), Role::kLauncher},
      {python({"/venv/bin/horovodrun", "-np", "4", "python", "t.py"}), Role::kLauncher},
      {python({"/venv/bin/colossalai", "run", "--nproc_per_node", "4", "t.py"}), Role::kLauncher},
  };
  return examples;
}

const std::vector<Example>& compilers() {
  static const std::vector<Example> examples = {
      {{"/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "-quiet", "a.cpp"}, Role::kCompileWorker},
      {{"/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "-quiet", "a.c"}, Role::kCompileWorker},
      {{"g++", "/tmp/torchinductor/a.cpp", "-shared"}, Role::kCompileWorker},
      {{"/usr/bin/x86_64-linux-gnu-g++-12", "a.cpp"}, Role::kCompileWorker},
      {{"/usr/bin/gcc", "/tmp/tmp1/main.c", "-O3"}, Role::kCompileWorker},
      {{"aarch64-linux-gnu-gcc", "a.c"}, Role::kCompileWorker},
      {{"c++", "a.cpp"}, Role::kCompileWorker},
      {{"cc", "a.c"}, Role::kCompileWorker},
      {{"clang++-15", "a.cpp"}, Role::kCompileWorker},
      {{"/usr/lib/llvm-15/bin/clang", "-cc1"}, Role::kCompileWorker},
      {{"as", "--64", "-o", "a.o", "a.s"}, Role::kCompileWorker},
      {{"/usr/lib/gcc/x86_64-linux-gnu/12/collect2", "-plugin"}, Role::kCompileWorker},
      {{"/usr/bin/ld", "-plugin"}, Role::kCompileWorker},
      {{"/usr/bin/ld.bfd", "-o"}, Role::kCompileWorker},
      {{"/usr/bin/ld.gold", "-o"}, Role::kCompileWorker},
      {{"/usr/bin/ld.lld", "-o"}, Role::kCompileWorker},
      {{"/usr/lib/gcc/x86_64-linux-gnu/12/lto1"}, Role::kCompileWorker},
      {{"/usr/lib/gcc/x86_64-linux-gnu/12/lto-wrapper"}, Role::kCompileWorker},
      {{"/usr/local/cuda/bin/nvcc", "-c", "a.cu"}, Role::kCompileWorker},
      {{"cicc", "--c++17"}, Role::kCompileWorker},
      {{"cudafe++", "--c++17"}, Role::kCompileWorker},
      {{"fatbinary", "-64"}, Role::kCompileWorker},
      {{"nvlink", "-arch=sm_90"}, Role::kCompileWorker},
      {{"/v/site-packages/triton/backends/nvidia/bin/ptxas", "-lineinfo"}, Role::kCompileWorker},
      {{"hipcc", "a.cpp"}, Role::kCompileWorker},
      {{"ninja", "-v"}, Role::kCompileWorker},
      {{"ccache", "g++", "a.cpp"}, Role::kCompileWorker},
      {{"sccache", "g++", "a.cpp"}, Role::kCompileWorker},
  };
  return examples;
}

const std::vector<Example>& wrappers() {
  static const std::vector<Example> examples = {
      {{"uv", "run", "train.py"}, Role::kWrapper},
      {{"/home/u/.local/bin/uv", "run", "--with", "torch", "python", "t.py"}, Role::kWrapper},
      {{"uv", "tool", "run", "thing"}, Role::kWrapper},
      {{"uvx", "thing"}, Role::kWrapper},
      {python({"/usr/bin/poetry", "run", "python", "t.py"}), Role::kWrapper},
      {python({"/usr/bin/pipenv", "run", "python", "t.py"}), Role::kWrapper},
      {python({"/usr/bin/pdm", "run", "t.py"}), Role::kWrapper},
      {python({"/usr/bin/hatch", "run", "t.py"}), Role::kWrapper},
      {{"rye", "run", "t.py"}, Role::kWrapper},
      {{"/opt/conda/bin/python", "/opt/conda/bin/conda", "run", "-n", "e", "python", "t.py"},
       Role::kWrapper},
      {python({"/opt/conda/bin/mamba", "run", "-n", "e", "python", "t.py"}), Role::kWrapper},
      {{"micromamba", "run", "-n", "e", "python", "t.py"}, Role::kWrapper},
      {{"pixi", "run", "train"}, Role::kWrapper},
      {python({"/usr/bin/dvc", "repro"}), Role::kWrapper},
      {python({"/usr/bin/wandb", "agent", "me/p/1"}), Role::kWrapper},
      {{"nohup", "python", "t.py"}, Role::kWrapper},
      {{"/usr/bin/time", "-v", "python", "t.py"}, Role::kWrapper},
      {{"timeout", "3600", "python", "t.py"}, Role::kWrapper},
      {{"nice", "-n", "10", "python", "t.py"}, Role::kWrapper},
      {{"ionice", "-c3", "python", "t.py"}, Role::kWrapper},
      {{"chrt", "-b", "0", "python", "t.py"}, Role::kWrapper},
      {{"env", "A=1", "python", "t.py"}, Role::kWrapper},
      {{"sudo", "-E", "python", "t.py"}, Role::kWrapper},
      {{"script", "-c", "python t.py", "log"}, Role::kWrapper},
      {{"unbuffer", "python", "t.py"}, Role::kWrapper},
      {{"tee", "log.txt"}, Role::kWrapper},
      {{"stdbuf", "-oL", "python", "t.py"}, Role::kWrapper},
      {{"setsid", "-w", "python", "t.py"}, Role::kWrapper},
      {{"setpriv", "--pdeathsig", "TERM", "python", "t.py"}, Role::kWrapper},
      {{"flock", "/tmp/l", "python", "t.py"}, Role::kWrapper},
      {{"xargs", "-n1", "python", "t.py"}, Role::kWrapper},
      {{"parallel", "python", "t.py"}, Role::kWrapper},
      {{"xvfb-run", "python", "t.py"}, Role::kWrapper},
      {{"/bin/sh", "/usr/bin/xvfb-run", "-a", "python", "t.py"}, Role::kWrapper},
      {{"numactl", "-N", "0", "python", "t.py"}, Role::kWrapper},
      {{"taskset", "-c", "0-7", "python", "t.py"}, Role::kWrapper},
      {{"systemd-run", "--scope", "python", "t.py"}, Role::kWrapper},
      {{"systemd-inhibit", "python", "t.py"}, Role::kWrapper},
      {{"make", "train"}, Role::kWrapper},
      {{"just", "train"}, Role::kWrapper},
      {{"/usr/bin/tidemark", "monitor", "--", "python", "t.py"}, Role::kWrapper},
      {{"srun", "-N1", "python", "t.py"}, Role::kWrapper},
      {{"mpirun", "-np", "4", "python", "t.py"}, Role::kWrapper},
      {{"mpiexec", "-n", "4", "python", "t.py"}, Role::kWrapper},
      {{"mpiexec.hydra", "-n", "4", "python", "t.py"}, Role::kWrapper},
      {{"orterun", "-np", "4", "python", "t.py"}, Role::kWrapper},
      {{"prterun", "-np", "4", "python", "t.py"}, Role::kWrapper},
      {{"orted", "-mca", "x"}, Role::kWrapper},
      {{"prted", "--x"}, Role::kWrapper},
      {{"/opt/mpich/bin/hydra_pmi_proxy", "--control-port"}, Role::kWrapper},
      {{"hydra_bstrap_proxy", "--x"}, Role::kWrapper},
      {{"/usr/bin/tini", "--", "python", "t.py"}, Role::kWrapper},
      {{"dumb-init", "python", "t.py"}, Role::kWrapper},
      {{"/sbin/docker-init", "--", "python", "t.py"}, Role::kWrapper},
      {{"/dev/init/catatonit", "-P"}, Role::kWrapper},
      {{"apptainer", "exec", "x.sif", "python", "t.py"}, Role::kWrapper},
      {{"singularity", "exec", "x.sif", "python", "t.py"}, Role::kWrapper},
      {{"strace", "-f", "python", "t.py"}, Role::kWrapper},
      {{"ltrace", "python", "t.py"}, Role::kWrapper},
      {{"gdb", "--args", "python", "t.py"}, Role::kWrapper},
      {{"py-spy", "record", "--", "python", "t.py"}, Role::kWrapper},
      {{"nsys", "profile", "python", "t.py"}, Role::kWrapper},
      {{"ncu", "python", "t.py"}, Role::kWrapper},
      {{"perf", "record", "python", "t.py"}, Role::kWrapper},
      {{"perf", "stat", "python", "t.py"}, Role::kWrapper},
      {{"bash", "-c", "python t.py; echo done"}, Role::kWrapper},
      {{"/bin/sh", "-c", "python t.py"}, Role::kWrapper},
      {{"/bin/bash", "/var/spool/slurmd/job1/slurm_script"}, Role::kWrapper},
      {{"tmux", "new", "-d", "-s", "t"}, Role::kWrapper},
      {{"tmux", "new", "-d", "-s", "t"}, Role::kWrapper, "tmux: server"},
      {{"screen", "-dm", "python", "t.py"}, Role::kWrapper},
      {{"SCREEN", "-dm", "python", "t.py"}, Role::kWrapper},
  };
  return examples;
}

const std::vector<Example>& servers() {
  static const std::vector<Example> examples = {
      {{"build/release/bin/tidemark-harness", "serve-jobs", "--jobs", "3"}, Role::kLauncher},
      {python({"/venv/bin/flask", "--app", "jobs", "run", "--debug"}), Role::kLauncher},
      {python({"-m", "flask", "run"}), Role::kLauncher},
      {python({"/venv/bin/uvicorn", "jobs:app", "--port", "8000"}), Role::kLauncher},
      {python({"-m", "uvicorn", "jobs:app"}), Role::kLauncher},
      {python({"/venv/bin/gunicorn", "-w", "2", "jobs:app"}), Role::kLauncher},
      {python({"-m", "gunicorn", "jobs:app"}), Role::kLauncher},
      {{"gunicorn: master [jobs:app]"}, Role::kLauncher},
      {python({"/venv/bin/hypercorn", "jobs:app"}), Role::kLauncher},
      {python({"-m", "hypercorn", "jobs:app"}), Role::kLauncher},
      {python({"/venv/bin/waitress-serve", "jobs:app"}), Role::kLauncher},
      {python({"/venv/bin/daphne", "jobs:app"}), Role::kLauncher},
      {python({"/venv/bin/fastapi", "run", "jobs.py"}), Role::kLauncher},
      {python({"/venv/bin/fastapi", "dev", "jobs.py"}), Role::kLauncher},
      {python({"/venv/bin/celery", "-A", "jobs", "worker"}), Role::kLauncher},
      {python({"-m", "celery", "-A", "jobs", "worker"}), Role::kLauncher},
      {python({"/venv/bin/rq", "worker", "training"}), Role::kLauncher},
      {python({"/venv/bin/dramatiq", "jobs"}), Role::kLauncher},
  };
  return examples;
}

const std::vector<Example>& no_part_of_a_job() {
  static const std::vector<Example> examples = {
      {{"-bash"}, Role::kOther},
      {{"/usr/lib/systemd/systemd", "--user"}, Role::kOther},
      {{"/sbin/init"}, Role::kOther},
      {{"sshd: alice@pts/0"}, Role::kOther},
      {{"/usr/sbin/sshd", "-D"}, Role::kOther},
      {{"/bin/login", "-p"}, Role::kOther},
      {{"su", "-", "alice"}, Role::kOther},
      {{"/usr/sbin/cron", "-f"}, Role::kOther},
      {{"/usr/sbin/crond", "-n"}, Role::kOther},
      {python({"/usr/bin/supervisord", "-n"}), Role::kOther},
      {python({"/usr/bin/circusd", "circus.ini"}), Role::kOther},
      {{"PM2 v5.3.0: God Daemon (/home/alice/.pm2)"}, Role::kOther},
      {{"/usr/bin/monit", "-I"}, Role::kOther},
      {{"runsvdir", "-P", "/etc/service"}, Role::kOther},
      {{"runsv", "job"}, Role::kOther},
      {{"/bin/s6-svscan", "-d4", "--", "/run/service"}, Role::kOther},
      {{"s6-supervise", "job"}, Role::kOther},
      {{"/sbin/openrc-init"}, Role::kOther},
      {{"slurmstepd: [123.batch]"}, Role::kOther},
      {{"/usr/sbin/slurmd", "-D"}, Role::kOther},
      {{"/usr/bin/conmon", "--api-version"}, Role::kOther},
      {{"/usr/bin/containerd"}, Role::kOther},
      {{"containerd-shim", "-namespace"}, Role::kOther},
      {{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby"}, Role::kOther},
      {{"/usr/bin/dockerd", "-H", "fd://"}, Role::kOther},
      {{"/usr/bin/runc", "run", "x"}, Role::kOther},
      {{"crun", "run", "x"}, Role::kOther},
      {{"/usr/bin/podman", "run", "img"}, Role::kOther},
      {{"/pause"}, Role::kOther},
      {{"/usr/bin/kubelet"}, Role::kOther},
      {{"/home/u/.vscode-server/bin/abc/node", "out/server-main.js"}, Role::kOther},
      {{"/usr/share/code/code"}, Role::kOther},
      {{"/usr/bin/code-server"}, Role::kOther},
      {{"/opt/cursor"}, Role::kOther},
      {{"vim", "train.py"}, Role::kOther},
      {{"vi", "train.py"}, Role::kOther},
      {{"nvim", "train.py"}, Role::kOther},
      {{"emacs", "train.py"}, Role::kOther},
      {{"nano", "train.py"}, Role::kOther},
      {{"hx", "train.py"}, Role::kOther},
      {python({"/venv/bin/jupyter-lab", "--no-browser"}), Role::kOther},
      {python({"/venv/bin/jupyter-notebook"}), Role::kOther},
      {python({"/venv/bin/jupyter-server"}), Role::kOther},
      {python({"/venv/bin/jupyterhub-singleuser"}), Role::kOther},
      {python({"/venv/bin/jupyter", "lab"}), Role::kOther},
      {python({"/venv/bin/pylsp"}), Role::kOther},
      {python({"/venv/bin/jedi-language-server"}), Role::kOther},
      {python({"/venv/bin/ruff-lsp"}), Role::kOther},
      {python({"/venv/bin/pyright"}), Role::kOther},
      {python({"/venv/bin/pyright-langserver", "--stdio"}), Role::kOther},
      {python({"/venv/bin/basedpyright-langserver", "--stdio"}), Role::kOther},
      {python({"-m", "pylsp"}), Role::kOther},
      {python({"/home/u/.vscode/extensions/ms-python.isort/server.py"}), Role::kOther},
      {python({"/home/u/.vscode-server/extensions/ms-python.black/lsp_server.py"}), Role::kOther},
      {python({"/home/u/.cursor-server/extensions/x/lsp_server.py"}), Role::kOther},
      {python({"/v/site-packages/debugpy/adapter", "--for-server", "1"}), Role::kOther},
      {python({"/venv/bin/tensorboard", "--logdir", "runs"}), Role::kOther},
      {python({"-m", "tensorboard.main", "--logdir", "runs"}), Role::kOther},
      {{"/v/site-packages/wandb/bin/wandb-core", "--port-filename"}, Role::kOther},
      {python({"/venv/bin/wandb", "service", "--x"}), Role::kOther},
      {{"nvidia-smi", "-l"}, Role::kOther},
      {python({"/venv/bin/nvitop"}), Role::kOther},
      {{"nvtop"}, Role::kOther},
      {python({"/venv/bin/gpustat", "-i"}), Role::kOther},
  };
  return examples;
}

std::vector<Example> all_examples() {
  std::vector<Example> all;
  for (const auto* list :
       {&workers(), &launchers(), &servers(), &compilers(), &wrappers(), &no_part_of_a_job()}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

std::string joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += word + " ";
  }
  return text;
}

TEST(RoleRules, GiveEachExactCommandLineItsRole) {
  for (const Example& example : all_examples()) {
    const RoleRule* const rule = rule_for(example.argv, example.comm);

    ASSERT_NE(rule, nullptr) << joined(example.argv);
    EXPECT_EQ(role_name(rule->role), role_name(example.role)) << joined(example.argv);
    EXPECT_FALSE(rule->reason.empty());
  }
}

TEST(RoleRules, AreEachReachedByAnExample) {
  std::set<const RoleRule*> reached;
  for (const Example& example : all_examples()) {
    reached.insert(rule_for(example.argv, example.comm));
  }

  for (const RoleRule& rule : role_rules()) {
    EXPECT_TRUE(reached.contains(&rule)) << rule.pattern << " " << rule.verb;
  }
}

TEST(RoleRules, LookAtWhatRunsNotAtWhatIsMentioned) {
  const std::vector<std::vector<std::string>> innocent = {
      {"python3", "compile_worker_notes.py"},
      {"python3", "train.py", "--notes", std::string(kWorkerPath)},
      {"less", std::string(kWorkerPath)},
      {"python3", "not_torch/_inductor/compile_worker/__main__.py.bak"},
      {"python3", "server.py", "--launcher", "torchrun"},
      {"/opt/server", "--start-with", "torchrun", "train.py"},
      {"python3", "accelerate.py", "launch"},
      {"python3", "/venv/bin/accelerate", "config"},
      {"python3", "train.py", "-m", "torch.distributed.run"},
      {"python3", "train.py", "uv", "run"},
      {"uv", "pip", "install", "torch"},
      {"conda", "install", "run"},
      {"python3", "rayleigh.py"},
      {"python3", "-c", "print('resource tracker')"},
      {"python3", "-m", "torch.distributed.run_stats"},
      {"asm", "x"},
      {"ccls"},
  };
  for (const auto& argv : innocent) {
    EXPECT_EQ(rule_for(argv, ""), nullptr) << joined(argv);
  }
}

TEST(RoleRules, DoNotTrustTheInheritedNamePtMainThread) {
  EXPECT_EQ(rule_for({"python3", "train.py"}, "pt_main_thread"), nullptr);
}

TEST(RoleRules, DoNotTakeAProgramOfThatNameForOneThatRenamedItself) {
  EXPECT_EQ(rule_for({"/opt/bin/pt_data_prep", "--in", "x"}, "pt_data_prep"), nullptr);
}

}  // namespace
}  // namespace tidemark::monitor
