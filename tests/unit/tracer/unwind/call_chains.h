// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tidemark::tests {

// Functions of known shape that call each other and at last `hook`; compiled with -O2
// -fomit-frame-pointer whatever the preset. Each one notes where it will return to, so that the
// right stack is known without an unwinder.
using Hook = void (*)();

// The return addresses of the functions below that are running now in this thread, innermost first.
// The first one of a stack, the place in the innermost function, is not among them.
std::vector<std::uint64_t> noted_returns();

void call_plain(int more, Hook hook);                // `more` further calls of itself
void call_with_alloca(int bytes, Hook hook);         // frame size known at run time only
void call_realigned(int bytes, Hook hook);           // CFA is a word of the frame
void call_with_large_frame(Hook hook);               // 300 KiB, more than a cached rule can tell
void call_noreturn(Hook hook);                       // the call is the last instruction
void call_through_jit(const void* code, Hook hook);  // code is a void (*)(Hook)

// Wanders through functions of several shapes, and calls `hook` now and then.
void wander(std::mt19937& random, int depth, Hook hook);

}  // namespace tidemark::tests
