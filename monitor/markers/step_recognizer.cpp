// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_recognizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMostKinds = 16;
constexpr std::size_t kMostLabelBytes = 60;
// Numbers that have to be there, each above the one before: "Step 1" to "Step 3" may be the parts
// of a script, and a total below kFewestSteps says that they are.
constexpr int kRisesWithTotal = 2;
constexpr int kRisesWithoutTotal = 3;
constexpr std::int64_t kFewestSteps = 10;
// Above it no number is a step: their sums must not overflow.
constexpr std::int64_t kMostSteps = 1'000'000'000'000'000;

// The earlier, the better where a line has several.
constexpr std::array<std::string_view, 11> kStepWords = {
    "global_step", "step", "train_step", "training_step", "current_step", "num_updates",
    "iteration",   "iter", "batch_idx",  "batch",         "minibatch"};
constexpr std::array<std::string_view, 12> kOtherWork = {
    "eval", "evaluate", "evaluation", "val",       "valid",  "validation",
    "test", "testing",  "predict",    "inference", "warmup", "sanity"};

// A decimal number in a line: [begin, end).
struct Digits {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t value = 0;
};

// A place in a line that names a step.
struct Mention {
  std::string kind;       // the same in all lines that name theirs in this way
  std::size_t begin = 0;  // of what is shown of it
  std::size_t rank = 0;   // the lowest is read where a line has several
  Digits number = {};
  std::optional<Digits> total = {};

  std::string text(std::string_view line) const {
    std::size_t end = total ? total->end : number.end;
    const bool has_end =
        end < line.size() && std::string_view("]'\"").find(line[end]) != std::string_view::npos;
    end += has_end ? 1U : 0U;
    return std::string(line.substr(begin, end - begin));
  }
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

std::size_t skip_blanks(std::string_view line, std::size_t at) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) {
    ++at;
  }
  return at;
}

std::size_t skip_blanks_back(std::string_view line, std::size_t at) {
  while (at > 0 && (line[at - 1] == ' ' || line[at - 1] == '\t')) {
    --at;
  }
  return at;
}

char char_at(std::string_view line, std::size_t at) { return at < line.size() ? line[at] : '\0'; }

// Whether a comma at `at` parts thousands: ",234" and no more digits.
bool parts_thousands(std::string_view line, std::size_t at) {
  return char_at(line, at) == ',' && is_digit(char_at(line, at + 1)) &&
         is_digit(char_at(line, at + 2)) && is_digit(char_at(line, at + 3)) &&
         !is_word(char_at(line, at + 4));
}

// The digits at `at`, if they are a whole number: not 1.5, 10s, 440M or 1e5.
std::optional<Digits> digits_at(std::string_view line, std::size_t at) {
  Digits digits{at, at, 0};
  while (is_digit(char_at(line, digits.end)) ||
         (digits.end > at && parts_thousands(line, digits.end))) {
    if (digits.value > kMostSteps) {
      return std::nullopt;
    }
    const char c = line[digits.end++];
    digits.value = c == ',' ? digits.value : digits.value * 10 + (c - '0');
  }
  const char next = char_at(line, digits.end);
  const bool is_part = is_word(next) || (next == '.' && is_digit(char_at(line, digits.end + 1)));
  return digits.end == at || is_part ? std::nullopt : std::optional(digits);
}

// What follows "120" in "120/1000" and "120/ 1000".
std::optional<Digits> total_after(std::string_view line, const Digits& number) {
  const std::size_t slash = skip_blanks(line, number.end);
  if (char_at(line, slash) != '/') {
    return std::nullopt;
  }
  const auto total = digits_at(line, skip_blanks(line, slash + 1));
  const bool is_date = total && char_at(line, total->end) == '/';
  return is_date ? std::nullopt : total;
}

// The letters and underscores that end at `end`, in lower case.
std::string word_before(std::string_view line, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && (is_letter(line[begin - 1]) || line[begin - 1] == '_')) {
    --begin;
  }
  return to_lower(line.substr(begin, end - begin));
}

bool is_other_work(std::string_view word) {
  return std::find(kOtherWork.begin(), kOtherWork.end(), word) != kOtherWork.end();
}

// Whether one of the words in a label is of evaluation: "Validation DataLoader 0:".
bool names_other_work(std::string_view label) {
  std::size_t begin = 0;
  while (begin < label.size()) {
    std::size_t end = begin;
    while (end < label.size() && is_letter(label[end])) {
      ++end;
    }
    if (is_other_work(to_lower(label.substr(begin, end - begin)))) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

// The text before a number as lines of one kind share it: without colours, and # for numbers.
std::string label_of(std::string_view text) {
  std::string label;
  for (std::size_t at = 0; at < text.size() && label.size() < kMostLabelBytes; ++at) {
    if (text[at] == '\x1b') {
      while (at + 1 < text.size() && !is_letter(text[at])) {
        ++at;
      }
    } else if (is_digit(text[at])) {
      label += label.ends_with('#') ? "" : "#";
    } else if (text[at] != ' ') {
      label += text[at];
    }
  }
  return label;
}

// "step 120", "'step': 120", "global_step=120", "Step [120/1000]".
std::optional<Mention> after_a_word(std::string_view line, const Digits& number) {
  std::size_t at = skip_blanks_back(line, number.begin);
  const auto skip_one_of = [&](std::string_view signs) {
    if (at > 0 && signs.find(line[at - 1]) != std::string_view::npos) {
      at = skip_blanks_back(line, at - 1);
    }
  };
  skip_one_of("[(#\"'");
  skip_one_of(":=");
  skip_one_of("\"'");
  const std::string word = word_before(line, at);
  const auto* const known = std::find(kStepWords.begin(), kStepWords.end(), word);
  at -= word.size();
  const char before = at == 0 ? ' ' : line[at - 1];
  if (known == kStepWords.end() || is_digit(before) || before == '-' || before == '.') {
    return std::nullopt;
  }
  Mention mention;
  mention.begin = before == '"' || before == '\'' ? at - 1 : at;
  at = skip_blanks_back(line, at);
  skip_one_of("/:]|");
  const std::string qualifier = word_before(line, at);
  if (is_other_work(qualifier)) {
    return std::nullopt;
  }
  mention.kind = fmt::format("{} {}", qualifier, word);
  mention.rank = static_cast<std::size_t>(known - kStepWords.begin());
  return mention;
}

// What stands in the brackets behind the figures of a bar: "[00:10<01:15, 11.7it/s]" of tqdm,
// "[=====>....]" of Keras. A bar of bytes, files or examples counts no steps.
bool is_bar_of_steps(std::string_view bracket) {
  if (!bracket.empty() && (bracket[0] == '=' || bracket[0] == '>' || bracket[0] == '.')) {
    return true;
  }
  const std::string_view content = bracket.substr(0, bracket.find(']'));
  for (const std::string_view unit : {"it/s", "s/it", "step/s", "s/step", "batch/s", "s/batch"}) {
    const std::size_t at = content.find(unit);
    if (at != std::string_view::npos && at > 0 &&
        (is_digit(content[at - 1]) || content[at - 1] == '?' || content[at - 1] == ' ')) {
      return true;
    }
  }
  return false;
}

constexpr std::string_view kRichBar = "\xe2\x94\x81";  // U+2501

// " 12%|##   | 120/1000 [00:10<01:15, 11.7it/s]", "120/1875 [====>...]" and "120/1875 ━━━━ 5s".
// `end`: of the figures, which may be "120it" or "120/?" where the total is not known.
std::optional<Mention> in_a_bar(std::string_view line, std::size_t begin, std::size_t end) {
  const std::size_t behind = skip_blanks(line, end);
  const std::size_t before = skip_blanks_back(line, begin);
  const bool is_rich = line.substr(behind).starts_with(kRichBar) ||
                       (line.substr(0, before).ends_with(kRichBar) &&
                        line.find("it/s", behind) != std::string_view::npos);
  if (!is_rich && !(char_at(line, behind) == '[' && is_bar_of_steps(line.substr(behind + 1)))) {
    return std::nullopt;
  }
  const std::size_t bar = std::min(line.find('|'), line.find(kRichBar));
  const std::string_view label = line.substr(0, std::min(bar, begin));
  if (names_other_work(label) || word_before(line, before) == "epoch") {
    return std::nullopt;
  }
  return Mention{"bar " + label_of(label), begin, kStepWords.size()};
}

// "Epoch: [3][ 120/1000]" of the examples of PyTorch.
std::optional<Mention> behind_an_epoch(std::string_view line, const Digits& number,
                                       const Digits& total) {
  const std::size_t open = skip_blanks_back(line, number.begin);
  const std::size_t close = open == 0 ? 0 : skip_blanks_back(line, open - 1);
  const bool fits = open > 0 && line[open - 1] == '[' && close > 0 && line[close - 1] == ']' &&
                    char_at(line, total.end) == ']';
  const std::string label = fits ? to_lower(line.substr(0, close)) : "";
  if (label.find("epoch") == std::string::npos || names_other_work(label)) {
    return std::nullopt;
  }
  return Mention{"epoch [][]", number.begin, kStepWords.size()};
}

// "[3,  120] loss: 0.5": epoch and batch, at the begin of the line.
std::optional<Mention> epoch_and_batch(std::string_view line) {
  const std::size_t open = skip_blanks(line, 0);
  const auto epoch =
      char_at(line, open) == '[' ? digits_at(line, skip_blanks(line, open + 1)) : std::nullopt;
  const auto batch = epoch && char_at(line, epoch->end) == ','
                         ? digits_at(line, skip_blanks(line, epoch->end + 1))
                         : std::nullopt;
  if (!batch || char_at(line, batch->end) != ']') {
    return std::nullopt;
  }
  return Mention{"[,]", open, kStepWords.size(), *batch};
}

// "120it [00:10, 11.7it/s]" and "120/? [00:10<?, 11.7it/s]".
std::optional<Mention> in_a_bar_without_total(std::string_view line, std::size_t begin,
                                              std::size_t end) {
  const std::string_view behind = line.substr(end);
  const auto value = parse_number<std::int64_t>(line.substr(begin, end - begin));
  if (!value || *value > kMostSteps ||
      !(behind.starts_with("it [") || behind.starts_with("/? ["))) {
    return std::nullopt;
  }
  auto mention = in_a_bar(line, begin, end + 2);
  if (mention) {
    mention->number = {begin, end, *value};
  }
  return mention;
}

// What the number at `begin`, whose digits end at `end`, says of steps.
std::optional<Mention> mention_at(std::string_view line, std::size_t begin, std::size_t end) {
  if (auto mention = in_a_bar_without_total(line, begin, end)) {
    return mention;
  }
  const auto number = digits_at(line, begin);
  if (!number) {
    return std::nullopt;
  }
  const auto total = total_after(line, *number);
  if (total && (number->value > total->value || total->value < kFewestSteps)) {
    return std::nullopt;
  }
  auto mention = after_a_word(line, *number);
  if (!mention && total) {
    mention = in_a_bar(line, number->begin, total->end);
  }
  if (!mention && total) {
    mention = behind_an_epoch(line, *number, *total);
  }
  if (mention) {
    mention->number = *number;
    mention->total = total;
    mention->kind += total ? fmt::format(" /{}", total->value) : "";
  }
  return mention;
}

std::vector<Mention> mentions_in(std::string_view line) {
  if (auto pair = epoch_and_batch(line)) {
    return {*std::move(pair)};
  }
  std::vector<Mention> mentions;
  std::size_t end = 0;
  while (end < line.size()) {
    const std::size_t begin = end;
    if (!is_digit(line[end++])) {
      continue;
    }
    while (end < line.size() && is_digit(line[end])) {
      ++end;
    }
    const char before = begin == 0 ? ' ' : line[begin - 1];
    const bool is_part = is_word(before) || before == '.' || before == '-' || before == '/';
    if (auto mention = is_part ? std::nullopt : mention_at(line, begin, end)) {
      mentions.push_back(*std::move(mention));
    }
  }
  return mentions;
}

}  // namespace

bool StepLineChoice::claim(std::string example) {
  const std::lock_guard lock(mutex_);
  if (is_claimed_) {
    return false;
  }
  is_claimed_ = true;
  example_ = std::move(example);
  return true;
}

std::optional<std::string> StepLineChoice::take_example() {
  const std::lock_guard lock(mutex_);
  return std::exchange(example_, std::nullopt);
}

// Ranks that print the same line may be one line apart: that is no way back.
void StepRecognizer::Kind::add(std::int64_t number) {
  if (number > last) {
    last_rise = number - last;
    last = number;
    ++rises;
  } else if (last - number > last_rise) {
    *this = {name, number};
  }
}

StepRecognizer::StepRecognizer(std::shared_ptr<StepLineChoice> choice)
    : choice_(std::move(choice)) {}

std::optional<std::int64_t> StepRecognizer::read(std::string_view line) {
  if (has_lost_) {
    return std::nullopt;
  }
  std::vector<Mention> mentions = mentions_in(line);
  if (!chosen_.empty()) {
    const auto mention = std::find_if(mentions.begin(), mentions.end(),
                                      [&](const Mention& each) { return each.kind == chosen_; });
    return mention == mentions.end() ? std::nullopt : count(mention->number.value);
  }
  std::stable_sort(mentions.begin(), mentions.end(),
                   [](const Mention& a, const Mention& b) { return a.rank < b.rank; });
  for (const Mention& mention : mentions) {
    const std::int64_t number = mention.number.value;
    const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const Kind& each) { return each.name == mention.kind; });
    if (kind == kinds_.end()) {
      if (kinds_.size() < kMostKinds) {
        kinds_.push_back({mention.kind, number});
      }
      continue;
    }
    kind->add(number);
    if (kind->rises < (mention.total ? kRisesWithTotal : kRisesWithoutTotal)) {
      continue;
    }
    if (!choice_->claim(mention.text(line))) {
      has_lost_ = true;
      return std::nullopt;
    }
    chosen_ = mention.kind;
    kinds_.clear();
    first_ = last_ = number;
    return number;
  }
  return std::nullopt;
}

// Ranks that print the same line may be a step or two apart; an epoch begins far below the last
// step, and then goes on.
std::optional<std::int64_t> StepRecognizer::count(std::int64_t number) {
  if (before_ > kMostSteps) {
    return std::nullopt;
  }
  if (number >= last_) {
    restart_.reset();
    last_ = number;
    return before_ + number;
  }
  if (!restart_ || number <= *restart_) {
    if (number <= std::max(first_, last_ / 2)) {
      restart_ = number;
    }
    return std::nullopt;
  }
  before_ += last_ + (*restart_ == 0 ? 1 : 0);
  first_ = *std::exchange(restart_, std::nullopt);
  last_ = number;
  return before_ + number;
}

}  // namespace tidemark::monitor
