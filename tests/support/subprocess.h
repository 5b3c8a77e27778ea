// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"

namespace tidemark::tests {

// A command that a shell becomes after it has started something else, which it has written the pid
// of into `pid_file`: as in a job script that starts a server first.
inline std::vector<std::string> after_a_neighbour(const std::string& pid_file,
                                                  const std::vector<std::string>& argv) {
  std::vector<std::string> all{
      "/bin/sh", "-c", "sleep 100 </dev/null >/dev/null 2>&1 & echo $! > \"$0\"; exec \"$@\"",
      pid_file};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}
// Whether that process runs; ends it.
inline bool end_neighbour(const std::string& pid_file) {
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  const bool runs = pid > 0 && ::kill(pid, 0) == 0;
  if (runs) {
    ::kill(pid, SIGKILL);
  }
  return runs;
}

// Whether Terminal::kControlling works here: a bare chroot has no /dev/pts.
bool can_open_terminals();

// A program that a test runs and talks to. Killed at the end of the test if it still runs.
class Subprocess {
 public:
  enum class Terminal {
    kNone,         // stdin, stdout and stderr are pipes
    kControlling,  // all three are one new terminal (24 lines, 80 columns) that controls it
  };
  explicit Subprocess(const std::vector<std::string>& argv, Terminal terminal = Terminal::kNone);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  void send(std::string_view input) const;
  void close_input();
  void close_output();
  void signal(int number) const;
  void resize(unsigned short rows, unsigned short columns) const;

  // Reads stdout (or the terminal) until `text` has come, at most 20 s; what was read so far.
  const std::string& read_until(std::string_view text);
  // Reads what comes in that time, and no longer.
  void read_for(std::chrono::milliseconds time);
  // Reads stdout (or the terminal) and stderr to their ends, then waits for the program.
  // The wait status in the words of a shell: 0..255, or 128 + signal.
  int wait();

  const std::string& output() const { return output_; }  // of stdout, as far as read
  const std::string& errors() const { return errors_; }  // of stderr, complete after wait()

 private:
  bool read_some(int timeout_ms);

  pid_t pid_ = -1;
  Fd input_;
  Fd output_fd_;
  Fd errors_fd_;
  std::string output_;
  std::string errors_;
};

}  // namespace tidemark::tests
