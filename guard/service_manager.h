// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/fd.h"

namespace tidemark::guard {

// Tells systemd, or whoever gave us a NOTIFY_SOCKET, how we are: sd_notify(3). Where there is none
// nothing happens. Never waits.
class ServiceManager {
 public:
  // Takes NOTIFY_SOCKET out of the environment: the commands that we start are not the service.
  static ServiceManager from_environment();

  void ready() const { send("READY=1"); }
  void still_alive() const { send("WATCHDOG=1"); }
  void stopping() const { send("STOPPING=1"); }
  // One line, shown by `systemctl status`.
  void status(std::string_view text) const { send("STATUS=" + std::string(text)); }

 private:
  void send(std::string_view state) const;

  Fd socket_;
};

}  // namespace tidemark::guard
