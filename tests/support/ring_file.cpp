// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "common/check.h"

namespace tidemark::tests {
namespace {

void write_at(int fd, const void* data, std::size_t size, std::uint64_t offset) {
  const ssize_t written = ::pwrite(fd, data, size, static_cast<off_t>(offset));
  TIDEMARK_CHECK(written == static_cast<ssize_t>(size), "cannot write the ring file");
}

Fd create(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

tidemark_ring_header header_of(std::uint32_t pid, std::uint64_t start_ticks) {
  tidemark_ring_header header{};
  header.magic = TIDEMARK_RING_MAGIC;
  header.version = TIDEMARK_RING_VERSION;
  header.record_bytes = sizeof(tidemark_ring_record);
  header.capacity = TIDEMARK_RING_CAPACITY;
  header.pid = pid;
  header.start_ticks = start_ticks;
  return header;
}

}  // namespace

RingFile::RingFile(std::uint32_t pid, std::uint64_t start_ticks)
    : header(header_of(pid, start_ticks)), fd_(::memfd_create("ring", MFD_CLOEXEC)) {
  truncate(sizeof(tidemark_ring));
  put();
}

RingFile::RingFile(std::uint32_t pid, std::uint64_t start_ticks, const std::string& path)
    : header(header_of(pid, start_ticks)), fd_(create(path)) {
  truncate(sizeof(tidemark_ring));
  put();
}

Fd RingFile::reader() const { return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }

void RingFile::put() const { write_at(fd_.get(), &header, sizeof header, 0); }

void RingFile::mark(std::uint32_t kind, std::int64_t value, std::string_view name,
                    std::uint64_t time_ns) {
  tidemark_ring_record record{};
  record.sequence = header.next + 1;
  record.time_ns = time_ns;
  record.kind = kind;
  record.value = value;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  std::copy(name.begin(), name.end(), record.name);
  put_record(header.next, record);
  reserve();
}

void RingFile::reserve() {
  ++header.next;
  put();
}

void RingFile::put_record(std::uint64_t index, const tidemark_ring_record& record) const {
  write_at(fd_.get(), &record, sizeof record,
           sizeof header + (index % TIDEMARK_RING_CAPACITY) * sizeof record);
}

void RingFile::truncate(std::uint64_t bytes) const {
  TIDEMARK_CHECK(::ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0, "cannot size the ring");
}

}  // namespace tidemark::tests
