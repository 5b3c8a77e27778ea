// SPDX-License-Identifier: Apache-2.0
// How the tool and the probe, a small library that it loads into a process that runs, talk to each
// other: by a variable of the library, which the tool reads and writes from outside. Freestanding,
// see trace_layout.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::wire {

inline constexpr const char* kProbeControl = "tidemark_probe_control";  // a ProbeControl
inline constexpr const char* kProbeStart = "tidemark_probe_start";      // int (*)(const char*)
inline constexpr const char* kProbeThread = "tidemark_probe";           // the name of its thread
inline constexpr std::uint64_t kProbeVersion = 0x3165626f72704d54;      // "TMprobe1"

enum class ProbeTask : std::uint8_t {
  kNothing,
  kTrim,      // int malloc_trim(size_t)
  kJemalloc,  // int mallctl(const char*, ...)
  kTcmalloc,  // void MallocExtension_ReleaseFreeMemory()
  kMimalloc,  // void mi_collect(bool)
  kGc,
  kCuda,
};

enum class ProbeStage : std::uint8_t {
  kNoThread,
  kIdle,
  kWaiting,  // for the interpreter: nothing has been done yet
  kRunning,
};

enum class ProbeResult : std::uint8_t {
  kDone,
  kFailed,     // the allocator has refused
  kWithdrawn,  // nothing was done
  kNoPython,   // the interpreter is not initialised, or about to exit
  kNoTorch,
  kNoCuda,  // torch has not initialised it
  kRaised,  // an exception
};

// Addresses of functions of Python in the process; 0: it has none of this name.
struct ProbePython {
  std::uint64_t is_initialized;
  std::uint64_t is_finalizing;  // may be 0
  std::uint64_t ensure;
  std::uint64_t release;
  std::uint64_t import_module;
  std::uint64_t module_dict;
  std::uint64_t dict_get;
  std::uint64_t call_method;
  std::uint64_t get_attribute;
  std::uint64_t is_true;
  std::uint64_t as_long;
  std::uint64_t add_reference;
  std::uint64_t drop_reference;
  std::uint64_t clear_error;
  std::uint64_t first_interpreter;
  std::uint64_t main_interpreter;
};
inline constexpr const char* kProbePythonNames[] = {"Py_IsInitialized",
                                                    "_Py_IsFinalizing",
                                                    "PyGILState_Ensure",
                                                    "PyGILState_Release",
                                                    "PyImport_ImportModule",
                                                    "PyImport_GetModuleDict",
                                                    "PyDict_GetItemString",
                                                    "PyObject_CallMethod",
                                                    "PyObject_GetAttrString",
                                                    "PyObject_IsTrue",
                                                    "PyLong_AsLongLong",
                                                    "Py_IncRef",
                                                    "Py_DecRef",
                                                    "PyErr_Clear",
                                                    "PyInterpreterState_Head",
                                                    "PyInterpreterState_Main"};
inline constexpr std::size_t kProbePythonFunctions =
    sizeof(kProbePythonNames) / sizeof(kProbePythonNames[0]);
static_assert(sizeof(ProbePython) == kProbePythonFunctions * sizeof(std::uint64_t));

struct ProbeOrder {
  ProbeTask task;
  std::uint64_t function;      // of an allocator
  std::uint64_t most_wait_ns;  // for the interpreter
  ProbePython python;
};

inline constexpr std::int64_t kProbeUnknown = -1;

struct ProbeOutcome {
  ProbeResult result;
  bool has_more_interpreters;  // which were left alone
  bool has_emptied_pinned;     // the cache of pinned memory, too
  std::uint64_t waited_ns;
  std::uint64_t took_ns;
  std::int64_t value;           // what an allocator has answered
  std::int64_t objects;         // that the collector has found
  std::int64_t frozen_objects;  // that it leaves alone
  std::int64_t gpu_before_bytes;
  std::int64_t gpu_after_bytes;
};

// The order and all that the tool writes come before the number of the order, which is one byte:
// others may be seen half written. Numbers are never 0.
struct ProbeControl {
  std::uint64_t version;
  // The thread ends when the beat has stood still for so long.
  std::atomic<std::uint64_t> most_idle_ns;

  // Of the tool.
  std::atomic<std::uint8_t> asked;
  std::atomic<std::uint8_t> withdrawn;  // the order with this number is not to be begun
  std::atomic<std::uint8_t> is_to_end;
  std::atomic<std::uint32_t> beat;  // changes as long as the tool is there

  // Of the probe.
  std::atomic<std::uint8_t> answered;  // the outcome is that of this order
  std::atomic<ProbeStage> stage;
  std::int32_t pid;  // whose thread it is: a forked process has none

  ProbeOrder order;
  ProbeOutcome outcome;
};
static_assert(std::atomic<ProbeStage>::is_always_lock_free && sizeof(std::atomic<ProbeStage>) == 1);

}  // namespace tidemark::wire
