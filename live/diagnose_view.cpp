// SPDX-License-Identifier: Apache-2.0
#include "live/diagnose_view.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/text.h"
#include "report/output.h"

namespace tidemark::live {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

class DiagnosisPage final : public WatchView {
 public:
  DiagnosisPage(const DiagnosisSource& source, LineWriter& writer,
                const DiagnosisViewOptions& options)
      : source_(source), writer_(writer), options_(options) {}

  void on_tick(const Tick& tick, const ProcessKey&, const ProcessLookup&) override {
    if (tick.t_s < next_s_) {
      return;
    }
    const std::string line = report::diagnosis_line(source_.diagnosis(), tick.t_s);
    if (draws_in_place()) {
      const std::size_t columns = report::terminal_columns(lines_fd()).value_or(81) - 1;
      writer_.submit(std::string(kEraseLine) + shorten(line, columns));
      is_drawn_ = true;
      next_s_ = tick.t_s + kInPlaceS;
    } else {
      writer_.submit(line + '\n');
      next_s_ = tick.t_s + pause_s();
    }
  }
  void on_end(const RunSummary& /*summary*/) override {
    writer_.submit_always(
        erased() + '\n' +
        report::diagnosis_text(source_.diagnosis(), report::style_for(lines_fd(), options_.plain)));
  }
  // A message goes above the line, which comes again.
  bool show_message(const std::string& text) override {
    if (!is_drawn_) {
      return false;
    }
    writer_.submit_always(erased() + text);
    next_s_ = 0.0;
    return true;
  }

 private:
  static constexpr double kInPlaceS = 2.0;

  int lines_fd() const { return options_.wraps_command ? STDERR_FILENO : STDOUT_FILENO; }
  // Where nothing of the command's comes in between.
  bool draws_in_place() const {
    return !options_.plain && ::isatty(lines_fd()) == 1 &&
           !(options_.wraps_command && ::isatty(STDOUT_FILENO) == 1);
  }
  // A dozen lines in all.
  double pause_s() const {
    constexpr double kLines = 12.0;
    return options_.duration_ns ? std::clamp(to_seconds(*options_.duration_ns) / kLines, 1.0, 600.0)
                                : 10.0;
  }
  std::string erased() {
    return std::exchange(is_drawn_, false) ? std::string(kEraseLine) : std::string();
  }

  const DiagnosisSource& source_;
  LineWriter& writer_;
  const DiagnosisViewOptions options_;
  double next_s_ = 4.0;
  bool is_drawn_ = false;
};

class DiagnosisJson final : public WatchView {
 public:
  DiagnosisJson(const DiagnosisSource& source, LineWriter& writer)
      : source_(source), writer_(writer) {}

  void on_end(const RunSummary& /*summary*/) override {
    writer_.submit_always(report::diagnosis_json(source_.diagnosis()) + '\n');
  }

 private:
  const DiagnosisSource& source_;
  LineWriter& writer_;
};

}  // namespace

std::unique_ptr<WatchView> make_diagnosis_view(const DiagnosisSource& source, LineWriter& lines,
                                               const DiagnosisViewOptions& options) {
  if (options.json) {
    return std::make_unique<DiagnosisJson>(source, lines);
  }
  return std::make_unique<DiagnosisPage>(source, lines, options);
}

}  // namespace tidemark::live
