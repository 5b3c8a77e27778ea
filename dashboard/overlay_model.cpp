// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "dashboard/model_builder.h"
#include "report/track_text.h"

namespace tidemark::dashboard {
namespace {

constexpr std::size_t kWordColumns = 13;

// A word or key, and what it means.
OverlayLine entry(std::string_view word, std::string_view meaning) {
  return {fmt::format("{:<{}}", word, kWordColumns), std::string(meaning)};
}

void add_keys(std::vector<OverlayLine>& lines, const ScreenInputs& inputs, bool time_is_steps) {
  lines.insert(
      lines.end(),
      {entry("q", "quit; the verdict is printed then"),
       entry("w", "why: the reasons of the verdict, advice, the next command"),
       entry("space", inputs.replay_speed ? "stop and go on" : "pause (watching goes on)"),
       entry("up/down j k", "select a process; in the timeline: zoom"),
       entry("left/right", "move a cursor through time and show its figures (h l); esc removes it"),
       entry("enter", "open or close a role"), entry("tab", "tree or timeline"),
       entry("pgup pgdn", "a page, of the tree or of the time"),
       entry("home end g G", "first and last"),
       entry("/", "filter by name, pid or command; esc clears"),
       entry("s", "sort by footprint, rss, change, rate, pid"),
       entry("z",
             time_is_steps ? "zoom: 60, 600, 3600 steps, all" : "zoom: 1 min, 10 min, 1 h, all"),
       entry("a", "axis: what fits the curve, from zero, from zero to the limit"),
       entry("e", "export this screen as text")});
  if (inputs.can_signal) {
    lines.insert(
        lines.end(),
        {entry("A", "attach to the selected process and trace its lines of code; asks first"),
         entry("D", "detach"), entry("K", "send a signal to the selected process; asks first")});
  }
  if (inputs.can_mark) {
    lines.push_back(entry("m", "mark this moment"));
  }
  lines.push_back(entry("ctrl-l", "draw again"));
}

void add_glossary(std::vector<OverlayLine>& lines) {
  lines.insert(
      lines.end(),
      {{},
       {"", "Words"},
       entry("footprint",
             "memory that goes when the processes go: anonymous, shared, swapped; "
             "shared pages count once. ~: partly carried over"),
       entry("RSS", "what is in memory now, files too; shared pages count in every process"),
       entry("PSS",
             "the same with shared pages divided among those that share them; slow to "
             "read, so READ says how long ago"),
       entry("floor",
             "the low-water line below the curve: what is left when spikes are over. "
             "A leak is a floor that rises"),
       entry("spike", "memory above the floor that is given back"),
       entry("change", "since the process was first seen"),
       entry("rate", "of the last minute; the verdict has the one of the whole run"),
       entry("available", "what new work can have before the machine swaps or kills"),
       entry("pressure", "share of the last 10 s in which some process waited for memory (PSI)"),
       entry("/dev/shm", "shared memory with a name, which outlives its processes"),
       entry("%", "behind the verdict: how sure it is"),
       {},
       {"",
        "Marks: + started, - exited, E epoch, W growth warning, O OOM kill, X GPU lost, g gap, "
        "M your mark"}});
}

OverlayModel build_help(const RunHistory& history, const ScreenInputs& inputs) {
  OverlayModel help;
  help.title = "help";
  add_keys(help.lines, inputs, history.info().time_is_steps);
  add_glossary(help.lines);
  if (!inputs.notes.empty() || !history.losses().empty()) {
    help.lines.emplace_back();
  }
  for (auto note = inputs.notes.rbegin(); note != inputs.notes.rend(); ++note) {
    help.lines.push_back({"", *note});
  }
  for (const LossRecord& loss : history.losses()) {
    help.lines.push_back(
        {"", fmt::format("not seen: {} x{}", escape_text(loss.what.text()), loss.count)});
  }
  return help;
}

// Lines under a common label.
void add_rows(std::vector<OverlayLine>& lines, std::string_view label,
              const std::vector<std::string>& texts) {
  constexpr std::size_t kColumns = 9;
  for (const std::string& text : texts) {
    lines.push_back({fmt::format("{:<{}}", std::exchange(label, ""), kColumns), text});
  }
}

// The same after an empty line; nothing without texts.
void add_group(std::vector<OverlayLine>& lines, std::string_view label,
               const std::vector<std::string>& texts) {
  if (!texts.empty()) {
    lines.emplace_back();
    add_rows(lines, label, texts);
  }
}

OverlayModel build_reasons(const std::optional<tracker::JudgedRun>& judged,
                           const report::JudgedTarget& target) {
  OverlayModel reasons;
  reasons.title = "why";
  if (!judged || !judged->verdict) {
    reasons.lines.push_back({"", "There is no verdict yet: it needs more samples."});
    return reasons;
  }
  const tracker::SeriesVerdict& reading = judged->verdict->answer().series;
  reasons.lines.push_back({"", report::answer_text(*judged)});
  add_group(reasons.lines, "note", report::ignored_options(*judged));
  std::vector<std::string> patterns;
  for (const tracker::Pattern& pattern : reading.patterns) {
    patterns.push_back(report::pattern_text(pattern, reading.axis));
  }
  add_group(reasons.lines, "found", patterns);
  add_group(reasons.lines, "because", report::evidence_texts(reading));
  for (const tracker::Advice& advice : judged->verdict->advice) {
    add_group(reasons.lines, "seen", {std::string(advice.seen)});
    add_rows(reasons.lines, "likely", {std::string(advice.cause)});
    add_rows(reasons.lines, "do", {std::string(advice.remedy)});
  }
  add_group(reasons.lines, "next", {report::next_text(*judged, target)});
  return reasons;
}

// Whom a question is about, in words: the question stays when the tree changes below it.
std::string process_words(const RunHistory& history, const ProcessKey& key) {
  constexpr std::size_t kLongestCommand = 60;
  const auto process = history.processes().find(key);
  if (process == history.processes().end()) {
    return fmt::format("process {}, which has exited", key.pid);
  }
  const ProcessRecord& record = process->second.record;
  return fmt::format("{} ({})", name_of(record.role, key.pid),
                     shorten(escape_text(command_of(record)), kLongestCommand));
}

OverlayModel build_signal(const RunHistory& history, const ViewState& state) {
  OverlayModel question;
  question.is_question = true;
  const std::string whom = process_words(history, state.asked_about);
  if (state.signal_number) {
    question.title = "send it?";
    question.lines = {{"", fmt::format("Send {} to {}?", signal_name(*state.signal_number), whom)},
                      {},
                      {"", "y sends it, any other key does not"}};
    return question;
  }
  question.title = "signal";
  question.lines = {{"", "Which signal to " + whom + "?"}, {}};
  for (const OfferedSignal& offered : offered_signals()) {
    question.lines.push_back(
        {fmt::format("{}  {:<6}", offered.key, offered.name), std::string(offered.effect)});
  }
  question.lines.insert(question.lines.end(), {{}, {"", "any other key sends nothing"}});
  return question;
}

OverlayModel build_attach(const RunHistory& history, const ViewState& state) {
  OverlayModel question;
  question.is_question = true;
  question.title = "attach?";
  question.lines = {
      {"", fmt::format("Attach to {}?", process_words(history, state.asked_about))},
      {},
      {"",
       "It stands still for some milliseconds. Then the lines of code that allocate are traced "
       "until you press D or quit."},
      {},
      {"", "y attaches, any other key does not"}};
  return question;
}

}  // namespace

std::optional<OverlayModel> build_overlay(const RunHistory& history,
                                          const std::optional<tracker::JudgedRun>& judged,
                                          const ViewState& state, const ScreenInputs& inputs) {
  std::optional<OverlayModel> overlay;
  switch (state.overlay) {
    case Overlay::kNone:
      return std::nullopt;
    case Overlay::kHelp:
      overlay = build_help(history, inputs);
      break;
    case Overlay::kReasons:
      overlay = build_reasons(judged, target_of(history, inputs));
      break;
    case Overlay::kSignal:
      overlay = build_signal(history, state);
      break;
    case Overlay::kAttach:
      overlay = build_attach(history, state);
      break;
  }
  overlay->first_line = state.overlay_line;
  return overlay;
}

}  // namespace tidemark::dashboard
