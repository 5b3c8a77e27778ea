// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/directory_stream.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

void mark(WantedFiles& wanted, ino_t inode) {
  const auto found = wanted.held.find(inode);
  if (found != wanted.held.end()) {
    found->second = true;
  }
}

Looked outcome(const Error& error) {
  return error.code == Errc::kGone || error.code == Errc::kNotFound ? Looked::kGone
                                                                    : Looked::kRefused;
}

Looked look_at_maps(int directory, WantedFiles& wanted) {
  auto fd = open_at(directory, "maps", O_RDONLY);
  if (!fd) {
    return outcome(fd.error());
  }
  const auto read = read_whole_lines(fd->get(), [&](std::string_view lines) {
    mark_mapped_files(lines, wanted);
    return true;
  });
  return read ? Looked::kYes : outcome(read.error());
}

// Asks for the inode only when the name fits: a stat of any file that a stranger has open may
// hang, on a dead network file system for example.
void look_at_link(int descriptors, const char* number, WantedFiles& wanted) {
  const auto path = read_link_at(descriptors, number);
  if (!path || path->ends_with(" (deleted)")) {
    return;  // what is deleted has no name any more
  }
  struct stat info {};
  if (wanted.names.contains(std::string(basename_of(*path))) &&
      ::fstatat(descriptors, number, &info, 0) == 0 && info.st_dev == wanted.device) {
    mark(wanted, info.st_ino);
  }
}

Looked look_at_descriptors(int directory, WantedFiles& wanted) {
  auto stream = DirectoryStream::open_at(directory, "fd");
  if (!stream) {
    return outcome(stream.error());
  }
  while (const dirent* entry = stream->next()) {
    if (entry->d_name[0] != '.') {
      look_at_link(stream->fd(), entry->d_name, wanted);
    }
  }
  return Looked::kYes;
}

}  // namespace

void mark_mapped_files(std::string_view text, WantedFiles& wanted) {
  const std::string device =
      fmt::format("{:02x}:{:02x}", ::major(wanted.device), ::minor(wanted.device));
  std::string_view line;
  while (take_line(text, line)) {
    take_word(line);  // range
    take_word(line);  // permissions
    take_word(line);  // offset
    if (take_word(line) == device) {
      if (const auto inode = parse_number<ino_t>(take_word(line))) {
        mark(wanted, *inode);
      }
    }
  }
}

Looked look_for_held_files(const std::string& proc_root, pid_t pid, WantedFiles& wanted) {
  auto directory = open_file(fmt::format("{}/{}", proc_root, pid), O_PATH | O_DIRECTORY);
  if (!directory) {
    return outcome(directory.error());
  }
  const Looked maps = look_at_maps(directory->get(), wanted);
  const Looked descriptors = look_at_descriptors(directory->get(), wanted);
  if (maps == Looked::kRefused || descriptors == Looked::kRefused) {
    return Looked::kRefused;
  }
  return maps == Looked::kYes && descriptors == Looked::kYes ? Looked::kYes : Looked::kGone;
}

}  // namespace tidemark::monitor
