// SPDX-License-Identifier: Apache-2.0
#pragma once

// A symbol that the target sees in place of its own; tracer.map lists them too.
#define TIDEMARK_EXPORT extern "C" [[gnu::visibility("default"), gnu::used]]

// The long way of a hook: a function of its own, entered by a jump, so that its caller is the
// caller of the hook and its frame tells that caller's registers.
#define TIDEMARK_LONG_WAY [[gnu::noinline]]

// A variable of ours that another file defines. -fvisibility=hidden does not reach such
// declarations: without this each use takes the way through a table for symbols of others.
#define TIDEMARK_OURS [[gnu::visibility("hidden")]]
