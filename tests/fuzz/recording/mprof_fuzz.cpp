// SPDX-License-Identifier: Apache-2.0
#include "recording/import/importers.h"
#include "tests/fuzz/recording/checking_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tidemark::fuzz::CheckingSink sink;
  const auto reader = tidemark::recording::open_mprof(tidemark::fuzz::input_of(data, size));
  static_cast<void>(reader->read(sink));
  return 0;
}
