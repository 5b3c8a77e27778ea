// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/demo.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/result.h"
#include "common/text.h"
#include "common/units.h"
#include "live/launch/signal_inbox.h"
#include "trainer_harness/demo/run.h"
#include "trainer_harness/demo/scenarios.h"
#include "trainer_harness/demo/table.h"

namespace tidemark::demo {
namespace {

constexpr std::string_view kHarness = "tidemark-harness";

// Where lines appear; on a terminal the last one is rewritten while jobs run.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd), is_terminal_(::isatty(fd) == 1) {}

  DemoStyle style() const {
    // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const bool is_plain = !is_terminal_ || std::getenv("NO_COLOR") != nullptr;
    return {is_plain ? Colour::kNone : Colour::kAnsi, report::glyphs_of_locale()};
  }
  void print(std::string_view text) const {
    // Nobody reads it: the exit code still tells.
    (void)write_all(fd_, fmt::format("{}{}", is_terminal_ ? "\r\x1b[K" : "", text));
  }
  void show_places(std::span<const DemoPlace> places) const {
    if (is_terminal_) {
      print(demo_places(places, columns() - 1));
    }
  }

 private:
  std::size_t columns() const {
    winsize size{};
    const bool is_known = ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return is_known ? size.ws_col : 80;
  }

  int fd_;
  bool is_terminal_;
};

class Demo {
 public:
  Demo(const DemoOptions& options, std::vector<DemoScenario> scenarios, std::string harness,
       std::string folder, live::SignalInbox& inbox)
      : seed_(options.seed),
        scenarios_(std::move(scenarios)),
        harness_(std::move(harness)),
        folder_(std::move(folder)),
        inbox_(inbox),
        at_a_time_(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostAtATime)),
        screen_(options.json ? STDERR_FILENO : STDOUT_FILENO) {
    grades_.resize(scenarios_.size());
  }

  // False: it was told to stop.
  bool run();
  const std::vector<DemoScenario>& scenarios() const { return scenarios_; }
  const std::vector<DemoGrade>& grades() const { return grades_; }
  const Screen& screen() const { return screen_; }

 private:
  // More would wait for each other's cores and stretch the steps.
  static constexpr std::size_t kMostAtATime = 2;

  struct Running {
    std::size_t index;
    DemoRun run;
  };

  void start_more();
  void wait();
  void take_signals();
  void take_news();
  void end(Running& running);

  const std::uint64_t seed_;
  const std::vector<DemoScenario> scenarios_;
  const std::string harness_;
  const std::string folder_;
  live::SignalInbox& inbox_;
  const std::size_t at_a_time_;
  const Screen screen_;
  std::list<Running> running_;
  std::size_t next_ = 0;
  std::vector<DemoGrade> grades_;
  bool told_to_stop_ = false;
};

bool Demo::run() {
  screen_.print(demo_opening(scenarios_, at_a_time_));
  start_more();
  while (!running_.empty()) {
    wait();
    take_signals();
    take_news();
    start_more();
    std::vector<DemoPlace> places;
    for (const Running& running : running_) {
      places.push_back(running.run.place());
    }
    screen_.show_places(places);
  }
  screen_.print("\n");
  return !told_to_stop_;
}

void Demo::start_more() {
  while (!told_to_stop_ && next_ < scenarios_.size() && running_.size() < at_a_time_) {
    const std::size_t index = next_++;
    const DemoScenario& scenario = scenarios_[index];
    screen_.print(demo_started(index + 1, scenarios_.size(), scenario) + '\n');
    auto run = DemoRun::start(scenario, seed_, harness_, folder_, inbox_);
    if (run) {
      running_.push_back({index, *std::move(run)});
    } else {
      grades_[index] = failed_demo(std::string(scenario.title), escape_text(run.error().what));
    }
  }
}

void Demo::wait() {
  std::vector<pollfd> waiting{{inbox_.fd(), POLLIN, 0}};
  for (const Running& running : running_) {
    waiting.push_back({running.run.news_fd(), POLLIN, 0});
  }
  (void)::poll(waiting.data(), waiting.size(), -1);  // interrupted: what is there is looked at
}

void Demo::take_signals() {
  while (const auto signal = inbox_.next()) {
    told_to_stop_ = true;
    if (!signal->from_kernel) {  // else the terminal has sent it to all of us
      for (const Running& running : running_) {
        running.run.signal(signal->number);
      }
    }
  }
}

void Demo::take_news() {
  for (auto it = running_.begin(); it != running_.end();) {
    if (it->run.take_news()) {
      ++it;
    } else {
      end(*it);
      it = running_.erase(it);
    }
  }
}

void Demo::end(Running& running) {
  DemoGrade& grade = grades_[running.index];
  grade = running.run.grade();
  if (!told_to_stop_) {
    screen_.print(demo_ended(running.index + 1, scenarios_.size(), scenarios_[running.index], grade,
                             running.run.seconds(), screen_.style()) +
                  '\n');
  }
}

Result<std::string> find_harness(const DemoOptions& options) {
  if (!options.harness.empty()) {
    return options.harness;
  }
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (own.parent_path() / kHarness).string();
  if (error || ::access(path.c_str(), X_OK) != 0) {
    return Error{Errc::kNotFound, fmt::format("{} is not beside this program", kHarness)};
  }
  return path;
}

// Those that were asked for, in the order of the list.
Result<std::vector<DemoScenario>> chosen_scenarios(const DemoOptions& options) {
  const std::vector<std::string>& names = options.scenarios;
  std::vector<DemoScenario> chosen;
  for (const DemoScenario& scenario : demo_scenarios()) {
    const bool is_named = std::find(names.begin(), names.end(), scenario.name) != names.end();
    if (is_named || options.all || (names.empty() && scenario.is_usual)) {
      chosen.push_back(scenario);
    }
  }
  for (const std::string& name : names) {
    if (find_demo_scenario(name) == nullptr) {
      std::string known;
      for (const DemoScenario& scenario : demo_scenarios()) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", scenario.name);
      }
      return Error{Errc::kUsage,
                   fmt::format("there is no scenario '{}'; there are {}", name, known)};
    }
  }
  return chosen;
}

int exit_code_of(std::span<const DemoGrade> grades) {
  if (!std::all_of(grades.begin(), grades.end(), [](const auto& g) { return g.has_run(); })) {
    return kExitTarget;
  }
  const bool all_right =
      std::all_of(grades.begin(), grades.end(), [](const auto& g) { return g.is_right(); });
  return all_right ? kExitOk : kExitLeak;
}

std::string closing(std::span<const DemoGrade> grades, double seconds, const std::string& keep) {
  const auto right =
      std::count_if(grades.begin(), grades.end(), [](const auto& g) { return g.is_right(); });
  std::string text =
      fmt::format("\n{} of {} right, in {}.\n", right, grades.size(), format_duration(seconds));
  if (keep.empty()) {
    return text + "Again with --keep DIR to keep the recordings for tidemark track and export.\n";
  }
  return text + fmt::format("The recordings are in {}; tidemark track FILE shows each verdict.\n",
                            escape_text(keep));
}

}  // namespace

// Where the demo's files go: a folder that stays, or a private one that is removed at the end.
class DemoFolder {
 public:
  // `keep` is made when it is not there; empty: one that is removed.
  static Result<DemoFolder> make(const std::string& keep);
  ~DemoFolder();
  DemoFolder(DemoFolder&& other) noexcept
      : path_(std::move(other.path_)), is_kept_(std::exchange(other.is_kept_, true)) {}
  DemoFolder& operator=(DemoFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  DemoFolder(std::string path, bool is_kept) : path_(std::move(path)), is_kept_(is_kept) {}

  std::string path_;
  bool is_kept_;
};

Result<DemoFolder> DemoFolder::make(const std::string& keep) {
  std::error_code error;
  if (!keep.empty()) {
    std::filesystem::create_directories(keep, error);
    if (error) {
      return system_error(fmt::format("cannot make {}", keep), error.value());
    }
    return DemoFolder(keep, true);
  }
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? "/tmp" : base) / "tidemark-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a folder like {}", path), errno);
  }
  return DemoFolder(std::move(path), false);
}

DemoFolder::~DemoFolder() {
  if (!is_kept_) {
    std::error_code ignored;  // a temporary folder: somebody else sweeps up what is left
    std::filesystem::remove_all(path_, ignored);
  }
}

int run_demo(const DemoOptions& options) {
  auto scenarios = chosen_scenarios(options);
  if (!scenarios) {
    print_error(scenarios.error(), "see tidemark demo --help");
    return kExitUsage;
  }
  auto harness = find_harness(options);
  if (!harness) {
    print_error(harness.error(),
                "./dev build makes it where libtorch is installed (./dev deps installs it); "
                "--harness FILE names one elsewhere");
    return kExitTarget;
  }
  auto folder = DemoFolder::make(options.keep);
  if (!folder) {
    print_error(folder.error());
    return kExitTarget;
  }
  auto inbox = live::SignalInbox::open(live::SignalInbox::For::kStop);
  if (!inbox) {
    print_error(inbox.error());
    return kExitTarget;
  }
  const SystemClock clock;
  const std::int64_t start_ns = clock.monotonic_ns();
  Demo demo(options, *std::move(scenarios), *std::move(harness), folder->path(), *inbox);
  if (!demo.run()) {
    print_note("stopped");
    return kExitTarget;
  }
  if (options.json) {
    if (const Status written =
            write_all(STDOUT_FILENO, demo_json(demo.scenarios(), demo.grades(), options.seed));
        !written) {
      print_error(written.error());
      return kExitTarget;
    }
    return exit_code_of(demo.grades());
  }
  const double seconds = to_seconds(clock.monotonic_ns() - start_ns);
  demo.screen().print(demo_table(demo.grades(), demo.screen().style().colour) +
                      closing(demo.grades(), seconds, options.keep));
  return exit_code_of(demo.grades());
}

}  // namespace tidemark::demo
