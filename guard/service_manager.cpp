// SPDX-License-Identifier: Apache-2.0
#include "guard/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tidemark::guard {

ServiceManager ServiceManager::from_environment() {
  ServiceManager manager;
  const char* const value = std::getenv("NOTIFY_SOCKET");
  const std::string path = value == nullptr ? "" : value;
  ::unsetenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_usable = path.size() > 1 && path.size() < sizeof address.sun_path &&
                         (path.front() == '/' || path.front() == '@');
  if (!is_usable) {
    return manager;
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path.front() == '@') {
    address.sun_path[0] = '\0';  // the abstract namespace
  }
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    manager.socket_ = std::move(socket);
  }
  return manager;
}

void ServiceManager::send(std::string_view state) const {
  if (socket_) {
    // Nobody to tell when nobody listens.
    (void)::send(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace tidemark::guard
