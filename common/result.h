// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "common/check.h"

namespace tidemark {

// What kind of failure, as far as a caller wants to react to it.
enum class Errc {
  kNotFound,     // no such process, file or column
  kGone,         // it was there and has vanished
  kPermission,   // the kernel or the file system said no
  kMalformed,    // the input is not what it claims to be
  kUnsupported,  // this kernel, driver or version does not offer it
  kUsage,        // the caller asked for something impossible
  kNoSpace,      // the disk is full
  kIo,           // any other failed system call
};

// What failed, in words the user can act on. `sys_errno` is 0 when no system call was involved.
struct Error {
  Errc code = Errc::kIo;
  std::string what;
  int sys_errno = 0;
};

// An Error for a failed system call: "<what>: <strerror>", with the code that fits the errno.
Error system_error(std::string what, int sys_errno);

// A value or an Error. Shaped after std::expected so that C++23 replaces it by an alias.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that `return value;` and `return error;` read as they do with std::expected.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    TIDEMARK_CHECK(!has_value(), "error() of a Result that holds a value");
    return *std::get_if<1>(&state_);
  }

 private:
  T& value() {
    TIDEMARK_CHECK(has_value(), "value of a Result that holds an error");
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    TIDEMARK_CHECK(has_value(), "value of a Result that holds an error");
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

// Success without a value: return Status{} or an Error.
using Status = Result<std::monostate>;
inline Status ok() { return std::monostate{}; }

}  // namespace tidemark

// Returns the error from the calling function when the Result that the expression gives has one;
// its value is dropped. Not inside the argument of another. `TIDEMARK_TRY(file.write(text));`
#define TIDEMARK_TRY(...)                                               \
  do {                                                                  \
    if (const auto tidemark_result = (__VA_ARGS__); !tidemark_result) { \
      return tidemark_result.error();                                   \
    }                                                                   \
  } while (false)

// The same, and puts the value into the declaration. These are several statements: they stand in a
// block, never alone under an `if`. `TIDEMARK_TRY_ASSIGN(const auto text, read_file(path));`
#define TIDEMARK_TRY_ASSIGN(declaration, ...) \
  TIDEMARK_TRY_ASSIGN_TO(TIDEMARK_TRY_NAME(tidemark_result_, __LINE__), declaration, __VA_ARGS__)

#define TIDEMARK_TRY_ASSIGN_TO(result, declaration, ...) \
  auto result = (__VA_ARGS__);                           \
  if (!result) {                                         \
    return result.error();                               \
  }                                                      \
  declaration = *std::move(result)
#define TIDEMARK_TRY_NAME(prefix, line) TIDEMARK_TRY_NAME_JOINED(prefix, line)
#define TIDEMARK_TRY_NAME_JOINED(prefix, line) prefix##line
