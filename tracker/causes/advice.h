// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tidemark::tracker {

struct Facts;

// A known cause, recognised by its signature.
struct Advice {
  std::string_view id;    // stable: "dataloader_copy_on_write"
  std::string_view seen;  // the signature in words
  std::string_view cause;
  std::string_view remedy;
};

struct AdviceRule {
  Advice advice;
  bool (*fits)(const Facts& facts);
};

std::span<const AdviceRule> advice_rules();

// All whose signature is in the facts, in the order of the table.
std::vector<Advice> advice_for(const Facts& facts);

}  // namespace tidemark::tracker
