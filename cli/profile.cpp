// SPDX-License-Identifier: Apache-2.0
#include "live/profile.h"

#include <charconv>
#include <memory>
#include <system_error>

#include "cli/shared_options.h"

namespace tidemark::cli {
namespace {

using live::ProfileOptions;

std::string recording_problem(const ProfileOptions& options) {
  if (targets_given(options.watch.target) > 0) {
    return "a recording and something to watch exclude each other";
  }
  if (const std::string option = option_for_watching(options.watch); !option.empty()) {
    return option + " is for a job, not for a recording";
  }
  return options.trace == ProfileOptions().trace ? ""
                                                 : "--mode, --sample-every, --no-follow, "
                                                   "--unwinder and --python-objects are for a job, "
                                                   "not for a recording";
}

std::string problem_with(const ProfileOptions& options) {
  if (!options.input.empty()) {
    return recording_problem(options);
  }
  const live::TargetOptions& target = options.watch.target;
  if (options.detach) {
    return targets_given(target) == 0 ? "" : "--detach takes no other target";
  }
  if (targets_given(target) == 0) {
    return "say what to profile: --pid PID, --find-training, -- COMMAND, or a run file";
  }
  if (targets_given(target) > 1) {
    return "--pid, --find-training and -- COMMAND exclude each other";
  }
  const bool is_running = target.command.empty();
  if (!is_running && (options.scope.all || options.scope.role)) {
    return "--all and --role are for jobs that run already: a command is traced as a whole";
  }
  const collect::TraceOptions usual;
  const collect::TraceOptions& trace = options.trace;
  if (trace.mode == TraceMode::kExact && trace.sample_every_bytes != usual.sample_every_bytes) {
    return "--sample-every is for sampled mode: --mode exact records every block";
  }
  if (is_running && (!trace.follow_children || trace.use_libunwind)) {
    return "--no-follow and --unwinder are set when a program starts: they are for -- COMMAND";
  }
  return watch_problem(options.watch);
}

void add_tracing(Command& command, collect::TraceOptions& trace) {
  command.value(
      "--mode", "sampled|exact", collect::parse_trace_mode, trace.mode,
      "sampled (default): a block in some bytes, for next to nothing; exact: every block");
  command.value("--sample-every", "SIZE", collect::parse_sample_every, trace.sample_every_bytes,
                "Of sampled mode: one sample in so many allocated bytes (default 512KiB)");
  command.flag("--follow-children", trace.follow_children,
               "Trace the programs that the command starts as well (default)");
  command.flag(
      "--no-follow", [&] { trace.follow_children = false; }, "Leave them alone");
  command.value(
      "--unwinder", "own|libunwind",
      [&](const std::string& text) -> Status {
        if (text != "own" && text != "libunwind") {
          return Error{Errc::kUsage, "--unwinder is own or libunwind"};
        }
        trace.use_libunwind = text == "libunwind";
        return ok();
      },
      "How stacks are walked: own (default) or libunwind");
  command.flag("--python-objects", trace.python_objects,
               "See the small objects of Python one by one, which makes Python slower");
}

Result<tracker::Grouping> parse_grouping(std::string_view text) {
  if (text == "line") {
    return tracker::Grouping::kLine;
  }
  if (text == "function") {
    return tracker::Grouping::kFunction;
  }
  if (text == "native") {
    return tracker::Grouping::kNative;
  }
  return Error{Errc::kUsage, "--by is line, function or native"};
}

Result<Role> parse_role(std::string_view text) {
  const auto role = role_from_name(text);
  return role ? Result<Role>(*role)
              : Result<Role>(Error{Errc::kUsage,
                                   "--role is a role as tidemark monitor shows it, for example "
                                   "dataloader_worker"});
}

void add_attaching(Command& command, ProfileOptions& options) {
  const Option all =
      command.flag("--all", options.scope.all, "Attach to all processes of the tree");
  command
      .value("--role", "ROLE", parse_role, options.scope.role,
             "Attach to the processes of this role as well, for example dataloader_worker")
      .excludes(all);
  command.value("--attach-timeout", "TIME", parse_duration_ns, options.attach_timeout_ns,
                "How long attaching may take (default 10s); then the process is left as it was");
  command.value(
      "--detach", "PID",
      [&](const std::string& text) -> Status {
        pid_t pid = 0;
        const char* const end = text.data() + text.size();
        if (const auto parsed = std::from_chars(text.data(), end, pid);
            parsed.ec != std::errc() || parsed.ptr != end || pid <= 0) {
          return Error{Errc::kUsage, "--detach takes the id of a process"};
        }
        options.detach = pid;
        return ok();
      },
      "Only take the tracer out of this process, where a killed profile has left it");
}

}  // namespace

void add_profile(Program& program) {
  const auto options = std::make_shared<ProfileOptions>();
  Command& command =
      program.add("profile", "Which lines of code hold the growth of a job, running or started");
  command.argument("FILE", "", options->input,
                   "A run file that this command has recorded; a number is a process id");
  add_watch(command, options->watch);
  command.remove("--system");
  command.describe("--pid",
                   "Attach to these processes, or to the trainer below them, while they run");
  add_attaching(command, *options);
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object at the end");
  command.flag("--plain", options->plain, "Print lines, without colour").excludes(json);
  add_tracing(command, options->trace);
  command.number("--top", options->top, 1, 1000, "Show at most so many lines of code (default 10)");
  command
      .value("--by", "line|function|native", parse_grouping, options->by,
             "What growth is put together by: line (default) of your own code, function, or the "
             "native function below Python; JSON has all three")
      .excludes(json);
  add_thresholds(command, options->judge);
  command.footer(
      "Everything after -- is a command to start with the tracer in it; its output and its exit\n"
      "status are its own, the report goes to stderr. The lines are of Python, and of native code\n"
      "(C, C++ and the like, with -g). docs/profile.md explains the report.\n\n"
      "Of a job that runs already, the tracer is loaded into its process and taken out of its way\n"
      "at the end (Ctrl-C, --duration); blocks that were allocated before are not seen.\n\n"
      "Examples:\n"
      "  tidemark profile -- tidemark-harness train leak --cause native\n"
      "  tidemark profile --mode exact --step-regex 'Step +(\\d+)' -o run.tidemark -- ./train\n"
      "  tidemark profile --pid 4711 --duration 2min\n"
      "  tidemark profile run.tidemark");
  command.run_by([options] { return live::run_profile(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
