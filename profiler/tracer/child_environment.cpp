// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/child_environment.h"

#include <dlfcn.h>

#include "profiler/tracer/life.h"
#include "profiler/tracer/raw_text.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr char kOperators[] = "libtidemark_operators.so";
constexpr std::size_t kMostEntries = 20000;

constinit char g_tracer_path[4096] = {};
constinit char g_operators_path[4096] = {};

// What stands behind `name` and '=', or nullptr.
const char* value_of(const char* entry, const char* name) noexcept {
  return wire::detail::take_word(entry, name) && wire::detail::take_word(entry, "=") ? entry
                                                                                     : nullptr;
}

const char* preload_of(const char* entry) noexcept {
  return wire::detail::take_word(entry, kPreload) ? entry : nullptr;
}

bool is_separator(char letter) noexcept { return letter == ':' || letter == ' '; }

std::size_t word_bytes(const char* text) noexcept {
  std::size_t bytes = 0;
  while (text[bytes] != '\0' && !is_separator(text[bytes])) {
    ++bytes;
  }
  return bytes;
}

bool is_word(const char* text, std::size_t bytes, const char* word) noexcept {
  std::size_t i = 0;
  while (i < bytes && word[i] != '\0' && text[i] == word[i]) {
    ++i;
  }
  return i == bytes && word[i] == '\0' && bytes > 0;
}

bool ends_with(const char* text, std::size_t bytes, const char* end) noexcept {
  std::size_t length = 0;
  while (end[length] != '\0') {
    ++length;
  }
  return bytes >= length && is_word(text + bytes - length, length, end);
}

bool is_ours(const char* text, std::size_t bytes) noexcept {
  return is_word(text, bytes, g_tracer_path) || is_word(text, bytes, g_operators_path);
}

bool holds_tracer(const char* preload) noexcept {
  for (const char* at = preload; *at != '\0';) {
    const std::size_t bytes = word_bytes(at);
    if (is_word(at, bytes, g_tracer_path)) {
      return true;
    }
    at += bytes + (at[bytes] != '\0' ? 1 : 0);
  }
  return false;
}

}  // namespace

void ChildEnvironment::set_up(char** environment) noexcept {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&ChildEnvironment::set_up), &info) != 0) {
    RawText(g_tracer_path).add(info.dli_fname);
  }
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const char* at = preload_of(*entry);
    while (at != nullptr && *at != '\0') {
      const std::size_t bytes = word_bytes(at);
      if (ends_with(at, bytes, kOperators)) {
        RawText path(g_operators_path);
        for (std::size_t i = 0; i < bytes; ++i) {
          path.add(at[i]);
        }
      }
      at += bytes + (at[bytes] != '\0' ? 1 : 0);
    }
  }
}

std::size_t ChildEnvironment::room_for(char* const* environment) noexcept {
  std::size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr && count < kMostEntries) {
    ++count;
  }
  return count + 3;  // two of ours and the end
}

bool ChildEnvironment::make_preload(const char* existing) noexcept {
  RawText text(preload_);
  text.add(kPreload);
  const bool follow = follows_children();
  bool any = follow;
  if (follow) {
    text.add(g_tracer_path);
    if (g_operators_path[0] != '\0') {
      text.add(':').add(g_operators_path);
    }
  }
  for (const char* at = existing; *at != '\0';) {
    const std::size_t bytes = word_bytes(at);
    if (bytes > 0 && !is_ours(at, bytes)) {
      if (any) {
        text.add(':');
      }
      for (std::size_t i = 0; i < bytes; ++i) {
        text.add(at[i]);
      }
      any = true;
    }
    at += bytes + (at[bytes] != '\0' ? 1 : 0);
  }
  return text.complete();
}

bool ChildEnvironment::make_request() noexcept {
  RawText text(request_);
  text.add(wire::kRequestVariable).add('=').add(request_text());
  return text.complete();
}

char* const* ChildEnvironment::fill(char* const* environment, char** entries) noexcept {
  if (g_tracer_path[0] == '\0' || request_text()[0] == '\0') {
    return environment;
  }
  const bool follow = follows_children();
  const char* preload = "";
  bool asked = false;
  std::size_t count = 0;
  std::size_t kept = 0;
  for (; environment != nullptr && environment[count] != nullptr; ++count) {
    if (count == kMostEntries) {
      return environment;
    }
    if (const char* const value = preload_of(environment[count])) {
      preload = value;
    } else if (value_of(environment[count], wire::kRequestVariable) != nullptr) {
      asked = true;
    } else {
      entries[kept++] = environment[count];
    }
  }
  if (follow && asked && holds_tracer(preload)) {
    return environment;
  }
  if (!make_preload(preload) || !make_request()) {
    return environment;
  }
  if (follow || preload_[sizeof(kPreload) - 1] != '\0') {
    entries[kept++] = preload_;
  }
  if (follow) {
    entries[kept++] = request_;
  }
  entries[kept] = nullptr;
  return entries;
}

}  // namespace tidemark::tracer
