// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/options.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "common/enum_names.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::harness {
namespace {

// In the order of the enumerators.
using namespace std::string_view_literals;
constexpr std::array kScenarios = {
    "steady"sv,   "warmup"sv,        "spikes"sv,          "leak"sv,           "staircase"sv,
    "sawtooth"sv, "fragmentation"sv, "compile-workers"sv, "dataloader-cow"sv, "replay"sv};
constexpr std::array kScenarioHelp = {
    "a training set, loaded before the first step; nothing grows"sv,
    "a cache of decoded images, filled during the first epoch"sv,
    "each evaluation loads its whole set, and frees it"sv,
    "every step keeps something, after a calm start; see --cause"sv,
    "each checkpoint keeps a copy"sv,
    "cycles that are collected now and then; the floor is flat"sv,
    "small blocks, freed after a fifth of the run; the allocator keeps their pages"sv,
    "processes as torch.compile starts them; also `compile-workers N`"sv,
    "forked workers that copy a shared dataset by writing to it"sv,
    "follows a recorded job; see --replay"sv};
static_assert(kScenarioHelp.size() == kScenarios.size());
constexpr std::array kCauses = {"collator"sv, "autograd"sv, "optimizer"sv,
                                "native"sv,   "shm"sv,      "pinned"sv};
constexpr std::array kReplays = {"job1"sv, "job2"sv, "valspike"sv, "slowleak"sv, "catastrophic"sv};
constexpr std::array kDevices = {"auto"sv, "cpu"sv, "cuda"sv};

template <std::size_t N>
std::string choices(const std::array<std::string_view, N>& names) {
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

// Sets one option from its text; what is wrong with the text, or "".
using Setter = std::function<std::string(TrainerOptions&, std::string_view)>;

// What a flag needs to have an effect.
struct Need {
  std::string_view words;
  bool (*is_met)(const TrainerOptions& options);
};

bool has_workers(const TrainerOptions& options) {
  return options.scenarios.contains(Scenario::kCompileWorkers) ||
         options.scenarios.contains(Scenario::kDataloaderCow);
}

constexpr Need kNeedsWorkers{"compile-workers or dataloader-cow", &has_workers};
constexpr Need kNeedsReplay{"--replay", [](const TrainerOptions& options) {
                              return options.scenarios.contains(Scenario::kReplay);
                            }};
constexpr Need kNeedsSegments{"leak --cause shm", [](const TrainerOptions& options) {
                                return options.scenarios.contains(Scenario::kLeak) &&
                                       options.cause == Cause::kShm;
                              }};

struct Flag {
  std::string_view name;
  std::string_view value;  // what the usage calls it; empty: takes none
  std::string_view help;
  Setter set;
  std::optional<Scenario> implies;
  const Need* needs = nullptr;
};

// Targets are members of TrainerOptions, plain or optional.
template <typename Member>
Setter count(Member member, std::uint64_t least) {
  return [=](TrainerOptions& options, std::string_view text) -> std::string {
    const auto number = parse_number<std::uint64_t>(text);
    if (!number || *number < least || *number > 1'000'000'000) {
      return "needs a whole number from " + std::to_string(least) + " on";
    }
    options.*member = *number;
    return "";
  };
}

template <typename Member>
Setter amount(Member member) {
  return [=](TrainerOptions& options, std::string_view text) -> std::string {
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0 && *number <= 1e9)) {
      return "needs a number from 0 on";
    }
    options.*member = *number;
    return "";
  };
}

template <typename Value, std::size_t N>
Setter choice(Value TrainerOptions::*member, const std::array<std::string_view, N>& names) {
  return [=, &names](TrainerOptions& options, std::string_view text) -> std::string {
    const auto value = enum_from_name<Value>(names, text);
    if (!value) {
      return "is one of " + choices(names);
    }
    options.*member = *value;
    return "";
  };
}

Setter path(std::string TrainerOptions::*member) {
  return [=](TrainerOptions& options, std::string_view text) -> std::string {
    options.*member = text;
    return text.empty() ? "needs a path" : "";
  };
}

Setter on(bool TrainerOptions::*member) {
  return [=](TrainerOptions& options, std::string_view) -> std::string {
    options.*member = true;
    return "";
  };
}

std::string set_step_time(TrainerOptions& options, std::string_view text) {
  const auto nanoseconds = parse_duration_ns(text);
  if (!nanoseconds || *nanoseconds < 0) {
    return "needs a duration such as 50ms";
  }
  options.step_time_s = static_cast<double>(*nanoseconds) / 1e9;
  return "";
}

std::string set_progress_fd(TrainerOptions& options, std::string_view text) {
  const auto number = parse_number<int>(text);
  if (!number || *number < 0) {
    return "needs the number of an open descriptor";
  }
  options.progress_fd = *number;
  return "";
}

const std::vector<Flag>& flags() {
  using O = TrainerOptions;
  static const std::vector<Flag> kAll = {
      {"--steps",
       "N",
       "how many (default 400; replays: as many as the job had)",
       count(&O::steps, 1),
       {}},
      {"--step-time", "TIME", "how long a step takes (default 50ms)", set_step_time, {}},
      {"--mb", "M", "what the scenario moves in all, in MiB (default 200)", amount(&O::mb), {}},
      {"--seed", "S", "of data, weights and jitter (default 1)", count(&O::seed, 0), {}},
      {"--device", "D", "auto, cpu or cuda", choice(&O::device, kDevices), {}},
      {"--batch", "B", "images in a micro-batch (default 8)", count(&O::batch, 1), {}},
      {"--log-every", "N", "steps between log lines (default 10)", count(&O::log_every, 1), {}},
      {"--eval-every", "N", "steps between evaluations", count(&O::eval_every, 1), {}},
      {"--cleanup-every",
       "N",
       "steps between clean-ups; their cost is in the log",
       count(&O::cleanup_every, 1),
       {}},
      {"--cause", "C", "of the leak: collator, autograd, optimizer, native, shm, pinned",
       choice(&O::cause, kCauses), Scenario::kLeak},
      {"--mb-per-step", "X", "size of the leak (default: --mb over the steps that leak)",
       amount(&O::mb_per_step), Scenario::kLeak},
      {"--from-step", "K", "the last step before the leak (default: 10 to 25 % of the steps)",
       count(&O::from_step, 0), Scenario::kLeak},
      {"--keep-shm",
       "",
       "leave the segments of a shm leak behind",
       on(&O::keep_shm),
       {},
       &kNeedsSegments},
      {"--workers",
       "N",
       "of compile-workers or dataloader-cow (default 4)",
       count(&O::workers, 1),
       {},
       &kNeedsWorkers},
      {"--worker-mb", "M", "RSS of a compile worker, half of it shared (default 40)",
       amount(&O::worker_mb), Scenario::kCompileWorkers},
      {"--quiesce", "", "the compile workers quit halfway", on(&O::quiesce),
       Scenario::kCompileWorkers},
      {"--replay", "JOB", "job1, job2, valspike, slowleak or catastrophic",
       choice(&O::replay, kReplays), Scenario::kReplay},
      {"--scale",
       "S",
       "of the replayed job's memory (default 0.05)",
       amount(&O::scale),
       {},
       &kNeedsReplay},
      {"--wrapper",
       "",
       "run below a small parent that does nothing, as `uv run` does",
       on(&O::wrapper),
       {}},
      {"--truth", "FILE", "what the run really does, as JSON", path(&O::truth_path), {}},
      {"--checkpoint",
       "FILE",
       "written now and then, at the end and on SIGTERM",
       path(&O::checkpoint_path),
       {}},
      {"--resume", "FILE", "go on from a checkpoint", path(&O::resume_path), {}},
      {"--progress-fd", "N", "write one JSON line per step there", set_progress_fd, {}},
      {"--crash-at", "N", "crash in step N", count(&O::crash_at_step, 1), {}},
  };
  return kAll;
}

Error usage_error(std::string what) { return {Errc::kUsage, std::move(what)}; }

std::string parse_scenarios(TrainerOptions& options, std::string_view word) {
  options.scenarios.clear();
  for (const std::string_view name : split(word, '+')) {
    const auto scenario = enum_from_name<Scenario>(kScenarios, name);
    if (!scenario) {
      return "no scenario is called \"" + escape_text(name) + "\"; there are " +
             choices(kScenarios);
    }
    options.scenarios.insert(*scenario);
  }
  return "";
}

std::string usage_line(std::string left, std::string_view right) {
  left.insert(0, "  ");
  left.resize(std::max<std::size_t>(left.size() + 1, 24), ' ');
  return left + std::string(right) + "\n";
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : flags()) {
    if (flag.name == name) {
      return &flag;
    }
  }
  return nullptr;
}

// The flag that would do nothing, if there is one.
std::string problem_with_needs(const std::vector<const Flag*>& given,
                               const TrainerOptions& options) {
  for (const Flag* flag : given) {
    if (flag->needs != nullptr && !flag->needs->is_met(options)) {
      return std::string(flag->name) + " does nothing without " + std::string(flag->needs->words);
    }
  }
  return "";
}

}  // namespace

std::string_view name_of(Scenario scenario) {
  return kScenarios[static_cast<std::size_t>(scenario)];
}
std::string_view name_of(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }
std::string_view name_of(Replay replay) { return kReplays[static_cast<std::size_t>(replay)]; }

Result<TrainerOptions> parse_trainer_options(std::span<const std::string> words) {
  TrainerOptions options;
  std::size_t at = 0;
  if (at < words.size() && !words[at].starts_with("--")) {
    if (std::string problem = parse_scenarios(options, words[at++]); !problem.empty()) {
      return usage_error(std::move(problem));
    }
    // `compile-workers 8`
    if (has_workers(options) && at < words.size() && parse_number<std::uint64_t>(words[at])) {
      if (const auto problem = count(&TrainerOptions::workers, 1)(options, words[at++]);
          !problem.empty()) {
        return usage_error("the number of workers " + problem);
      }
    }
  }
  std::vector<const Flag*> given;
  for (; at < words.size(); ++at) {
    const std::string_view word = words[at];
    const std::size_t equals = word.find('=');
    const Flag* flag = find_flag(word.substr(0, equals));
    if (flag == nullptr) {
      return usage_error("unknown argument \"" + escape_text(word) + "\"");
    }
    std::string_view value;
    if (!flag->value.empty() && equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!flag->value.empty() && at + 1 < words.size()) {
      value = words[++at];
    } else if (!flag->value.empty() || equals != std::string_view::npos) {
      return usage_error(std::string(flag->name) +
                         (flag->value.empty() ? " takes no value" : " needs a value"));
    }
    if (const std::string problem = flag->set(options, value); !problem.empty()) {
      return usage_error(std::string(flag->name) + " " + problem);
    }
    if (flag->implies) {
      options.scenarios.insert(*flag->implies);
    }
    given.push_back(flag);
  }
  if (std::string problem = problem_with_needs(given, options); !problem.empty()) {
    return usage_error(std::move(problem));
  }
  if (options.scenarios.size() > 1) {
    options.scenarios.erase(Scenario::kSteady);
  }
  return options;
}

std::string trainer_usage() {
  std::string text =
      "usage: tidemark-harness train [SCENARIO[+SCENARIO...]] [FLAGS]\n\n"
      "A training job whose memory does what is asked of it, and which writes down the truth.\n\n"
      "scenarios (default: steady):\n";
  for (std::size_t i = 0; i < kScenarios.size(); ++i) {
    text += usage_line(std::string(kScenarios[i]), kScenarioHelp[i]);
  }
  text += "\nflags (those of another scenario add it):\n";
  for (const Flag& flag : flags()) {
    std::string left(flag.name);
    if (!flag.value.empty()) {
      left += " " + std::string(flag.value);
    }
    text += usage_line(std::move(left), flag.help);
  }
  return text +
         "\nExit codes: 0 done, or stopped by SIGTERM or Ctrl-C; 2 usage; 3 anything else that "
         "failed.\n\n"
         "example: tidemark-harness train warmup+leak --cause collator --mb 100 --truth "
         "truth.json\n";
}

}  // namespace tidemark::harness
