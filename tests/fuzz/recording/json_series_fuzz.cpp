// SPDX-License-Identifier: Apache-2.0
#include "recording/import/importers.h"
#include "tests/fuzz/recording/checking_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;  // NOLINT(google-build-using-namespace)
  fuzz::read_all(recording::open_json_series(fuzz::input_of(data, size), ""));
  return 0;
}
