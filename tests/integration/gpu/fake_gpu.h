// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/units.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// So many MiB in bytes, as the script of the stand-in wants them.
inline std::string mib(std::uint64_t n) { return std::to_string(n * kMiB); }

// The tool on a machine with NVIDIA GPUs: it finds our stand-in for their library, which answers
// from a script (see tests/support/fake_nvml).
class FakeGpu {
 public:
  explicit FakeGpu(const std::string& script) { set_script(script); }

  // The stand-in reads it again at every sample.
  void set_script(const std::string& script) const {
    folder_.write("new_script", script);
    std::filesystem::rename(folder_.path("new_script"), folder_.path("script"));
  }
  // Makes a pid that the driver reports mean the same to us, also where tests run in a container.
  void know(pid_t pid) const {
    std::array<char, 64> own{};
    const ssize_t length = ::readlink("/proc/self/ns/pid", own.data(), own.size());
    const std::string directory = "host/" + std::to_string(pid);
    folder_.link(directory + "/ns/pid",
                 std::string(own.data(), length > 0 ? static_cast<std::size_t>(length) : 0));
    folder_.write(directory + "/status",
                  "Name:\tx\nState:\tS\nNSpid:\t7\t" + std::to_string(pid) + "\n");
  }

  std::vector<std::string> environment() const {
    return {"LD_LIBRARY_PATH=" TIDEMARK_BINARY_DIR "/tests/fake_nvml",
            "TIDEMARK_FAKE_NVML=" + folder_.path("script"),
            "TIDEMARK_HOST_PROC=" + folder_.path("host")};
  }
  std::vector<std::string> command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{"/usr/bin/env"};
    for (const std::string& variable : environment()) {
      argv.push_back(variable);
    }
    argv.push_back(tool_path());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }
  Output run(const std::vector<std::string>& arguments) const {
    Subprocess tool(command(arguments));
    tool.close_input();
    const int exit_code = tool.wait();
    return {exit_code, tool.output(), tool.errors()};
  }

  const TempTree& folder() const { return folder_; }

 private:
  TempTree folder_;
};

}  // namespace tidemark::tests
