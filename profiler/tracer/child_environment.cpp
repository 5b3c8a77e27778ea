// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/child_environment.h"

#include <dlfcn.h>
#include <elf.h>

#include <cerrno>
#include <cstdint>

#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr char kOperators[] = "libtidemark_operators.so";
constexpr std::size_t kMaxEntries = 20000;
constexpr std::size_t kMaxPreload = 8192;  // bytes

constinit char g_tracer_path[4096] = {};
constinit char g_operators_path[4096] = {};  // empty: not found
constinit bool g_has_operators = false;      // preloaded into this process
// Of the program that this process runs.
constinit std::uint64_t g_own_device = 0;
constinit std::uint64_t g_own_inode = 0;

// The value of an entry if it is that of the variable `name`, else nullptr.
const char* value_of(const char* entry, const char* name) noexcept {
  return wire::detail::take_word(entry, name) && wire::detail::take_word(entry, "=") ? entry
                                                                                     : nullptr;
}

const char* preload_of(const char* entry) noexcept {
  return wire::detail::take_word(entry, kPreload) ? entry : nullptr;
}

std::size_t length_of(const char* text) noexcept {
  std::size_t bytes = 0;
  while (text[bytes] != '\0') {
    ++bytes;
  }
  return bytes;
}

char* append(char* to, const char* text, std::size_t bytes) noexcept {
  __builtin_memcpy(to, text, bytes);
  return to + bytes;
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

bool is_equal(const char* text, const char* other) noexcept {
  return is_word(text, length_of(text), other);
}

bool starts_with(const char* text, const char* begin) noexcept {
  return wire::detail::take_word(text, begin);
}

bool ends_with(const char* text, std::size_t bytes, const char* end) noexcept {
  const std::size_t length = length_of(end);
  return bytes >= length && is_word(text + bytes - length, length, end);
}

bool is_ours(const char* text, std::size_t bytes) noexcept {
  return is_word(text, bytes, g_tracer_path) || is_word(text, bytes, g_operators_path);
}

// Whether this is, by its file name, an allocator that defines operator new.
bool is_other_allocator(const char* text, std::size_t bytes) noexcept {
  std::size_t begin = bytes;
  while (begin > 0 && text[begin - 1] != '/') {
    --begin;
  }
  for (const char* const known : {"jemalloc", "tcmalloc", "mimalloc"}) {
    const std::size_t length = length_of(known);
    for (std::size_t i = begin; i + length <= bytes; ++i) {
      if (is_word(text + i, length, known)) {
        return true;
      }
    }
  }
  return false;
}

// What a value of LD_PRELOAD names.
struct Preloaded {
  bool tracer = false;
  bool operators = false;
  bool other_allocator = false;
  bool in_order = true;  // ours come before other allocators, whose malloc would else be used
};

Preloaded look_at(const char* preload) noexcept {
  Preloaded seen;
  for (const char* at = preload; *at != '\0';) {
    const std::size_t bytes = word_bytes(at);
    if (is_ours(at, bytes)) {
      seen.in_order = seen.in_order && !seen.other_allocator;
      (is_word(at, bytes, g_tracer_path) ? seen.tracer : seen.operators) = true;
    } else if (is_other_allocator(at, bytes)) {
      seen.other_allocator = true;
    }
    at += bytes + (at[bytes] != '\0' ? 1 : 0);
  }
  return seen;
}

// Whether this is the program that runs here. A name that exec searches PATH for is compared with
// the name by which this process was started.
bool is_own_program(const char* file) noexcept {
  if (file == nullptr) {
    return false;  // exec will fail
  }
  const char* at = file;
  while (*at != '\0' && *at != '/') {
    ++at;
  }
  if (*at == '\0') {
    return is_equal(file, program_invocation_short_name);
  }
  struct stat status = {};
  return sys::stat(file, &status) == 0 && status.st_ino == g_own_inode &&
         status.st_dev == g_own_device;
}

// Its dynamic linker cannot load our library. Not known of a name that exec searches PATH for.
bool is_program_of_32_bits(const char* file) noexcept {
  unsigned char head[EI_CLASS + 1] = {};
  const int fd = file == nullptr ? -1 : sys::open(file, O_RDONLY | O_NONBLOCK);
  if (fd >= 0) {
    sys::read(fd, head, sizeof(head));
    sys::close(fd);
  }
  return __builtin_memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

// In the folder of the tracer.
void find_operators() noexcept {
  std::size_t folder = length_of(g_tracer_path);
  while (folder > 0 && g_tracer_path[folder - 1] != '/') {
    --folder;
  }
  FixedText path(g_operators_path);
  for (std::size_t i = 0; i < folder; ++i) {
    path.add(g_tracer_path[i]);
  }
  path.add(kOperators);
  if (!path.complete() || sys::access(g_operators_path, R_OK) != 0) {
    g_operators_path[0] = '\0';
  }
}

}  // namespace

void ChildEnvironment::set_up(char** environment) noexcept {
  Dl_info info = {};
  // A memory file has no name that another program could load it by: what is called so in a child
  // is one of its own descriptors.
  if (dladdr(reinterpret_cast<void*>(&ChildEnvironment::set_up), &info) != 0 &&
      !starts_with(info.dli_fname, "/proc/")) {
    FixedText(g_tracer_path).add(info.dli_fname);
    find_operators();
  }
  struct stat own = {};
  if (sys::stat("/proc/self/exe", &own) == 0) {
    g_own_device = own.st_dev;
    g_own_inode = own.st_ino;
  }
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const char* at = preload_of(*entry);
    while (at != nullptr && *at != '\0') {
      const std::size_t bytes = word_bytes(at);
      if (ends_with(at, bytes, kOperators)) {
        FixedText path(g_operators_path);
        for (std::size_t i = 0; i < bytes; ++i) {
          path.add(at[i]);
        }
        g_has_operators = true;
      }
      at += bytes + (at[bytes] != '\0' ? 1 : 0);
    }
  }
}

ChildEnvironment::ChildEnvironment(const char* file, char* const* environment) noexcept
    : given_(environment) {
  if (g_tracer_path[0] == '\0' || request_entry()[0] == '\0') {
    return;
  }
  bool asked = false;
  bool request_is_ours = true;
  std::size_t count = 0;
  for (; environment != nullptr && environment[count] != nullptr; ++count) {
    if (count == kMaxEntries) {
      return;
    }
    if (const char* const value = preload_of(environment[count])) {
      preload_ = value;
    }
    if (value_of(environment[count], wire::kRequestVariable) != nullptr) {
      asked = true;
      request_is_ours = request_is_ours && is_equal(environment[count], request_entry());
    }
  }
  if (length_of(preload_) > kMaxPreload) {
    return;
  }
  const Preloaded seen = look_at(preload_);
  // After chroot, or as another user, the program may reach neither the library nor the folder.
  follows_ = follows_children() && sys::access(g_tracer_path, R_OK) == 0 &&
             !is_program_of_32_bits(file) &&
             (!request_is_ours || check_trace_folder(trace_folder()) == 0);
  with_operators_ = follows_ && g_operators_path[0] != '\0' &&
                    (seen.other_allocator || (g_has_operators && is_own_program(file)));
  const bool there = seen.tracer && seen.in_order && seen.operators == with_operators_;
  outdated_ = follows_ && request_is_ours && request_is_outdated();
  if (follows_ ? asked && there && !outdated_ : !asked && !seen.tracer) {
    return;
  }
  entries_ = count + 3;  // LD_PRELOAD, the request and the final nullptr
  text_bytes_ = sizeof(kPreload) + length_of(g_tracer_path) + length_of(g_operators_path) +
                length_of(preload_) + 3 +  // separators
                (outdated_ ? most_request_bytes() : 0);
}

// Returns the address after the terminating 0.
char* ChildEnvironment::write_preload(char* text) const noexcept {
  text = append(text, kPreload, sizeof(kPreload) - 1);
  const char* const begin = text;
  if (follows_) {
    text = append(text, g_tracer_path, length_of(g_tracer_path));
    if (with_operators_) {
      *text++ = ':';
      text = append(text, g_operators_path, length_of(g_operators_path));
    }
  }
  for (const char* at = preload_; *at != '\0';) {
    const std::size_t bytes = word_bytes(at);
    if (bytes > 0 && !is_ours(at, bytes)) {
      if (text != begin) {
        *text++ = ':';
      }
      text = append(text, at, bytes);
    }
    at += bytes + (at[bytes] != '\0' ? 1 : 0);
  }
  *text = '\0';
  return text + 1;
}

char* const* ChildEnvironment::fill(char** entries, char* text) const noexcept {
  if (entries_ == 0) {
    return given_;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; given_ != nullptr && given_[i] != nullptr; ++i) {
    if (preload_of(given_[i]) == nullptr &&
        value_of(given_[i], wire::kRequestVariable) == nullptr) {
      entries[kept++] = given_[i];
    }
  }
  char* const request = write_preload(text);
  if (text[sizeof(kPreload) - 1] != '\0') {
    entries[kept++] = text;
  }
  if (outdated_) {
    write_request_entry(request);
    entries[kept++] = request;
  } else if (follows_) {
    entries[kept++] = request_entry();
  }
  entries[kept] = nullptr;
  return entries;
}

}  // namespace tidemark::tracer
