// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"

#include "common/io.h"

namespace tidemark::tests {

// A real control group with a limit, below the one that the test runs in; gone at the end.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::uint64_t limit_bytes) {
    const monitor::EffectiveLimit own = monitor::effective_limit("", ::getpid());
    if (own.process_cgroup_directory.empty()) {
      return;
    }
    v2_ = own.cgroup_v2;
    static int made = 0;
    directory_ = own.process_cgroup_directory + "/tidemark-guard-" + std::to_string(::getpid()) +
                 "-" + std::to_string(++made);
    if (::mkdir(directory_.c_str(), 0755) != 0) {
      directory_.clear();
      return;
    }
    const std::string limit = std::to_string(limit_bytes);
    usable_ = put(v2_ ? "/memory.max" : "/memory.limit_in_bytes", limit);
    put(v2_ ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes", v2_ ? "0" : limit);
  }
  ~LimitedGroup() {
    while (!directory_.empty() && ::rmdir(directory_.c_str()) != 0 && errno == EBUSY) {
      std::this_thread::yield();  // the kernel lets go of the dead a moment later
    }
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;

  bool usable() const { return usable_; }
  // The command, moved into the group before it begins.
  std::vector<std::string> wrap(const std::vector<std::string>& command) const {
    std::vector<std::string> argv{"/bin/sh", "-c",
                                  "echo $$ > " + directory_ + "/cgroup.procs && exec \"$@\"", "sh"};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  std::uint64_t oom_kills() const {
    const auto text = read_file(directory_ + (v2_ ? "/memory.events" : "/memory.oom_control"));
    return text ? monitor::keyed_number(*text, "oom_kill").value_or(0) : 0;
  }

 private:
  bool put(const std::string& file, const std::string& text) const {
    std::ofstream out(directory_ + file);
    out << text;
    out.close();
    return out.good();
  }

  std::string directory_;
  bool v2_ = false;
  bool usable_ = false;
};

}  // namespace tidemark::tests
