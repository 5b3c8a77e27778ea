// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// Why there can be no TmuxSession here; empty: there can.
std::string no_tmux_because();

// A program on a real terminal: a shell in a tmux of its own that runs it, and what the terminal
// then shows. The mode of the terminal before and after is kept.
class TmuxSession {
 public:
  struct Options {
    int width = 120;
    int height = 40;
    std::vector<std::string> environment;  // "NAME=value"
  };
  // `command`: for the shell, in a folder of its own.
  TmuxSession(const std::string& command, const Options& options);
  ~TmuxSession();
  TmuxSession(const TmuxSession&) = delete;
  TmuxSession& operator=(const TmuxSession&) = delete;

  // Keys as tmux names them: "q", "Down", "C-l".
  void press(const std::vector<std::string>& keys) const;
  void resize(int width, int height) const;
  // Bytes as a mouse would send them.
  void send_bytes(const std::string& hex) const;

  // What is on the screen, a line each; with escape sequences for colours when asked.
  std::vector<std::string> screen(bool with_colors = false) const;
  // Waits until a line has `text`, at most 20 s; false when it never came.
  bool shows(std::string_view text) const;
  bool shows_no_more(std::string_view text) const;

  // The program has ended within 20 s; its exit code as the shell has it, -1: it runs on.
  int exit_code() const;
  // The normal screen, no mouse, a cursor.
  bool is_on_normal_screen() const;
  // The program has ended, the mode of the terminal is what it was, and the normal screen is back.
  bool is_restored() const;
  // Of the program itself, the newest with that name on the terminal; 0: none.
  pid_t pid_of(std::string_view name) const;

  const TempTree& folder() const { return folder_; }

 private:
  std::string tmux(std::vector<std::string> arguments) const;

  TempTree folder_;
};

}  // namespace tidemark::tests
