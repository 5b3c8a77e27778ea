// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::monitor {

// Which lines of a job's log its steps are read from, where nobody has said what they look like.
// Shared by the recognizers of all streams of one job: one of them is chosen, and stays it.
// Thread-safe.
class StepLineChoice {
 public:
  // True for the first one that asks. `example` is what it has recognised: "step 120/1000".
  bool claim(std::string example);
  // The example, once.
  std::optional<std::string> take_example();

 private:
  std::mutex mutex_;
  bool is_claimed_ = false;
  std::optional<std::string> example_;
};

// Recognises the step numbers of common training logs: "step 120", "Step [120/1000]", 'step': 120,
// global_step=120, "iter 120:", "Epoch: [3][ 120/1000]", "[3,  120] loss", and the progress bars of
// tqdm (Lightning, Hugging Face), Keras and rich. Lines of one kind have to count up several times
// before they are believed; from then on that kind alone is read. Numbers of evaluation, dates,
// bytes, samples and the "Step 2/5" of a script are none. Not thread-safe; copies share the choice.
class StepRecognizer {
 public:
  explicit StepRecognizer(std::shared_ptr<StepLineChoice> choice);

  // The step that a line names, counted on through epochs that number theirs anew. nullopt: none.
  std::optional<std::int64_t> read(std::string_view line);

 private:
  // Lines that name a step in the same way.
  struct Kind {
    std::string name;
    std::int64_t last = 0;
    std::int64_t last_rise = 0;
    int rises = 0;

    void add(std::int64_t number);
  };

  std::optional<std::int64_t> count(std::int64_t number);

  std::shared_ptr<StepLineChoice> choice_;
  std::vector<Kind> kinds_;
  std::string chosen_;       // empty: none yet
  bool has_lost_ = false;    // another stream was chosen
  std::int64_t before_ = 0;  // steps of the epochs that are over
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::optional<std::int64_t> restart_;  // a number below the last one: of a new epoch, perhaps
};

}  // namespace tidemark::monitor
