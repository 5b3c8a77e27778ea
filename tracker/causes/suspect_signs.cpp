// SPDX-License-Identifier: Apache-2.0
// By which names and types the owners and lines of a suspect are known: one table.
#include <algorithm>
#include <string>
#include <vector>

#include "tracker/causes/suspects.h"

namespace tidemark::tracker {
namespace {

enum class SignIn {
  kName,      // a whole name on the way
  kNamePart,  // a part of one
  kType,      // a part of the name of a type, with its module
};

struct Sign {
  Suspect suspect;
  SignIn in;
  std::string_view text;  // in lower case
};

// The first that fits decides.
constexpr Sign kSigns[] = {
    {Suspect::kLogHistory, SignIn::kName, "log_history"},
    {Suspect::kCollator, SignIn::kNamePart, "collat"},
    {Suspect::kCollator, SignIn::kType, "collat"},
    {Suspect::kProcessorCaches, SignIn::kNamePart, "tokenizer"},
    {Suspect::kProcessorCaches, SignIn::kNamePart, "processor"},
    {Suspect::kProcessorCaches, SignIn::kNamePart, "feature_extractor"},
    {Suspect::kProcessorCaches, SignIn::kType, "tokenizer"},
    {Suspect::kProcessorCaches, SignIn::kType, "processor"},
    {Suspect::kProcessorCaches, SignIn::kType, "featureextractor"},
    {Suspect::kOptimizerState, SignIn::kNamePart, "optimizer"},
    {Suspect::kOptimizerState, SignIn::kType, "optimizer"},
    {Suspect::kOptimizerState, SignIn::kType, "torch.optim."},
    {Suspect::kGradientAccumulation, SignIn::kName, "grad"},
    {Suspect::kGradientAccumulation, SignIn::kName, "grads"},
    {Suspect::kGradientAccumulation, SignIn::kNamePart, "grad_fn"},
    {Suspect::kGradientAccumulation, SignIn::kNamePart, "gradient"},
    {Suspect::kGradientAccumulation, SignIn::kType, "accumulategrad"},
    {Suspect::kGradientAccumulation, SignIn::kType, "backward0"},
    {Suspect::kMetricsLists, SignIn::kNamePart, "metric"},
    {Suspect::kMetricsLists, SignIn::kNamePart, "losses"},
    {Suspect::kMetricsLists, SignIn::kNamePart, "history"},
    {Suspect::kMetricsLists, SignIn::kNamePart, "accurac"},
    {Suspect::kMetricsLists, SignIn::kNamePart, "predictions"},
    {Suspect::kMetricsLists, SignIn::kName, "preds"},
    {Suspect::kMetricsLists, SignIn::kName, "scores"},
    {Suspect::kMetricsLists, SignIn::kName, "logs"},
    {Suspect::kMetricsLists, SignIn::kType, "metric"},
    {Suspect::kDatasetLoading, SignIn::kNamePart, "dataset"},
    {Suspect::kDatasetLoading, SignIn::kNamePart, "dataloader"},
    {Suspect::kDatasetLoading, SignIn::kNamePart, "data_loader"},
    {Suspect::kDatasetLoading, SignIn::kName, "loader"},
    {Suspect::kDatasetLoading, SignIn::kName, "train_loader"},
    {Suspect::kDatasetLoading, SignIn::kType, "dataset"},
    {Suspect::kDatasetLoading, SignIn::kType, "dataloader"},
    {Suspect::kDatasetLoading, SignIn::kType, "torch.utils.data."},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

// "collate() closure: shared.cache": collate, closure, shared, cache.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  bool is_inside = false;
  for (const char c : lower_case(text)) {
    const bool is_of_name = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (is_of_name && !is_inside) {
      names.emplace_back();
    }
    is_inside = is_of_name;
    if (is_of_name) {
      names.back() += c;
    }
  }
  return names;
}

bool sign_fits(const Sign& sign, const std::string& name) {
  return sign.in == SignIn::kName       ? name == sign.text
         : sign.in == SignIn::kNamePart ? name.find(sign.text) != std::string::npos
                                        : false;
}

// The last name that says something.
std::optional<Suspect> suspect_of_names(std::string_view text) {
  const std::vector<std::string> names = names_in(text);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    for (const Sign& sign : kSigns) {
      if (sign_fits(sign, *name)) {
        return sign.suspect;
      }
    }
  }
  return std::nullopt;
}

std::optional<Suspect> suspect_of_type(std::string_view type) {
  const std::string lower = lower_case(type);
  for (const Sign& sign : kSigns) {
    if (sign.in == SignIn::kType && lower.find(sign.text) != std::string::npos) {
      return sign.suspect;
    }
  }
  return std::nullopt;
}

// A cache of functions of that library, which has tokenizers and image processors.
bool is_cache_of_transformers(const OwnerRecord& owner) {
  return owner.path.starts_with("transformers.") &&
         owner.path.find("(lru_cache)") != std::string::npos;
}

// Graphs that are kept by whatever name.
bool is_graph(std::string_view type) {
  return suspect_of_type(type) == Suspect::kGradientAccumulation;
}

}  // namespace

std::optional<Suspect> suspect_of(const OwnerRecord& owner) {
  if (owner.kind == OwnerKind::kGarbage) {
    return Suspect::kGarbage;
  }
  if (is_cache_of_transformers(owner)) {
    return Suspect::kProcessorCaches;
  }
  if (is_graph(owner.type)) {
    return Suspect::kGradientAccumulation;
  }
  // What stands last, in brackets, is what it holds and not where it is.
  std::size_t steps = owner.steps.size();
  while (steps > 0 && owner.steps[steps - 1].label.starts_with('[')) {
    --steps;
  }
  for (std::size_t i = steps; i > 0; --i) {
    const PathStep& step = owner.steps[i - 1];
    if (const auto of_name = suspect_of_names(step.label)) {
      return of_name;
    }
    if (const auto of_type = suspect_of_type(step.type)) {
      return of_type;
    }
  }
  return suspect_of_names(owner.path);
}

std::optional<Suspect> suspect_of_line(std::string_view name) { return suspect_of_names(name); }

}  // namespace tidemark::tracker
