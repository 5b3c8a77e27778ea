// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace tidemark::harness {

// Runs code that calls libtorch: what it throws becomes an Error. c10::Error is a std::exception
// whose text goes on with a backtrace; its first line says it all.
template <typename Code>
auto guarded(std::string_view doing, Code&& code) -> decltype(code()) {
  try {
    return std::forward<Code>(code)();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return Error{Errc::kIo, std::string(doing) + ": " + what.substr(0, what.find('\n'))};
  }
}

}  // namespace tidemark::harness
