// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/serve_options.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/enum_names.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::harness {
namespace {

constexpr int kDefaultJobs = 3;
constexpr int kMaxJobs = 10'000;

Error usage_error(std::string what) { return Error{Errc::kUsage, std::move(what)}; }

Result<Isolation> default_isolation(const std::optional<std::string>& use_subprocess) {
  if (!use_subprocess || *use_subprocess == "true") {
    return Isolation::kSubprocess;
  }
  if (*use_subprocess == "false") {
    return Isolation::kInprocess;
  }
  return usage_error(fmt::format("TRAINING_USE_SUBPROCESS is '{}', it can be true or false",
                                 escape_text(*use_subprocess)));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

// Walks over the flags and gathers what has to be checked together at the end.
class Parser {
 public:
  Parser(std::span<const std::string> words, const std::optional<std::string>& use_subprocess)
      : words_(words), use_subprocess_(use_subprocess) {}

  Result<ServeOptions> parse() {
    while (at_ < words_.size() && words_[at_] != "--") {
      if (const Status taken = take(words_[at_++]); !taken) {
        return taken.error();
      }
    }
    if (at_ < words_.size()) {
      trailing_.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end());
    }
    return finish();
  }

 private:
  // `--flag value` or `--flag=value`.
  Status take(const std::string& word) {
    if (bool* const option = switch_of(word)) {
      *option = true;
      return ok();
    }
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    if (switch_of(flag) != nullptr) {
      return usage_error(fmt::format("{} takes no value", flag));
    }
    const bool known = flag == "--isolation" || flag == "--jobs" || flag == "--job" ||
                       flag == "--status" || flag == "--cancel-job" || flag == "--crash-job" ||
                       flag == "--after" || flag == "--grace";
    if (!known) {
      return usage_error(fmt::format("unknown word '{}'; what the jobs shall do comes after --",
                                     escape_text(word)));
    }
    if (equals != std::string::npos) {
      return take_value(flag, word.substr(equals + 1));
    }
    if (at_ == words_.size()) {
      return usage_error(fmt::format("{} needs a value", flag));
    }
    return take_value(flag, words_[at_++]);
  }

  // What a flag without a value turns on; nullptr for any other.
  bool* switch_of(std::string_view flag) {
    if (flag == "--json") {
      return &options_.json;
    }
    if (flag == "--quiet") {
      return &options_.quiet;
    }
    return flag == "--help" || flag == "-h" ? &options_.help : nullptr;
  }

  Status take_value(const std::string& flag, const std::string& value) {
    if (flag == "--isolation") {
      const auto isolation = enum_from_name<Isolation>(kIsolationNames, value);
      if (!isolation) {
        return usage_error(
            fmt::format("--isolation '{}', it can be inprocess or subprocess", escape_text(value)));
      }
      isolation_ = *isolation;
      return ok();
    }
    if (flag == "--job") {
      single_jobs_.push_back(words_of(value));
      return ok();
    }
    if (flag == "--status") {
      options_.server.status_path = value;
      return ok();
    }
    if (flag == "--grace") {
      const auto grace_ns = parse_duration_ns(value);
      if (!grace_ns) {
        return grace_ns.error();
      }
      options_.grace_ns = *grace_ns;
      return ok();
    }
    return take_number(flag, value);
  }

  Status take_number(const std::string& flag, const std::string& value) {
    const auto number = parse_number<int>(value);
    if (!number || *number < 1 || (flag == "--jobs" && *number > kMaxJobs)) {
      return usage_error(
          fmt::format("{} '{}' is not a number that fits", flag, escape_text(value)));
    }
    if (flag == "--jobs") {
      jobs_ = *number;
    } else if (flag == "--cancel-job") {
      cancel_job_ = *number;
    } else if (flag == "--crash-job") {
      crash_job_ = *number;
    } else {
      after_ = *number;
    }
    return ok();
  }

  Result<ServeOptions> finish() {
    if (options_.help) {
      return std::move(options_);
    }
    const auto isolation =
        isolation_ ? Result<Isolation>(*isolation_) : default_isolation(use_subprocess_);
    if (!isolation) {
      return isolation.error();
    }
    options_.server.isolation = *isolation;
    std::vector<std::vector<std::string>> jobs = single_jobs_;
    if (!jobs.empty() && jobs_ && trailing_.empty()) {
      return usage_error("--jobs beside --job needs to know what the others shall do, after --");
    }
    if (jobs.empty() || !trailing_.empty()) {
      if (trailing_.empty()) {
        trailing_ = {"warmup"};
      }
      jobs.insert(jobs.end(), static_cast<std::size_t>(jobs_.value_or(kDefaultJobs)), trailing_);
    }
    for (std::vector<std::string>& arguments : jobs) {
      const int id = static_cast<int>(options_.server.jobs.size()) + 1;
      options_.server.jobs.push_back({id, std::move(arguments)});
    }
    if (after_ && !cancel_job_ && !crash_job_) {
      return usage_error("--after needs --cancel-job or --crash-job");
    }
    for (const auto& [number, incident] : {std::pair(cancel_job_, &options_.server.cancel),
                                           std::pair(crash_job_, &options_.server.crash)}) {
      if (number && static_cast<std::size_t>(*number) > options_.server.jobs.size()) {
        return usage_error(
            fmt::format("there is no job {}, only {}", *number, options_.server.jobs.size()));
      }
      if (number) {
        *incident = JobIncident{*number, after_.value_or(1)};
      }
    }
    return std::move(options_);
  }

  std::span<const std::string> words_;
  const std::optional<std::string>& use_subprocess_;
  std::size_t at_ = 0;
  ServeOptions options_;
  std::vector<std::vector<std::string>> single_jobs_;
  std::vector<std::string> trailing_;
  std::optional<Isolation> isolation_;
  std::optional<int> jobs_;
  std::optional<int> cancel_job_;
  std::optional<int> crash_job_;
  std::optional<int> after_;
};

}  // namespace

Result<ServeOptions> parse_serve_options(std::span<const std::string> words,
                                         const std::optional<std::string>& use_subprocess) {
  return Parser(words, use_subprocess).parse();
}

std::string serve_usage() {
  return R"(usage: tidemark-harness serve-jobs [options] [-- SCENARIO [flags of train]]

Runs training jobs one after the other and keeps a ledger of what each did to memory.

  --isolation inprocess|subprocess  where the jobs run (default: subprocess, or what
                         TRAINING_USE_SUBPROCESS=true|false says)
  --jobs N               so many jobs of what comes after -- (default: 3 of warmup)
  --job 'SCENARIO ...'   one job; may be given several times, these come first
  --status FILE          keep the state of all jobs in FILE (JSON, replaced atomically)
  --cancel-job K         cancel job K ...
  --crash-job K          kill job K as a bug in it would (SIGSEGV) ...
  --after STEP           ... once it has done this step (default: 1)
  --grace TIME           between SIGTERM and SIGKILL of a cancelled job (default: 10s)
  --quiet                without the jobs' own output
  --json                 the ledger as JSON on stdout

Exit codes: 0 all jobs done or cancelled, 2 usage, 3 a job failed or the ledger was not written.

example: tidemark-harness serve-jobs --jobs 3 --isolation inprocess -- warmup --mb 100 --steps 60
)";
}

}  // namespace tidemark::harness
