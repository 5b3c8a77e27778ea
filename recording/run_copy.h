// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/result.h"
#include "recording/private_dir.h"

namespace tidemark::recording {

// Copies a run file and what stands beside it (-wal, -journal) into a directory of our own, where
// it is named "run". A recorder may write meanwhile: a copy whose parts do not belong together is
// made again, and given up after a few times.
Result<PrivateDir> copy_run(const std::string& path);

}  // namespace tidemark::recording
