// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/marker_ring.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/process_handle.h"

#define TIDEMARK_LAYOUT_ONLY
#include "api/tidemark.h"

namespace tidemark::monitor {
namespace {

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Whether a writer of `owner` refuses what is there.
bool is_taken(const std::string& path, uid_t owner) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 &&
         (!S_ISDIR(info.st_mode) || info.st_uid != owner || (info.st_mode & 07777U) != 0700);
}

// The writers' rule: /dev/shm, or $XDG_RUNTIME_DIR where that does not exist, or where somebody
// else has taken `name` in it.
Result<std::string> base_directory(const ProcessHandle& process, const std::string& root,
                                   const std::string& name, uid_t owner) {
  std::string base = root + "/dev/shm";
  if (is_directory(base) && !is_taken(base + '/' + name, owner)) {
    return base;
  }
  const std::array<std::string, 1> names = {"XDG_RUNTIME_DIR"};
  TIDEMARK_TRY_ASSIGN(const auto variables, process.environment(names));
  if (variables.empty()) {
    return Error{Errc::kNotFound, fmt::format("no {}", base)};
  }
  return root + variables.front().substr(names[0].size() + 1);
}

// Takes "<number><separator>" off the front.
template <typename T>
std::optional<T> take_number(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = parse_number<T>(rest.substr(0, end));
  rest.remove_prefix(end + 1);
  return number;
}

using Header = tidemark_ring_header;
using Record = tidemark_ring_record;

static_assert(sizeof(Header) == 128 && sizeof(Record) == 64);
static_assert(offsetof(Header, next) == 64 && offsetof(Record, name) == 32);
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Record>);

// What all writers use; bounds what a target can make us read at once.
constexpr std::uint32_t kMaxCapacity = TIDEMARK_RING_CAPACITY;
constexpr std::size_t kChunk = 128;  // records: 8 KiB of stack, twice

template <typename T>
bool read_exactly(int fd, std::span<T> into, std::uint64_t offset) {
  const std::span<char> bytes(reinterpret_cast<char*>(into.data()), into.size_bytes());
  const auto n = pread_full(fd, bytes, static_cast<off_t>(offset));
  return n && *n == bytes.size();
}

template <typename T>
std::optional<T> read_value(int fd, std::uint64_t offset) {
  T value{};
  if (!read_exactly(fd, std::span<T>(&value, 1), offset)) {
    return std::nullopt;
  }
  return value;
}

std::optional<MarkerKind> kind_of(std::uint32_t kind) {
  switch (kind) {
    case TIDEMARK_KIND_STEP:
      return MarkerKind::kStep;
    case TIDEMARK_KIND_EPOCH:
      return MarkerKind::kEpoch;
    case TIDEMARK_KIND_PHASE_BEGIN:
      return MarkerKind::kPhaseBegin;
    case TIDEMARK_KIND_PHASE_END:
      return MarkerKind::kPhaseEnd;
    case TIDEMARK_KIND_GAUGE:
      return MarkerKind::kGauge;
    default:
      return std::nullopt;
  }
}

std::optional<RingMarker> checked(const Record& record) {
  const auto kind = kind_of(record.kind);
  if (!kind || record.name_bytes > sizeof record.name) {
    return std::nullopt;
  }
  return RingMarker{record.time_ns, *kind, record.value,
                    std::string(record.name, record.name_bytes)};
}

}  // namespace

Result<std::uint64_t> pid_namespace_of(const std::string& who) {
  const std::string path = fmt::format("/proc/{}/ns/pid", who);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return system_error(fmt::format("cannot look at {}", path), errno);
  }
  return static_cast<std::uint64_t>(info.st_ino);
}

std::optional<uid_t> map_uid_inside(std::string_view uid_map, uid_t outside) {
  while (const auto line = next_line(uid_map)) {
    // "<first inside> <first outside> <count>", padded with blanks
    std::uint64_t fields[3] = {};
    const char* at = line->data();
    const char* const end = at + line->size();
    for (std::uint64_t& field : fields) {
      while (at != end && *at == ' ') {
        ++at;
      }
      const auto [stop, error] = std::from_chars(at, end, field);
      if (error != std::errc{}) {
        return std::nullopt;
      }
      at = stop;
    }
    if (outside >= fields[1] && outside - fields[1] < fields[2]) {
      return static_cast<uid_t>(fields[0] + (outside - fields[1]));
    }
  }
  return std::nullopt;
}

Result<MarkerPlace> locate_markers(const ProcessKey& key) {
  TIDEMARK_TRY_ASSIGN(auto process, ProcessHandle::open("/proc", key));
  TIDEMARK_TRY_ASSIGN(const auto status, process.status());
  const std::string directory = fmt::format("/proc/{}", key.pid);
  const auto pid_namespace = pid_namespace_of(std::to_string(key.pid));
  const auto uid_map = read_file(directory + "/uid_map");
  if (!pid_namespace || !uid_map) {
    return pid_namespace ? uid_map.error() : pid_namespace.error();
  }
  const auto inner_uid = map_uid_inside(*uid_map, status.uid);
  if (!inner_uid) {
    return Error{Errc::kNotFound,
                 fmt::format("user {} is not in {}/uid_map", status.uid, directory)};
  }
  const std::string name = fmt::format("tidemark-{}", *inner_uid);
  TIDEMARK_TRY_ASSIGN(auto base, base_directory(process, directory + "/root", name, status.uid));
  const pid_t inner_pid = status.innermost_pid.value_or(key.pid);
  return MarkerPlace{std::move(base), name, status.uid, inner_pid,
                     fmt::format("{}-{}-{}.", inner_pid, key.start_ticks, *pid_namespace)};
}

std::optional<MarkerFileName> parse_marker_file_name(std::string_view name) {
  const bool draft = name.ends_with(".new");
  if (!draft && !name.ends_with(".markers")) {
    return std::nullopt;
  }
  const auto pid = take_number<pid_t>(name, '-');
  const auto start_ticks = take_number<std::uint64_t>(name, '-');
  const auto pid_namespace = take_number<std::uint64_t>(name, '.');
  if (!pid || *pid <= 0 || !start_ticks || !pid_namespace) {
    return std::nullopt;
  }
  return MarkerFileName{*pid, *start_ticks, *pid_namespace, draft};
}

MarkerRing::MarkerRing(Fd file, std::uint32_t capacity)
    : file_(std::move(file)), capacity_(capacity) {}

Result<MarkerRing> MarkerRing::open(Fd file, pid_t inner_pid, std::uint64_t start_ticks) {
  const auto header = read_value<Header>(file.get(), 0);
  if (!header || header->magic != TIDEMARK_RING_MAGIC) {
    return Error{Errc::kMalformed, "not a marker file"};
  }
  if (header->version != TIDEMARK_RING_VERSION) {
    return Error{Errc::kUnsupported,
                 fmt::format("marker file of version {}, this program reads version {}",
                             header->version, TIDEMARK_RING_VERSION)};
  }
  if (header->record_bytes != sizeof(Record) || !std::has_single_bit(header->capacity) ||
      header->capacity > kMaxCapacity) {
    return Error{Errc::kMalformed, "marker file with a damaged header"};
  }
  if (header->pid != static_cast<std::uint32_t>(inner_pid) || header->start_ticks != start_ticks) {
    return Error{Errc::kNotFound, "marker file of another process"};
  }
  return MarkerRing(std::move(file), header->capacity);
}

std::optional<std::uint64_t> MarkerRing::next_index() const {
  return read_value<std::uint64_t>(file_.get(), offsetof(Header, next));
}

bool MarkerRing::overwritten(std::uint64_t index, std::uint64_t next) const {
  // A writer may have reserved its place and begun to write before we see its `next`: stay clear of
  // as many records as threads can be in the middle of one.
  const std::uint64_t margin = capacity_ / 256;
  return next > index && next - index > capacity_ - margin;
}

void MarkerRing::read(Pass pass, std::vector<RingMarker>& out) {
  const auto next = next_index();
  if (!next) {
    return;
  }
  if (overwritten(position_, *next)) {
    const std::uint64_t oldest = *next - (capacity_ - capacity_ / 256);
    if (!fresh_) {  // what was overwritten before we came is history, not loss
      lost_ += oldest - position_;
    }
    position_ = oldest;
  }
  fresh_ = false;
  while (position_ < *next && read_chunk(*next, pass, out)) {
  }
}

bool MarkerRing::read_chunk(std::uint64_t next, Pass pass, std::vector<RingMarker>& out) {
  const std::uint64_t place = position_ % capacity_;
  const auto count = static_cast<std::size_t>(
      std::min({static_cast<std::uint64_t>(kChunk), next - position_, capacity_ - place}));
  std::array<Record, kChunk> first;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::array<Record, kChunk> second;
  const std::uint64_t offset = sizeof(Header) + place * sizeof(Record);
  // Twice: once a sequence is seen, what is read afterwards is the record that it published. And a
  // read `next` after that, because records that were overwritten meanwhile are no use.
  if (!read_exactly(file_.get(), std::span(first).first(count), offset) ||
      !read_exactly(file_.get(), std::span(second).first(count), offset)) {
    return false;
  }
  const std::uint64_t now_next = std::max(next, next_index().value_or(next));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t sequence = position_ + 1;
    const bool gone = overwritten(position_, now_next);
    const bool published = first[i].sequence == sequence && second[i].sequence == sequence;
    if (!gone && !published && pass == Pass::kMore && awaited_ != position_) {
      awaited_ = position_;
      return false;
    }
    auto marker = published && !gone ? checked(second[i]) : std::nullopt;
    if (marker) {
      out.push_back(std::move(*marker));
    } else {
      ++lost_;
    }
    ++position_;
  }
  return true;
}

std::optional<RingMarker> MarkerRing::latest(MarkerKind kind) const {
  const auto header = read_value<Header>(file_.get(), 0);
  if (!header) {
    return std::nullopt;
  }
  const bool step = kind == MarkerKind::kStep;
  const std::uint64_t time_ns = step ? header->step_time_ns : header->epoch_time_ns;
  if (time_ns == 0) {
    return std::nullopt;
  }
  return RingMarker{time_ns, kind, step ? header->step : header->epoch, {}};
}

std::uint64_t MarkerRing::take_lost() { return std::exchange(lost_, 0); }

}  // namespace tidemark::monitor
