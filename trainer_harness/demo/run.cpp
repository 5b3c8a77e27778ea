// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/io.h"
#include "common/recording_sink.h"
#include "common/text.h"
#include "live/profile.h"
#include "live/track.h"
#include "profiler/collect/preload.h"
#include "recording/open.h"
#include "report/profile_report.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"
#include "tracker/sites/site_tracks.h"
#include "tracker/sites/stack_lines.h"
#include "trainer_harness/demo/truth.h"

namespace tidemark::demo {
namespace {

constexpr std::int64_t kIntervalNs = kNsPerSecond / 5;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// What the watcher tells us, over a pipe: less than PIPE_BUF, so it comes whole.
struct News {
  double step = kUnknown;
  double footprint_bytes = kUnknown;
};

std::string recording_of(const std::string& base) { return base + ".tidemark"; }
std::string truth_of(const std::string& base) { return base + ".truth.json"; }
std::string log_of(const std::string& base) { return base + ".log"; }

std::optional<double> known(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

// Sends news of each tick over the pipe `fd`.
class NewsSink final : public RecordingSink {
 public:
  explicit NewsSink(int fd) : fd_(fd) {}

  Status begin(const RunInfo& /*info*/) override { return ok(); }
  Status add(const Tick& tick) override {
    if (tick.tree.processes == 0) {
      return ok();  // it is over; where it came to is more telling
    }
    News news;
    if (tick.step) {
      news.step = static_cast<double>(*tick.step);
    }
    if (tick.tree.footprint_bytes) {
      news.footprint_bytes = static_cast<double>(*tick.tree.footprint_bytes);
    }
    // A full pipe: nobody wants to know just now.
    (void)!::write(fd_, &news, sizeof news);
    return ok();
  }
  Status process_ended(const ProcessRecord& /*process*/) override { return ok(); }
  Status end(double /*t_s*/) override { return ok(); }

 private:
  int fd_;
};

void restore_signals(const live::SignalInbox& inbox) {
  if (!inbox.sigpipe_was_ignored()) {
    ::signal(SIGPIPE, SIG_DFL);
  }
  ::pthread_sigmask(SIG_SETMASK, &inbox.original_mask(), nullptr);
}

// The watcher: what it and the job print goes into the log.
int watch_in_child(const std::vector<std::string>& command, const std::string& base, bool traced,
                   int log, int news) {
  const auto nothing = open_file("/dev/null", O_RDONLY);
  if (!nothing || ::dup2(nothing->get(), STDIN_FILENO) < 0 || ::dup2(log, STDOUT_FILENO) < 0 ||
      ::dup2(log, STDERR_FILENO) < 0) {
    return kExitTarget;
  }
  live::WatchOptions watch;
  watch.target.command = command;
  watch.interval_ns = kIntervalNs;
  watch.output = recording_of(base);
  watch.force = true;
  // Workers start shortly before the first step of a run of seconds: within its usual budget the
  // monitor would learn only later how much they share, and that looks like growth.
  watch.pss = monitor::PssMode::kAlways;
  NewsSink sink(news);
  watch.also = &sink;
  if (!traced) {
    live::TrackOptions options;
    options.watch = watch;
    const int code = live::run_track(options);
    return code == kExitLeak || code == kExitUndetermined ? kExitOk : code;
  }
  live::ProfileOptions options;
  options.watch = watch;
  return live::run_profile(options);
}

// The line that grows most; empty: there is none.
std::string growing_line(const std::string& path) {
  auto reader = recording::open_recording(path);
  tracker::SiteTrackBuilder builder;
  if (!reader || !(*reader)->read(builder)) {
    return "";
  }
  const report::ProfileReport report =
      report::make_report(builder.sites(), tracker::JudgeOptions{}, 1);
  if (report.ranking.lines.empty() || !report.ranking.lines.front().grows()) {
    return "";
  }
  const tracker::RankedLine& line = report.ranking.lines.front();
  const tracker::ShownStack stack =
      tracker::shown_stack(builder.sites(), report.ranking.sites[line.sites.front()].frames);
  const auto place = tracker::find_line(stack, line.name);
  if (!place) {
    return "";
  }
  const FrameRecord& frame = *stack.frames[*place].frame;
  return frame.line ? fmt::format("{}:{}", frame.file, *frame.line) : frame.file;
}

Result<tracker::JudgedRun> judge_recording(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(auto reader, recording::open_recording(path));
  tracker::TrackBuilder builder;
  TIDEMARK_TRY(reader->read(builder));
  return tracker::judge_run(builder.take(), tracker::JudgeOptions{});
}

}  // namespace

DemoRun::DemoRun(const DemoScenario& scenario, std::string base, bool traced, pid_t watcher,
                 Fd news)
    : base_(std::move(base)),
      traced_(traced),
      watcher_(watcher),
      news_(std::move(news)),
      start_ns_(SystemClock().monotonic_ns()) {
  place_.scenario = &scenario;
}

DemoRun::DemoRun(DemoRun&& other) noexcept
    : place_(other.place_),
      base_(std::move(other.base_)),
      traced_(other.traced_),
      watcher_(std::exchange(other.watcher_, 0)),
      news_(std::move(other.news_)),
      start_ns_(other.start_ns_) {}

DemoRun::~DemoRun() {
  if (watcher_ > 0) {
    signal(SIGTERM);
    while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<DemoRun> DemoRun::start(const DemoScenario& scenario, std::uint64_t seed,
                               const std::string& harness, const std::string& folder,
                               const live::SignalInbox& inbox) {
  const std::string base = folder + '/' + std::string(scenario.name);
  // What an earlier run left here must not pass for the truth of this one.
  if (::unlink(truth_of(base).c_str()) != 0 && errno != ENOENT) {
    return system_error(truth_of(base), errno);
  }
  TIDEMARK_TRY_ASSIGN(auto log,
                      open_file(log_of(base), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return system_error("cannot make a pipe", errno);
  }
  Fd from_watcher(ends[0]);
  const Fd to_us(ends[1]);
  const std::vector<std::string> command = demo_command(scenario, harness, truth_of(base), seed);
  const bool traced = collect::find_tracer().has_value();
  const pid_t parent = ::getpid();
  const pid_t watcher = ::fork();
  if (watcher < 0) {
    return system_error("cannot start a process", errno);
  }
  if (watcher == 0) {
    restore_signals(inbox);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Between fork and prctl the parent may have gone.
    const int code = ::getppid() == parent
                         ? watch_in_child(command, base, traced, log.get(), to_us.get())
                         : kExitTarget;
    ::_exit(code);
  }
  return DemoRun(scenario, base, traced, watcher, std::move(from_watcher));
}

bool DemoRun::take_news() {
  while (true) {
    News news;
    const ssize_t size = ::read(news_.get(), &news, sizeof news);
    if (size == static_cast<ssize_t>(sizeof news)) {
      place_.step = known(news.step);
      place_.footprint_bytes = known(news.footprint_bytes);
    } else if (size >= 0 || (errno != EINTR && errno != EAGAIN)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
}

void DemoRun::signal(int number) const {
  if (watcher_ > 0) {
    ::kill(watcher_, number);
  }
}

double DemoRun::seconds() const { return to_seconds(SystemClock().monotonic_ns() - start_ns_); }

// Why it failed: the last error in its log, or its last line.
std::string DemoRun::last_words() const {
  constexpr std::size_t kLongest = 200;
  const auto log = read_file(log_of(base_));
  std::string_view rest = log ? std::string_view(*log) : std::string_view();
  std::string_view error;
  std::string_view last;
  while (const auto line = next_line(rest)) {
    last = *line;
    if (line->find("error: ") != std::string_view::npos) {
      error = *line;
    }
  }
  return shorten(escape_text(error.empty() ? last : error), kLongest);
}

DemoGrade DemoRun::grade() {
  int wait_status = 0;
  while (::waitpid(watcher_, &wait_status, 0) < 0 && errno == EINTR) {
  }
  watcher_ = 0;
  std::string title(place_.scenario->title);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kExitBug;
  if (code != kExitOk) {
    return failed_demo(std::move(title), "the job failed: " + last_words());
  }
  const auto truth = read_demo_truth(truth_of(base_));
  if (!truth) {
    return failed_demo(std::move(title), escape_text(truth.error().what));
  }
  if (!truth->complete) {
    return failed_demo(std::move(title), "the job ended before its last step");
  }
  const auto result = judge_recording(recording_of(base_));
  if (!result) {
    return failed_demo(std::move(title), escape_text(result.error().what));
  }
  return grade_demo(std::move(title), *truth, *result,
                    traced_ ? std::optional(growing_line(recording_of(base_))) : std::nullopt);
}

}  // namespace tidemark::demo
