// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/harness/harness_run.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::tests {
namespace {

constexpr std::chrono::milliseconds kSampleInterval(5);
constexpr std::chrono::seconds kPatience(10);

std::vector<std::string> command(const std::vector<std::string>& words,
                                 const std::vector<std::string>& environment,
                                 const std::string& truth_path) {
  std::vector<std::string> argv = {"env"};
  argv.insert(argv.end(), environment.begin(), environment.end());
  argv.insert(argv.end(), {harness_path(), "train"});
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--truth", truth_path});
  return argv;
}

}  // namespace

std::string harness_path() { return TIDEMARK_BINARY_DIR "/bin/tidemark-harness"; }

HarnessRun::HarnessRun(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment)
    : process_(command(words, environment, folder_.path("truth.json"))) {}

bool HarnessRun::wait_for_training() {
  return process_.read_until("Training on").find("Training on") != std::string::npos;
}

int HarnessRun::finish() { return process_.wait(); }

nlohmann::json HarnessRun::truth() const {
  const auto text = read_file(path("truth.json"));
  return text ? nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false) : nullptr;
}

std::vector<pid_t> HarnessRun::pids(const std::string& role) const {
  std::vector<pid_t> found;
  const nlohmann::json now = truth();
  for (const auto& process : now.at("processes")) {
    if (process["role"] == role) {
      found.push_back(process["pid"]);
    }
  }
  return found;
}

std::vector<double> HarnessRun::anonymous_mib() {
  std::vector<double> curve;
  if (!wait_for_training()) {
    return curve;
  }
  const pid_t trainer = pids("trainer").at(0);
  const auto is_complete = [&] { return truth().value("complete", false); };
  while (is_running(trainer) && !is_complete()) {
    curve.push_back(proc_mib(trainer, "status", "RssAnon:"));
    std::this_thread::sleep_for(kSampleInterval);
  }
  if (!curve.empty()) {
    curve.pop_back();  // may have been read after the end
  }
  return curve;
}

double proc_mib(pid_t pid, const std::string& file, const std::string& field) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/" + file);
  if (!text) {
    return -1;
  }
  std::string_view rest = *text;
  while (const auto line = next_line(rest)) {
    if (line->starts_with(field)) {
      const std::string_view kib = trim(line->substr(field.size()));
      const auto number = parse_number<double>(kib.substr(0, kib.find(' ')));
      return number.value_or(-1024) / 1024;
    }
  }
  return -1;
}

bool is_running(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  // The state follows the name, which is in parentheses.
  return text && text->substr(text->rfind(')') + 2, 1) != "Z";
}

std::vector<pid_t> still_running(std::vector<pid_t> pids) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  do {
    std::erase_if(pids, [](pid_t pid) { return !is_running(pid); });
    std::this_thread::sleep_for(kSampleInterval);
  } while (!pids.empty() && std::chrono::steady_clock::now() < deadline);
  return pids;
}

std::vector<std::string> segments_of(pid_t pid) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("torch_" + std::to_string(pid) + "_")) {
      names.push_back(entry.path());
    }
  }
  return names;
}

std::vector<std::string> segments_left_by(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::vector<std::string> names = segments_of(pid);
  while (!names.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kSampleInterval);
    names = segments_of(pid);
  }
  return names;
}

}  // namespace tidemark::tests
