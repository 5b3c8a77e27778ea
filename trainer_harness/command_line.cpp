// SPDX-License-Identifier: Apache-2.0
// The only file of the harness that sees CLI11.
#include "trainer_harness/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/enum_names.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::harness {
namespace {

constexpr int kExitUsage = 2;
constexpr int kDefaultJobs = 3;
constexpr int kMostJobs = 10'000;

constexpr std::array<std::string_view, kScenarioNames.size()> kScenarioHelp = {
    "a training set, loaded before the first step; nothing grows",
    "a cache of decoded images, filled during the first epoch",
    "each evaluation loads its whole data set, then frees it",
    "every step keeps something, after a quiet start; see --cause",
    "each checkpoint keeps a copy",
    "reference cycles that are collected now and then; the floor is flat",
    "small blocks, freed after a fifth of the run; the allocator keeps their pages",
    "processes like those of torch.compile; also `compile-workers N`",
    "forked workers that copy a shared dataset by writing to it",
    "follows a recorded job; see --replay"};

CLI::ValidationError usage_error(const std::string& what) { return {what, kExitUsage}; }

// What the text of an option must be, in words, and how it is read.
template <typename T>
struct Kind {
  std::string needs;
  std::function<std::optional<T>(std::string_view)> parse;
};

template <typename Number = std::uint64_t>
Kind<Number> whole_number(std::type_identity_t<Number> least,
                          std::type_identity_t<Number> most = 1'000'000'000) {
  return {fmt::format("a whole number from {} to {}", least, most),
          [=](std::string_view text) -> std::optional<Number> {
            const auto number = parse_number<Number>(text);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          }};
}

Kind<double> amount() {
  return {"a number from 0 on", [](std::string_view text) -> std::optional<double> {
            const auto number = parse_number<double>(text);
            return number && *number >= 0 && *number <= 1e9 ? number : std::nullopt;
          }};
}

Kind<std::int64_t> nanoseconds() {
  return {"a duration such as 500ms or 10s", [](std::string_view text) {
            const auto duration_ns = parse_duration_ns(text);
            return duration_ns ? std::optional(*duration_ns) : std::nullopt;
          }};
}

Kind<double> seconds() {
  return {nanoseconds().needs, [](std::string_view text) {
            const auto duration_ns = parse_duration_ns(text);
            return duration_ns ? std::optional(to_seconds(*duration_ns)) : std::nullopt;
          }};
}

template <typename Value, std::size_t N>
Kind<Value> one_of(const std::array<std::string_view, N>& names) {
  return {fmt::format("one of {}", fmt::join(names, ", ")),
          [&names](std::string_view text) { return enum_from_name<Value>(names, text); }};
}

Kind<std::string> path() {
  return {"a path", [](std::string_view text) {
            return text.empty() ? std::nullopt : std::optional<std::string>(text);
          }};
}

// "warmup+leak"
Kind<std::set<Scenario>> scenarios() {
  return {fmt::format("to be one of {}, or several joined by +", fmt::join(kScenarioNames, ", ")),
          [](std::string_view text) -> std::optional<std::set<Scenario>> {
            std::set<Scenario> result;
            for (const std::string_view name : split(text, '+')) {
              const auto scenario = enum_from_name<Scenario>(kScenarioNames, name);
              if (!scenario) {
                return std::nullopt;
              }
              result.insert(*scenario);
            }
            return result;
          }};
}

template <typename T, typename Target>
CLI::Option* add(CLI::App& app, const std::string& name, const char* value_name, Target& target,
                 const Kind<T>& kind, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [=, &target](const std::string& text) {
            const auto value = kind.parse(text);
            if (!value) {
              throw usage_error(fmt::format("{} needs {}, not '{}'", name, kind.needs, text));
            }
            target = *value;
          },
          help)
      ->type_name(value_name)
      ->take_last();
}

void add_flag(CLI::App& app, const std::string& name, bool& target, const std::string& help) {
  app.add_flag(name, target, help)->take_last()->check([](const std::string& text) {
    return text == "true" ? "" : "takes no value";
  });
}

// ---- tidemark-harness train ----

void add_train(CLI::App& app, TrainerOptions& options) {
  add(app, "SCENARIO", "", options.scenarios, scenarios(), "What memory does, see below");
  add(app, "--steps", "N", options.steps, whole_number(1),
      "How many (default 400; replays: as many as the job had)");
  add(app, "--step-time", "TIME", options.step_time_s, seconds(),
      "How long a step takes (default 50ms)");
  add(app, "--mb", "M", options.mb, amount(),
      "How much memory the scenario moves in all, in MiB (default 200)");
  add(app, "--seed", "S", options.seed, whole_number(0), "Of data, weights and jitter (default 1)");
  add(app, "--device", "D", options.device, one_of<Device>(kDeviceNames), "auto, cpu or cuda");
  add(app, "--batch", "B", options.batch, whole_number(1), "Images in a micro-batch (default 8)");
  add(app, "--log-every", "N", options.log_every, whole_number(1),
      "Steps between log lines (default 10)");
  add(app, "--eval-every", "N", options.eval_every, whole_number(1), "Steps between evaluations");
  add(app, "--cleanup-every", "N", options.cleanup_every, whole_number(1),
      "Steps between clean-ups; their cost is in the log");
  add(app, "--cause", "C", options.cause, one_of<Cause>(kCauseNames),
      fmt::format("Of the leak: {}", fmt::join(kCauseNames, ", ")));
  add(app, "--mb-per-step", "X", options.mb_per_step, amount(),
      "Size of the leak (default: --mb over the steps that leak)");
  add(app, "--from-step", "K", options.from_step, whole_number(0),
      "The last step before the leak (default: 10 to 25 % of the steps)");
  add_flag(app, "--keep-shm", options.keep_shm, "Leave the segments of a shm leak behind");
  add(app, "--workers", "N", options.workers, whole_number(1),
      "Of compile-workers or dataloader-cow (default 4)");
  add(app, "WORKERS", "", options.workers, whole_number(1), "The same as --workers");
  add(app, "--worker-mb", "M", options.worker_mb, amount(),
      "RSS of a compile worker, half of it shared (default 40)");
  add_flag(app, "--quiesce", options.quiesce, "The compile workers quit halfway");
  add(app, "--replay", "JOB", options.replay, one_of<Replay>(kReplayNames),
      fmt::format("Follow a recorded job: {}", fmt::join(kReplayNames, ", ")));
  add(app, "--scale", "S", options.scale, amount(), "Of the replayed job's memory (default 0.05)");
  add_flag(app, "--wrapper", options.wrapper, "Run below a small idle parent, as `uv run` does");
  add(app, "--truth", "FILE", options.truth_path, path(),
      "Write what the run really does, as JSON");
  add(app, "--checkpoint", "FILE", options.checkpoint_path, path(),
      "Written now and then, at the end and on SIGTERM");
  add(app, "--resume", "FILE", options.resume_path, path(), "Go on from a checkpoint");
  add(app, "--progress-fd", "N", options.progress_fd, whole_number<int>(0),
      "Write one JSON line per step to this descriptor");
  add(app, "--crash-at", "N", options.crash_at_step, whole_number(1), "Crash in step N");
  std::string list = "Scenarios (default: steady; join several with +):\n";
  for (std::size_t i = 0; i < kScenarioNames.size(); ++i) {
    list += fmt::format("  {:<16} {}\n", kScenarioNames[i], kScenarioHelp[i]);
  }
  app.footer(list +
             "An option that belongs to another scenario adds it.\n\n"
             "Exit codes: 0 done, or stopped by SIGTERM or Ctrl-C; 2 usage; 3 anything else that "
             "failed.\n\n"
             "Example:\n"
             "  tidemark-harness train warmup+leak --cause collator --mb 100 --truth truth.json");
}

bool was_given(const CLI::App& app, const std::string& option) { return app.count(option) > 0; }

// Refuses an option that would do nothing.
void require(const CLI::App& app, const std::string& option, bool has_effect,
             std::string_view without) {
  if (was_given(app, option) && !has_effect) {
    throw usage_error(fmt::format("{} does nothing without {}", option, without));
  }
}

// Checks what concerns several options.
void finish_train(const CLI::App& app, TrainerOptions& options) {
  constexpr std::array<std::pair<const char*, Scenario>, 6> kImplied = {
      {{"--cause", Scenario::kLeak},
       {"--mb-per-step", Scenario::kLeak},
       {"--from-step", Scenario::kLeak},
       {"--worker-mb", Scenario::kCompileWorkers},
       {"--quiesce", Scenario::kCompileWorkers},
       {"--replay", Scenario::kReplay}}};
  std::set<Scenario>& chosen = options.scenarios;
  for (const auto& [option, scenario] : kImplied) {
    if (was_given(app, option)) {
      chosen.insert(scenario);
    }
  }
  const bool has_workers =
      chosen.contains(Scenario::kCompileWorkers) || chosen.contains(Scenario::kDataloaderCow);
  require(app, "--workers", has_workers, "compile-workers or dataloader-cow");
  require(app, "WORKERS", has_workers, "compile-workers or dataloader-cow");
  require(app, "--scale", chosen.contains(Scenario::kReplay), "--replay");
  require(app, "--keep-shm", chosen.contains(Scenario::kLeak) && options.cause == Cause::kShm,
          "leak --cause shm");
  if (chosen.size() > 1) {
    chosen.erase(Scenario::kSteady);
  }
}

// ---- tidemark-harness serve-jobs ----

struct ServeWords {
  std::optional<Isolation> isolation;
  std::optional<int> jobs;
  std::vector<std::string> single_jobs;
  std::optional<int> cancel_job;
  std::optional<int> crash_job;
  std::optional<int> after;
};

void add_serve(CLI::App& app, ServeWords& words, ServeOptions& options) {
  add(app, "--isolation", "WHERE", words.isolation, one_of<Isolation>(kIsolationNames),
      "Where the jobs run: inprocess or subprocess (default: subprocess,\n"
      "or what TRAINING_USE_SUBPROCESS=true|false says)");
  add(app, "--jobs", "N", words.jobs, whole_number<int>(1, kMostJobs),
      "Run what comes after -- this many times (default: 3 times warmup)");
  app.add_option("--job", words.single_jobs,
                 "One job, 'SCENARIO ...'; repeatable. These jobs come first")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add(app, "--status", "FILE", options.server.status_path, path(),
      "Keep the state of all jobs in this file (JSON, replaced atomically)");
  add(app, "--cancel-job", "K", words.cancel_job, whole_number<int>(1, kMostJobs),
      "Cancel job K ...");
  add(app, "--crash-job", "K", words.crash_job, whole_number<int>(1, kMostJobs),
      "Kill job K as a bug in it would (SIGSEGV) ...");
  add(app, "--after", "STEP", words.after, whole_number<int>(1),
      "... once it has done this step (default: 1)");
  add(app, "--grace", "TIME", options.grace_ns, nanoseconds(),
      "Between SIGTERM and SIGKILL of a cancelled job (default: 10s)");
  add_flag(app, "--quiet", options.quiet, "Without the jobs' own output");
  add_flag(app, "--json", options.json, "Print the ledger as JSON");
  app.footer(
      "What comes after -- is the job: a scenario with the options of `tidemark-harness train`.\n\n"
      "Exit codes: 0 all jobs done or cancelled, 2 usage, 3 a job failed or the ledger was not "
      "written.\n\n"
      "Example:\n"
      "  tidemark-harness serve-jobs --jobs 3 --isolation inprocess -- warmup --mb 100 --steps 60");
}

Isolation default_isolation(const std::optional<std::string>& use_subprocess) {
  if (!use_subprocess || *use_subprocess == "true") {
    return Isolation::kSubprocess;
  }
  if (*use_subprocess == "false") {
    return Isolation::kInprocess;
  }
  throw usage_error(
      fmt::format("TRAINING_USE_SUBPROCESS needs to be true or false, not '{}'", *use_subprocess));
}

std::vector<JobSpec> jobs_of(const ServeWords& words, const std::vector<std::string>& repeated) {
  std::vector<JobSpec> jobs;
  const auto add_job = [&](std::vector<std::string> arguments) {
    jobs.push_back({static_cast<int>(jobs.size()) + 1, std::move(arguments)});
  };
  for (const std::string& text : words.single_jobs) {
    std::vector<std::string> arguments;
    for (const std::string_view word : split(text, ' ')) {
      if (!word.empty()) {
        arguments.emplace_back(word);
      }
    }
    add_job(std::move(arguments));
  }
  if (jobs.empty() || !repeated.empty()) {
    for (int i = 0; i < words.jobs.value_or(kDefaultJobs); ++i) {
      add_job(repeated.empty() ? std::vector<std::string>{"warmup"} : repeated);
    }
  } else if (words.jobs) {
    throw usage_error("--jobs beside --job needs to know what the other jobs do: add it after --");
  }
  return jobs;
}

std::optional<JobIncident> incident_of(std::string_view option, const std::optional<int>& job,
                                       const ServeWords& words, std::size_t jobs) {
  if (!job) {
    return std::nullopt;
  }
  if (static_cast<std::size_t>(*job) > jobs) {
    throw usage_error(fmt::format("{} {}: there {} only {}", option, *job,
                                  plural(jobs, "is", "are"), format_count(jobs, "job")));
  }
  return JobIncident{*job, words.after.value_or(1)};
}

void finish_serve(const ServeWords& words, const std::vector<std::string>& repeated,
                  const std::optional<std::string>& use_subprocess, ServeOptions& options) {
  JobServerOptions& server = options.server;
  server.isolation = words.isolation ? *words.isolation : default_isolation(use_subprocess);
  server.jobs = jobs_of(words, repeated);
  if (words.after && !words.cancel_job && !words.crash_job) {
    throw usage_error("--after does nothing without --cancel-job or --crash-job");
  }
  server.cancel = incident_of("--cancel-job", words.cancel_job, words, server.jobs.size());
  server.crash = incident_of("--crash-job", words.crash_job, words, server.jobs.size());
}

// CLI11 takes the words from the back.
void parse(CLI::App& app, std::span<const std::string> words) {
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

// An unknown option is reported first: CLI11 has taken its value for a positional argument.
Error error_of(const CLI::App& app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const auto option = std::find_if(unknown.begin(), unknown.end(),
                                   [](const std::string& word) { return word.starts_with('-'); });
  std::string what = error.what();
  if (option != unknown.end()) {
    what = fmt::format("unknown option '{}'", *option);
  } else if (!unknown.empty()) {
    what = fmt::format("unexpected argument '{}'", unknown.front());
  }
  return {Errc::kUsage, escape_text(what)};
}

}  // namespace

Result<TrainerOptions> parse_trainer_options(std::span<const std::string> words) {
  TrainerOptions options;
  CLI::App app;
  app.set_help_flag();
  add_train(app, options);
  try {
    parse(app, words);
    finish_train(app, options);
  } catch (const CLI::Error& error) {
    return error_of(app, error);
  }
  return options;
}

Result<Command> parse_command_line(std::span<const std::string> words,
                                   const std::optional<std::string>& use_subprocess) {
  // CLI11 takes what follows -- for positional arguments; ours is a job with options of its own.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> repeated(dashes == words.end() ? dashes : dashes + 1, words.end());
  TrainerOptions train_options;
  ServeOptions serve_options;
  ServeWords serve_words;
  CLI::App app("Training jobs with a known ground truth.", "tidemark-harness");
  app.require_subcommand(1);
  app.footer("Each command has a --help of its own.\n\nExample:\n  tidemark-harness train leak");
  CLI::App* const train = app.add_subcommand(
      "train", "A training job whose memory does what you ask, and which records the ground truth");
  CLI::App* const serve = app.add_subcommand(
      "serve-jobs", "Runs training jobs one after the other and records what each did to memory");
  add_train(*train, train_options);
  add_serve(*serve, serve_words, serve_options);
  try {
    parse(app, words.first(static_cast<std::size_t>(dashes - words.begin())));
    if (app.got_subcommand(serve)) {
      finish_serve(serve_words, repeated, use_subprocess, serve_options);
      return Command(std::move(serve_options));
    }
    if (dashes != words.end()) {
      throw usage_error("train takes nothing after --");
    }
    finish_train(*train, train_options);
    return Command(std::move(train_options));
  } catch (const CLI::CallForHelp&) {
    return Command(app.help());
  } catch (const CLI::Error& error) {
    return error_of(app, error);
  }
}

}  // namespace tidemark::harness
