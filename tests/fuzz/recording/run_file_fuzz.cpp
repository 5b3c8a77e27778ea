// SPDX-License-Identifier: Apache-2.0
// A valid run file with bytes changed here and there. The input is a list of changes of four bytes
// each: where (three bytes, modulo the size of the file) and what.
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "common/check.h"
#include "common/io.h"
#include "recording/files.h"
#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "tests/fuzz/recording/checking_sink.h"
#include "tests/support/sample_run.h"

namespace tidemark {
namespace {

std::string make_run_file(const std::string& path) {
  auto writer = recording::RunWriter::create(path);
  TIDEMARK_CHECK(writer && (*writer)->begin(tests::full_run_info()), "no run file");
  TIDEMARK_CHECK((*writer)->add(tests::full_tick()), "no tick");
  for (std::uint64_t n = 2; n < 12; ++n) {
    TIDEMARK_CHECK((*writer)->add(tests::plain_tick(n)), "no tick");
  }
  ProcessRecord dead = tests::worker_record();
  dead.exited_s = 6.0;
  TIDEMARK_CHECK((*writer)->process_ended(dead) && (*writer)->end(12.0), "no end");
  return *read_file(path);
}

// The directory, the untouched file and its size, made once.
struct Workshop {
  recording::PrivateDir directory = std::move(*recording::PrivateDir::create());
  std::string original = make_run_file(directory.file("original"));
  std::string path = directory.file("mutated");
};

void write_file(const std::string& path, const std::string& content) {
  ::unlink(path.c_str());  // truncating a file makes ext4 flush it: 40 ms each time
  const auto fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  TIDEMARK_CHECK(fd && write_all(fd->get(), content), "cannot write the mutated file");
}

}  // namespace
}  // namespace tidemark

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;  // NOLINT(google-build-using-namespace)
  static const Workshop workshop;
  std::string content = workshop.original;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t where =
        std::size_t{data[i]} << 16U | std::size_t{data[i + 1]} << 8U | data[i + 2];
    content[where % content.size()] = static_cast<char>(data[i + 3]);
  }
  write_file(workshop.path, content);
  fuzz::read_all(recording::RunReader::open(workshop.path));
  return 0;
}
