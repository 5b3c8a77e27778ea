// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "live/line_writer.h"
#include "live/watch_handler.h"
#include "report/diagnosis.h"

namespace tidemark::live {

// Who knows what a view of `tidemark diagnose` shows.
class DiagnosisSource {
 public:
  virtual ~DiagnosisSource() = default;
  // As it is now. It refers to this object.
  virtual report::Diagnosis diagnosis() const = 0;
};

struct DiagnosisViewOptions {
  bool json = false;
  bool plain = false;
  bool wraps_command = false;  // the lines go to stderr, beside its output
  std::optional<std::int64_t> duration_ns;
};

// The answer so far in a line, in place on a terminal, and the page at the end; or JSON, at the end
// alone. `source` outlives it.
std::unique_ptr<WatchView> make_diagnosis_view(const DiagnosisSource& source, LineWriter& lines,
                                               const DiagnosisViewOptions& options);

}  // namespace tidemark::live
