// SPDX-License-Identifier: Apache-2.0
#include "live/job_output.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "live/launch/output_channel.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::live {

namespace {

// Of files that the output of a command goes to.
constexpr std::string_view kOutputPrefix = "tidemark-output-";
constexpr std::string_view kOutputSuffix = ".log";

// What --step-regex gives, or one that recognises steps: `recognized` is set then.
Result<monitor::StepFinder> step_finder(const std::string& regex,
                                        std::shared_ptr<monitor::StepLineChoice>& recognized) {
  if (regex.empty()) {
    recognized = std::make_shared<monitor::StepLineChoice>();
    return monitor::StepFinder(monitor::StepRecognizer(recognized));
  }
  auto pattern = monitor::StepPattern::compile(regex);
  if (!pattern) {
    return Error{pattern.error().code, "--step-regex: " + pattern.error().what};
  }
  return monitor::StepFinder(*std::move(pattern));
}

// Of very many steps those that are spread evenly, and the last: nobody asked for all of them, and
// each takes room in a recording.
std::vector<MarkerRecord> thinned(std::vector<MarkerRecord> steps) {
  constexpr std::size_t kMost = 100;
  const std::size_t every = (steps.size() + kMost - 1) / kMost;
  if (every < 2) {
    return steps;
  }
  std::vector<MarkerRecord> kept;
  for (std::size_t i = (steps.size() - 1) % every; i < steps.size(); i += every) {
    kept.push_back(std::move(steps[i]));
  }
  return kept;
}

}  // namespace

Result<JobOutput> JobOutput::open(const WatchOptions& options, const Clock& clock,
                                  std::int64_t start_ns) {
  JobOutput output(clock, start_ns);
  output.stdout_is_ours_ = options.json;
  if (!options.command_output.empty()) {
    TIDEMARK_TRY_ASSIGN(output.file_, open_file(options.command_output, O_WRONLY | O_APPEND));
    TIDEMARK_TRY_ASSIGN(output.no_input_, open_file("/dev/null", O_RDONLY));
  }
  const bool may_have_steps =
      !options.target.command.empty() || !options.log_file.empty() || !options.step_regex.empty();
  if (may_have_steps && options.step_regex != kNoStepRegex) {
    TIDEMARK_TRY(output.open_step_source(options));
  }
  return output;
}

Status JobOutput::open_step_source(const WatchOptions& options) {
  TIDEMARK_TRY_ASSIGN(const auto steps, step_finder(options.step_regex, recognized_));
  if (!options.log_file.empty()) {
    TIDEMARK_TRY_ASSIGN(auto log, monitor::LogFollower::open(options.log_file, steps));
    logs_.push_back(std::move(log));
    return ok();
  }
  if (recognized_ != nullptr && follow_files(steps)) {
    return ok();
  }
  TIDEMARK_TRY_ASSIGN(auto relay, OutputRelay::open({.steps = steps,
                                                     .stdout_sink = stdout_sink(),
                                                     .stderr_sink = stderr_sink(),
                                                     .run_start_ns = start_ns_,
                                                     .hands_over = recognized_ != nullptr},
                                                    *clock_));
  relay_.emplace(std::move(relay));
  return ok();
}

// Output that ends in files can be read there. False: it has to pass through us.
bool JobOutput::follow_files(const monitor::StepFinder& steps) {
  std::vector<int> sinks = {stdout_sink()};
  if (!same_destination(stdout_sink(), stderr_sink())) {
    sinks.push_back(stderr_sink());
  }
  for (const int sink : sinks) {
    const std::string path = fmt::format("/proc/self/fd/{}", sink);
    struct stat info {};
    auto log = ::stat(path.c_str(), &info) == 0
                   ? monitor::LogFollower::open(path, steps)
                   : Result<monitor::LogFollower>(system_error("no output", errno));
    if (!log) {
      logs_.clear();
      return false;
    }
    logs_.push_back(*std::move(log));
  }
  return true;
}

int JobOutput::stderr_sink() const { return file_ ? file_.get() : STDERR_FILENO; }

int JobOutput::stdout_sink() const {
  return stdout_is_ours_ || file_ ? stderr_sink() : STDOUT_FILENO;
}

std::string JobOutput::missing_steps(const WatchOptions& options) const {
  const std::string log = escape_text(options.log_file);
  if (has_found_steps_ || options.step_regex == kNoStepRegex ||
      (options.step_regex.empty() && log.empty())) {
    return "";
  }
  if (log.empty()) {
    return "--step-regex has found no step in the output of the command";
  }
  if (::access(options.log_file.c_str(), F_OK) != 0) {
    return fmt::format("--log-file {}: there is no such file", log);
  }
  return options.step_regex.empty()
             ? fmt::format("no steps are recognised in {}: --step-regex says what they look like",
                           log)
             : fmt::format("--step-regex has found no step in {}", log);
}

void JobOutput::redirect(LaunchOptions& launch) const {
  if (file_) {
    launch.stdin_fd = no_input_.get();
    launch.stdout_fd = file_.get();
    launch.stderr_fd = file_.get();
  }
  if (relay_) {
    launch.stdout_fd = relay_->child_stdout();
    launch.stderr_fd = relay_->child_stderr();
  } else if (stdout_is_ours_) {
    launch.stdout_fd = STDERR_FILENO;
  }
}

void JobOutput::on_command_start() {
  no_input_.reset();
  if (relay_) {
    relay_->begin();
  }
}

void JobOutput::on_command_exit(std::optional<std::int64_t> wait_ns) {
  // Nobody asked us to read it: we are no reason to wait for those that have it open.
  const auto longest_ns = recognized_ != nullptr ? std::optional<std::int64_t>(0) : wait_ns;
  if (longest_ns) {
    end_ns_ = clock_->monotonic_ns() + *longest_ns;
  }
}

void JobOutput::copy_window_size() {
  if (relay_) {
    relay_->copy_window_size();
  }
}

std::vector<MarkerRecord> JobOutput::take_steps() {
  std::vector<MarkerRecord> steps = std::exchange(late_steps_, {});
  if (relay_) {
    relay_->take(steps);
  }
  for (monitor::LogFollower& log : logs_) {
    log.poll(to_seconds(clock_->monotonic_ns() - start_ns_), steps);
  }
  has_found_steps_ = has_found_steps_ || !steps.empty();
  return recognized_ != nullptr ? thinned(std::move(steps)) : steps;
}

bool JobOutput::recognizes_steps(const Tick& tick) {
  constexpr std::size_t kColumns = 40;
  const auto is_marked_step = [](const MarkerRecord& marker) {
    return marker.kind == MarkerKind::kStep && marker.key.pid != 0;
  };
  job_marks_steps_ =
      job_marks_steps_ || std::any_of(tick.markers.begin(), tick.markers.end(), is_marked_step);
  const auto example = recognized_ != nullptr ? recognized_->take_example() : std::nullopt;
  if (!example || job_marks_steps_) {
    return false;
  }
  step_lines_ = shorten(escape_text(*example), kColumns);
  return true;
}

monitor::StepLosses JobOutput::take_lost() {
  monitor::StepLosses lost = std::exchange(late_lost_, {});
  lost += relay_ ? relay_->take_lost() : monitor::StepLosses{};
  for (monitor::LogFollower& log : logs_) {
    lost += log.take_lost();
  }
  return lost;
}

bool JobOutput::is_open() const {
  return relay_ && !relay_->at_end() && clock_->monotonic_ns() < end_ns_;
}

Status JobOutput::close() {
  if (!relay_) {
    return ok();
  }
  relay_->leave();
  const auto error = relay_->take_error();
  relay_->take(late_steps_);
  late_lost_ += relay_->take_lost();
  relay_.reset();
  return error ? Status(*error) : ok();
}

std::string recognized_steps_text(std::string_view lines) {
  const char quote = lines.find('\'') == std::string_view::npos ? '\'' : '"';
  return fmt::format("steps: from the log, lines such as {0}{1}{0}", quote, lines);
}

void tidy_command_outputs(const std::string& folder, std::int64_t now_wall_s) {
  constexpr std::size_t kKept = 5;
  constexpr std::int64_t kDayS = 86'400;
  constexpr std::size_t kMostEntries = 1U << 16U;
  auto stream = monitor::DirectoryStream::open_at(AT_FDCWD, folder + "/.");  // it may be a link
  std::vector<std::pair<std::int64_t, std::string>> outputs;  // when they were written, and names
  std::size_t entries = 0;
  while (const dirent* entry = stream ? stream->next() : nullptr) {
    const std::string_view name = entry->d_name;
    struct stat info {};
    if (name.starts_with(kOutputPrefix) && name.ends_with(kOutputSuffix) &&
        ::fstatat(stream->fd(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) {
      outputs.emplace_back(info.st_mtime, name);
    }
    if (++entries == kMostEntries) {
      break;
    }
  }
  std::sort(outputs.begin(), outputs.end(), std::greater<>());
  for (std::size_t i = kKept; i < outputs.size(); ++i) {
    if (outputs[i].first < now_wall_s - kDayS) {
      (void)::unlinkat(stream->fd(), outputs[i].second.c_str(), 0);
    }
  }
}

Result<std::string> make_command_output(const std::string& run_file) {
  constexpr int kAttempts = 1000;
  std::string stem = run_file;
  if (stem.empty()) {
    // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* set = std::getenv("TMPDIR");
    const std::string folder = set == nullptr || *set == '\0' ? "/tmp" : set;
    tidy_command_outputs(folder, ::time(nullptr));
    stem = fmt::format("{}/{}{}", folder, kOutputPrefix, ::getpid());
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = attempt == 0 ? fmt::format("{}{}", stem, kOutputSuffix)
                                    : fmt::format("{}.{}{}", stem, attempt, kOutputSuffix);
    const auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file) {
      return path;
    }
    if (file.error().sys_errno != EEXIST) {
      return file.error();
    }
  }
  return Error{Errc::kUsage, "there are too many files like " + stem + ".log"};
}

}  // namespace tidemark::live
