// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/markers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/process_handle.h"

namespace tidemark::monitor {
namespace {

// Locating costs about 40 us and a tree may have thousands of processes that never mark.
constexpr std::int64_t kLocateAtLeastNs = 120'000'000'000;

// Bounds on what a target can make us do.
constexpr std::size_t kMaxRingsPerProcess = 16;
constexpr std::size_t kMaxMarkersPerPoll = 65'536;  // of all processes together
constexpr std::size_t kMaxNamesPerScan = 20'000;
constexpr std::size_t kMaxOpenPhases = 32;
constexpr std::size_t kMaxGauges = 32;

// File names in a directory, bounded; empty when it cannot be listed.
std::vector<std::string> list_names(int directory_fd) {
  std::vector<std::string> names;
  auto stream = DirectoryStream::open_at(directory_fd, ".");
  while (stream && names.size() < kMaxNamesPerScan) {
    const dirent* const entry = stream->next();
    if (entry == nullptr) {
      break;
    }
    names.emplace_back(entry->d_name);
  }
  return names;
}

// Markers before `start_ns` shrink to what still holds at that time.
void keep_state_only(std::vector<RingMarker>& markers, std::uint64_t start_ns,
                     const MarkerRing& ring) {
  const auto first_of_run =
      std::stable_partition(markers.begin(), markers.end(),
                            [&](const RingMarker& marker) { return marker.time_ns < start_ns; });
  std::optional<RingMarker> step;
  std::optional<RingMarker> epoch;
  std::vector<RingMarker> phases;
  std::map<std::string, RingMarker> gauges;
  for (auto marker = markers.begin(); marker != first_of_run; ++marker) {
    if (marker->kind == MarkerKind::kStep) {
      step = *marker;
    } else if (marker->kind == MarkerKind::kEpoch) {
      epoch = *marker;
    } else if (marker->kind == MarkerKind::kPhaseBegin && phases.size() < kMaxOpenPhases) {
      phases.push_back(*marker);
    } else if (marker->kind == MarkerKind::kPhaseEnd) {
      const auto begun = std::find_if(phases.rbegin(), phases.rend(), [&](const RingMarker& phase) {
        return phase.name == marker->name;
      });
      if (begun != phases.rend()) {
        phases.erase(std::next(begun).base());
      }
    } else if (marker->kind == MarkerKind::kGauge &&
               (gauges.size() < kMaxGauges || gauges.contains(marker->name))) {
      gauges[marker->name] = *marker;
    }
  }
  for (auto& [found, kind] : {std::pair(&step, MarkerKind::kStep), {&epoch, MarkerKind::kEpoch}}) {
    const auto latest = found->has_value() ? std::nullopt : ring.latest(kind);
    if (latest && latest->time_ns < start_ns) {
      *found = latest;
    }
  }

  std::vector<RingMarker> state = std::move(phases);
  for (auto& [name, gauge] : gauges) {
    state.push_back(std::move(gauge));
  }
  if (epoch) {
    state.push_back(*epoch);
  }
  if (step) {
    state.push_back(*step);
  }
  state.insert(state.end(), std::make_move_iterator(first_of_run),
               std::make_move_iterator(markers.end()));
  markers = std::move(state);
}

}  // namespace

// tidemark-UID in the /dev/shm of one or more watched processes.
struct MarkerReader::Directory {
  Fd base;  // O_PATH: the directory may appear later, and the process that led us here may die
  dev_t device = 0;
  ino_t inode = 0;
  std::string name;
  uid_t owner = 0;
  std::unordered_map<std::string, ProcessKey> prefixes;  // of the watched processes
};

struct MarkerReader::Process {
  struct OpenRing {
    std::string name;
    ino_t inode;  // a name can come back as another file: dlclose and dlopen, exec
    std::optional<MarkerRing> ring;  // nullopt: unreadable, not to be tried again
    bool fresh = true;
    bool replaced = false;  // the name is another file now: read once more, then forgotten
  };

  // A process can change its user or its mounts (an entry point that calls gosu, then exec), and
  // with them the place: as long as it has no ring it is located again from time to time.
  std::int64_t next_locate_ns = 0;
  std::int64_t locate_again_ns = 0;  // grows fourfold: most processes never mark
  Directory* directory = nullptr;    // nullptr: we may not read it, or there is none
  MarkerPlace place;
  std::vector<OpenRing> rings;
  std::uint64_t round = 0;  // the last poll that named it

  bool has_ring() const {
    return std::any_of(rings.begin(), rings.end(),
                       [](const OpenRing& open) { return open.ring.has_value(); });
  }
};

MarkerReader::MarkerReader(Options options) : options_(std::move(options)) {
  if (const auto own = pid_namespace_of("self")) {
    own_pid_namespace_ = *own;
  }
}
MarkerReader::~MarkerReader() = default;
MarkerReader::MarkerReader(MarkerReader&&) noexcept = default;
MarkerReader& MarkerReader::operator=(MarkerReader&&) noexcept = default;

void MarkerReader::poll(std::span<const ProcessKey> processes, std::int64_t now_ns,
                        std::vector<MarkerRecord>& out) {
  ++round_;
  for (const ProcessKey& key : processes) {
    processes_[key].round = round_;
  }
  find_rings(now_ns);
  read_all(now_ns, out);
  drop_unused_directories();
}

void MarkerReader::find_rings(std::int64_t now_ns) {
  if (now_ns >= next_scan_ns_) {
    next_scan_ns_ = now_ns + options_.scan_every_ns;
    scan(now_ns);
  }
}

void MarkerReader::finish(std::int64_t now_ns, std::vector<MarkerRecord>& out) {
  scan(now_ns);
  ++round_;
  read_all(now_ns, out);
  scan(now_ns);  // nobody is watched any more: removes the files of processes that have exited
  drop_unused_directories();
}

void MarkerReader::read_all(std::int64_t now_ns, std::vector<MarkerRecord>& out) {
  const std::size_t before = out.size();
  const std::size_t most = before + kMaxMarkersPerPoll;
  for (auto it = processes_.begin(); it != processes_.end();) {
    auto& [key, process] = *it;
    const bool ended = process.round != round_;
    read(key, process, ended ? MarkerRing::Pass::kLast : MarkerRing::Pass::kMore, now_ns, out);
    if (out.size() > most) {
      lost_ += out.size() - most;
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(most), out.end());
    }
    if (ended && process.directory != nullptr) {
      process.directory->prefixes.erase(process.place.prefix);
    }
    it = ended ? processes_.erase(it) : std::next(it);
  }
  std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
                   [](const MarkerRecord& a, const MarkerRecord& b) { return a.t_s < b.t_s; });
}

std::uint64_t MarkerReader::take_lost() { return std::exchange(lost_, 0); }

void MarkerReader::scan(std::int64_t now_ns) {
  for (auto& [key, process] : processes_) {
    if (now_ns >= process.next_locate_ns && !process.has_ring()) {
      process.locate_again_ns =
          std::clamp(4 * process.locate_again_ns, options_.locate_every_ns, kLocateAtLeastNs);
      process.next_locate_ns = now_ns + process.locate_again_ns;
      locate(key, process);
    }
  }
  for (const auto& directory : directories_) {
    list(*directory);
  }
}

void MarkerReader::locate(const ProcessKey& key, Process& process) {
  auto place = options_.locate(key);
  if (!place) {
    return;  // what we knew before, if anything, still holds
  }
  if (process.directory != nullptr) {
    process.directory->prefixes.erase(process.place.prefix);
  }
  process.place = std::move(*place);
  Directory* const before = std::exchange(process.directory, directory_of(process.place));
  if (process.directory != before) {
    process.rings.clear();  // unusable files that merely have the same names
  }
  if (process.directory != nullptr) {
    process.directory->prefixes[process.place.prefix] = key;
  }
}

MarkerReader::Directory* MarkerReader::directory_of(const MarkerPlace& place) {
  auto base = open_file(place.base, O_PATH | O_DIRECTORY);
  struct stat info {};
  if (!base || ::fstat(base->get(), &info) != 0) {
    return nullptr;
  }
  for (const auto& known : directories_) {
    if (known->device == info.st_dev && known->inode == info.st_ino &&
        known->name == place.directory && known->owner == place.owner) {
      return known.get();
    }
  }
  directories_.push_back(std::make_unique<Directory>(
      Directory{std::move(*base), info.st_dev, info.st_ino, place.directory, place.owner, {}}));
  return directories_.back().get();
}

void MarkerReader::list(Directory& directory) {
  auto fd = open_at(directory.base.get(), directory.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || info.st_uid != directory.owner) {
    return;
  }
  for (const std::string& name : list_names(fd->get())) {
    const auto parsed = parse_marker_file_name(name);
    if (!parsed) {
      continue;
    }
    const auto watched = directory.prefixes.find(name.substr(0, name.find('.') + 1));
    if (watched != directory.prefixes.end()) {
      if (!parsed->draft) {
        open_ring(fd->get(), name, processes_[watched->second], watched->second);
      }
    } else if (info.st_uid == ::geteuid() && parsed->pid_namespace == own_pid_namespace_) {
      // Left behind by a process of ours that crashed or was killed? A pid of another namespace
      // says nothing here.
      const auto living = process_key_of("/proc", parsed->pid);
      const bool has_exited =
          living ? living->start_ticks != parsed->start_ticks : living.error().code == Errc::kGone;
      if (has_exited) {
        ::unlinkat(fd->get(), name.c_str(), 0);
      }
    }
  }
}

void MarkerReader::open_ring(int directory_fd, const std::string& name, Process& process,
                             const ProcessKey& key) {
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  const auto known = std::find_if(
      process.rings.begin(), process.rings.end(),
      [&](const Process::OpenRing& ring) { return ring.name == name && !ring.replaced; });
  if (known != process.rings.end()) {
    if (known->inode == info.st_ino) {
      return;
    }
    known->replaced = true;
  } else if (process.rings.size() >= kMaxRingsPerProcess) {
    return;
  }
  process.rings.push_back({name, info.st_ino, std::nullopt});
  auto file = open_at(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file && ::fstat(file->get(), &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_uid == process.place.owner) {
    auto ring = MarkerRing::open(std::move(*file), process.place.inner_pid, key.start_ticks);
    if (ring) {
      process.rings.back().ring.emplace(std::move(*ring));
      return;
    }
  }
  ++unreadable_files_;
}

void MarkerReader::read(const ProcessKey& key, Process& process, MarkerRing::Pass pass,
                        std::int64_t now_ns, std::vector<MarkerRecord>& out) {
  for (auto& [name, inode, ring, fresh, replaced] : process.rings) {
    if (!ring) {
      continue;
    }
    std::vector<RingMarker> markers;
    ring->read(replaced ? MarkerRing::Pass::kLast : pass, markers);
    if (std::exchange(fresh, false)) {
      keep_state_only(markers, static_cast<std::uint64_t>(options_.run_start_ns), *ring);
    }
    lost_ += ring->take_lost();
    for (RingMarker& marker : markers) {
      // Nobody can have marked in the future.
      const auto time_ns =
          static_cast<std::int64_t>(std::min(marker.time_ns, static_cast<std::uint64_t>(now_ns)));
      out.push_back({to_seconds(time_ns - options_.run_start_ns), key, marker.kind, marker.value,
                     std::move(marker.name)});
    }
  }
  std::erase_if(process.rings, [](const Process::OpenRing& ring) { return ring.replaced; });
}

void MarkerReader::drop_unused_directories() {
  std::erase_if(directories_, [](const auto& directory) { return directory->prefixes.empty(); });
}

}  // namespace tidemark::monitor
