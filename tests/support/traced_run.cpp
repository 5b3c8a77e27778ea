// SPDX-License-Identifier: Apache-2.0
#include "tests/support/traced_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "common/check.h"
#include "profiler/reader/symbolizer.h"
#include "profiler/reader/trace_file.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {
namespace {

std::string request_text(const TraceAsk& ask) {
  constexpr const char* kNames[] = {"dormant", "sampled", "exact"};
  return "1:" + std::string(kNames[static_cast<std::size_t>(ask.mode)]) + ":" +
         std::to_string(ask.sample_every_bytes) + ":" + std::to_string(ask.most_file_bytes) + ":" +
         (ask.follow ? "f" : "") + (ask.libunwind ? "u" : "") + ":" + ask.directory;
}

// "name" of "name(int, char)" and of "name+0x12".
std::string bare_name(const std::string& function) {
  return function.substr(0, function.find_first_of("(+"));
}

// Names the frames that lie in what this build made; the libraries of the system have too many.
class Names {
 public:
  explicit Names(const reader::TraceFile& file) : file_(file) {}

  std::vector<std::string> of(const std::vector<reader::StackFrame>& stack) {
    std::vector<std::string> names;
    for (const reader::StackFrame& frame : stack) {
      if (!frame.module) {
        continue;
      }
      const auto& module = file_.modules().at(*frame.module);
      if (module.path.rfind(TIDEMARK_BINARY_DIR, 0) != 0) {
        continue;
      }
      auto& known = known_[{*frame.module, frame.value}];
      if (known.empty()) {
        for (const auto& part : symbolizer_.resolve(frame, file_.modules())) {
          known.push_back(bare_name(part.function));
        }
      }
      names.insert(names.end(), known.begin(), known.end());
    }
    return names;
  }

 private:
  const reader::TraceFile& file_;
  reader::Symbolizer symbolizer_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::string>> known_;
};

TracedSite site_of(const reader::SiteCounts& counts) {
  TracedSite site;
  site.kind = counts.kind;
  site.alloc_bytes = static_cast<double>(counts.alloc_bytes);
  site.alloc_blocks = counts.alloc_blocks;
  site.live_bytes = site.alloc_bytes - static_cast<double>(counts.free_bytes);
  site.live_blocks = counts.alloc_blocks - counts.free_blocks;
  site.temporary_blocks = counts.temporary_blocks;
  return site;
}

bool read_one(const std::string& path, bool with_names, TracedFile& result) {
  auto file = reader::TraceFile::open(path);
  if (!file) {
    return false;
  }
  auto snapshot = file->snapshot();
  const auto live = file->live_blocks();
  if (!snapshot || !live) {
    return false;
  }
  result.snapshot = std::move(*snapshot);
  for (const auto& site : live->sites) {
    result.listed_bytes += site.bytes;
    result.listed_blocks += site.blocks;
  }
  Names names(*file);
  for (const auto& counts : result.snapshot.sites) {
    TracedSite site = site_of(counts);
    const auto stack = file->stack(counts.node);
    site.frames = stack.size();
    if (with_names) {
      site.functions = names.of(stack);
    }
    result.sites.push_back(std::move(site));
  }
  return true;
}

}  // namespace

TracedSite TracedFile::sum_of(const std::string& function, AllocationKind kind) const {
  TracedSite sum;
  sum.kind = kind;
  for (const TracedSite& site : sites) {
    if (site.kind == kind &&
        std::find(site.functions.begin(), site.functions.end(), function) != site.functions.end()) {
      sum.alloc_bytes += site.alloc_bytes;
      sum.alloc_blocks += site.alloc_blocks;
      sum.live_bytes += site.live_bytes;
      sum.live_blocks += site.live_blocks;
      sum.temporary_blocks += site.temporary_blocks;
    }
  }
  return sum;
}

const TracedSite& TracedFile::top() const {
  TIDEMARK_CHECK(!sites.empty(), "the trace has no site");
  return *std::max_element(sites.begin(), sites.end(), [](const auto& one, const auto& other) {
    return one.live_bytes < other.live_bytes;
  });
}

const TracedFile* TracedRun::of_pid(std::uint32_t pid) const {
  const TracedFile* found = nullptr;
  for (const TracedFile& file : files) {
    if (file.snapshot.identity.pid != pid) {
      continue;
    }
    if (file.snapshot.stage != wire::Stage::kReplaced) {
      return &file;
    }
    found = found == nullptr ? &file : found;
  }
  return found;
}

std::string tracer_path() { return TIDEMARK_BINARY_DIR "/lib/libtidemark_tracer.so"; }
std::string operators_path() { return TIDEMARK_BINARY_DIR "/lib/libtidemark_operators.so"; }

std::vector<std::string> traced_command(const std::vector<std::string>& argv, const TraceAsk& ask) {
  std::string preload = tracer_path();
  for (const std::string& library : ask.also_preload) {
    preload += ":" + library;
  }
  std::vector<std::string> command = ask.before;
  command.insert(command.end(), {"/usr/bin/env", "LD_PRELOAD=" + preload,
                                 std::string(wire::kRequestVariable) + "=" + request_text(ask)});
  command.insert(command.end(), ask.environment.begin(), ask.environment.end());
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

void read_traces(const std::string& directory, bool names, TracedRun& run) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    TracedFile file;
    if (read_one(entry.path().string(), names, file)) {
      run.files.push_back(std::move(file));
    } else {
      ++run.unreadable;
    }
  }
  std::sort(run.files.begin(), run.files.end(), [](const auto& one, const auto& other) {
    return one.snapshot.identity.created_ns < other.snapshot.identity.created_ns;
  });
}

TracedRun run_traced(const std::vector<std::string>& argv, const TraceAsk& ask) {
  std::unique_ptr<TempTree> own;
  TraceAsk here = ask;
  if (here.directory.empty()) {
    own = std::make_unique<TempTree>();
    here.directory = own->path();
  }
  TracedRun run;
  // A deadlock in a child of the program must not outlive the test.
  std::vector<std::string> command = {"/usr/bin/timeout", "--kill-after=1", "50"};
  const auto rest = traced_command(argv, here);
  command.insert(command.end(), rest.begin(), rest.end());
  Subprocess program(command);
  program.close_input();
  run.status = program.wait();
  run.output = program.output();
  run.errors = program.errors();
  read_traces(here.directory, here.names, run);
  return run;
}

}  // namespace tidemark::tests
