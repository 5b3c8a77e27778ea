// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/children.h"

#include <fcntl.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/directory_stream.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

constexpr int kWalks = 3;
constexpr std::size_t kPieceBytes = 4096;

Result<std::vector<pid_t>> thread_ids(int process_directory) {
  auto stream = DirectoryStream::open_at(process_directory, "task");
  if (!stream) {
    return stream.error();
  }
  std::vector<pid_t> tids;
  while (const dirent* entry = stream->next()) {
    if (const auto tid = parse_number<pid_t>(std::string_view(entry->d_name))) {
      tids.push_back(*tid);
    }
  }
  return tids;
}

}  // namespace

Result<std::vector<pid_t>> children_of_thread(int process_directory, pid_t tid) {
  const std::string name = fmt::format("task/{}/children", tid);
  auto fd = open_at(process_directory, name, O_RDONLY);
  if (!fd) {
    return fd.error();
  }
  std::array<char, kPieceBytes> piece;
  const auto size = pread_once(fd->get(), piece);
  if (!size) {
    return size.error();
  }
  std::string_view rest(piece.data(), *size);
  std::string whole;
  if (rest.size() >= kPieceBytes / 2) {  // the kernel gives a page at a time: there may be more
    auto text = read_to_end(fd->get());
    if (!text) {
      return text.error();
    }
    whole = std::move(*text);
    rest = whole;
  }
  std::vector<pid_t> pids;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (const auto pid = parse_number<pid_t>(word)) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

Result<std::vector<pid_t>> children_of_threads(int process_directory) {
  std::vector<pid_t> pids;
  for (int walk = 1; walk <= kWalks; ++walk) {
    const auto tids = thread_ids(process_directory);
    if (!tids) {
      return tids.error();
    }
    pids.clear();
    std::size_t ended = 0;
    for (const pid_t tid : *tids) {
      const auto of_thread = children_of_thread(process_directory, tid);
      if (!of_thread) {
        ++ended;
        continue;
      }
      pids.insert(pids.end(), of_thread->begin(), of_thread->end());
    }
    if (ended == tids->size()) {
      return Error{Errc::kNotFound, "no thread has a list of children"};
    }
    if (ended == 0) {
      break;
    }
  }
  return pids;
}

}  // namespace tidemark::monitor
