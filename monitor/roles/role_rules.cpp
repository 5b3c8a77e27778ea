// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/role_rules.h"

#include <array>

#include "common/text.h"

// The one table of what processes of a training job look like. To teach Tidemark a new one, add a
// row here and its exact argv to tests/unit/monitor/roles/role_rules_test.cpp; docs/roles.md
// explains the roles to users.
namespace tidemark::monitor {
namespace {

constexpr RoleRule comm(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kComm, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule comm_prefix(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kCommPrefix, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule title(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kTitle, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule script(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kScript, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule folder(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kScriptFolder, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule module(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kModule, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule code(std::string_view pattern, Role role, Scope scope, std::string_view reason) {
  return {Match::kCode, pattern, "", role, scope, reason};
}
constexpr RoleRule program(std::string_view pattern, Role role, std::string_view reason) {
  return {Match::kProgram, pattern, "", role, Scope::kAnywhere, reason};
}
constexpr RoleRule verb(std::string_view pattern, std::string_view verb, Role role,
                        std::string_view reason) {
  return {Match::kProgramVerb, pattern, verb, role, Scope::kAnywhere, reason};
}
constexpr RoleRule compiler(std::string_view pattern) {
  return {Match::kCompiler,     pattern,          "",
          Role::kCompileWorker, Scope::kBelowJob, "compiler started for the training process"};
}
constexpr RoleRule wraps(std::string_view pattern, std::string_view reason) {
  return {Match::kProgram, pattern, "", Role::kWrapper, Scope::kAboveJob, reason};
}
constexpr RoleRule runs(std::string_view pattern, std::string_view verb, std::string_view reason) {
  return {Match::kProgramVerb, pattern, verb, Role::kWrapper, Scope::kAboveJob, reason};
}
constexpr RoleRule session(Match match, std::string_view pattern, Role role,
                           std::string_view reason) {
  return {match, pattern, "", role, Scope::kSession, reason};
}

constexpr RoleRule serves(Match match, std::string_view pattern, std::string_view verb = "") {
  return {match, pattern, verb, Role::kLauncher, Scope::kServer, "a server that starts jobs"};
}

constexpr RoleRule kRules[] = {
    // Compile workers of torch.compile: sidecar and pool share one argv since 2.4. The fork-era
    // workers of 2.0-2.3 carry the trainer's argv and are found by their neighbours.
    script("torch/_inductor/compile_worker/__main__.py", Role::kCompileWorker,
           "argv runs torch/_inductor/compile_worker"),
    module("torch._inductor.compile_worker", Role::kCompileWorker,
           "argv runs torch._inductor.compile_worker"),

    // DataLoader workers: a forked one has the trainer's argv, so comm comes before argv. The
    // kernel cuts pt_multiprocess_data_worker (2026) to 15 bytes. pt_data_pin is a thread.
    comm("pt_data_pin", Role::kOther, "pin-memory thread of a trainer"),
    comm_prefix("pt_data_", Role::kDataloaderWorker, "comm is that of a DataLoader worker"),
    comm_prefix("pt_multiproc", Role::kDataloaderWorker, "comm is that of a DataLoader worker"),
    code("multiprocessing.spawn import spawn_main", Role::kDataloaderWorker, Scope::kBelowJob,
         "spawned by multiprocessing below the trainer"),

    // Helpers of Python's multiprocessing (and of loky) and of torch.
    code("resource_tracker import main", Role::kResourceTracker, Scope::kAnywhere,
         "argv runs multiprocessing.resource_tracker"),
    code("semaphore_tracker import main", Role::kResourceTracker, Scope::kAnywhere,
         "argv runs multiprocessing.semaphore_tracker"),
    code("multiprocessing.forkserver import main", Role::kForkserver, Scope::kAnywhere,
         "argv runs multiprocessing.forkserver"),
    program("torch_shm_manager", Role::kShmManager, "program is torch_shm_manager"),

    // Processes that rename themselves.
    title("ray::", Role::kRay, "title begins with ray::"),
    title("VLLM::", Role::kInference, "title begins with VLLM::"),
    comm_prefix("ray::", Role::kRay, "comm begins with ray::"),
    comm_prefix("VLLM::", Role::kInference, "comm begins with VLLM::"),

    // Ray and vLLM by program.
    program("raylet", Role::kRay, "program is raylet"),
    program("gcs_server", Role::kRay, "program is Ray's gcs_server"),
    verb("ray", "start", Role::kRay, "runs `ray start`"),
    folder("/ray/_private/", Role::kRay, "runs a daemon of Ray"),
    folder("/ray/dashboard/", Role::kRay, "runs Ray's dashboard"),
    folder("/ray/autoscaler/", Role::kRay, "runs Ray's autoscaler"),
    verb("vllm", "serve", Role::kInference, "runs `vllm serve`"),
    module("vllm.entrypoints.openai.api_server", Role::kInference, "runs vLLM's API server"),

    // Launchers: they start the ranks of a job and wait.
    comm("pt_elastic", Role::kLauncher, "comm is that of torchrun's agent"),
    program("torchrun", Role::kLauncher, "runs torchrun"),
    module("torch.distributed.run", Role::kLauncher, "runs torch.distributed.run"),
    module("torch.distributed.launch", Role::kLauncher, "runs torch.distributed.launch"),
    script("torch/distributed/run.py", Role::kLauncher, "runs torch.distributed.run"),
    script("torch/distributed/launch.py", Role::kLauncher, "runs torch.distributed.launch"),
    verb("accelerate", "launch", Role::kLauncher, "runs `accelerate launch`"),
    program("accelerate-launch", Role::kLauncher, "runs accelerate-launch"),
    module("accelerate.commands.launch", Role::kLauncher, "runs accelerate.commands.launch"),
    script("accelerate/commands/launch.py", Role::kLauncher, "runs accelerate.commands.launch"),
    program("deepspeed", Role::kLauncher, "runs deepspeed"),
    module("deepspeed.launcher.runner", Role::kLauncher, "runs deepspeed.launcher.runner"),
    module("deepspeed.launcher.launch", Role::kLauncher, "runs deepspeed.launcher.launch"),
    script("deepspeed/launcher/launch.py", Role::kLauncher, "runs deepspeed.launcher.launch"),
    program("horovodrun", Role::kLauncher, "runs horovodrun"),
    verb("colossalai", "run", Role::kLauncher, "runs `colossalai run`"),

    // Servers and task queues: what runs in them, or below them, may be a training job.
    serves(Match::kProgramVerb, "tidemark-harness", "serve-jobs"),
    serves(Match::kProgramVerb, "flask", "run"),
    serves(Match::kModule, "flask"),
    serves(Match::kProgram, "uvicorn"),
    serves(Match::kModule, "uvicorn"),
    serves(Match::kProgram, "gunicorn"),
    serves(Match::kModule, "gunicorn"),
    serves(Match::kTitle, "gunicorn: master"),
    serves(Match::kProgram, "hypercorn"),
    serves(Match::kModule, "hypercorn"),
    serves(Match::kProgram, "waitress-serve"),
    serves(Match::kProgram, "daphne"),
    serves(Match::kProgramVerb, "fastapi", "run"),
    serves(Match::kProgramVerb, "fastapi", "dev"),
    serves(Match::kProgram, "celery"),
    serves(Match::kModule, "celery"),
    serves(Match::kProgramVerb, "rq", "worker"),
    serves(Match::kProgram, "dramatiq"),

    // Compilers: with torch.compile, Triton and C++ extensions they are part of the job.
    compiler("cc1plus"),
    compiler("cc1"),
    compiler("g++"),
    compiler("gcc"),
    compiler("c++"),
    compiler("cc"),
    compiler("clang++"),
    compiler("clang"),
    compiler("as"),
    compiler("collect2"),
    compiler("ld"),
    compiler("ld.bfd"),
    compiler("ld.gold"),
    compiler("ld.lld"),
    compiler("lto1"),
    compiler("lto-wrapper"),
    compiler("nvcc"),
    compiler("cicc"),
    compiler("cudafe++"),
    compiler("fatbinary"),
    compiler("nvlink"),
    compiler("ptxas"),
    compiler("hipcc"),
    compiler("ninja"),
    compiler("ccache"),
    compiler("sccache"),

    // Wrappers: environment managers that stay as the parent.
    runs("uv", "run", "`uv run` waits for what it runs"),
    runs("uv", "tool", "`uv tool run` waits for what it runs"),
    wraps("uvx", "uvx waits for what it runs"),
    runs("poetry", "run", "`poetry run` waits for what it runs"),
    runs("pipenv", "run", "`pipenv run` waits for what it runs"),
    runs("pdm", "run", "`pdm run` waits for what it runs"),
    runs("hatch", "run", "`hatch run` waits for what it runs"),
    runs("rye", "run", "`rye run` waits for what it runs"),
    runs("conda", "run", "`conda run` waits for what it runs"),
    runs("mamba", "run", "`mamba run` waits for what it runs"),
    runs("micromamba", "run", "`micromamba run` waits for what it runs"),
    runs("pixi", "run", "`pixi run` waits for what it runs"),
    runs("dvc", "repro", "`dvc repro` waits for its stages"),
    runs("wandb", "agent", "`wandb agent` starts the runs of a sweep"),

    // Wrappers: small tools in front of a command, or at the end of its pipe.
    wraps("nohup", "nohup runs a command"),
    wraps("time", "time runs a command"),
    wraps("timeout", "timeout runs a command"),
    wraps("nice", "nice runs a command"),
    wraps("ionice", "ionice runs a command"),
    wraps("chrt", "chrt runs a command"),
    wraps("env", "env runs a command"),
    wraps("sudo", "sudo runs a command"),
    wraps("script", "script runs a command on a pty"),
    wraps("unbuffer", "unbuffer runs a command on a pty"),
    wraps("tee", "tee copies the job's output"),
    wraps("stdbuf", "stdbuf runs a command"),
    wraps("setsid", "setsid runs a command"),
    wraps("setpriv", "setpriv runs a command"),
    wraps("flock", "flock runs a command"),
    wraps("xargs", "xargs runs commands"),
    wraps("parallel", "parallel runs commands"),
    wraps("xvfb-run", "xvfb-run runs a command"),
    wraps("numactl", "numactl runs a command"),
    wraps("taskset", "taskset runs a command"),
    wraps("systemd-run", "systemd-run runs a command"),
    wraps("systemd-inhibit", "systemd-inhibit runs a command"),
    wraps("make", "make runs recipes"),
    wraps("just", "just runs recipes"),
    wraps("tidemark", "tidemark itself"),

    // Wrappers: cluster and container starters.
    wraps("srun", "srun starts tasks"),
    wraps("mpirun", "mpirun starts ranks"),
    wraps("mpiexec", "mpiexec starts ranks"),
    wraps("mpiexec.hydra", "mpiexec starts ranks"),
    wraps("orterun", "orterun starts ranks"),
    wraps("prterun", "prterun starts ranks"),
    wraps("orted", "Open MPI's daemon starts ranks"),
    wraps("prted", "Open MPI's daemon starts ranks"),
    wraps("hydra_pmi_proxy", "Hydra's proxy starts ranks"),
    wraps("hydra_bstrap_proxy", "Hydra's proxy starts ranks"),
    wraps("tini", "tini is a container's init"),
    wraps("dumb-init", "dumb-init is a container's init"),
    wraps("docker-init", "docker-init is a container's init"),
    wraps("catatonit", "catatonit is a container's init"),
    wraps("apptainer", "apptainer runs a container"),
    wraps("singularity", "singularity runs a container"),

    // Wrappers: tools that watch a command.
    wraps("strace", "strace watches a command"),
    wraps("ltrace", "ltrace watches a command"),
    wraps("gdb", "gdb runs a command"),
    wraps("py-spy", "py-spy watches a command"),
    wraps("nsys", "nsys profiles a command"),
    wraps("ncu", "ncu profiles a command"),
    runs("perf", "record", "`perf record` watches a command"),
    runs("perf", "stat", "`perf stat` watches a command"),
    {Match::kShellCommand, "", "", Role::kWrapper, Scope::kAboveJob, "a shell that runs commands"},

    // Sessions: many jobs, or none, are below them.
    session(Match::kInteractiveShell, "", Role::kOther, "an interactive shell"),
    session(Match::kCommPrefix, "tmux: server", Role::kWrapper, "the tmux server"),
    session(Match::kProgram, "tmux", Role::kWrapper, "tmux"),
    session(Match::kProgram, "screen", Role::kWrapper, "screen"),
    session(Match::kProgram, "SCREEN", Role::kWrapper, "the screen server"),
    session(Match::kProgram, "systemd", Role::kOther, "the service manager"),
    session(Match::kProgram, "init", Role::kOther, "init"),
    session(Match::kTitle, "sshd:", Role::kOther, "an ssh session"),
    session(Match::kProgram, "sshd", Role::kOther, "the ssh server"),
    session(Match::kProgram, "login", Role::kOther, "a login"),
    session(Match::kProgram, "su", Role::kOther, "a change of user"),
    session(Match::kProgram, "cron", Role::kOther, "cron"),
    session(Match::kProgram, "crond", Role::kOther, "cron"),
    session(Match::kProgram, "supervisord", Role::kOther, "a service manager"),
    session(Match::kProgram, "circusd", Role::kOther, "a service manager"),
    session(Match::kTitle, "PM2 ", Role::kOther, "a service manager"),
    session(Match::kProgram, "monit", Role::kOther, "a service manager"),
    session(Match::kProgram, "runsvdir", Role::kOther, "a service manager"),
    session(Match::kProgram, "runsv", Role::kOther, "a service manager"),
    session(Match::kProgram, "s6-svscan", Role::kOther, "a service manager"),
    session(Match::kProgram, "s6-supervise", Role::kOther, "a service manager"),
    session(Match::kProgram, "openrc-init", Role::kOther, "init"),
    session(Match::kTitle, "slurmstepd:", Role::kOther, "Slurm's step daemon"),
    session(Match::kProgram, "slurmd", Role::kOther, "Slurm's daemon"),
    session(Match::kProgram, "conmon", Role::kOther, "a container monitor"),
    session(Match::kProgram, "containerd", Role::kOther, "a container runtime"),
    session(Match::kProgram, "containerd-shim", Role::kOther, "a container runtime"),
    session(Match::kProgram, "containerd-shim-runc-v2", Role::kOther, "a container runtime"),
    session(Match::kProgram, "dockerd", Role::kOther, "a container runtime"),
    session(Match::kProgram, "runc", Role::kOther, "a container runtime"),
    session(Match::kProgram, "crun", Role::kOther, "a container runtime"),
    session(Match::kProgram, "podman", Role::kOther, "a container runtime"),
    session(Match::kProgram, "pause", Role::kOther, "a pod's init"),
    session(Match::kProgram, "kubelet", Role::kOther, "Kubernetes"),

    // Editors and notebook servers, with their helpers. A notebook's kernel is not among them.
    session(Match::kProgram, "node", Role::kOther, "a Node.js program"),
    session(Match::kProgram, "code", Role::kOther, "an editor"),
    session(Match::kProgram, "code-server", Role::kOther, "an editor"),
    session(Match::kProgram, "cursor", Role::kOther, "an editor"),
    session(Match::kProgram, "vim", Role::kOther, "an editor"),
    session(Match::kProgram, "vi", Role::kOther, "an editor"),
    session(Match::kProgram, "nvim", Role::kOther, "an editor"),
    session(Match::kProgram, "emacs", Role::kOther, "an editor"),
    session(Match::kProgram, "nano", Role::kOther, "an editor"),
    session(Match::kProgram, "hx", Role::kOther, "an editor"),
    session(Match::kProgram, "jupyter-lab", Role::kOther, "a notebook server"),
    session(Match::kProgram, "jupyter-notebook", Role::kOther, "a notebook server"),
    session(Match::kProgram, "jupyter-server", Role::kOther, "a notebook server"),
    session(Match::kProgram, "jupyterhub-singleuser", Role::kOther, "a notebook server"),
    session(Match::kProgram, "jupyter", Role::kOther, "a notebook server"),
    program("pylsp", Role::kOther, "a language server"),
    program("jedi-language-server", Role::kOther, "a language server"),
    program("ruff-lsp", Role::kOther, "a language server"),
    program("pyright", Role::kOther, "a language server"),
    program("pyright-langserver", Role::kOther, "a language server"),
    program("basedpyright-langserver", Role::kOther, "a language server"),
    module("pylsp", Role::kOther, "a language server"),
    folder("/.vscode/extensions/", Role::kOther, "a helper of the editor"),
    folder("/.vscode-server/extensions/", Role::kOther, "a helper of the editor"),
    folder("/.cursor-server/extensions/", Role::kOther, "a helper of the editor"),
    folder("/debugpy/adapter", Role::kOther, "the debugger's adapter"),

    // Companions of a training job.
    program("tensorboard", Role::kOther, "tensorboard"),
    module("tensorboard.main", Role::kOther, "tensorboard"),
    program("wandb-core", Role::kOther, "wandb's service"),
    verb("wandb", "service", Role::kOther, "wandb's service"),
    program("nvidia-smi", Role::kOther, "a GPU monitor"),
    program("nvitop", Role::kOther, "a GPU monitor"),
    program("nvtop", Role::kOther, "a GPU monitor"),
    program("gpustat", Role::kOther, "a GPU monitor"),
};

// "x86_64-linux-gnu-g++-12" -> "g++", "clang-15" -> "clang".
std::string_view without_target_and_version(std::string_view name) {
  const std::size_t dash = name.find_last_of('-');
  if (dash != std::string_view::npos &&
      name.find_first_not_of("0123456789.", dash + 1) == std::string_view::npos) {
    name = name.substr(0, dash);
  }
  const std::size_t target = name.find("-linux-gnu-");
  return target == std::string_view::npos ? name : name.substr(target + 11);
}

bool ends_with_path(std::string_view path, std::string_view tail) {
  return path.ends_with(tail) &&
         (path.size() == tail.size() || path[path.size() - tail.size() - 1] == '/');
}

struct Subject {
  const Command& command;
  std::string_view argv0;
  std::string_view comm;  // empty unless the process gave itself this name
  std::string_view tool;  // program without target and version
};

// exec sets comm to the file's name; a program that happens to be called pt_data_prep is not one
// that calls itself so.
std::string_view chosen_comm(std::string_view argv0, std::string_view comm) {
  constexpr std::size_t kCommBytes = 15;
  return basename_of(argv0).substr(0, kCommBytes) == comm ? std::string_view() : comm;
}

bool matches(const RoleRule& rule, const Subject& subject) {
  const Command& command = subject.command;
  switch (rule.match) {
    case Match::kComm:
      return subject.comm == rule.pattern;
    case Match::kCommPrefix:
      return subject.comm.starts_with(rule.pattern);
    case Match::kTitle:
      return subject.argv0.starts_with(rule.pattern);
    case Match::kScript:
      return command.python && ends_with_path(command.script, rule.pattern);
    case Match::kScriptFolder:
      return command.python && command.script.find(rule.pattern) != std::string_view::npos;
    case Match::kModule:
      return command.module == rule.pattern;
    case Match::kCode:
      return command.python && command.inline_code.find(rule.pattern) != std::string_view::npos;
    case Match::kProgram:
      return command.program == rule.pattern;
    case Match::kProgramVerb:
      return command.program == rule.pattern && has_verb(command, rule.verb);
    case Match::kCompiler:
      return !command.python && subject.tool == rule.pattern;
    case Match::kShellCommand:
      return command.shell && !command.interactive();
    case Match::kInteractiveShell:
      return command.shell && command.interactive();
  }
  return false;
}

}  // namespace

std::span<const RoleRule> role_rules() { return kRules; }

const RoleRule* match_rule(const Command& command, std::string_view argv0, std::string_view comm) {
  const Subject subject = {command, argv0, chosen_comm(argv0, comm),
                           without_target_and_version(command.program)};
  for (const RoleRule& rule : kRules) {
    if (matches(rule, subject)) {
      return &rule;
    }
  }
  return nullptr;
}

}  // namespace tidemark::monitor
