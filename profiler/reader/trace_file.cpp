// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/io.h"
#include "profiler/reader/live_table.h"
#include "profiler/reader/module_list.h"
#include "profiler/reader/python_codes.h"
#include "profiler/reader/stack_tree.h"
#include "profiler/reader/trace_image.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

using wire::Control;
using wire::Header;
using wire::Table;

constexpr std::size_t kChunkSites = 4096;

// The enumerators of the format are those of a run file, in their order: here, and nowhere else,
// the ones become the others.
static_assert(static_cast<int>(wire::SiteKind::kHeap) - 1 ==
              static_cast<int>(AllocationKind::kHeap));
static_assert(wire::kMaxMemoryKind - 1 == static_cast<int>(AllocationKind::kCudaRegistered));
static_assert(static_cast<int>(wire::Mode::kExact) == static_cast<int>(TraceMode::kExact));
static_assert(static_cast<int>(wire::NodeKind::kPython) == static_cast<int>(FrameKind::kPython));
static_assert(static_cast<int>(wire::NodeKind::kThreadStart) ==
              static_cast<int>(FrameKind::kThreadStart));

template <typename T>
T load(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

double blocks_of(const std::atomic<std::uint64_t>& units) {
  return static_cast<double>(load(units)) / static_cast<double>(wire::kBlockUnit);
}

Status check_file(int fd, const TraceOpenOptions& options) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("trace file", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{Errc::kPermission, "not a regular file"};
  }
  if (status.st_uid != options.owner.value_or(::geteuid())) {
    return Error{Errc::kPermission, "the trace file belongs to another user"};
  }
  return ok();
}

TraceIdentity identity_in(const Header& header) {
  return {header.pid,           header.parent_pid, header.start_ticks,
          header.pid_namespace, header.created_ns, load(header.forked) != 0};
}

TraceLosses losses_in(const wire::Losses& raw) {
  return {load(raw.live_full),       load(raw.sites_full),       load(raw.ranges_full),
          load(raw.unknown_frees),   load(raw.truncated_stacks), load(raw.empty_stacks),
          load(raw.extend_failures), load(raw.reentered),        load(raw.missed_frees)};
}

// Fills in what the header says; false when a field has a value that no version of it has.
bool read_state(const TraceHeader& header, TraceSnapshot& out) {
  const Header& raw = *header.raw;
  const std::uint32_t stage = load(raw.stage);
  const std::uint32_t mode = load(raw.control.mode);
  if (stage > static_cast<std::uint32_t>(wire::Stage::kExited) ||
      mode > static_cast<std::uint32_t>(wire::Mode::kExact)) {
    return false;
  }
  out.identity = identity_in(raw);
  out.stage = static_cast<wire::Stage>(stage);
  out.mode = static_cast<TraceMode>(mode);
  out.reason.assign(raw.reason, ::strnlen(raw.reason, sizeof raw.reason));
  out.python = static_cast<wire::PythonFramesState>(load(raw.python));
  out.python_problem.assign(raw.python_problem,
                            ::strnlen(raw.python_problem, sizeof raw.python_problem));
  out.sample_every_bytes = load(raw.control.sample_every_bytes);
  out.epoch = load(raw.control.epoch);
  out.file_bytes = header.allocated_bytes;
  out.private_bytes = load(raw.private_bytes);
  out.extend_errno = static_cast<int>(load(raw.extend_errno));
  out.losses = losses_in(raw.losses);
  return true;
}

SiteCounts counts_of(const wire::Site& raw, std::uint64_t index) {
  SiteCounts counts;
  counts.index = static_cast<std::uint32_t>(index);
  counts.ready = load(raw.ready);
  counts.kind = static_cast<AllocationKind>(static_cast<int>(raw.kind) - 1);
  counts.node = raw.node;
  counts.truncated = raw.truncated != 0;
  counts.alloc_bytes = load(raw.alloc_bytes);
  counts.free_bytes = load(raw.free_bytes);
  counts.peak_live_bytes = load(raw.peak_live_bytes);
  counts.alloc_blocks = blocks_of(raw.alloc_block_units);
  counts.free_blocks = blocks_of(raw.free_block_units);
  counts.temporary_blocks = blocks_of(raw.temporary_block_units);
  return counts;
}

// `expected`: how many are likely to be ready. What the file says is no measure of that.
void read_sites(int fd, const TraceHeader& header, std::size_t expected,
                const std::function<bool(const SiteCounts&)>& keeps, TraceSnapshot& out) {
  const TableView& table = header.table(Table::kSites);
  const Bound sites = bounded(header.used(Table::kSites), readable_end(table), kMostSites);
  out.sites.reserve(expected);
  std::vector<wire::Site> buffer(buffer_items(sites.end, kChunkSites));
  const auto take = [&](std::uint64_t first, std::span<const wire::Site> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto kind = static_cast<std::uint8_t>(rows[i].kind);
      if (load(rows[i].ready) == 0 || rows[i].kind == wire::SiteKind::kThreadStart) {
        continue;
      }
      if (kind == 0 || kind > wire::kMaxMemoryKind) {
        ++out.read_losses.damaged_items;
        continue;
      }
      const SiteCounts counts = counts_of(rows[i], first + i);
      ++out.ready_sites;
      out.freed_blocks += counts.free_blocks;
      if (!keeps || keeps(counts)) {
        out.sites.push_back(counts);
      }
    }
  };
  out.read_losses.unread_items += sites.beyond;
  out.read_losses.unread_items += for_each_chunk(fd, table, 0, sites.end, buffer, take);
  out.ready_sites += load(header.raw->recycled.sites);
  out.freed_blocks += blocks_of(header.raw->recycled.block_units);
}

}  // namespace

class TraceFile::State {
 public:
  Fd file;
  bool may_write = false;
  TraceIdentity identity;
  StackTree stacks;
  PythonCodes codes;
  ModuleList modules;
  TableView sites;
  struct KnownStack {
    std::uint32_t index;
    std::uint32_t ready;
    std::uint64_t stack;
  };
  std::vector<KnownStack> known;  // of the sites that the last snapshot listed, by index

  // Finds out the stacks of the sites; those that have become sites of other stacks are left out.
  void read_stacks(std::vector<SiteCounts>& listed) {
    std::vector<KnownStack> now;
    now.reserve(listed.size());
    auto before = known.begin();
    std::erase_if(listed, [&](SiteCounts& site) {
      while (before != known.end() && before->index < site.index) {
        ++before;
      }
      if (before != known.end() && before->index == site.index && before->ready == site.ready) {
        site.stack = before->stack;
      } else {
        stacks.settle(file.get(), site.node, modules);
        site.stack = stacks.identity(site.node);
        if (!is_same(site)) {
          return true;
        }
      }
      now.push_back({site.index, site.ready, site.stack});
      return false;
    });
    known = std::move(now);
    stacks.forget();
  }

  bool is_same(const SiteCounts& site) const {
    wire::Site row{};
    return read_items(file.get(), sites, site.index, 1, &row) == 0 && load(row.ready) == site.ready;
  }

  template <typename T>
  Status write_control(std::size_t offset_in_control, T value) const {
    if (!may_write) {
      return Error{Errc::kPermission, "the trace file is open for reading only"};
    }
    const std::size_t offset = offsetof(Header, control) + offset_in_control;
    ssize_t put = 0;
    do {
      put = ::pwrite(file.get(), &value, sizeof value, static_cast<off_t>(offset));
    } while (put < 0 && errno == EINTR);
    if (put < 0) {
      return system_error("cannot write to the trace file", errno);
    }
    if (static_cast<std::size_t>(put) != sizeof value) {
      return Error{Errc::kIo, "the trace file took only a part of an order"};
    }
    return ok();
  }
};

TraceFile::TraceFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceFile::TraceFile(TraceFile&& other) noexcept = default;
TraceFile& TraceFile::operator=(TraceFile&& other) noexcept = default;
TraceFile::~TraceFile() = default;

Result<TraceFile> TraceFile::open(const std::string& path, const TraceOpenOptions& options) {
  const bool write = options.access == TraceOpenOptions::Access::kControl;
  // Without O_NONBLOCK a FIFO in the place of the file would hold us up.
  auto file = open_file(path, (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK);
  if (!file) {
    Error error = file.error();
    if (error.sys_errno == ELOOP) {
      error.code = Errc::kPermission;
    }
    return error;
  }
  auto opened = adopt(std::move(*file), options);
  if (!opened) {
    Error error = opened.error();
    error.what = path + ": " + error.what;
    return error;
  }
  return opened;
}

Result<TraceFile> TraceFile::adopt(Fd file, const TraceOpenOptions& options) {
  TIDEMARK_TRY(check_file(file.get(), options));
  TIDEMARK_TRY_ASSIGN(auto header, read_trace_header(file.get()));
  if (load(header.raw->stage) == static_cast<std::uint32_t>(wire::Stage::kSettingUp)) {
    return Error{Errc::kNotFound, "the tracer is still setting the trace file up"};
  }
  auto state = std::make_unique<State>();
  state->file = std::move(file);
  state->may_write = options.access == TraceOpenOptions::Access::kControl;
  state->identity = identity_in(*header.raw);
  return TraceFile(std::move(state));
}

const TraceIdentity& TraceFile::identity() const { return state_->identity; }

const std::vector<TraceModule>& TraceFile::modules() const { return state_->modules.all(); }

Result<TraceSnapshot> TraceFile::snapshot(const std::function<bool(const SiteCounts&)>& keeps) {
  const int fd = state_->file.get();
  TIDEMARK_TRY_ASSIGN(auto header, read_trace_header(fd));
  TraceSnapshot out;
  if (!read_state(header, out)) {
    return Error{Errc::kMalformed, "the header of the trace file is damaged"};
  }
  read_sites(fd, header, state_->known.size(), keeps, out);
  // The sites first: what they lead to is complete by now. The tables may have grown meanwhile.
  TIDEMARK_TRY_ASSIGN(auto later, read_trace_header(fd));
  state_->modules.extend(fd, later);
  state_->stacks.extend(later);
  state_->codes.extend(later);
  state_->sites = later.table(Table::kSites);
  state_->read_stacks(out.sites);
  out.read_losses.damaged_items += state_->modules.damaged();
  out.modules = state_->modules.all().size();
  out.nodes = state_->stacks.size();
  return out;
}

std::vector<StackFrame> TraceFile::stack(std::uint32_t node) const {
  std::vector<StackFrame> frames;
  for (const wire::StackNode& raw : state_->stacks.path(state_->file.get(), node)) {
    StackFrame frame;
    frame.kind = static_cast<FrameKind>(raw.kind);
    frame.value = raw.value;
    if (frame.kind == FrameKind::kNative && raw.value > 0) {
      // By the call before the return address, which may be the first byte of the next module.
      frame.module = state_->modules.find(raw.value - 1, raw.modules);
    } else if (frame.kind == FrameKind::kPython) {
      state_->codes.name(state_->file.get(), frame);
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

bool TraceFile::is_same(const SiteCounts& site) const { return state_->is_same(site); }

Result<LiveScan> TraceFile::live_blocks(const LiveScanOptions& options) const {
  TIDEMARK_TRY_ASSIGN(auto header, read_trace_header(state_->file.get()));
  return scan_live_blocks(state_->file.get(), header, options);
}

Status TraceFile::set_mode(TraceMode mode) {
  return state_->write_control(offsetof(Control, mode), static_cast<std::uint32_t>(mode));
}

Status TraceFile::set_sample_every(std::uint64_t bytes) {
  if (bytes == 0) {
    return Error{Errc::kUsage, "a sampling period is at least one byte"};
  }
  return state_->write_control(offsetof(Control, sample_every_bytes), bytes);
}

Status TraceFile::set_epoch_seconds(std::uint32_t seconds) {
  return state_->write_control(offsetof(Control, epoch), seconds & ~wire::kEpochIsStep);
}

Status TraceFile::set_epoch_step(std::uint32_t step) {
  return state_->write_control(offsetof(Control, epoch), step | wire::kEpochIsStep);
}

}  // namespace tidemark::reader
