// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/gpu/gpu_source.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

// What a driver says about one region. Resident is what it takes now; "memory" is the older word
// for it; total includes what was never touched or has been moved out.
struct Region {
  std::optional<std::uint64_t> resident_bytes;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> total_bytes;

  std::optional<std::uint64_t> used_bytes() const {
    return resident_bytes ? resident_bytes : memory_bytes ? memory_bytes : total_bytes;
  }
};

bool is_gpus_own(std::string_view region) {
  constexpr std::array<std::string_view, 4> kOwn{"vram", "local", "lmem", "stolen-local"};
  return std::any_of(kOwn.begin(), kOwn.end(),
                     [&](std::string_view name) { return region.starts_with(name); });
}

// "123 KiB", "4 MiB", "4096".
std::optional<std::uint64_t> size_bytes(std::string_view value) {
  const auto number = parse_number<std::uint64_t>(take_word(value));
  const std::string_view unit = take_word(value);
  unsigned shift = 0;
  if (unit == "KiB") {
    shift = 10;
  } else if (unit == "MiB") {
    shift = 20;
  } else if (unit == "GiB") {
    shift = 30;
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return std::nullopt;
  }
  return *number << shift;
}

using Regions = std::map<std::string_view, Region>;

void apply_memory(Regions& regions, std::string_view key, std::string_view value) {
  struct Kind {
    std::string_view prefix;
    std::optional<std::uint64_t> Region::*field;
  };
  constexpr std::array<Kind, 3> kKinds{{{"resident-", &Region::resident_bytes},
                                        {"memory-", &Region::memory_bytes},
                                        {"total-", &Region::total_bytes}}};
  for (const Kind& kind : kKinds) {
    if (key.starts_with(kind.prefix)) {
      regions[key.substr(kind.prefix.size())].*kind.field = size_bytes(value);
    }
  }
}

std::optional<std::uint64_t> sum(const Regions& regions, bool gpus_own) {
  std::optional<std::uint64_t> bytes;
  for (const auto& [name, region] : regions) {
    const auto used = region.used_bytes();
    if (used && is_gpus_own(name) == gpus_own) {
      bytes = bytes.value_or(0) + *used;
    }
  }
  return bytes;
}

constexpr int kMaxDescriptors = 8192;  // of one process; more are not read

class DrmSource final : public GpuSource {
 public:
  DrmSource(std::string root, std::vector<std::string> devices)
      : root_(std::move(root)), devices_(std::move(devices)) {}

  Result<std::vector<GpuSample>> sample(std::span<const pid_t> pids) override;
  const GpuLosses& losses() const override { return losses_; }

 private:
  using Client = std::pair<std::size_t, std::uint64_t>;  // device, drm-client-id

  void add_process(pid_t pid, std::vector<GpuSample>& gpus, std::set<Client>& seen);
  std::optional<std::size_t> device_of(const DrmFdinfo& info) const;
  std::optional<std::uint64_t> device_figure(const std::string& device, const char* file) const;

  std::string root_;
  std::vector<std::string> devices_;  // PCI addresses, sorted: the index of a GPU
  GpuLosses losses_;
};

std::optional<std::uint64_t> DrmSource::device_figure(const std::string& device,
                                                      const char* file) const {
  const auto text = read_file(fmt::format("{}/sys/bus/pci/devices/{}/{}", root_, device, file));
  return text ? parse_number<std::uint64_t>(trim(*text)) : std::nullopt;
}

std::optional<std::size_t> DrmSource::device_of(const DrmFdinfo& info) const {
  if (info.device.empty() && devices_.size() == 1) {
    return 0;  // a GPU that is not on the PCI bus
  }
  const auto found = std::find(devices_.begin(), devices_.end(), info.device);
  return found == devices_.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - devices_.begin()));
}

Result<std::vector<GpuSample>> DrmSource::sample(std::span<const pid_t> pids) {
  losses_ = {};
  std::vector<GpuSample> gpus(devices_.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].index = static_cast<std::uint32_t>(i);
    gpus[i].name = devices_[i];
    // Only amdgpu has these files.
    gpus[i].used_bytes = device_figure(devices_[i], "mem_info_vram_used");
    gpus[i].total_bytes = device_figure(devices_[i], "mem_info_vram_total");
    if (const auto percent = device_figure(devices_[i], "gpu_busy_percent"); percent) {
      gpus[i].busy_percent = static_cast<std::uint32_t>(std::min<std::uint64_t>(*percent, 100));
    }
  }
  std::set<Client> seen;
  for (const pid_t pid : pids) {
    add_process(pid, gpus, seen);
  }
  return gpus;
}

void DrmSource::add_process(pid_t pid, std::vector<GpuSample>& gpus, std::set<Client>& seen) {
  const std::string directory = fmt::format("{}/proc/{}", root_, pid);
  auto stream = DirectoryStream::open_at(AT_FDCWD, directory + "/fd");
  if (!stream) {
    if (stream.error().code == Errc::kPermission) {
      ++losses_.failed_queries;
      losses_.last_failure = stream.error().what;
    }
    return;
  }
  std::map<std::size_t, std::optional<std::uint64_t>> used;
  std::set<std::size_t> unnumbered;
  int descriptors = 0;
  const dirent* entry = stream->next();
  for (; entry != nullptr && descriptors < kMaxDescriptors; entry = stream->next(), ++descriptors) {
    const auto target = read_link_at(stream->fd(), entry->d_name);
    if (!target || !target->starts_with("/dev/dri/")) {
      continue;
    }
    const auto text = read_file(fmt::format("{}/fdinfo/{}", directory, entry->d_name));
    const auto info = text ? parse_drm_fdinfo(*text) : std::nullopt;
    const auto device = info ? device_of(*info) : std::nullopt;
    if (!device) {
      continue;
    }
    // Descriptors that were duplicated or inherited name the same client. One without a number
    // cannot be told from its copies: it counts once per process.
    const bool is_new = info->client ? seen.emplace(*device, *info->client).second
                                     : unnumbered.insert(*device).second;
    if (!is_new) {
      continue;
    }
    auto& bytes = used[*device];
    if (info->used_bytes) {
      bytes = bytes.value_or(0) + *info->used_bytes;
    }
    gpus[*device].name = fmt::format("{} {}", info->driver, devices_[*device]);
  }
  for (const auto& [device, bytes] : used) {
    gpus[device].processes.push_back({pid, bytes});
  }
}

// The devices behind /sys/class/drm/renderD*, each once.
std::vector<std::string> render_devices(const std::string& root) {
  std::vector<std::string> devices;
  auto stream = DirectoryStream::open_at(AT_FDCWD, root + "/sys/class/drm");
  if (!stream) {
    return devices;
  }
  while (const dirent* entry = stream->next()) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("renderD")) {
      if (const auto target = read_link_at(stream->fd(), fmt::format("{}/device", name))) {
        devices.emplace_back(basename_of(*target));
      }
    }
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

}  // namespace

std::optional<DrmFdinfo> parse_drm_fdinfo(std::string_view text) {
  DrmFdinfo info;
  Regions regions;
  std::string_view line;
  while (take_line(text, line)) {
    constexpr std::string_view kPrefix = "drm-";
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(kPrefix)) {
      continue;
    }
    const std::string_view key = line.substr(kPrefix.size(), colon - kPrefix.size());
    const std::string_view value = line.substr(colon + 1);
    if (key == "driver") {
      info.driver = std::string(trim(value));
    } else if (key == "pdev") {
      info.device = std::string(trim(value));
    } else if (key == "client-id") {
      info.client = leading_number(value);
    } else {
      apply_memory(regions, key, value);
    }
  }
  if (info.driver.empty()) {
    return std::nullopt;
  }
  const auto own = sum(regions, /*gpus_own=*/true);
  info.used_bytes = own ? own : sum(regions, /*gpus_own=*/false);
  return info;
}

Result<std::unique_ptr<GpuSource>> open_drm_fdinfo(const std::string& root) {
  std::vector<std::string> devices = render_devices(root);
  if (devices.empty()) {
    return Error{Errc::kUnsupported, "no other GPU (/sys/class/drm)"};
  }
  return std::unique_ptr<GpuSource>(std::make_unique<DrmSource>(root, std::move(devices)));
}

}  // namespace tidemark::monitor
