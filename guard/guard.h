// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"
#include "guard/headroom.h"
#include "guard/policy.h"
#include "live/track.h"

namespace tidemark::guard {

struct GuardOptions {
  live::TrackOptions track;  // what is watched, and how it is judged
  GuardSettings settings;
  KeepFree keep_free;
  int signal_number = SIGTERM;
  bool dry_run = false;
  std::string notify;  // a command for the shell
  bool desktop = false;
  bool restart = false;
  std::uint64_t max_restarts = 10;
  std::optional<bool> last_look;  // nullopt: unless it is a dry run, which touches nobody
};

// "TERM", "SIGUSR1" or a number: one that a program can catch.
Result<int> parse_signal(std::string_view text);

// `tidemark guard`: stops a job before the kernel does.
int run_guard(const GuardOptions& options);

}  // namespace tidemark::guard
