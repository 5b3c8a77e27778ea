// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tidemark::reader {

// How long a server of debug information (debuginfod) is waited for. One that is silent for a few
// seconds, or takes too long, is not asked again. The user's DEBUGINFOD_TIMEOUT or
// DEBUGINFOD_MAXTIME replace that limit; wait_until() ends all waiting. Thread-safe.
class DebugServer {
 public:
  DebugServer();

  // Whether the environment names a server at all.
  bool is_named() const { return is_named_; }
  // The client (of libdebuginfod) of a search lets us stop it from now on.
  void watch(void* client);
  // Before a search that may ask it. False: it is not to be asked any more.
  bool begin_search();

  // Nobody is waited for beyond this moment of CLOCK_MONOTONIC.
  void wait_until(std::int64_t until_ns) { until_ns_.store(until_ns); }
  // Why it is not asked any more; nullopt: it is.
  std::optional<std::string> problem() const;

 private:
  // Called by the client about once a second; not 0: stop. `done` are bytes, but before the answer
  // begins it counts the calls.
  static int progress(void* client, long done, long total);
  bool goes_on(long done);

  const bool is_named_;
  const bool has_user_limit_;
  std::int64_t asked_ns_ = 0;
  std::int64_t heard_ns_ = 0;
  long done_ = 0;
  std::atomic<std::int64_t> until_ns_{INT64_MAX};
  std::atomic<bool> is_given_up_{false};
};

// Opens the first separate debug file of this name (.gnu_debuglink) that `fits` a program, in the
// folders where it may be: elfutils looks there only when it may ask the server as well. -1 when
// there is none; else `found` is its path, from malloc.
int open_debug_link(const char* program, const std::string& link,
                    const std::function<bool(int descriptor)>& fits, char** found);

}  // namespace tidemark::reader
