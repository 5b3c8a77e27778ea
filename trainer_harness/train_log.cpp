// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/train_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "common/io.h"
#include "common/json_writer.h"
#include "common/text.h"

namespace tidemark::harness {

std::optional<std::uint64_t> own_rss_bytes() {
  const auto text = read_file("/proc/self/statm");
  if (!text) {
    return std::nullopt;
  }
  const auto words = split(*text, ' ');
  const auto pages = words.size() > 1 ? parse_number<std::uint64_t>(words[1]) : std::nullopt;
  if (!pages) {
    return std::nullopt;
  }
  return *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void TrainLog::say(std::string_view line) {
  (void)write_all(STDOUT_FILENO, std::string(line) + "\n");
}

void TrainLog::step(std::uint64_t step, double loss) {
  if (step % log_every_ == 0) {
    const auto rss_bytes = own_rss_bytes();
    say(fmt::format("Step {} loss={:.4f} rss={}", step, loss,
                    rss_bytes ? fmt::format("{}MB", *rss_bytes >> 20U) : "?"));
  }
  if (progress_fd_) {
    JsonWriter json;
    json.begin_object().field("step", step).field("loss", loss);
    json.field("rss_bytes", own_rss_bytes()).end_object();
    if (!write_all(*progress_fd_, json.take() + "\n")) {
      progress_fd_.reset();
    }
  }
}

}  // namespace tidemark::harness
