// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark::cli {

struct FindOptions {
  bool json = false;
  bool all = false;  // also candidates with weak evidence
  bool no_redact = false;
};

// `tidemark find`: prints which process is the training job, and why. kExitTarget when there is
// none, or when several look equally good.
int run_find(const FindOptions& options);

}  // namespace tidemark::cli
