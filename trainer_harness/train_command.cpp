// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/train_command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/io.h"
#include "common/json_writer.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/trainer.h"

namespace tidemark::harness {
namespace {

constexpr int kUsage = 2;
constexpr int kFailed = 3;

volatile sig_atomic_t g_stop = 0;
void on_stop(int /*number*/) { g_stop = 1; }

// Ends the run on a signal, and tells a program that reads its progress what the steps do not:
// when the trainer begins, when it is through, and its phases.
class CommandObserver final : public TrainerObserver {
 public:
  explicit CommandObserver(std::optional<int> progress_fd) : progress_fd_(progress_fd) {
    JsonWriter json;
    json.begin_object().field("event", "start").end_object();
    tell(json.take());
  }
  // `stopped`: by a signal, before its last step.
  void end(bool stopped) {
    JsonWriter json;
    json.begin_object().field("event", "end").field("stopped", stopped).end_object();
    tell(json.take());
  }

  void on_step(std::uint64_t /*step*/, double /*loss*/) override {}
  void on_phase(std::string_view name, bool begins) override {
    JsonWriter json;
    json.begin_object().field("phase", begins ? name : std::string_view()).end_object();
    tell(json.take());
  }
  bool stop_requested() override { return g_stop != 0; }

 private:
  void tell(const std::string& object) {
    if (progress_fd_ && !write_all(*progress_fd_, object + "\n")) {
      progress_fd_.reset();
    }
  }

  std::optional<int> progress_fd_;
};

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// Becomes the wrapper, which starts this program again below itself.
Error become_wrapper(std::span<const std::string> words) {
  const auto helper = helper_path();
  const auto self = read_link_at(AT_FDCWD, "/proc/self/exe");
  if (!helper || !self) {
    return helper ? self.error() : helper.error();
  }
  std::vector<std::string> argv = {"uv", "run", "tidemark-harness", "train"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : argv) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  ::setenv(kHelperVariable, ("wrapper " + *self).c_str(), 1);
  ::execv(helper->c_str(), pointers.data());
  return system_error(*helper, errno);
}

int fail(const Error& error, int code) {
  std::fprintf(stderr, "tidemark-harness: error: %s\n", error.what.c_str());
  return code;
}

}  // namespace

int train_command(std::span<const std::string> words) {
  if (std::ranges::any_of(words, [](const auto& w) { return w == "--help" || w == "-h"; })) {
    std::fputs(trainer_usage().c_str(), stdout);
    return 0;
  }
  const auto options = parse_trainer_options(words);
  if (!options) {
    const int code = fail(options.error(), kUsage);
    std::fputs("hint: tidemark-harness train --help\n", stderr);
    return code;
  }
  if (options->wrapper && std::getenv(kWrappedVariable) == nullptr) {
    return fail(become_wrapper(words), kFailed);
  }
  stop_on_signals();
  CommandObserver observer(options->progress_fd);
  const auto outcome = run_trainer(*options, observer);
  observer.end(outcome && outcome->stopped);
  return outcome ? 0 : fail(outcome.error(), kFailed);
}

}  // namespace tidemark::harness
