// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_options.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

Result<std::int64_t> parse_interval(std::string_view text) {
  constexpr std::int64_t kShortestNs = 50'000'000;
  auto ns = parse_duration_ns(text);
  if (ns && *ns < kShortestNs) {
    return Error{Errc::kUsage, "--interval: the shortest is 50ms"};
  }
  return ns;
}

}  // namespace

void add_watch(Command& command, live::WatchOptions& options) {
  live::TargetOptions& target = options.target;
  command.process_ids("-p,--pid", target.pids,
                      "Watch this process with all its descendants (repeatable)");
  command.flag("--find-training", target.find_training,
               "Find the training job on this machine and watch it");
  command.flag("--system", target.system, "Watch every process of the machine");
  command.take_rest(target.command);
  command.notice_forgotten_dashes();
  command.value("-i,--interval", "TIME", parse_interval, options.interval_ns,
                "Time between two samples, 50ms or more (default 1s)");
  command.value("-d,--duration", "TIME", parse_duration_ns, options.duration_ns,
                "Stop watching after this time (default: when the target ends)");
  command.text("-o,--output", "FILE", options.output, "Record into this run file (*.tidemark)");
  command.flag("--force", options.force, "Replace an existing run file");
  command.value("--pss", "off|auto|always", monitor::parse_pss_mode, options.pss,
                "Read how pages are shared: off, auto (at most 1 % of the time), always");
  command.text(
      "--step-regex", "REGEX", options.step_regex,
      "Step numbers in the output of the command, for example 'Step +(\\d+)' (default: common "
      "logs and progress bars are recognised; off: its output is not read)");
  command.text("--log-file", "FILE", options.log_file, "Read steps from this log instead");
  command.flag(
      "--no-redact", [&] { options.redact = false; }, "Keep secrets in command lines");
}

void add_thresholds(Command& command, tracker::JudgeOptions& options) {
  command.value("--warmup", "TIME|STEPS", tracker::parse_warmup, options.warmup,
                "For how long growth is to be expected: 10min, 200steps or auto "
                "(default auto, see docs/verdicts.md)");
  command.value("--min-leak", "RATE", parse_rate, options.min_leak,
                "Slower growth is no leak, for example 1MB/min or 10KiB/step "
                "(default: 0.5 % per hour, or per 1000 steps)");
}

void add_judging(Command& command, tracker::JudgeOptions& options) {
  add_thresholds(command, options);
  command.value("--metric", "METRIC", tracker::parse_metric, options.metric,
                "Judge footprint, rss, pss, uss or gpu (default: footprint where it is known)");
}

void add_limit(Command& command, tracker::JudgeOptions& options, const std::string& help) {
  command.value("--limit", "SIZE", tracker::parse_limit, options.limit_bytes, help);
}

void add_last_look(Command& command, const std::function<void(bool is_on)>& set) {
  const Option on = command.flag(
      "--last-look", [set] { set(true); },
      "As a limit comes near, look a few times at which Python objects hold the memory (default)");
  command
      .flag(
          "--no-last-look", [set] { set(false); },
          "Do not; a look takes up to 5 s of our time and none of the job's")
      .excludes(on);
}

void take_pid(std::string& input, live::TargetOptions& target) {
  const auto pid = parse_number<int>(input);
  if (pid && *pid > 0 && ::access(input.c_str(), F_OK) != 0) {
    target.pids.push_back(*pid);
    input.clear();
  }
}

int targets_given(const live::TargetOptions& target) {
  return (target.pids.empty() ? 0 : 1) + (target.find_training ? 1 : 0) + (target.system ? 1 : 0) +
         (target.command.empty() ? 0 : 1);
}

std::string watch_problem(const live::WatchOptions& options) {
  const int given = targets_given(options.target);
  if (given == 0) {
    return "say what to watch: --pid PID, --find-training, --system or -- COMMAND";
  }
  if (given > 1) {
    return "--pid, --find-training, --system and -- COMMAND exclude each other";
  }
  if (options.force && options.output.empty()) {
    return "--force is for --output: there is nothing to replace";
  }
  if (!options.log_file.empty() && options.step_regex == live::kNoStepRegex) {
    return "--step-regex off reads no --log-file";
  }
  if (!options.step_regex.empty() && options.log_file.empty() && options.target.command.empty()) {
    return "--step-regex reads the output of -- COMMAND; of a running process give its --log-file";
  }
  return "";
}

std::string option_for_watching(const live::WatchOptions& options) {
  const live::WatchOptions usual;
  const std::pair<std::string_view, bool> given[] = {
      {"--interval", options.interval_ns != usual.interval_ns},
      {"--duration", options.duration_ns.has_value()},
      {"--output", !options.output.empty()},
      {"--force", options.force},
      {"--pss", options.pss != usual.pss},
      {"--step-regex", !options.step_regex.empty()},
      {"--log-file", !options.log_file.empty()},
      {"--no-redact", !options.redact}};
  const auto* const found = std::find_if(std::begin(given), std::end(given),
                                         [](const auto& each) { return each.second; });
  return found == std::end(given) ? "" : std::string(found->first);
}

}  // namespace tidemark::cli
