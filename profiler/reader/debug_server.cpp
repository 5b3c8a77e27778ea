// SPDX-License-Identifier: Apache-2.0
// libdebuginfod is loaded by elfutils when there is one; nothing of it is needed to build.
#include "profiler/reader/debug_server.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/io.h"

namespace tidemark::reader {
namespace {

constexpr std::int64_t kMostSilenceNs = 5 * kNsPerSecond;
constexpr long kSomeBytes = 1024;                    // far more than there are calls in that time
constexpr std::int64_t kMostNs = 30 * kNsPerSecond;  // of one answer

using Progress = int (*)(void* client, long done, long total);

// The functions of libdebuginfod that we call; null where it is absent or too old.
struct Client {
  void (*set_progress)(void* client, Progress function) = nullptr;
  void (*set_user_data)(void* client, void* data) = nullptr;
  void* (*user_data)(void* client) = nullptr;

  bool is_complete() const {
    return set_progress != nullptr && set_user_data != nullptr && user_data != nullptr;
  }
};

const Client& client_library() {
  static const Client kClient = [] {
    Client found;
    if (void* library = ::dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL)) {
      found.set_progress = reinterpret_cast<decltype(found.set_progress)>(
          ::dlsym(library, "debuginfod_set_progressfn"));
      found.set_user_data = reinterpret_cast<decltype(found.set_user_data)>(
          ::dlsym(library, "debuginfod_set_user_data"));
      found.user_data =
          reinterpret_cast<decltype(found.user_data)>(::dlsym(library, "debuginfod_get_user_data"));
    }
    return found;
  }();
  return kClient;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

DebugServer::DebugServer()
    : is_named_(is_set("DEBUGINFOD_URLS")),
      has_user_limit_(is_set("DEBUGINFOD_TIMEOUT") || is_set("DEBUGINFOD_MAXTIME")) {}

void DebugServer::watch(void* client) {
  if (client != nullptr && client_library().is_complete()) {
    client_library().set_user_data(client, this);
    client_library().set_progress(client, &DebugServer::progress);
  }
}

bool DebugServer::begin_search() {
  asked_ns_ = SystemClock().monotonic_ns();
  heard_ns_ = asked_ns_;
  done_ = 0;
  return !is_named_ || (!is_given_up_ && asked_ns_ < until_ns_);
}

int DebugServer::progress(void* client, long done, long /*total*/) {
  auto* server = static_cast<DebugServer*>(client_library().user_data(client));
  return server == nullptr || server->goes_on(done) ? 0 : 1;
}

bool DebugServer::goes_on(long done) {
  const std::int64_t now_ns = SystemClock().monotonic_ns();
  if (done - done_ >= kSomeBytes) {
    done_ = done;
    heard_ns_ = now_ns;
  }
  if (now_ns >= until_ns_) {
    return false;
  }
  const bool is_late = now_ns - heard_ns_ > kMostSilenceNs || now_ns - asked_ns_ > kMostNs;
  if (is_late && !has_user_limit_) {
    is_given_up_ = true;
    return false;
  }
  return true;
}

std::optional<std::string> DebugServer::problem() const {
  if (!is_given_up_) {
    return std::nullopt;
  }
  return fmt::format(
      "the debuginfod server does not answer within {} s and is not asked any more: "
      "DEBUGINFOD_URLS "
      "names it, DEBUGINFOD_TIMEOUT gives it more time",
      kMostSilenceNs / kNsPerSecond);
}

int open_debug_link(const char* program, const std::string& link,
                    const std::function<bool(int descriptor)>& fits, char** found) {
  if (program == nullptr) {
    return -1;
  }
  const std::string path = program;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& place : {folder, folder + ".debug/", "/usr/lib/debug" + folder}) {
    auto file = place + link == path ? Result<Fd>(Fd()) : open_file(place + link, O_RDONLY);
    if (file && file->get() >= 0 && fits(file->get())) {
      *found = ::strdup((place + link).c_str());
      return file->release();
    }
  }
  return -1;
}

}  // namespace tidemark::reader
