// SPDX-License-Identifier: Apache-2.0
// Command lines of strangers: NUL-separated words, as in /proc/PID/cmdline.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "common/redact.h"
#include "common/text.h"
#include "monitor/roles/roles.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> argv;
  for (const std::string_view word : split(text, '\0')) {
    argv.emplace_back(word);
  }

  const std::string redacted = redact_argv(argv);
  TIDEMARK_CHECK(redacted.size() <= 4 * size + argv.size() + 4, "masks grow a text by little");
  (void)redact_text(text);

  // A parent and two children that carry the same words, the last word being their comm.
  std::vector<monitor::ProcessFacts> tree(3);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    tree[i].key = {static_cast<pid_t>(i + 10), i};
    tree[i].ppid = 10;
    tree[i].argv = argv;
    tree[i].comm = argv.empty() ? "" : argv.back().substr(0, 15);
  }
  TIDEMARK_CHECK(monitor::assign_roles(tree).size() == tree.size(), "one role each");
  (void)monitor::job_trees(tree);
  return 0;
}
