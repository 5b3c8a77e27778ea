// SPDX-License-Identifier: Apache-2.0
// The parsers of control groups, mounts, limits and the machine's own figures.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"
#include "monitor/procfs/proc_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark::monitor;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const auto memberships = parse_cgroup(text);
  const auto mounts = parse_mountinfo(text);
  for (const CgroupMembership& membership : memberships) {
    TIDEMARK_CHECK(membership.path.starts_with('/'), "a path without a root");
    for (const Mount& mount : mounts) {
      const auto below = path_below(membership.path, mount.root);
      TIDEMARK_CHECK(!below || below->find("/../") == std::string::npos, "leads out of the mount");
    }
  }

  static_cast<void>(parse_cgroup_limit(text));
  static_cast<void>(parse_soft_limit(text, "Max address space"));
  static_cast<void>(cgroup_v1_used_bytes(text));
  static_cast<void>(cgroup_v2_used_bytes(text, text));
  static_cast<void>(parse_meminfo(text));
  const PressureFields pressure = parse_pressure(text);
  TIDEMARK_CHECK(!pressure.some_avg10 || *pressure.some_avg10 <= 100.0, "more than all the time");
  TIDEMARK_CHECK(undo_octal_escapes(text).size() <= size, "unescaping made it longer");
  return 0;
}
