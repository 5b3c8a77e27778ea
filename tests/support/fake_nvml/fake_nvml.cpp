// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1 that answers from the script named by TIDEMARK_FAKE_NVML. It is
// read at every nvmlInit. One fact per line; a device is "GPU" or "GPU.INSTANCE":
//   init CODE                       what nvmlInit returns
//   shutdowns FILE                  where nvmlShutdown appends a line
//   entry_bytes 16|24|32            layout of process entries
//   device D TOTAL USED NAME...     NAME may be missing; "\xNN" stands for a byte
//   process D compute|graphics PID BYTES
//   fail FUNCTION D CODE            handle, name, memory, memory_v2, compute, graphics
//   fail count - CODE
// Built a second time with TIDEMARK_FAKE_NVML_OLD it has only what the first versions had.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define TIDEMARK_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

struct FakeDevice {
  std::string id;
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  std::string name;
  std::map<std::string, std::vector<std::pair<std::uint32_t, std::uint64_t>>> processes;
};

struct Script {
  int init = 0;
  std::string shutdowns;
  std::size_t entry_bytes = 24;
  std::vector<FakeDevice> devices;
  std::map<std::pair<std::string, std::string>, int> failures;

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

void read_line(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  std::string id;
  words >> what;
  if (what == "init") {
    words >> g_script.init;
  } else if (what == "shutdowns") {
    words >> g_script.shutdowns;
  } else if (what == "entry_bytes") {
    words >> g_script.entry_bytes;
  } else if (what == "device") {
    FakeDevice device;
    words >> device.id >> device.total >> device.used >> std::ws;
    std::getline(words, device.name);
    device.name = unescape(device.name);
    g_script.devices.push_back(std::move(device));
  } else if (what == "process") {
    std::string kind;
    std::uint32_t pid = 0;
    std::uint64_t bytes = 0;
    words >> id >> kind >> pid >> bytes;
    if (FakeDevice* device = g_script.find(id)) {
      device->processes[kind].emplace_back(pid, bytes);
    }
  } else if (what == "fail") {
    std::string function;
    int code = 0;
    words >> function >> id >> code;
    g_script.failures[{function, id}] = code;
  }
}

int failure(const std::string& function, const std::string& id) {
  const auto found = g_script.failures.find({function, id});
  return found == g_script.failures.end() ? 0 : found->second;
}

int handle_of(const std::string& id, void** device) {
  if (const int code = failure("handle", id)) {
    return code;
  }
  *device = g_script.find(id);
  return *device == nullptr ? kNotFound : 0;
}

int list_processes(void* handle, const char* kind, unsigned* count, void* entries) {
  auto* device = static_cast<FakeDevice*>(handle);
  if (const int code = failure(kind, device->id)) {
    return code;
  }
  const auto& processes = device->processes[kind];
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(processes.size());
  if (processes.size() > capacity) {
    return kInsufficientSize;
  }
  auto* at = static_cast<unsigned char*>(entries);
  for (const auto& [pid, bytes] : processes) {
    std::memset(at, 0, g_script.entry_bytes);
    std::memcpy(at, &pid, sizeof pid);
    std::memcpy(at + 8, &bytes, sizeof bytes);
    at += g_script.entry_bytes;
  }
  return 0;
}

}  // namespace

TIDEMARK_EXPORT int nvmlInit_v2() {
  g_script = {};
  const char* const path = std::getenv("TIDEMARK_FAKE_NVML");
  std::ifstream in(path != nullptr ? path : "");
  std::string line;
  while (std::getline(in, line)) {
    read_line(line);
  }
  return g_script.init;
}

TIDEMARK_EXPORT int nvmlShutdown() {
  if (!g_script.shutdowns.empty()) {
    std::ofstream(g_script.shutdowns, std::ios::app) << "shutdown\n";
  }
  return 0;
}

TIDEMARK_EXPORT const char* nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : "scripted failure";
}

TIDEMARK_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 0;
  for (const FakeDevice& device : g_script.devices) {
    *count += device.id.find('.') == std::string::npos ? 1U : 0U;
  }
  return failure("count", "-");
}

TIDEMARK_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return handle_of(std::to_string(index), device);
}

TIDEMARK_EXPORT int nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  const auto* device = static_cast<FakeDevice*>(handle);
  // A rude library: no terminator when the name fills the buffer.
  std::strncpy(name, device->name.c_str(), size);
  return failure("name", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetMemoryInfo(void* handle, std::uint64_t* memory) {
  const auto* device = static_cast<FakeDevice*>(handle);
  memory[0] = device->total;
  memory[1] = device->total - device->used;
  memory[2] = device->used + 1;  // the first version counts some more
  return failure("memory", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count,
                                                         void* entries) {
  g_script.entry_bytes = 16;
  return list_processes(handle, "compute", count, entries);
}

#ifndef TIDEMARK_FAKE_NVML_OLD

TIDEMARK_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, std::uint64_t* memory) {
  const auto* device = static_cast<FakeDevice*>(handle);
  std::uint32_t version = 0;
  std::memcpy(&version, memory, sizeof version);
  if (version != (40U | 2U << 24U)) {
    return kNotSupported;
  }
  memory[1] = device->total;
  memory[2] = 0;
  memory[3] = device->total - device->used;
  memory[4] = device->used;
  return failure("memory_v2", device->id);
}

TIDEMARK_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                            void* entries) {
  return list_processes(handle, "compute", count, entries);
}

TIDEMARK_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count,
                                                             void* entries) {
  return list_processes(handle, "graphics", count, entries);
}

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
