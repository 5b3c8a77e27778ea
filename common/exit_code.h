// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark {

// Part of the interface, see docs/output.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitLeak = 1,
  kExitUsage = 2,
  kExitTarget = 3,
  kExitUndetermined = 4,
  kExitBug = 70,
};

}  // namespace tidemark
