// SPDX-License-Identifier: Apache-2.0
// tidemark.json of a stranger's repository, with the patterns of its suppressions.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check/config.h"
#include "common/check.h"
#include "common/text.h"

namespace {

using namespace tidemark;  // NOLINT(google-build-using-namespace)

tracker::RunSites one_stack() {
  tracker::RunSites run;
  FrameRecord frame;
  frame.frame = 1;
  frame.function = "(anonymous namespace)::cache::Filler::fill(unsigned long)";
  frame.file = "/home/me/src/cache/fill.cpp";
  frame.line = 42;
  run.frames[1] = frame;
  return run;
}

void check_suppression(const check::Suppression& suppression) {
  static const tracker::RunSites run = one_stack();
  const auto date = check::parse_date(check::date_text(suppression.expires));
  TIDEMARK_CHECK(date && *date == suppression.expires, "a date is written as it is read");
  TIDEMARK_CHECK(!trim(suppression.reason).empty(), "a suppression without a reason");
  (void)check::matches_site(suppression.site, run, {1});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const auto config = check::parse_check_config(text, {{"warmup", "20steps"}});

  if (!config) {
    const std::string& what = config.error().what;
    TIDEMARK_CHECK(!what.empty(), "an error without words");
    TIDEMARK_CHECK(what.find_first_of("\n\x1b") == std::string::npos,
                   "an error that is not escaped");
    return 0;
  }
  for (const check::CheckSpec& check : config->checks) {
    TIDEMARK_CHECK(!check.name.empty() && !check.command.empty(), "a check that runs nothing");
    TIDEMARK_CHECK(check::problem_with(check).empty(), "settings that exclude each other");
    TIDEMARK_CHECK(check.warmup.steps == 20.0, "the command line counts more than the file");
  }
  for (const check::Suppression& suppression : config->suppressions) {
    check_suppression(suppression);
  }
  return 0;
}
