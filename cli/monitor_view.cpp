// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor_view.h"

#include <fmt/format.h>

#include "cli/tick_json.h"
#include "common/io.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

class PlainView final : public MonitorView {
 public:
  explicit PlainView(int fd) : fd_(fd) {}

  Status begin(const RunInfo& info) override {
    if (!info.limit_bytes) {
      return ok();
    }
    return write_all(fd_, fmt::format("limit {} ({})\n", format_bytes(*info.limit_bytes),
                                      escape_text(info.limit_source)));
  }

  Status tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& lookup) override {
    std::string text;
    if (first_) {
      first_ = false;
      text = tree_text(tick, lookup);  // says who was there; their births are no news
    } else {
      for (const std::string& line : event_lines(tick, lookup)) {
        text += line + '\n';
      }
    }
    text += lines_.line(tick, trainer) + '\n';
    return write_all(fd_, text);
  }

  Status end(const monitor::RunSummary& summary) override {
    return write_all(fd_, summary_text(summary));
  }

 private:
  int fd_;
  bool first_ = true;
  TickLines lines_;
};

class JsonView final : public MonitorView {
 public:
  explicit JsonView(int fd) : fd_(fd) {}

  Status begin(const RunInfo& /*info*/) override { return ok(); }

  Status tick(const Tick& tick, const ProcessKey& /*trainer*/,
              const ProcessLookup& lookup) override {
    std::string text;
    for (const EventRecord& event : tick.events) {
      text += event_json(event, lookup) + '\n';
    }
    text += tick_json(tick, lookup) + '\n';
    return write_all(fd_, text);
  }

  Status end(const monitor::RunSummary& summary) override {
    return write_all(fd_, summary_json(summary) + '\n');
  }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<MonitorView> make_plain_view(int fd) { return std::make_unique<PlainView>(fd); }
std::unique_ptr<MonitorView> make_json_view(int fd) { return std::make_unique<JsonView>(fd); }

}  // namespace tidemark::cli
