// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/io.h"
#include "common/json_writer.h"
#include "trainer_harness/command_line.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/jobs/serve_jobs.h"
#include "trainer_harness/trainer.h"

namespace tidemark::harness {
namespace {

constexpr int kUsage = 2;
constexpr int kFailed = 3;

volatile sig_atomic_t g_stop = 0;
void on_stop(int /*number*/) { g_stop = 1; }

// Ends the run on a signal, and writes start, phases and end of the run to the progress descriptor.
class CommandObserver final : public TrainerObserver {
 public:
  explicit CommandObserver(std::optional<int> progress_fd) : progress_fd_(progress_fd) {
    JsonWriter json;
    json.begin_object().field("event", "start").end_object();
    send(json.take());
  }
  // `stopped`: by a signal, before its last step.
  void end(bool stopped) {
    JsonWriter json;
    json.begin_object().field("event", "end").field("stopped", stopped).end_object();
    send(json.take());
  }

  void on_step(std::uint64_t /*step*/, double /*loss*/) override {}
  void on_phase(std::string_view name, bool begins) override {
    JsonWriter json;
    json.begin_object().field("phase", begins ? name : std::string_view()).end_object();
    send(json.take());
  }
  bool stop_requested() override { return g_stop != 0; }

 private:
  void send(const std::string& object) {
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

// SIGTERM and SIGINT end the run after a checkpoint, as a success.
int train(const TrainerOptions& options, std::span<const std::string> words) {
  if (options.wrapper && std::getenv(kWrappedVariable) == nullptr) {
    return fail(become_wrapper(words), kFailed);
  }
  stop_on_signals();
  CommandObserver observer(options.progress_fd);
  const auto outcome = run_trainer(options, observer);
  observer.end(outcome && outcome->stopped);
  return outcome ? 0 : fail(outcome.error(), kFailed);
}

int run(const std::vector<std::string>& words, const std::string& program) {
  const char* const variable = std::getenv("TRAINING_USE_SUBPROCESS");
  const auto command = parse_command_line(
      words, variable != nullptr ? std::optional<std::string>(variable) : std::nullopt);
  if (!command) {
    const int code = fail(command.error(), kUsage);
    const bool has_verb = !words.empty() && (words[0] == "train" || words[0] == "serve-jobs");
    std::fprintf(stderr, "hint: see tidemark-harness %s--help\n",
                 has_verb ? (words[0] + " ").c_str() : "");
    return code;
  }
  if (const auto* help = std::get_if<std::string>(&*command)) {
    std::fputs(help->c_str(), stdout);
    return 0;
  }
  if (const auto* options = std::get_if<TrainerOptions>(&*command)) {
    return train(*options, std::span(words).subspan(1));
  }
  const auto self = read_link_at(AT_FDCWD, "/proc/self/exe");
  return serve_jobs(std::get<ServeOptions>(*command), run_trainer,
                    {self ? *self : program, "train"});
}

}  // namespace
}  // namespace tidemark::harness

int main(int argc, char** argv) {
  return tidemark::harness::run(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
}
