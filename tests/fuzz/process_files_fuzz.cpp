// SPDX-License-Identifier: Apache-2.0
// The parsers of /proc/PID/*: none may crash, whatever the text, and what they promise must hold.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "monitor/gpu/gpu_source.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/proc_smaps.h"
#include "monitor/procfs/shm_pass.h"

namespace {

using tidemark::monitor::PssFields;
using tidemark::monitor::SmapsAccumulator;

tidemark::Result<PssFields> sum(std::string_view text, std::size_t cut) {
  SmapsAccumulator sums;
  sums.add(text.substr(0, cut));
  sums.add(text.substr(cut));
  return sums.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const auto status = tidemark::monitor::parse_status(text);
  TIDEMARK_CHECK(!status || status->comm.size() <= size, "a name longer than the text");

  const auto stat = tidemark::monitor::parse_stat(text);
  TIDEMARK_CHECK(!stat || stat->comm.size() <= size, "a name longer than the text");

  static_cast<void>(tidemark::monitor::parse_statm(text));
  static_cast<void>(tidemark::monitor::parse_smaps_rollup(text));

  const auto whole = sum(text, size);
  const auto pieces = sum(text, size / 2);
  TIDEMARK_CHECK(whole.has_value() == pieces.has_value(), "the cut decides");
  if (whole) {
    TIDEMARK_CHECK(whole->footprint_bytes() == pieces->footprint_bytes(), "the cut changes sums");
  }

  static_cast<void>(tidemark::monitor::parse_drm_fdinfo(text));
  static_cast<void>(tidemark::monitor::read_shm_name(text));
  static_cast<void>(tidemark::monitor::is_own_shm_file(text));
  tidemark::monitor::WantedFiles wanted(1);
  wanted.add(2049, "psm_1");
  tidemark::monitor::mark_mapped_files(text, wanted);
  return 0;
}
