// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "api/tidemark.h"

// What victims with a known memory curve share. Memory is a function of the step, not of the clock:
// a slow machine stretches the curve and does not bend it.
namespace tidemark::victim {

inline constexpr double kMegabyte = 1024.0 * 1024.0;

// How the program moves through its steps; every victim has these options.
struct Pace {
  double count = 400;     // --count: steps in all
  double step_ms = 20;    // --step-ms
  bool announce = false;  // --steps: mark them with api/tidemark.h
};

struct NumberOption {
  std::string_view name;  // "--leak-mb"
  double* value;
};

// Reads `--name NUMBER` for each of the options and for the pace; ends the program on anything
// else.
inline void parse_options(int argc, char** argv, Pace& pace,
                          std::initializer_list<NumberOption> options) {
  const auto target = [&](std::string_view name) -> double* {
    for (const NumberOption& option : options) {
      if (option.name == name) {
        return option.value;
      }
    }
    if (name == "--count") {
      return &pace.count;
    }
    return name == "--step-ms" ? &pace.step_ms : nullptr;
  };
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--steps") {
      pace.announce = true;
      continue;
    }
    double* const value = target(argv[i]);
    char* end = nullptr;
    if (value != nullptr && i + 1 < argc) {
      *value = std::strtod(argv[++i], &end);
    }
    if (end == nullptr || *end != '\0' || end == argv[i]) {
      std::fprintf(stderr, "usage: %s [--count N] [--step-ms MS] [--steps]", argv[0]);
      for (const NumberOption& option : options) {
        std::fprintf(stderr, " [%.*s N]", static_cast<int>(option.name.size()), option.name.data());
      }
      std::fputs("\n", stderr);
      std::exit(2);
    }
  }
}

// Memory that is really there: mapped by itself, every page touched, given back to the kernel at
// the end of its life.
class Block {
 public:
  explicit Block(double megabytes) : size_(static_cast<std::size_t>(megabytes * kMegabyte)) {
    if (size_ == 0) {
      return;
    }
    void* const memory =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("mmap");
      std::_Exit(1);
    }
    memory_ = static_cast<char*>(memory);
    ::madvise(memory_, size_, MADV_NOHUGEPAGE);  // what is touched is what is resident
    std::memset(memory_, 0x5A, size_);
  }
  ~Block() {
    if (memory_ != nullptr) {
      ::munmap(memory_, size_);
    }
  }
  Block(Block&& other) noexcept
      : size_(other.size_), memory_(std::exchange(other.memory_, nullptr)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(memory_, other.memory_);
    return *this;
  }

  char* data() { return memory_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
  char* memory_ = nullptr;
};

struct Fact {
  std::string_view name;
  double value;
};

// The truth as one line of JSON. `verdict`: what a tracker should say about the whole run.
inline void print_truth(std::string_view victim, std::string_view verdict, const Pace& pace,
                        std::initializer_list<Fact> facts) {
  std::string line = "{\"victim\":\"" + std::string(victim) + "\",\"verdict\":\"" +
                     std::string(verdict) + "\",\"pid\":" + std::to_string(::getpid()) +
                     ",\"steps\":" + std::to_string(static_cast<long>(pace.count));
  for (const Fact& fact : facts) {
    line +=
        ",\"" + std::string(fact.name) + "\":" + std::to_string(static_cast<long long>(fact.value));
  }
  std::puts((line + "}").c_str());
  std::fflush(stdout);
}

// Calls `work(n)` for each step n = 1, 2, ...
template <typename Work>
void run_steps(const Pace& pace, Work&& work) {
  const std::chrono::duration<double, std::milli> length(pace.step_ms);
  for (long n = 1; n <= static_cast<long>(pace.count); ++n) {
    work(n);
    if (pace.announce) {
      tidemark_step(n);
    }
    std::this_thread::sleep_for(length);
  }
}

}  // namespace tidemark::victim
