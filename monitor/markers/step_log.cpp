// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::monitor {

std::size_t StepScanner::feed(std::string_view bytes, double t_s, std::vector<MarkerRecord>& out,
                              const StepLimits& limits) {
  const std::size_t steps_before = out.size();
  const std::uint64_t work_before = work_;
  std::size_t taken = 0;
  while (taken < bytes.size() && out.size() - steps_before < limits.steps &&
         work_ - work_before < limits.work) {
    const std::size_t end = bytes.find_first_of("\r\n", taken);
    if (end == std::string_view::npos) {
      add_to_line(bytes.substr(taken));
      return bytes.size();
    }
    add_to_line(bytes.substr(taken, end - taken));
    finish_line(t_s, out);
    taken = end + 1;
  }
  return taken;
}

void StepScanner::end(double t_s, std::vector<MarkerRecord>& out) { finish_line(t_s, out); }

void StepScanner::drop_partial_line() { line_.clear(); }

void StepScanner::add_to_line(std::string_view part) {
  line_ += part.substr(0, std::min(part.size(), kMaxLineBytes - line_.size()));
}

StepSearch StepScanner::search_line() {
  constexpr std::size_t kBytesPerWork = 8;
  if (const auto* const pattern = std::get_if<StepPattern>(&finder_)) {
    return pattern->search(line_);
  }
  return {.step = std::get<StepRecognizer>(finder_).read(line_),
          .work = static_cast<std::uint32_t>(line_.size() / kBytesPerWork)};
}

void StepScanner::finish_line(double t_s, std::vector<MarkerRecord>& out) {
  const StepSearch search = line_.empty() ? StepSearch{} : search_line();
  const auto step = search.step;
  lost_lines_ += search.gave_up ? 1U : 0U;
  work_ += search.work;
  line_.clear();
  if (step && step != last_step_) {
    last_step_ = step;
    out.push_back({t_s, ProcessKey{}, MarkerKind::kStep, *step, {}});
  }
}

LogFollower::LogFollower(std::string path, StepFinder finder)
    : path_(std::move(path)), scanner_(std::move(finder)), buffer_(64U << 10U) {}

Result<LogFollower> LogFollower::open(std::string path, StepFinder finder) {
  LogFollower follower(std::move(path), std::move(finder));
  struct stat info {};
  if (::stat(follower.path_.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      return follower;
    }
    return system_error(fmt::format("cannot follow {}", follower.path_), errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{Errc::kUsage, fmt::format("{} is not a regular file", follower.path_)};
  }
  TIDEMARK_TRY(open_file(follower.path_, O_RDONLY | O_NONBLOCK));
  if (follower.reopen()) {
    follower.offset_ = info.st_size;
  }
  return follower;
}

void LogFollower::poll(double t_s, std::vector<MarkerRecord>& out) {
  if (file_ && !read_more(t_s, out)) {
    return;
  }
  struct stat now {};
  const bool same =
      file_ && ::stat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  // A log that was moved away is not dropped before its successor is there: the job may still be
  // writing to it.
  if (!same && reopen()) {
    read_more(t_s, out);
  }
}

bool LogFollower::reopen() {
  auto file = open_file(path_, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!file || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return false;
  }
  file_ = std::move(*file);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  offset_ = 0;
  scanner_.drop_partial_line();
  return true;
}

bool LogFollower::read_more(double t_s, std::vector<MarkerRecord>& out) {
  struct stat info {};
  if (::fstat(file_.get(), &info) == 0 && info.st_size < offset_) {
    offset_ = 0;  // truncated: what is there now is new
    scanner_.drop_partial_line();
  }
  const off_t stop_bytes = offset_ + static_cast<off_t>(kMaxBytesPerPoll);
  const std::size_t stop_steps = out.size() + kMaxStepsPerPoll;
  const std::uint64_t stop_work = scanner_.work() + kMaxWorkPerPoll;
  while (offset_ < stop_bytes && out.size() < stop_steps && scanner_.work() < stop_work) {
    const auto n = pread_full(file_.get(), buffer_, offset_);
    if (!n || *n == 0) {
      return true;
    }
    const std::string_view text(buffer_.data(), *n);
    const StepLimits rest = {stop_steps - out.size(), stop_work - scanner_.work()};
    offset_ += static_cast<off_t>(scanner_.feed(text, t_s, out, rest));
  }
  return false;
}

}  // namespace tidemark::monitor
