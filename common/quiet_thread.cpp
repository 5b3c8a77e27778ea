// SPDX-License-Identifier: Apache-2.0
#include "common/quiet_thread.h"

namespace tidemark {

SignalStack::SignalStack() {
  stack_t known{};
  if (::sigaltstack(nullptr, &known) != 0 || (known.ss_flags & SS_DISABLE) == 0) {
    return;
  }
  // Not value-initialised: what no handler uses takes no memory.
  memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  stack_t ours{};
  ours.ss_sp = memory_.get();
  ours.ss_size = kBytes;
  if (::sigaltstack(&ours, nullptr) != 0) {
    memory_.reset();
  }
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) {
    return;
  }
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

}  // namespace tidemark
