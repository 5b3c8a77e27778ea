// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/wire/hook_names.h"

namespace tidemark::inject {

// By the number of the name in wire::kHookNames, then in wire::kPythonHookNames; 0: there is none.
using HookAddresses = std::array<std::uint64_t, wire::kAllHooks>;

// A place where a module keeps the address of a function that it calls.
struct GotSlot {
  std::uint64_t address = 0;
  std::uint64_t value = 0;  // what is there now
  std::size_t hook = 0;     // number of the function's name
};

// What the slots of a module hold that are for functions of wire::kHookNames.
struct ModuleSlots {
  std::vector<GotSlot> real;    // the real function
  std::vector<GotSlot> lazy;    // code that finds a function at the first call: which, is not known
  std::vector<GotSlot> hooked;  // a function of the tracer
  std::size_t foreign = 0;      // something else: another tool's hook, say
};
// `tracer`: the module of the tracer, in whose range its hooks are. `program`: the first module;
// one that is not position independent has functions that lead to the real ones by slots of its
// own, and others call these.
ModuleSlots read_slots(const RemoteModule& module, const RemoteMemory& memory,
                       const HookAddresses& real, const AddressRange& tracer,
                       const RemoteModule& program);

// The places where an interpreter keeps its functions for small objects, those in `from`, in a row.
std::vector<GotSlot> find_python_tables(const RemoteModule& interpreter,
                                        const std::vector<Mapping>& mappings,
                                        const RemoteMemory& memory, const HookAddresses& from);

// Writes `to[slot.hook]` to each slot that still holds what it did. The process is stopped: not all
// processors write 8 bytes from outside at once. Returns how many were written.
Result<std::size_t> write_slots(const std::vector<GotSlot>& slots, const HookAddresses& to,
                                const RemoteMemory& memory);

}  // namespace tidemark::inject
