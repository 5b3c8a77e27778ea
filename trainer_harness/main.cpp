// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/io.h"
#include "trainer_harness/jobs/serve_jobs.h"
#include "trainer_harness/train_command.h"
#include "trainer_harness/trainer.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string_view verb = words.empty() ? std::string_view() : std::string_view(words[0]);
  if (verb == "train") {
    return tidemark::harness::train_command(std::span(words).subspan(1));
  }
  if (verb == "serve-jobs") {
    const auto self = tidemark::read_link_at(AT_FDCWD, "/proc/self/exe");
    return tidemark::harness::serve_jobs(std::span(words).subspan(1),
                                         tidemark::harness::run_trainer,
                                         {self ? *self : argv[0], "train"});
  }
  const bool asked = verb == "--help" || verb == "-h";
  std::fputs(
      "usage: tidemark-harness train ...       a training job whose memory does what is asked of "
      "it\n"
      "       tidemark-harness serve-jobs ...  a server that runs such jobs one after the other\n"
      "Each has a --help of its own.\n",
      asked ? stdout : stderr);
  return asked ? 0 : 2;
}
