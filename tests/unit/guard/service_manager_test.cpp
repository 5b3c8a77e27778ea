// SPDX-License-Identifier: Apache-2.0
#include "guard/service_manager.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "common/fd.h"
#include "tests/support/temp_tree.h"

namespace tidemark::guard {
namespace {

// What systemd would read.
class ServiceManagerTest : public testing::Test {
 protected:
  void listen(const std::string& path) {
    socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  std::string next() {
    std::array<char, 256> buffer{};
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return size < 0 ? "nothing" : std::string(buffer.data(), static_cast<std::size_t>(size));
  }

  tests::TempTree dir_;
  Fd socket_;
};

TEST_F(ServiceManagerTest, HearsThatTheGuardIsReadyAndAlive) {
  listen(dir_.path("notify"));
  ::setenv("NOTIFY_SOCKET", dir_.path("notify").c_str(), 1);

  const auto service = ServiceManager::from_environment();
  service.ready();
  service.status("3 GiB free");
  service.still_alive();
  service.stopping();

  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(next(), "STATUS=3 GiB free");
  EXPECT_EQ(next(), "WATCHDOG=1");
  EXPECT_EQ(next(), "STOPPING=1");
  EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr) << "the job is not the service";
}

TEST_F(ServiceManagerTest, IsAlsoFoundInTheAbstractNamespace) {
  const std::string name = "tidemark-test-" + std::to_string(::getpid());
  listen('\0' + name);
  ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);

  ServiceManager::from_environment().ready();

  EXPECT_EQ(next(), "READY=1");
}

TEST_F(ServiceManagerTest, IsNotMissed) {
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager::from_environment().ready();
  ::setenv("NOTIFY_SOCKET", "relative/path", 1);
  ServiceManager::from_environment().ready();
  ::setenv("NOTIFY_SOCKET", dir_.path("nobody").c_str(), 1);
  ServiceManager::from_environment().ready();
}

}  // namespace
}  // namespace tidemark::guard
