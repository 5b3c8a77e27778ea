// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1 that answers from the script named by TIDEMARK_FAKE_NVML. It is
// read at every nvmlInit. One fact per line; a device is "GPU" or "GPU.INSTANCE":
//   init CODE                       what nvmlInit returns
//   shutdowns FILE                  where nvmlShutdown appends a line
//   entry_bytes 16|24|32            layout of process entries
//   device D TOTAL USED NAME...     NAME may be missing; "\xNN" stands for a byte
//   reserved D BYTES
//   busy D PERCENT                  without it, utilization is not supported
//   process D compute|graphics|mps PID BYTES [GROWTH]   more by GROWTH every second
//   fail FUNCTION D CODE            handle, name, memory, memory_v2, utilization, compute_v3,
//                                   compute, graphics, mps
//   fail count - CODE
//   hang FUNCTION D                 never returns; FUNCTION also init, count, shutdown with D "-"
//   slow FUNCTION D MILLISECONDS
//   sample N                        what follows holds from the N-th sample on, until the next such
//                                   line, in addition to what stands before the first
// Built again with TIDEMARK_FAKE_NVML_OLD it has only what the first versions had, with
// TIDEMARK_FAKE_NVML_V2 process lists up to _v2.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define TIDEMARK_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

[[maybe_unused]] constexpr int kNotSupported = 3;  // of calls that not all versions have
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

struct FakeProcess {
  std::uint32_t pid = 0;
  std::uint64_t bytes = 0;
};

struct FakeDevice {
  std::string id;
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
  int busy_percent = -1;
  std::string name;
  std::map<std::string, std::vector<FakeProcess>> processes;
};

using Place = std::pair<std::string, std::string>;  // function, device

struct Script {
  int init = 0;
  std::string shutdowns;
  std::size_t entry_bytes = 24;
  std::vector<FakeDevice> devices;
  std::map<Place, int> failures;
  std::map<Place, int> delays_ms;  // negative: for ever

  FakeDevice* find(const std::string& id) {
    for (FakeDevice& device : devices) {
      if (device.id == id) {
        return &device;
      }
    }
    return nullptr;
  }
};

Script g_script;
int g_sample = 0;
std::chrono::steady_clock::time_point g_start;
std::atomic<bool> g_hangs = false;

std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\\x") == 0 && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

void read_device(std::istringstream& words) {
  FakeDevice device;
  words >> device.id >> device.total >> device.used >> std::ws;
  std::getline(words, device.name);
  device.name = unescape(device.name);
  g_script.devices.push_back(std::move(device));
}

void read_process(std::istringstream& words) {
  std::string id;
  std::string kind;
  FakeProcess process;
  std::uint64_t growth = 0;
  words >> id >> kind >> process.pid >> process.bytes >> growth;
  // By the clock: a busy machine that misses samples does not bend the curve.
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - g_start;
  const auto grown = static_cast<std::uint64_t>(static_cast<double>(growth) * since.count());
  process.bytes += grown;
  if (FakeDevice* device = g_script.find(id)) {
    device->processes[kind].push_back(process);
    device->used += grown;
  }
}

void read_line(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  std::string function;
  std::string id;
  int number = 0;
  words >> what;
  if (what == "init") {
    words >> g_script.init;
  } else if (what == "shutdowns") {
    words >> g_script.shutdowns;
  } else if (what == "entry_bytes") {
    words >> g_script.entry_bytes;
  } else if (what == "device") {
    read_device(words);
  } else if (what == "reserved" || what == "busy") {
    std::uint64_t value = 0;
    words >> id >> value;
    if (FakeDevice* device = g_script.find(id)) {
      (what == "busy" ? void(device->busy_percent = static_cast<int>(value))
                      : void(device->reserved = value));
    }
  } else if (what == "process") {
    read_process(words);
  } else if (what == "fail") {
    words >> function >> id >> number;
    g_script.failures[{function, id}] = number;
  } else if (what == "hang") {
    words >> function >> id;
    g_script.delays_ms[{function, id}] = -1;
  } else if (what == "slow") {
    words >> function >> id >> number;
    g_script.delays_ms[{function, id}] = number;
  }
}

// The part of the script that holds now.
void read_script() {
  g_script = {};
  const char* const path = std::getenv("TIDEMARK_FAKE_NVML");
  std::ifstream in(path != nullptr ? path : "");
  std::vector<std::string> base;
  std::vector<std::string> section;
  bool is_base = true;
  bool is_now = false;
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("sample ", 0) == 0) {
      is_base = false;
      is_now = g_sample >= std::stoi(line.substr(7));
      if (is_now) {
        section.clear();
      }
    } else if (is_base) {
      base.push_back(line);
    } else if (is_now) {
      section.push_back(line);
    }
  }
  for (const auto* lines : {&base, &section}) {
    for (const std::string& each : *lines) {
      read_line(each);
    }
  }
}

void wait_as_told(const std::string& function, const std::string& id) {
  const auto found = g_script.delays_ms.find({function, id});
  if (found == g_script.delays_ms.end()) {
    return;
  }
  if (found->second < 0) {
    g_hangs = true;
    while (true) {
      ::pause();
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(found->second));
}

int answer(const std::string& function, const std::string& id) {
  wait_as_told(function, id);
  const auto found = g_script.failures.find({function, id});
  return found == g_script.failures.end() ? 0 : found->second;
}

int handle_of(const std::string& id, void** device) {
  if (const int code = answer("handle", id)) {
    return code;
  }
  *device = g_script.find(id);
  return *device == nullptr ? kNotFound : 0;
}

int list_processes(void* handle, const char* kind, unsigned* count, void* entries) {
  auto* device = static_cast<FakeDevice*>(handle);
  if (const int code = answer(kind, device->id)) {
    return code;
  }
  const auto& processes = device->processes[kind];
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(processes.size());
  if (processes.size() > capacity) {
    return kInsufficientSize;
  }
  auto* at = static_cast<unsigned char*>(entries);
  for (const FakeProcess& process : processes) {
    std::memset(at, 0, g_script.entry_bytes);
    std::memcpy(at, &process.pid, sizeof process.pid);
    std::memcpy(at + 8, &process.bytes, sizeof process.bytes);
    at += g_script.entry_bytes;
  }
  return 0;
}

// As the real library, which takes its lock: whoever calls exit() while a call hangs waits for
// ever.
__attribute__((destructor)) void clean_up() {
  while (g_hangs) {
    ::pause();
  }
}

}  // namespace

TIDEMARK_EXPORT int nvmlInit_v2() {
  g_sample = 0;
  g_start = std::chrono::steady_clock::now();
  read_script();
  wait_as_told("init", "-");
  return g_script.init;
}

TIDEMARK_EXPORT int nvmlShutdown() {
  wait_as_told("shutdown", "-");
  if (!g_script.shutdowns.empty()) {
    std::ofstream(g_script.shutdowns, std::ios::app) << "shutdown\n";
  }
  return 0;
}

TIDEMARK_EXPORT const char* nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : "scripted failure";
}

// The first question of every sample.
TIDEMARK_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  ++g_sample;
  read_script();
  *count = 0;
  for (const FakeDevice& device : g_script.devices) {
    *count += device.id.find('.') == std::string::npos ? 1U : 0U;
  }
  return answer("count", "-");
}

TIDEMARK_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return handle_of(std::to_string(index), device);
}

TIDEMARK_EXPORT int nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  const auto* device = static_cast<FakeDevice*>(handle);
  // A rude library: no terminator when the name fills the buffer.
  std::strncpy(name, device->name.c_str(), size);
  return answer("name", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetMemoryInfo(void* handle, std::uint64_t* memory) {
  const auto* device = static_cast<FakeDevice*>(handle);
  memory[0] = device->total;
  memory[1] = device->total - device->used;
  memory[2] = device->used + 1;  // the first version counts some more
  return answer("memory", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count,
                                                         void* entries) {
  g_script.entry_bytes = 16;
  return list_processes(handle, "compute", count, entries);
}

#ifndef TIDEMARK_FAKE_NVML_OLD

TIDEMARK_EXPORT int nvmlDeviceGetUtilizationRates(void* handle, unsigned* percents) {
  const auto* device = static_cast<FakeDevice*>(handle);
  if (const int code = answer("utilization", device->id)) {
    return code;
  }
  if (device->busy_percent < 0) {
    return kNotSupported;
  }
  percents[0] = static_cast<unsigned>(device->busy_percent);
  percents[1] = 1;
  return 0;
}

TIDEMARK_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, std::uint64_t* memory) {
  const auto* device = static_cast<FakeDevice*>(handle);
  std::uint32_t version = 0;
  std::memcpy(&version, memory, sizeof version);
  if (version != (40U | 2U << 24U)) {
    return kNotSupported;
  }
  memory[1] = device->total;
  memory[2] = device->reserved;
  memory[3] = device->total - device->used;
  memory[4] = device->used;
  return answer("memory_v2", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count,
                                                            void* entries) {
  g_script.entry_bytes = 24;
  return list_processes(handle, "compute", count, entries);
}

#ifndef TIDEMARK_FAKE_NVML_V2

TIDEMARK_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                            void* entries) {
  if (const int code = answer("compute_v3", static_cast<FakeDevice*>(handle)->id)) {
    return code;
  }
  return list_processes(handle, "compute", count, entries);
}

TIDEMARK_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count,
                                                             void* entries) {
  return list_processes(handle, "graphics", count, entries);
}

TIDEMARK_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                               void* entries) {
  return list_processes(handle, "mps", count, entries);
}

#endif

TIDEMARK_EXPORT int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  const auto* device = static_cast<FakeDevice*>(handle);
  *pending = 0;
  *current = 0;
  for (const FakeDevice& other : g_script.devices) {
    *current |= other.id.rfind(device->id + '.', 0) == 0 ? 1U : 0U;
  }
  return 0;
}

TIDEMARK_EXPORT int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}

TIDEMARK_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index,
                                                        void** device) {
  const auto* parent = static_cast<FakeDevice*>(handle);
  return handle_of(parent->id + '.' + std::to_string(index), device);
}

#endif
