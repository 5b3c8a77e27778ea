// SPDX-License-Identifier: Apache-2.0
#include "tests/support/marker_dump.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "common/io.h"

#define TIDEMARK_LAYOUT_ONLY
#include "api/tidemark.h"

namespace tidemark::tests {
namespace {

std::string describe(const tidemark_ring_record& record) {
  const std::string name(record.name, std::min<std::size_t>(record.name_bytes, sizeof record.name));
  switch (record.kind) {
    case TIDEMARK_KIND_STEP:
      return fmt::format("step {}", record.value);
    case TIDEMARK_KIND_EPOCH:
      return fmt::format("epoch {}", record.value);
    case TIDEMARK_KIND_PHASE_BEGIN:
      return "begin " + name;
    case TIDEMARK_KIND_PHASE_END:
      return "end " + name;
    case TIDEMARK_KIND_GAUGE:
      return fmt::format("gauge {} {}", name, record.value);
    default:
      return "?";
  }
}

std::string dump_file(const std::string& path, const std::string& tag) {
  const auto text = read_file(path);
  auto ring = std::make_unique<tidemark_ring>();
  if (!text || text->size() != sizeof *ring) {
    return tag + ": unreadable\n";
  }
  std::memcpy(ring.get(), text->data(), sizeof *ring);
  std::string lines;
  const std::uint64_t next = ring->header.next;
  for (std::uint64_t n = next > TIDEMARK_RING_CAPACITY ? next - TIDEMARK_RING_CAPACITY : 0;
       n < next; ++n) {
    const tidemark_ring_record& record = ring->records[n % TIDEMARK_RING_CAPACITY];
    lines +=
        fmt::format("{}: {}\n", tag, record.sequence == n + 1 ? describe(record) : "not published");
  }
  return lines;
}

}  // namespace

std::string marker_directory() { return fmt::format("/dev/shm/tidemark-{}", ::geteuid()); }

std::vector<std::string> marker_files(pid_t pid) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(marker_directory(), error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(fmt::format("{}-", pid))) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string dump_markers(pid_t pid) {
  std::string lines;
  for (const std::string& name : marker_files(pid)) {
    const std::size_t dot = name.find('.');
    lines +=
        dump_file(marker_directory() + "/" + name, name.substr(dot + 1, name.rfind('.') - dot - 1));
  }
  return lines;
}

}  // namespace tidemark::tests
