// SPDX-License-Identifier: Apache-2.0
#include "dashboard/job_status.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::dashboard {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 4U << 20U;
constexpr std::size_t kMostJobs = 10'000;
constexpr std::size_t kLongestText = 4096;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return "";
  }
  if (found->is_string()) {
    return found->get_ref<const std::string&>().substr(0, kLongestText);
  }
  return found->is_number() ? found->dump() : "";
}

template <typename T>
std::optional<T> number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return std::nullopt;
  }
  const auto number = found->get<double>();
  return number >= 0.0 && number < 0x1p62 ? std::optional(static_cast<T>(number)) : std::nullopt;
}

std::string joined(const json& object, const char* key) {
  std::string text;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return text;
  }
  for (const json& word : *found) {
    if (word.is_string() && text.size() < kLongestText) {
      text += (text.empty() ? "" : " ") + word.get_ref<const std::string&>();
    }
  }
  return text;
}

ServedJob job_of(const json& object) {
  ServedJob job;
  job.id = text_at(object, "id");
  job.arguments = joined(object, "arguments");
  job.state = text_at(object, "state");
  job.step = number_at<std::int64_t>(object, "step");
  const auto memory = object.find("memory");
  if (memory != object.end() && memory->is_object()) {
    job.before_bytes = number_at<std::uint64_t>(*memory, "before_bytes");
    job.peak_bytes = number_at<std::uint64_t>(*memory, "peak_bytes");
    job.after_bytes = number_at<std::uint64_t>(*memory, "after_bytes");
  }
  return job;
}

}  // namespace

std::optional<std::string> job_status_path(const ProcessRecord& process) {
  const std::vector<std::string_view> words = split(process.argv, ' ');
  bool serves = false;
  std::string_view path;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    constexpr std::string_view kFlag = "--status";
    serves = serves || words[i] == "serve-jobs";
    if (words[i] == kFlag && i + 1 < words.size()) {
      path = words[i + 1];
    } else if (words[i].starts_with(kFlag) && words[i].substr(kFlag.size()).starts_with('=')) {
      path = words[i].substr(kFlag.size() + 1);
    }
  }
  if (!serves || path.empty()) {
    return std::nullopt;
  }
  // As the server sees it, which may live elsewhere.
  return path.starts_with('/') ? fmt::format("/proc/{}/root{}", process.key.pid, path)
                               : fmt::format("/proc/{}/cwd/{}", process.key.pid, path);
}

Result<std::vector<ServedJob>> parse_job_status(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || number_at<int>(document, "schema") != 1) {
    return Error{Errc::kMalformed, "this is no status file of tidemark-harness serve-jobs"};
  }
  std::vector<ServedJob> jobs;
  const auto found = document.find("jobs");
  if (found == document.end() || !found->is_array()) {
    return Error{Errc::kMalformed, "the status file has no jobs"};
  }
  for (const json& each : *found) {
    if (each.is_object() && jobs.size() < kMostJobs) {
      jobs.push_back(job_of(each));
    }
  }
  return jobs;
}

void JobWatch::add_process(const ProcessRecord& process) {
  if (auto path = job_status_path(process)) {
    path_ = *std::move(path);
  }
}

std::optional<std::vector<ServedJob>> JobWatch::poll() {
  if (path_.empty()) {
    return std::nullopt;
  }
  const auto text = read_file(path_, kMostBytes);
  if (!text || *text == last_) {
    return std::nullopt;  // the server has gone, or has nothing new: what was known still holds
  }
  last_ = *text;
  auto jobs = parse_job_status(*text);
  return jobs ? std::optional(*std::move(jobs)) : std::nullopt;
}

}  // namespace tidemark::dashboard
