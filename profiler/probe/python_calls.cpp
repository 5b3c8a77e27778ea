// SPDX-License-Identifier: Apache-2.0
#include "profiler/probe/python_calls.h"

#include "profiler/probe/poison.h"

namespace tidemark::probe {
namespace {

using wire::kProbeUnknown;
using wire::ProbeOutcome;
using wire::ProbePython;
using wire::ProbeResult;

// An object of Python; a reference to it, but for nullptr.
class Object {
 public:
  Object(const ProbePython& python, void* object) noexcept : python_(python), object_(object) {
    if (object == nullptr) {
      function_at<void()>(python.clear_error)();
    }
  }
  ~Object() {
    if (object_ != nullptr) {
      function_at<void(void*)>(python_.drop_reference)(object_);
    }
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  explicit operator bool() const noexcept { return object_ != nullptr; }
  Object attribute(const char* name) const noexcept {
    return {python_, function_at<void*(void*, const char*)>(python_.get_attribute)(object_, name)};
  }
  Object call(const char* method) const noexcept {
    return {python_, function_at<void*(void*, const char*, const char*, ...)>(python_.call_method)(
                         object_, method, nullptr)};
  }
  Object call(const char* method, int argument) const noexcept {
    return {python_, function_at<void*(void*, const char*, const char*, ...)>(python_.call_method)(
                         object_, method, "i", argument)};
  }
  bool is_true() const noexcept {
    const int answer = object_ == nullptr ? 0 : function_at<int(void*)>(python_.is_true)(object_);
    if (answer < 0) {
      function_at<void()>(python_.clear_error)();
    }
    return answer > 0;
  }
  std::int64_t number() const noexcept {
    const std::int64_t value = object_ == nullptr
                                   ? kProbeUnknown
                                   : function_at<long long(void*)>(python_.as_long)(object_);
    if (value < 0) {
      function_at<void()>(python_.clear_error)();
      return kProbeUnknown;
    }
    return value;
  }

 private:
  const ProbePython& python_;
  void* object_;
};

// Of all GPUs.
std::int64_t reserved_bytes(const Object& cuda) noexcept {
  constexpr std::int64_t kMostDevices = 64;
  const std::int64_t devices = cuda.call("device_count").number();
  std::int64_t sum = devices < 0 ? kProbeUnknown : 0;
  for (std::int64_t i = 0; i < devices && i < kMostDevices; ++i) {
    const std::int64_t bytes = cuda.call("memory_reserved", static_cast<int>(i)).number();
    if (bytes < 0) {
      return kProbeUnknown;
    }
    sum += bytes;
  }
  return sum;
}

}  // namespace

void collect_garbage(const ProbePython& python, ProbeOutcome& outcome) noexcept {
  const Object gc(python, function_at<void*(const char*)>(python.import_module)("gc"));
  if (!gc) {
    outcome.result = ProbeResult::kRaised;
    return;
  }
  constexpr int kMostPasses = 2;
  std::int64_t found = 1;
  for (int pass = 0; pass < kMostPasses && found > 0; ++pass) {
    const Object answer = gc.call("collect");
    if (!answer) {
      outcome.result = ProbeResult::kRaised;
      return;
    }
    found = answer.number();
    outcome.objects = found < 0 ? outcome.objects : pass == 0 ? found : outcome.objects + found;
  }
  outcome.frozen_objects = gc.call("get_freeze_count").number();
}

void empty_cuda_caches(const ProbePython& python, ProbeOutcome& outcome) noexcept {
  void* const modules = function_at<void*()>(python.module_dict)();  // borrowed, as the next one
  void* const found = function_at<void*(void*, const char*)>(python.dict_get)(modules, "torch");
  if (found == nullptr) {
    outcome.result = ProbeResult::kNoTorch;
    return;
  }
  function_at<void(void*)>(python.add_reference)(found);
  const Object torch(python, found);
  const Object cuda = torch.attribute("cuda");
  if (!cuda || !cuda.call("is_initialized").is_true()) {
    outcome.result = ProbeResult::kNoCuda;
    return;
  }
  outcome.gpu_before_bytes = reserved_bytes(cuda);
  if (!cuda.call("empty_cache")) {
    outcome.result = ProbeResult::kRaised;
    return;
  }
  const Object internals = torch.attribute("_C");
  if (internals && internals.attribute("_host_emptyCache")) {
    outcome.has_emptied_pinned = static_cast<bool>(internals.call("_host_emptyCache"));
  }
  outcome.gpu_after_bytes = reserved_bytes(cuda);
}

}  // namespace tidemark::probe
