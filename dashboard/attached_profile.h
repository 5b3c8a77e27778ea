// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/result.h"

namespace tidemark::dashboard {

// `tidemark profile --pid` as a child of ours: it attaches to a process, and the screen reads its
// trace file as it does that of a profile in another terminal. It detaches when it is stopped, when
// this object goes, and when the thread that started it ends, however that happens. Of one thread.
class AttachedProfile {
 public:
  // Before the second line of an error.
  static constexpr std::string_view kHint = "hint: ";

  // `name`: of the process, for messages. An error when `target` has exited.
  static Result<std::unique_ptr<AttachedProfile>> start(const ProcessKey& target, std::string name);
  // Stops it, and waits until it has ended, for some seconds at most: then it goes on detaching
  // alone.
  ~AttachedProfile();
  AttachedProfile(const AttachedProfile&) = delete;
  AttachedProfile& operator=(const AttachedProfile&) = delete;

  const std::string& name() const { return name_; }
  // What it has printed since the last call, whole lines without "tidemark: ". Never waits.
  std::vector<std::string> take_lines();
  // Tells it to detach and to end.
  void stop();
  bool has_ended() const;
  // In words, once it has ended and its lines were taken; empty: one of them was an error, which
  // says it all.
  std::string ending() const;

 private:
  AttachedProfile(std::string name, ProcessKey child, Fd errors)
      : name_(std::move(name)), child_(child), errors_(std::move(errors)) {}

  const std::string name_;
  const ProcessKey child_;
  Fd errors_;  // its stderr
  std::string unfinished_line_;
  bool is_stopped_ = false;
  bool has_failed_ = false;
};

}  // namespace tidemark::dashboard
