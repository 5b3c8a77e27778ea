// SPDX-License-Identifier: Apache-2.0
// Included last in every file of the probe: makes the use of names that have no place in somebody
// else's process a compile error.
#pragma once

#pragma GCC poison malloc calloc realloc free strdup memalign
#pragma GCC poison printf fprintf snprintf vsnprintf fopen fwrite
#pragma GCC poison vector unordered_map shared_ptr unique_ptr
#pragma GCC poison mutex lock_guard condition_variable call_once cout cerr
