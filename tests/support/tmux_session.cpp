// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tmux_session.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/support/subprocess.h"

namespace tidemark::tests {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool within_20_s(const std::function<bool()>& holds) {
  for (int i = 0; i < 400; ++i) {
    if (holds()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace

std::string no_tmux_because() {
  if (::access("/usr/bin/tmux", X_OK) != 0) {
    return "tmux is not installed";
  }
  return can_open_terminals() ? "" : "no terminals here (/dev/pts)";
}

TmuxSession::TmuxSession(const std::string& command, const Options& options) {
  std::ofstream(folder_.path("run.sh"))
      << "cd '" << folder_.path() << "'\n"
      << "export TMPDIR=\"$PWD\" XDG_CACHE_HOME=\"$PWD/cache\"\n"  // what it leaves goes with us
      << "stty -g > before\n"
      << command << "\n"
      << "echo $? > code.new; mv code.new code\n"
      << "stty -g > after.new; mv after.new after\n"
      << "sleep 1000\n";
  std::vector<std::string> arguments{"-u",
                                     "new-session",
                                     "-d",
                                     "-x",
                                     std::to_string(options.width),
                                     "-y",
                                     std::to_string(options.height)};
  for (const std::string& variable : options.environment) {
    arguments.insert(arguments.end(), {"-e", variable});
  }
  arguments.push_back("exec sh '" + folder_.path("run.sh") + "'");
  tmux(std::move(arguments));
}

TmuxSession::~TmuxSession() { tmux({"kill-server"}); }

std::string TmuxSession::tmux(std::vector<std::string> arguments) const {
  std::vector<std::string> argv{"/usr/bin/tmux", "-f", "/dev/null", "-S", folder_.path("tmux")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Subprocess process(argv);
  process.wait();
  return process.output();
}

void TmuxSession::press(const std::vector<std::string>& keys) const {
  std::vector<std::string> arguments{"send-keys"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  tmux(std::move(arguments));
}

void TmuxSession::send_bytes(const std::string& hex) const {
  std::vector<std::string> arguments{"send-keys", "-H"};
  std::istringstream words(hex);
  arguments.insert(arguments.end(), std::istream_iterator<std::string>(words), {});
  tmux(std::move(arguments));
}

void TmuxSession::resize(int width, int height) const {
  tmux({"resize-window", "-x", std::to_string(width), "-y", std::to_string(height)});
}

std::vector<std::string> TmuxSession::screen(bool with_colors) const {
  std::istringstream text(tmux(with_colors ? std::vector<std::string>{"capture-pane", "-p", "-e"}
                                           : std::vector<std::string>{"capture-pane", "-p"}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool TmuxSession::shows(std::string_view text) const {
  return within_20_s([&] { return tmux({"capture-pane", "-p"}).find(text) != std::string::npos; });
}

bool TmuxSession::shows_no_more(std::string_view text) const {
  return within_20_s([&] { return tmux({"capture-pane", "-p"}).find(text) == std::string::npos; });
}

int TmuxSession::exit_code() const {
  const std::string path = folder_.path("after");
  return within_20_s([&] { return std::filesystem::exists(path); })
             ? std::atoi(contents(folder_.path("code")).c_str())
             : -1;
}

bool TmuxSession::is_on_normal_screen() const {
  return tmux({"display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}"}) ==
         "0 0 1\n";
}

bool TmuxSession::is_restored() const {
  return exit_code() >= 0 && contents(folder_.path("before")) == contents(folder_.path("after")) &&
         is_on_normal_screen();
}

pid_t TmuxSession::pid_of(std::string_view name) const {
  std::string terminal = tmux({"display-message", "-p", "#{pane_tty}"});
  terminal = terminal.substr(0, terminal.find('\n'));
  constexpr std::string_view kFolder = "/dev/";
  Subprocess found({"/usr/bin/pgrep", "-t",
                    terminal.substr(std::min(kFolder.size(), terminal.size())), "-n", "-x",
                    std::string(name)});
  found.wait();
  return static_cast<pid_t>(std::atoi(found.output().c_str()));
}

}  // namespace tidemark::tests
