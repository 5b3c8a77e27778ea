// SPDX-License-Identifier: Apache-2.0
// Sees CLI11, like command_line_check.cpp.
#include "cli/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line_check.h"
#include "cli/command_line_problems.h"
#include "cli/exit_code.h"
#include "cli/messages.h"
#include "common/text.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t kShortestIntervalNs = 50'000'000;

// Feeds the text of an option to one of our parsers; its error becomes CLI11's.
template <typename T>
std::function<void(const std::string&)> parsed(Result<T> (*parse)(std::string_view),
                                               std::function<void(T)> store) {
  return [parse, store](const std::string& text) {
    auto value = parse(text);
    if (!value) {
      throw CLI::ValidationError(value.error().what, kExitUsage);
    }
    store(*std::move(value));
  };
}

// "20x" or "20".
Result<double> parse_speed(std::string_view text) {
  constexpr double kFastest = 1e6;
  const std::string_view number = text.ends_with('x') ? text.substr(0, text.size() - 1) : text;
  const auto speed = parse_number<double>(number);
  if (!speed || !(*speed > 0.0 && *speed <= kFastest)) {
    return Error{Errc::kUsage, "--speed is a factor such as 20x, not '" + escape_text(text) + "'"};
  }
  return *speed;
}

void add_target(CLI::App& app, TargetOptions& target) {
  app.add_option("-p,--pid", target.pids,
                 "Watch this process with all its descendants (repeatable)")
      ->type_name("PID")
      ->check([](const std::string& text) {
        const auto pid = parse_number<pid_t>(text);
        return pid && *pid > 0 ? std::string() : "'" + text + "' is not a process id";
      });
  app.add_flag("--find-training", target.find_training,
               "Find the training job on this machine and watch it");
  app.add_flag("--system", target.system, "Watch every process of the machine");
  app.footer("Everything after -- is a command to start and watch.");
}

// CLI11 takes what follows "--" for positional arguments; ours is a command with options of its
// own, so it is cut off before CLI11 sees it.
std::vector<std::string> cut_command(std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) {
    return {};
  }
  std::vector<std::string> command(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return command;
}

CLI::App* add_find(CLI::App& app, FindOptions& options) {
  CLI::App* find = app.add_subcommand("find", "Which process is the training job, and why");
  find->add_flag("--json", options.json, "Print one JSON object");
  find->add_flag("--all", options.all, "Also show candidates with weak evidence");
  find->add_flag("--no-redact", options.no_redact, "Show secrets in command lines");
  find->footer("Example:\n  tidemark find");
  return find;
}

// What all commands that watch a target take.
void add_watch(CLI::App& app, WatchOptions& options) {
  add_target(app, options.target);
  app.add_option_function<std::string>(
         "-i,--interval",
         parsed<std::int64_t>(parse_duration_ns,
                              [&](std::int64_t ns) {
                                if (ns < kShortestIntervalNs) {
                                  throw CLI::ValidationError("--interval: the shortest is 50ms",
                                                             kExitUsage);
                                }
                                options.interval_ns = ns;
                              }),
         "Time between two samples, 50ms or more (default 1s)")
      ->type_name("TIME");
  app.add_option_function<std::string>(
         "-d,--duration",
         parsed<std::int64_t>(parse_duration_ns,
                              [&](std::int64_t ns) { options.duration_ns = ns; }),
         "Stop watching after this time (default: when the target ends)")
      ->type_name("TIME");
  app.add_option("-o,--output", options.output, "Record into this run file (*.tidemark)")
      ->type_name("FILE");
  app.add_flag("--force", options.force, "Replace an existing run file");
  app.add_option_function<std::string>(
         "--pss",
         parsed<monitor::PssMode>(parse_pss_mode,
                                  [&](monitor::PssMode mode) { options.pss = mode; }),
         "Read how pages are shared: off, auto (at most 1 % of the time), always")
      ->type_name("off|auto|always");
  app.add_option("--step-regex", options.step_regex,
                 "Read step numbers from the output of the command, for example 'Step +(\\d+)'")
      ->type_name("REGEX");
  app.add_option("--log-file", options.log_file,
                 "With --step-regex: read steps from this log instead")
      ->type_name("FILE");
  app.add_flag_callback(
      "--no-redact", [&] { options.redact = false; }, "Keep secrets in command lines");
}

// How a curve is judged: `monitor`, `track`, `profile` and `diff` take the same options.
template <typename Options>
void add_gates(CLI::App& app, Options& options) {
  app.add_option_function<std::string>(
         "--warmup",
         parsed<tracker::Warmup>(parse_warmup,
                                 [&](tracker::Warmup warmup) { options.warmup = warmup; }),
         "For how long growth is to be expected: 10min, 200steps or auto "
         "(default auto, see docs/verdicts.md)")
      ->type_name("TIME|STEPS");
  app.add_option_function<std::string>(
         "--min-leak", parsed<Rate>(parse_rate, [&](Rate rate) { options.min_leak = rate; }),
         "Slower growth is no leak, for example 1MB/min or 10KiB/step "
         "(default: 0.5 % per hour, or per 1000 steps)")
      ->type_name("RATE");
}

// The same, and what is judged.
template <typename Options>
void add_judging(CLI::App& app, Options& options) {
  add_gates(app, options);
  app.add_option_function<std::string>(
         "--metric",
         parsed<tracker::Metric>(parse_metric,
                                 [&](tracker::Metric metric) { options.metric = metric; }),
         "Judge footprint, rss, pss, uss or gpu (default: footprint where it is known)")
      ->type_name("METRIC");
}

CLI::App* add_monitor(CLI::App& app, MonitorOptions& options) {
  CLI::App* monitor =
      app.add_subcommand("monitor", "Watch a process tree: memory by process, role and in total");
  add_watch(*monitor, options.watch);
  CLI::Option* json =
      monitor->add_flag("--json", options.watch.json, "Print one JSON object per sample and event");
  monitor
      ->add_flag("--plain", options.plain, "Print lines (the default where there is no terminal)")
      ->excludes(json);
  CLI::Option* replay =
      monitor->add_option("--replay", options.replay, "Play a recording instead of watching")
          ->type_name("FILE");
  monitor
      ->add_option_function<std::string>(
          "--speed", parsed<double>(parse_speed, [&](double speed) { options.speed = speed; }),
          "How fast to play it (default 20x)")
      ->type_name("N")
      ->needs(replay);
  add_judging(*monitor, options);
  monitor
      ->add_option_function<std::string>(
          "--warn-growth",
          [&](const std::string& text) {
            if (text == "off") {
              options.watch.warn = false;
              return;
            }
            parsed<Rate>(parse_rate, [&](Rate rate) { options.watch.warn_growth = rate; })(text);
          },
          "Warn when the tree grows faster, for example 200MB/10s or 1MiB/step "
          "(default: 5 % of the limit per minute; off)")
      ->type_name("RATE");
  monitor->footer(
      "On a terminal this is a dashboard, with a verdict by --metric, --warmup and --min-leak; ? "
      "shows its keys.\n"
      "Everything after -- is a command to start and watch; its exit status is passed on.\n\n"
      "Examples:\n"
      "  tidemark monitor --find-training -o run.tidemark\n"
      "  tidemark monitor --pid 1234 --duration 5min\n"
      "  tidemark monitor --replay run.tidemark --speed 20x\n"
      "  tidemark monitor --step-regex 'Step +(\\d+)' -- python train.py");
  return monitor;
}

CLI::App* add_track(CLI::App& app, TrackOptions& options) {
  CLI::App* track =
      app.add_subcommand("track", "Warm-up, spikes or leak? Of a recording or of what runs");
  track
      ->add_option("FILE", options.input,
                   "A recording (run file, CSV, mprof, psrecord, JSON series); - reads stdin")
      ->type_name("");
  add_watch(*track, options.watch);
  track->add_flag("--json", options.watch.json, "Print one JSON object at the end");
  add_judging(*track, options);
  track
      ->add_option_function<std::string>(
          "--limit",
          parsed<std::uint64_t>(parse_limit,
                                [&](std::uint64_t bytes) { options.limit_bytes = bytes; }),
          "Memory that there is, for the forecast (default: cgroup, rlimit or machine)")
      ->type_name("SIZE");
  track->footer(
      "Everything after -- is a command to start and watch. Exit codes: 0 no leak, 1 leak,\n"
      "3 the target failed or could not be read, 4 cannot tell yet.\n\n"
      "Examples:\n"
      "  tidemark track run.tidemark\n"
      "  tidemark track --find-training --duration 30min -o run.tidemark\n"
      "  tidemark track --warmup 200steps --step-regex 'Step +(\\d+)' -- python train.py");
  return track;
}

CLI::App* add_profile(CLI::App& app, ProfileOptions& options) {
  CLI::App* profile =
      app.add_subcommand("profile", "Which lines of native code hold the growth of a command");
  profile->add_option("FILE", options.input, "A run file that this command has recorded")
      ->type_name("");
  add_watch(*profile, options.watch);
  // The tracer has to be there from the start: nothing that merely runs can be profiled.
  profile->remove_option(profile->get_option("--find-training"));
  profile->remove_option(profile->get_option("--system"));
  profile->get_option("--pid")->description(
      "Wake the tracer that sleeps in this process (docs/profile.md)");
  CLI::Option* json =
      profile->add_flag("--json", options.watch.json, "Print one JSON object at the end");
  profile->add_flag("--plain", options.plain, "Print lines, without colour")->excludes(json);
  profile
      ->add_option_function<std::string>(
          "--mode",
          parsed<TraceMode>(parse_trace_mode, [&](TraceMode mode) { options.mode = mode; }),
          "sampled (default): a block in some bytes, for next to nothing; exact: every block")
      ->type_name("sampled|exact");
  profile
      ->add_option_function<std::string>(
          "--sample-every",
          parsed<std::uint64_t>(parse_sample_every,
                                [&](std::uint64_t bytes) { options.sample_every_bytes = bytes; }),
          "Of sampled mode: one sample in so many allocated bytes (default 512KiB)")
      ->type_name("SIZE");
  profile->add_flag("--follow-children", options.follow_children,
                    "Trace the programs that the command starts as well (default)");
  profile->add_flag_callback(
      "--no-follow", [&] { options.follow_children = false; }, "Leave them alone");
  profile
      ->add_option_function<std::string>(
          "--unwinder",
          [&](const std::string& text) { options.use_libunwind = text == "libunwind"; },
          "How stacks are walked: own (default) or libunwind")
      ->type_name("own|libunwind")
      ->check(CLI::IsMember({"own", "libunwind"}).description(""));
  profile->add_option("--top", options.top, "Show at most so many lines of code (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  add_gates(*profile, options);
  profile->footer(
      "Everything after -- is a command to start with the tracer in it; its output and its exit\n"
      "status are its own, the report goes to stderr. The lines are of native code (C, C++ and\n"
      "the like, with -g); of Python code it names the native function that Python calls.\n"
      "docs/profile.md explains the report.\n\n"
      "Examples:\n"
      "  tidemark profile -- tidemark-harness train leak --cause native\n"
      "  tidemark profile --mode exact --step-regex 'Step +(\\d+)' -o run.tidemark -- ./train\n"
      "  tidemark profile run.tidemark");
  return profile;
}

// How the guard is to act.
void add_guard_actions(CLI::App& app, GuardOptions& options) {
  app.add_option_function<std::string>(
         "--keep-free",
         parsed<std::uint64_t>(parse_size_bytes,
                               [&](std::uint64_t bytes) { options.keep_free.bytes = bytes; }),
         "Act when less is free below a limit (default: 5 % of the limit, at most 2GiB)")
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "--horizon",
         parsed<std::int64_t>(parse_duration_ns,
                              [&](std::int64_t ns) { options.settings.horizon_ns = ns; }),
         "Act when it leaks and the limit comes sooner (default 2min)")
      ->type_name("TIME");
  app.add_option_function<std::string>(
         "--signal", parsed<int>(parse_signal, [&](int number) { options.signal_number = number; }),
         "What the trainer gets first (default TERM)")
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--grace",
         parsed<std::int64_t>(parse_duration_ns,
                              [&](std::int64_t ns) { options.settings.grace_ns = ns; }),
         "Time for its checkpoint, then the tree is killed (default 2min)")
      ->type_name("TIME");
  app.add_option("--notify", options.notify,
                 "Run this in a shell for every action; TIDEMARK_TEXT and others say what it was")
      ->type_name("COMMAND");
  app.add_flag("--desktop", options.desktop, "Show every action on the desktop (notify-send)");
  app.add_flag("--dry-run", options.dry_run, "Only say what would be done");
  CLI::Option* restart = app.add_flag(
      "--restart", options.restart,
      "Start the command again after it was stopped; it has to resume its checkpoint by itself");
  app.add_option("--max-restarts", options.max_restarts, "At most so many times (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000).description(""))
      ->needs(restart);
}

CLI::App* add_guard(CLI::App& app, GuardOptions& options) {
  CLI::App* guard =
      app.add_subcommand("guard", "Stop a job, with a checkpoint, before the kernel kills it");
  add_watch(*guard, options.track.watch);
  guard->remove_option(guard->get_option("--system"));  // it acts on one job
  guard
      ->add_option_function<std::string>(
          "--limit",
          parsed<std::uint64_t>(parse_limit,
                                [&](std::uint64_t bytes) { options.track.limit_bytes = bytes; }),
          "What the job may use, beside the limits of cgroup, rlimit and machine")
      ->type_name("SIZE");
  add_guard_actions(*guard, options);
  add_gates(*guard, options.track);
  guard->footer(
      "Everything after -- is a command to start and guard. Exit codes: the command's own,\n"
      "1 when the guard stopped it for good, 3 when it cannot be guarded. docs/guard.md\n"
      "tells the rest.\n\n"
      "Examples:\n"
      "  tidemark guard --restart -o night.tidemark -- python train.py --resume last.pt\n"
      "  tidemark guard --pid 1234 --keep-free 4GiB --notify 'mail -s \"$TIDEMARK_TEXT\" me'\n"
      "  tidemark guard --find-training --dry-run");
  return guard;
}

CLI::App* add_export(CLI::App& app, ExportOptions& options) {
  CLI::App* command = app.add_subcommand(
      "export", "Convert a recording (run file, CSV, mprof, psrecord, JSON series)");
  command->get_formatter()->label("REQUIRED", "");
  command->add_option("FILE", options.input, "The recording; - reads text formats from stdin")
      ->required();
  command
      ->add_option("-f,--format", options.format,
                   "csv (default), jsonl or tidemark; of call stacks: folded, pprof or speedscope")
      ->check(CLI::IsMember({"csv", "jsonl", "tidemark", "folded", "pprof", "speedscope"})
                  .description(""));
  const auto add_time = [&](const std::string& name, std::optional<double>& into,
                            const std::string& what) {
    command
        ->add_option_function<std::string>(
            name,
            parsed<std::int64_t>(parse_duration_ns,
                                 [&](std::int64_t ns) { into = to_seconds(ns); }),
            what)
        ->type_name("TIME");
  };
  add_time("--from", options.from_s,
           "Of call stacks: growth since this time of the run instead of live bytes");
  add_time("--to", options.to_s, "Of call stacks: as they were at this time (default: the end)");
  command->add_option("-o,--output", options.output, "Write here instead of stdout")
      ->type_name("FILE");
  command->add_flag("--force", options.force, "Replace an existing file");
  command->footer(
      "Examples:\n"
      "  tidemark export run.tidemark --format csv -o run.csv\n"
      "  tidemark export run.tidemark --format pprof --from 5min -o growth.pb");
  return command;
}

CLI::App* add_diff(CLI::App& app, DiffOptions& options) {
  CLI::App* diff =
      app.add_subcommand("diff", "Two recordings side by side: which got better, which got worse");
  diff->get_formatter()->label("REQUIRED", "");
  diff->add_option("A", options.a, "A recording (run file, CSV, mprof, psrecord, JSON series)")
      ->type_name("FILE")
      ->required();
  diff->add_option("B", options.b, "Another, after a change")->type_name("FILE")->required();
  diff->add_flag("--json", options.json, "Print one JSON object");
  add_judging(*diff, options);
  diff->footer("Example:\n  tidemark diff before.tidemark after.tidemark");
  return diff;
}

CLI::App* add_demo(CLI::App& app, DemoOptions& options) {
  CLI::App* demo = app.add_subcommand(
      "demo", "Watch training jobs with a known ground truth: is every verdict right?");
  demo->add_option("SCENARIO", options.scenarios, "Only these, for example warmup wrapper")
      ->type_name("");
  demo->add_flag("--all", options.all, "Every scenario, not only the usual seven");
  demo->add_option("--seed", options.seed, "Of the jobs' data, weights and jitter (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000));
  demo->add_flag("--json", options.json, "Print one JSON object; progress goes to stderr");
  demo->add_option("--keep", options.keep, "Keep recordings, ground truth and logs in this folder")
      ->type_name("DIR");
  demo->add_option("--harness", options.harness,
                   "The trainer to run (default: tidemark-harness beside this program)")
      ->type_name("FILE");
  demo->footer(
      "Exit codes: 0 all verdicts are right, 1 one is wrong, 3 a job could not be run.\n\n"
      "Examples:\n"
      "  tidemark demo\n"
      "  tidemark demo leak-collator --keep runs");
  return demo;
}

Command usage_error(std::string_view what, std::string_view command) {
  print_error(what, fmt::format("see tidemark {}{}--help", command, command.empty() ? "" : " "));
  return kExitUsage;
}

template <typename Options>
Command checked(const Options& options, const std::string& problem, std::string_view command) {
  return problem.empty() ? Command(options) : usage_error(problem, command);
}

}  // namespace

std::string_view version() { return TIDEMARK_VERSION; }

Command parse_command_line(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool has_dashes = std::find(arguments.begin(), arguments.end(), "--") != arguments.end();
  FindOptions find_options;
  MonitorOptions monitor_options;
  TrackOptions track_options;
  ProfileOptions profile_options;
  CheckOptions check_options;
  ExportOptions export_options;
  DiffOptions diff_options;
  DemoOptions demo_options;
  GuardOptions guard_options;
  monitor_options.watch.target.command = cut_command(arguments);
  track_options.watch.target.command = monitor_options.watch.target.command;
  profile_options.watch.target.command = monitor_options.watch.target.command;
  guard_options.track.watch.target.command = monitor_options.watch.target.command;
  check_options.command = monitor_options.watch.target.command;

  CLI::App app("Tells whether a training job's memory warms up, spikes or leaks, and where.",
               "tidemark");
  app.set_version_flag("--version", std::string("tidemark ") + std::string(version()));
  app.require_subcommand(1);
  CLI::App* find = add_find(app, find_options);
  CLI::App* monitor = add_monitor(app, monitor_options);
  CLI::App* track = add_track(app, track_options);
  CLI::App* profile = add_profile(app, profile_options);
  CLI::App* guard = add_guard(app, guard_options);
  CLI::App* check = add_check(app, check_options);
  add_export(app, export_options);
  CLI::App* diff = add_diff(app, diff_options);
  CLI::App* demo = add_demo(app, demo_options);

  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return app.exit(error);  // --help, --version
    }
    const auto chosen = app.get_subcommands();
    return usage_error(error.what(), chosen.empty() ? "" : chosen.front()->get_name());
  }

  if (app.got_subcommand(monitor)) {
    const std::string problem = problem_with(monitor_options, has_dashes);
    return problem.empty() ? Command(std::move(monitor_options)) : usage_error(problem, "monitor");
  }
  if (app.got_subcommand(track)) {
    return checked(track_options, problem_with(track_options, has_dashes), "track");
  }
  if (app.got_subcommand(guard)) {
    return checked(guard_options, problem_with(guard_options, has_dashes), "guard");
  }
  if (app.got_subcommand(profile)) {
    return checked(profile_options, problem_with(profile_options, has_dashes), "profile");
  }
  if (app.got_subcommand(check)) {
    return checked(check_options, problem_with(check_options, has_dashes), "check");
  }
  if (has_dashes) {
    return usage_error("this command takes nothing after --",
                       app.get_subcommands().front()->get_name());
  }
  if (app.got_subcommand(diff)) {
    return diff_options;
  }
  if (app.got_subcommand(demo)) {
    return demo_options;
  }
  return app.got_subcommand(find) ? Command(find_options) : Command(std::move(export_options));
}

}  // namespace tidemark::cli
