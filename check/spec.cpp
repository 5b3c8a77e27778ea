// SPDX-License-Identifier: Apache-2.0
#include "check/spec.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "live/watch_options.h"
#include "monitor/markers/step_pattern.h"
#include "tracker/run/judged_run.h"

namespace tidemark::check {
namespace {

constexpr std::uint32_t kMostRuns = 1000;

// Stores what a parser makes of the text.
template <typename T, typename Into>
Status store(Result<T> value, Into& into) {
  TIDEMARK_TRY_ASSIGN(into, std::move(value));
  return ok();
}

Status store_size(std::string_view text, std::optional<double>& into) {
  TIDEMARK_TRY_ASSIGN(const auto bytes, parse_size_bytes(text));
  into = static_cast<double>(bytes);
  return ok();
}

Status store_count(std::string_view text, std::uint32_t least, std::uint32_t& into) {
  const auto count = parse_number<std::uint32_t>(text);
  if (!count || *count < least || *count > kMostRuns) {
    return Error{Errc::kUsage, fmt::format("'{}' is not a number from {} to {}", escape_text(text),
                                           least, kMostRuns)};
  }
  into = *count;
  return ok();
}

Status store_text(std::string_view text, std::string& into) {
  if (text.empty()) {
    return Error{Errc::kUsage, "it is empty"};
  }
  into = text;
  return ok();
}

Status store_time(std::string_view text, std::optional<std::int64_t>& into) {
  TIDEMARK_TRY_ASSIGN(const auto ns, parse_duration_ns(text));
  if (ns <= 0) {
    return Error{Errc::kUsage, "it must be longer than nothing"};
  }
  into = ns;
  return ok();
}

// Of something that is on or off: what a flag, or a file, says.
Status store_flag(std::string_view text, bool& into) {
  if (text != "true" && text != "false") {
    return Error{Errc::kUsage, fmt::format("'{}' is neither true nor false", escape_text(text))};
  }
  into = text == "true";
  return ok();
}

Status set_growth(CheckSpec& spec, std::string_view text) {
  tracker::MemoryBudgets& memory = spec.budgets.memory;
  memory.growth_is_off = text == "off";
  memory.growth.reset();
  return memory.growth_is_off ? ok() : store(parse_growth_budget(text), memory.growth);
}

Status set_processes(CheckSpec& spec, std::string_view text) {
  const auto count = parse_number<std::uint32_t>(text);
  if (!count || *count == 0) {
    return Error{Errc::kUsage, fmt::format("'{}' is not a number of processes", escape_text(text))};
  }
  spec.budgets.processes = *count;
  return ok();
}

Status set_interval(CheckSpec& spec, std::string_view text) {
  constexpr std::int64_t kShortestNs = 50'000'000;
  TIDEMARK_TRY_ASSIGN(const auto ns, parse_duration_ns(text));
  if (ns < kShortestNs) {
    return Error{Errc::kUsage, "the shortest is 50ms"};
  }
  spec.interval_ns = ns;
  return ok();
}

Status set_step_regex(CheckSpec& spec, std::string_view text) {
  TIDEMARK_TRY(monitor::StepPattern::compile(std::string(text)));
  return store_text(text, spec.step_regex);
}

Status set_tolerance(CheckSpec& spec, std::string_view text) {
  const bool is_percent = text.ends_with('%');
  const auto percent =
      parse_number<double>(trim(is_percent ? text.substr(0, text.size() - 1) : text));
  if (!is_percent || !percent || !(*percent >= 0.0 && *percent <= 1000.0)) {
    return Error{Errc::kUsage,
                 fmt::format("'{}' is not a share; write it like 5%", escape_text(text))};
  }
  spec.tolerance = *percent / 100.0;
  return ok();
}

using Spec = CheckSpec;
using Text = std::string_view;

constexpr std::array kSettings{
    CheckSetting{"max_growth", "RATE",
                 "After warm-up: 1MiB/step, 20MB/min, 0, or off (default: no leak). Exceeded "
                 "only if the whole 95 % interval is above it",
                 set_growth},
    CheckSetting{"max_peak", "SIZE", "The highest footprint of the whole tree",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.memory.peak_bytes); }},
    CheckSetting{"max_plateau", "SIZE", "Where the footprint settles",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.memory.plateau_bytes); }},
    CheckSetting{"max_processes", "N", "The most processes at one time, wrappers included",
                 set_processes},
    CheckSetting{"max_retained", "SIZE",
                 "Left when the command has ended: stray processes and segments in /dev/shm",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.memory.retained_bytes); }},
    CheckSetting{"max_job_growth", "SIZE",
                 "With --jobs: what each job may leave more than the one before (default 1MiB)",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.job_growth_bytes); }},
    CheckSetting{
        "gpu_max_growth", "RATE", "Growth of the memory on GPUs, as --max-growth",
        [](Spec& s, Text t) { return store(parse_growth_budget(t), s.budgets.gpu.growth); }},
    CheckSetting{"gpu_max_peak", "SIZE", "The highest use of GPU memory",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.gpu.peak_bytes); }},
    CheckSetting{"gpu_max_plateau", "SIZE", "Where the use of GPU memory settles",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.gpu.plateau_bytes); }},
    CheckSetting{"gpu_max_retained", "SIZE",
                 "GPU memory of processes that are left when the command has ended",
                 [](Spec& s, Text t) { return store_size(t, s.budgets.gpu.retained_bytes); }},
    CheckSetting{"warmup", "TIME|STEPS",
                 "For how long growth is to be expected: 10min, 200steps or auto (default)",
                 [](Spec& s, Text t) { return store(tracker::parse_warmup(t), s.warmup); }},
    CheckSetting{"repeat", "N",
                 "Run it again, up to N times in all, until it is within its budgets: exceeded "
                 "is only what every run exceeds",
                 [](Spec& s, Text t) { return store_count(t, 1, s.repeat); }},
    CheckSetting{"jobs", "N", "Run it N times in a row and compare what each job leaves behind",
                 [](Spec& s, Text t) { return store_count(t, 1, s.jobs); }},
    CheckSetting{"profile", "",
                 "Trace allocations, so that a failure names the lines that hold the growth",
                 [](Spec& s, Text t) { return store_flag(t, s.profile); }},
    CheckSetting{"timeout", "TIME",
                 "End the command after this time; the check has failed then (exit code 3)",
                 [](Spec& s, Text t) { return store_time(t, s.timeout_ns); }},
    CheckSetting{"duration", "TIME",
                 "End the command after this time and judge it: for what runs for ever",
                 [](Spec& s, Text t) { return store_time(t, s.duration_ns); }},
    CheckSetting{"baseline", "FILE", "Compare growth, plateau and peak with the runs in this file",
                 [](Spec& s, Text t) { return store_text(t, s.baseline); }},
    CheckSetting{"update_baseline", "", "Add this run to the baseline instead of comparing",
                 [](Spec& s, Text t) { return store_flag(t, s.update_baseline); }},
    CheckSetting{"tolerance", "PERCENT",
                 "What may be more than in the baseline, however little it scatters (default 5%)",
                 set_tolerance},
    CheckSetting{"history", "FILE",
                 "Append a row to this CSV file, and tell since when figures have changed",
                 [](Spec& s, Text t) { return store_text(t, s.history); }},
    CheckSetting{"commit", "ID", "Of the history (default: what the CI system or git says)",
                 [](Spec& s, Text t) { return store_text(t, s.commit); }},
    CheckSetting{"interval", "TIME", "Time between two samples, 50ms or more (default 200ms)",
                 set_interval},
    CheckSetting{"pss", "off|auto|always",
                 "Read how pages are shared: off, auto (at most 1 % of the time), always",
                 [](Spec& s, Text t) { return store(monitor::parse_pss_mode(t), s.pss); }},
    CheckSetting{"step_regex", "REGEX",
                 "Step numbers in the output, for example 'Step +(\\d+)' (default: common logs and "
                 "progress bars are recognised; off: the output is not read)",
                 set_step_regex},
    CheckSetting{"log_file", "FILE", "Read steps from this log instead",
                 [](Spec& s, Text t) { return store_text(t, s.log_file); }},
    CheckSetting{"output", "FILE", "Record into this run file; later runs get a number",
                 [](Spec& s, Text t) { return store_text(t, s.output); }},
    CheckSetting{"no_redact", "", "Keep secrets in command lines",
                 [](Spec& s, Text t) {
                   bool keep = false;
                   Status status = store_flag(t, keep);
                   s.redact = !keep;
                   return status;
                 }},
};

}  // namespace

std::span<const CheckSetting> check_settings() { return kSettings; }

const CheckSetting* find_check_setting(std::string_view key) {
  const auto* const found =
      std::find_if(kSettings.begin(), kSettings.end(),
                   [&](const CheckSetting& setting) { return setting.key == key; });
  return found == kSettings.end() ? nullptr : found;
}

std::string option_name(const CheckSetting& setting) {
  std::string name = "--" + std::string(setting.key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Status apply_settings(CheckSpec& spec, const CheckValues& values) {
  for (const auto& [key, text] : values) {
    const CheckSetting* const setting = find_check_setting(key);
    if (setting == nullptr) {
      return Error{Errc::kUsage, fmt::format("there is no setting '{}'", escape_text(key))};
    }
    if (Status status = setting->set(spec, text); !status) {
      return Error{Errc::kUsage, fmt::format("{}: {}", key, status.error().what)};
    }
  }
  return ok();
}

std::string problem_with(const CheckSpec& spec) {
  if (!spec.log_file.empty() && spec.step_regex == live::kNoStepRegex) {
    return "step_regex off reads no log_file";
  }
  if (spec.update_baseline && spec.baseline.empty()) {
    return "update_baseline needs baseline: the file to write";
  }
  if (spec.timeout_ns && spec.duration_ns) {
    return "timeout and duration exclude each other: one fails the check, the other does not";
  }
  if (spec.jobs > 1 && spec.repeat > 1) {
    return "jobs and repeat exclude each other";
  }
  if (spec.budgets.job_growth_bytes && spec.jobs < 2) {
    return "max_job_growth compares jobs: it needs jobs of 2 or more";
  }
  const bool only_records = !spec.baseline.empty() || !spec.history.empty();
  if (spec.budgets.memory.growth_is_off && !spec.budgets.any() && spec.jobs < 2 && !only_records) {
    return "max_growth off leaves nothing to check: it needs another budget";
  }
  return "";
}

Result<Rate> parse_growth_budget(std::string_view text) {
  if (trim(text) == "0") {
    return Rate{};
  }
  auto rate = parse_rate(text);
  const bool is_number = parse_number<double>(trim(text)).has_value();
  if (!rate && (is_number || text.find('/') == std::string_view::npos)) {
    return Error{Errc::kUsage,
                 fmt::format("'{}' is not a rate; write it like 1MiB/step, 20MB/min or 0",
                             escape_text(text))};
  }
  return rate;
}

}  // namespace tidemark::check
