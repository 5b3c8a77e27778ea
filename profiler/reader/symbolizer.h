// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/site_records.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

class DebugServer;

struct SymbolizerOptions {
  // Put before the path of every module: "/proc/PID/root" for a process in a container.
  std::string root;
  std::shared_ptr<DebugServer> server = {};  // none: one of its own
};

// A module that could not be used, and why; for the coverage part of a report.
struct ModuleProblem {
  std::string module;
  std::string build_id;
  std::string what;
};

// Names addresses in object files: from their debug information (also in separate files below
// /usr/lib/debug or beside the module; from debuginfod when DEBUGINFOD_URLS is set, for as long as
// DebugServer waits), else from their symbols. Everything is cached, the files stay open. Slow
// compared with reading a trace: not for the thread that samples. Not thread-safe.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options = {});
  ~Symbolizer();
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;

  // The frames at `address` of the file `module_path`, as numbered in that file: the functions that
  // were inlined there, innermost first, then the one that contains them. Never empty. `address`
  // is that of an instruction; for a return address give the one before (call_address()). A file
  // that is absent, damaged or has another build-id than `build_id` is not used: one frame
  // "libfoo.so+0x1234". An empty `build_id` fits every file.
  std::vector<SourceFrame> resolve(const std::string& module_path, const std::string& build_id,
                                   std::uint64_t address);

  // The same for a frame of a trace; `modules` is TraceFile::modules().
  std::vector<SourceFrame> resolve(const StackFrame& frame,
                                   const std::vector<TraceModule>& modules);
  // All frames of a stack, innermost first.
  std::vector<SourceFrame> resolve(const std::vector<StackFrame>& stack,
                                   const std::vector<TraceModule>& modules);

  // From now on files are opened below this root: that of the process asked about, as the roots of
  // others in the same container vanish with them.
  void set_root(std::string root);

  // The modules asked for so far whose file was not used.
  std::vector<ModuleProblem> problems() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark::reader
