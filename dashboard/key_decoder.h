// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dashboard/key.h"

namespace tidemark::dashboard {

// Turns what a terminal sends into keys. Sequences that it does not know are swallowed.
class KeyDecoder {
 public:
  // Appends the keys that `bytes` complete.
  void feed(std::string_view bytes, std::vector<Key>& keys);
  // Nothing more came for a while: an escape character that waits was the key of that name.
  void flush(std::vector<Key>& keys);
  bool is_waiting() const { return !waiting_.empty(); }

 private:
  std::string waiting_;  // the beginning of a sequence
};

}  // namespace tidemark::dashboard
