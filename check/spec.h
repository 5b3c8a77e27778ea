// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "monitor/sampler_plans.h"
#include "tracker/compare/budget.h"
#include "tracker/curve/judge.h"

namespace tidemark::check {

// One check: a command, how it is run and what it may use.
struct CheckSpec {
  std::string name;
  std::vector<std::string> command;

  tracker::Budgets budgets;
  tracker::Warmup warmup;
  std::uint32_t repeat = 1;
  std::uint32_t jobs = 1;
  bool profile = false;
  std::optional<std::int64_t> timeout_ns;
  std::optional<std::int64_t> duration_ns;

  std::int64_t interval_ns = kNsPerSecond / 5;
  monitor::PssMode pss = monitor::PssMode::kAuto;
  std::string step_regex;
  std::string log_file;
  std::string output;  // run file; empty: none
  bool redact = true;

  std::string baseline;  // file; empty: none
  bool update_baseline = false;
  double tolerance = 0.05;
  std::string history;  // file; empty: none
  std::string commit;   // for the history; empty: what the environment says
};

// A setting of a check has one name: `--max-growth` on the command line, "max_growth" in a file.
struct CheckSetting {
  std::string_view key;    // as in a file
  std::string_view value;  // what stands for its value in a help text; "": a flag
  std::string_view help;
  Status (*set)(CheckSpec& spec, std::string_view text);

  bool is_flag() const { return value.empty(); }
};
std::span<const CheckSetting> check_settings();
// nullptr: there is none of that name.
const CheckSetting* find_check_setting(std::string_view key);
// "max_growth" -> "--max-growth".
std::string option_name(const CheckSetting& setting);

// What somebody has set, by key, in that order.
using CheckValues = std::vector<std::pair<std::string, std::string>>;
Status apply_settings(CheckSpec& spec, const CheckValues& values);
// Settings that exclude each other, or need another. Empty: they fit.
std::string problem_with(const CheckSpec& spec);

// "1MiB/step", "20MB/min", "0".
Result<Rate> parse_growth_budget(std::string_view text);

}  // namespace tidemark::check
