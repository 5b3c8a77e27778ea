// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/marker_place.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/process_handle.h"

namespace tidemark::monitor {
namespace {

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The writers' rule: /dev/shm, or $XDG_RUNTIME_DIR where that does not exist.
Result<std::string> base_directory(const ProcessHandle& process, const std::string& root) {
  std::string base = root + "/dev/shm";
  if (is_directory(base)) {
    return base;
  }
  const std::array<std::string, 1> names = {"XDG_RUNTIME_DIR"};
  const auto variables = process.environment(names);
  if (!variables) {
    return variables.error();
  }
  if (variables->empty()) {
    return Error{Errc::kNotFound, fmt::format("no {}", base)};
  }
  return root + variables->front().substr(names[0].size() + 1);
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
  auto process = ProcessHandle::open("/proc", key);
  if (!process) {
    return process.error();
  }
  const auto status = process->status();
  if (!status) {
    return status.error();
  }
  const std::string directory = fmt::format("/proc/{}", key.pid);
  const auto pid_namespace = pid_namespace_of(std::to_string(key.pid));
  const auto uid_map = read_file(directory + "/uid_map");
  if (!pid_namespace || !uid_map) {
    return pid_namespace ? uid_map.error() : pid_namespace.error();
  }
  const auto inner_uid = map_uid_inside(*uid_map, status->uid);
  if (!inner_uid) {
    return Error{Errc::kNotFound,
                 fmt::format("user {} is not in {}/uid_map", status->uid, directory)};
  }
  auto base = base_directory(*process, directory + "/root");
  if (!base) {
    return base.error();
  }
  const pid_t inner_pid = status->innermost_pid.value_or(key.pid);
  return MarkerPlace{std::move(*base), fmt::format("tidemark-{}", *inner_uid), status->uid,
                     inner_pid,
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

}  // namespace tidemark::monitor
