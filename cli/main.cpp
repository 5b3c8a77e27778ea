// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <type_traits>
#include <variant>

#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/messages.h"
#include "monitor/gpu/gpu_watch.h"

namespace {

int run(const tidemark::cli::Command& command) {
  using namespace tidemark::cli;  // NOLINT(google-build-using-namespace): nine names, one function
  return std::visit(
      [](const auto& options) -> int {
        using Options = std::decay_t<decltype(options)>;
        if constexpr (std::is_same_v<Options, int>) {
          return options;
        } else if constexpr (std::is_same_v<Options, FindOptions>) {
          return run_find(options);
        } else if constexpr (std::is_same_v<Options, MonitorOptions>) {
          return run_monitor(options);
        } else if constexpr (std::is_same_v<Options, TrackOptions>) {
          return run_track(options);
        } else if constexpr (std::is_same_v<Options, ProfileOptions>) {
          return run_profile(options);
        } else if constexpr (std::is_same_v<Options, GuardOptions>) {
          return run_guard(options);
        } else if constexpr (std::is_same_v<Options, CheckOptions>) {
          return run_check(options);
        } else if constexpr (std::is_same_v<Options, DiffOptions>) {
          return run_diff(options);
        } else if constexpr (std::is_same_v<Options, DemoOptions>) {
          return run_demo(options);
        } else {
          static_assert(std::is_same_v<Options, ExportOptions>);
          return run_export(options);
        }
      },
      command);
}

// A GPU driver that hangs must not keep us: its library cleans up at exit, and would wait for it.
int leave(int code) {
  if (tidemark::monitor::GpuWatch::left_a_thread_behind()) {
    (void)std::fflush(nullptr);
    ::_exit(code);
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return leave(run(tidemark::cli::parse_command_line(argc, argv)));
  } catch (const std::exception& error) {
    tidemark::cli::print_error(error.what(), "this is a bug in tidemark, please report it");
  } catch (...) {
    tidemark::cli::print_error("unknown exception", "this is a bug in tidemark, please report it");
  }
  return tidemark::cli::kExitBug;
}
