// SPDX-License-Identifier: Apache-2.0
// The heap of a process is a stranger's memory: the input changes that of a small Python that is
// made up. Its first byte is the version; then come changes of 6 bytes each: where (of words),
// what, and a number. Three looks read it: as it was, changed by the first half, and by all.
// Nothing may make the reader crash, hang, or take much memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/check.h"
#include "profiler/heap/heap_analysis.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/inject/remote_memory.h"
#include "tests/support/made_up_python.h"

namespace {

using namespace tidemark;
using namespace tidemark::heap;
using tests::MadeUpPython;

constexpr std::size_t kChangeBytes = 6;
constexpr std::uint64_t kNumbers[] = {0,
                                      1,
                                      7,
                                      0x7f,
                                      0xffff,
                                      1U << 20U,
                                      0xffffffff,
                                      std::uint64_t{1} << 32U,
                                      std::uint64_t{1} << 60U,
                                      ~std::uint64_t{0},
                                      std::uint64_t{1} << 63U,
                                      0x7fffffffffff};

std::string_view change(std::string_view changes, std::string& bytes, std::size_t count) {
  for (; count > 0 && changes.size() >= kChangeBytes; --count) {
    std::uint8_t field[kChangeBytes];
    std::memcpy(field, changes.data(), kChangeBytes);
    changes.remove_prefix(kChangeBytes);
    const std::size_t word = (field[0] | std::size_t{field[1]} << 8U) % (bytes.size() / 8);
    const std::uint64_t number = field[3] | std::uint64_t{field[4]} << 8U;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + 8 * word, 8);
    switch (field[2] % 5) {
      case 0:  // a pointer to another of its words
        value = MadeUpPython::kBegin + number * 8 % bytes.size();
        break;
      case 1:
        value = kNumbers[number % std::size(kNumbers)];
        break;
      case 2:
        value = number;
        break;
      case 3:  // a pointer that is not aligned, or to nothing
        value = MadeUpPython::kBegin + number * 9;
        break;
      default: {  // a byte
        const unsigned shift = 8U * (field[4] % 8U);
        value = (value & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{field[3]} << shift;
      }
    }
    std::memcpy(bytes.data() + 8 * word, &value, 8);
  }
  return changes;
}

// As it lies in a file, at its addresses.
class Process {
 public:
  const inject::RemoteMemory& memory() const { return memory_; }
  void set(const std::string& bytes) {
    TIDEMARK_CHECK(::pwrite(file_, bytes.data(), bytes.size(), MadeUpPython::kBegin) ==
                       static_cast<ssize_t>(bytes.size()),
                   "cannot write the memory");
  }

 private:
  int file_ = ::memfd_create("process", MFD_CLOEXEC);
  inject::RemoteMemory memory_ = inject::RemoteMemory::over(Fd(::dup(file_)));
};

// The number of objects; 0: no Python was found.
std::uint64_t look(HeapAnalysis& analysis, const std::string& bytes, unsigned minor, double t_s) {
  MemoryImage image = MadeUpPython::image(bytes);
  auto runtime =
      read_python(image, MadeUpPython::kBegin, minor >= kFirstPublishedMinor ? 0 : minor);
  if (!runtime) {
    return 0;
  }
  ProcessObjects objects(image, *std::move(runtime));
  GraphLimits limits;
  limits.most_objects = 20'000;
  limits.most_references = 1'000'000;
  HeapFacts facts;
  facts.looks.emplace_back();
  facts.looks.front().look.t_s = t_s;
  const bool is_sound = analysis.run(
      image, objects, limits, [] { return true; }, {}, facts);
  TIDEMARK_CHECK(is_sound, "a look that is sound");
  for (const OwnerRecord& owner : facts.owners) {
    TIDEMARK_CHECK(owner.path.size() <= kMostOwnerTextBytes, "a path that is too long");
  }
  return facts.looks.front().look.objects;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Process process;
  if (size == 0) {
    return 0;
  }
  const unsigned minor = kFirstPythonMinor + data[0] % (kLastPythonMinor - kFirstPythonMinor + 1);
  const MadeUpPython python(minor);
  HeapAnalysis analysis({1, 1}, {});
  TIDEMARK_CHECK(look(analysis, python.bytes(), minor, 1) > 50, "the heap is not read");

  std::string bytes = python.bytes();
  const std::string_view changes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view rest = change(changes, bytes, changes.size() / kChangeBytes / 2);
  (void)look(analysis, bytes, minor, 2);
  change(rest, bytes, rest.size());
  (void)look(analysis, bytes, minor, 3);

  process.set(bytes);
  MemoryImage image = MadeUpPython::image(bytes);
  (void)find_python(image, process.memory());
  return 0;
}
