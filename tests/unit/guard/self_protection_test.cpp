// SPDX-License-Identifier: Apache-2.0
#include "guard/self_protection.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/io.h"
#include "common/text.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"

namespace tidemark::guard {
namespace {

// The address sanitizer turns mlock into nothing.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDEMARK_TEST_IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(TIDEMARK_TEST_IS_SANITIZED)
constexpr bool kCanLock = false;
#else
constexpr bool kCanLock = true;
#endif

using tests::in_child;
using tests::TempTree;

std::string content(const std::string& path) {
  const auto text = read_file(path);
  return text ? std::string(trim(*text)) : text.error().what;
}

TEST(OomShield, GoesUpAndDown) {
  const TempTree dir;
  dir.write("score", "200 \n");
  OomShield shield(dir.path("score"));

  EXPECT_EQ(shield.put_up(), "");
  EXPECT_EQ(content(dir.path("score")).substr(0, 4), "-900");
  EXPECT_EQ(shield.put_up(), "") << "it is up already";
  shield.take_down();

  EXPECT_EQ(content(dir.path("score")).substr(0, 3), "200");
}

TEST(OomShield, SaysWhenItCannotBeHad) {
  OomShield shield("/nowhere/oom_score_adj");
  EXPECT_NE(shield.put_up(), "");
}

// The real file: down to what the kernel permits (without privileges: to 0), and back.
TEST(OomShield, TheKernelLetsItGoBackToWhatItWas) {
  const std::string said = in_child([] {
    const std::string path = "/proc/self/oom_score_adj";
    const auto file = open_file(path, 1);
    (void)write_all(file->get(), "300");
    std::string text = content(path);
    {
      OomShield shield;
      text += shield.put_up();
      text += std::stoi(content(path)) <= 0 ? " lowered " : " not lowered ";
    }
    return text + content(path);
  });
  EXPECT_EQ(said, "300 lowered 300");
}

TEST(LockOwnMemory, LocksOrSaysThatItMayNot) {
  const std::string said = in_child([] {
    const std::string note = lock_own_memory();
    const std::string status = *read_file("/proc/self/status");
    const auto at = status.find("VmLck:");
    const long kib = std::stol(status.substr(at + 6));
    return std::string(note.empty() == (kib > 0) || !note.empty() ? "honest" : "nothing is locked");
  });
  if (kCanLock) {
    EXPECT_EQ(said, "honest");
  }
}

// Locking what comes later would make the allocations of a user with a limit fail.
TEST(LockOwnMemory, LeavesAUserWithALimitRoomToAllocate) {
  const std::string said = in_child([] {
    constexpr std::size_t kLimit = std::size_t{512} << 20U;
    const rlimit limit{kLimit, kLimit};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (::getuid() == 0 && ::setuid(65534) != 0)) {
      return std::string("told, room left");
    }
    const bool is_told = !lock_own_memory().empty();
    void* const block = ::mmap(nullptr, 2 * kLimit, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return std::string(is_told ? "told, " : "not told, ") +
           (block != MAP_FAILED ? "room left" : "no room left");
  });
  EXPECT_EQ(said, "told, room left");
}

TEST(LockRegion, IsRefusedBeyondTheLimitOfAUser) {
  const std::string said = in_child([] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_MEMLOCK, &none);
    if (::getuid() == 0 && ::setuid(65534) != 0) {
      return std::string("refused");
    }
    char block[64];
    return std::string(lock_region(block, sizeof block) ? "locked" : "refused");
  });
  if (kCanLock) {
    EXPECT_EQ(said, "refused");
  }
}

}  // namespace
}  // namespace tidemark::guard
