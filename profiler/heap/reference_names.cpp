// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/reference_names.h"

#include <array>

#include <fmt/format.h>

namespace tidemark::heap {
namespace {

using Sort = ReferenceName::Sort;

constexpr std::size_t kKinds = static_cast<std::size_t>(ReferenceKind::kCpp) + 1;

}  // namespace

std::string_view cut_name(std::string_view text) {
  if (text.size() <= kMostNameBytes) {
    return text;
  }
  std::size_t end = kMostNameBytes;
  // Not within the bytes of a character, of which there are up to four.
  for (std::size_t i = 0; i < 3 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U; ++i) {
    --end;
  }
  return text.substr(0, end);
}

void ReferenceNames::of(ObjectGraph::Node node, const Visit& visit) const {
  const auto targets = graph_.targets(node);
  std::array<std::uint64_t, kKinds> counts{};
  ReferenceName name_of_one;
  std::size_t next = 0;
  graph_.source().references(
      graph_.address(node), graph_.type_index(node), [&](std::span<const Reference> references) {
        for (const Reference& reference : references) {
          const auto kind = static_cast<std::size_t>(reference.kind);
          const std::uint64_t index = kind < kKinds ? counts[kind]++ : 0;
          if (next < targets.size() && graph_.address(targets[next]) == reference.target) {
            name(reference, index, name_of_one);
            visit(targets[next++], name_of_one);
          }
        }
      });
  for (; next < targets.size(); ++next) {
    visit(targets[next], {Sort::kInternal, ReferenceKind::kWord, "?", 0});
  }
}

void ReferenceNames::name(const Reference& reference, std::uint64_t index,
                          ReferenceName& name) const {
  const auto set = [&](Sort sort, std::string_view text) {
    name.sort = sort;
    name.text = text;
  };
  name.kind = reference.kind;
  name.index = index;
  switch (reference.kind) {
    case ReferenceKind::kItem:
      return set(Sort::kElement, "");
    case ReferenceKind::kValue:
    case ReferenceKind::kAttribute:
    case ReferenceKind::kLocal: {
      set(Sort::kProperty, cut_name(graph_.source().text(reference.detail)));
      if (name.text.empty()) {  // no text is a key: its type has to do
        const auto type = graph_.source().type_of(reference.detail, ReferenceKind::kKey);
        name.text = type == PythonTypes::kNone
                        ? "[?]"
                        : fmt::format("[{}]", cut_name(graph_.source().type(type).name));
      }
      return;
    }
    case ReferenceKind::kDict:
      return set(Sort::kProperty, "__dict__");
    case ReferenceKind::kMember:
    case ReferenceKind::kGlobals:
    case ReferenceKind::kBuiltins:
    case ReferenceKind::kBases:
    case ReferenceKind::kBack:
    case ReferenceKind::kCpp:
      return set(*reference.name == '\0' ? Sort::kInternal : Sort::kProperty,
                 *reference.name == '\0' ? "native" : cut_name(reference.name));
    case ReferenceKind::kKey:
      return set(Sort::kInternal, "key");
    case ReferenceKind::kClass:
      return set(Sort::kInternal, "__class__");
    case ReferenceKind::kStack:
      return set(Sort::kInternal, "stack");
    case ReferenceKind::kState:
      return set(Sort::kInternal, "state");
    default:
      return set(Sort::kInternal, fmt::format("+{}", reference.detail));
  }
}

}  // namespace tidemark::heap
