// SPDX-License-Identifier: Apache-2.0
#include "live/monitor_view.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/monitor_lines.h"
#include "report/tick_formats.h"

namespace tidemark::live {
namespace {

class PlainView final : public WatchView {
 public:
  explicit PlainView(LineWriter& writer) : writer_(writer) {}

  void on_start(const RunInfo& info) override {
    time_format_ = TimeFormat::of(info);
    lines_ = report::TickLines(time_format_);
    losses_ = report::LossLines(time_format_);
    on_limit(info.limit_bytes, info.limit_source);
  }

  void on_limit(std::optional<std::uint64_t> bytes, const std::string& source) override {
    if (bytes) {
      writer_.submit(fmt::format("limit {} ({})\n", format_bytes(*bytes), escape_text(source)));
    }
  }

  void on_tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& lookup) override {
    std::string text;
    if (first_) {
      first_ = false;
      text = report::tree_text(tick, lookup);  // says who was there; their births are no news
    } else {
      for (const std::string& line : report::event_lines(tick, lookup, time_format_)) {
        text += line + '\n';
      }
    }
    for (const std::string& line : losses_.lines(tick)) {
      text += line + '\n';
    }
    text += lines_.line(tick, trainer) + '\n';
    writer_.submit(std::move(text));
  }

  void on_end(const RunSummary& summary) override {
    writer_.submit_always(report::summary_text(summary, time_format_));
  }

 private:
  LineWriter& writer_;
  bool first_ = true;
  TimeFormat time_format_;
  report::TickLines lines_;
  report::LossLines losses_;
};

class JsonView final : public WatchView {
 public:
  explicit JsonView(LineWriter& writer) : writer_(writer) {}

  void on_start(const RunInfo& info) override {
    time_is_steps_ = info.time_is_steps;
    writer_.submit(report::run_json(info) + '\n');
  }

  void on_tick(const Tick& tick, const ProcessKey& /*trainer*/,
               const ProcessLookup& lookup) override {
    std::string text;
    for (const EventRecord& event : tick.events) {
      text += report::event_json(event, lookup, time_is_steps_) + '\n';
    }
    text += report::tick_json(tick, lookup, time_is_steps_) + '\n';
    writer_.submit(std::move(text));
  }

  void on_end(const RunSummary& summary) override {
    writer_.submit_always(report::summary_json(summary, time_is_steps_) + '\n');
  }

 private:
  LineWriter& writer_;
  bool time_is_steps_ = false;
};

}  // namespace

std::unique_ptr<WatchView> make_plain_view(LineWriter& lines) {
  return std::make_unique<PlainView>(lines);
}
std::unique_ptr<WatchView> make_json_view(LineWriter& lines) {
  return std::make_unique<JsonView>(lines);
}

}  // namespace tidemark::live
