// SPDX-License-Identifier: Apache-2.0
// Fills the heap in its first steps and then frees nearly all of it, except for one block at the
// very top, so that the allocator cannot give the rest back to the kernel. Later steps use and free
// the same memory again: resident, not in use, and no leak.
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kPieceBytes = 32 * 1024;

void* touched_piece() {
  void* const piece = std::malloc(kPieceBytes);
  if (piece == nullptr) {
    std::_Exit(1);
  }
  std::memset(piece, 0x5A, kPieceBytes);
  return piece;
}

class Heap {
 public:
  void fill(double megabytes) {
    const auto pieces =
        static_cast<std::size_t>(megabytes * kMegabyte / static_cast<double>(kPieceBytes));
    for (std::size_t i = 0; i < pieces; ++i) {
      pieces_.push_back(touched_piece());
    }
  }
  void free_all() {
    for (void* const piece : pieces_) {
      std::free(piece);
    }
    pieces_.clear();
  }

 private:
  std::vector<void*> pieces_;
};

}  // namespace

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double fill_steps = 120;
  double fill_mb = 1;  // at each of them
  double reuse_mb = 20;
  parse_options(argc, argv, pace,
                {{"--base-mb", &base_mb},
                 {"--fill-steps", &fill_steps},
                 {"--fill-mb", &fill_mb},
                 {"--reuse-mb", &reuse_mb}});
  const double settled_mb = base_mb + fill_steps * fill_mb;
  print_truth("freed_but_resident", "warmup", pace,
              {{"base_bytes", base_mb * kMegabyte},
               {"settled_step", fill_steps},
               {"settled_bytes", settled_mb * kMegabyte},
               {"in_use_bytes", base_mb * kMegabyte}});

  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);  // all pieces lie in the one heap
  const Block base(base_mb);
  Heap heap;
  void* top = nullptr;
  run_steps(pace, [&](long n) {
    const double step = static_cast<double>(n);
    if (step <= fill_steps) {
      heap.fill(fill_mb);
      return;
    }
    if (top == nullptr) {
      top = touched_piece();
      heap.free_all();
    }
    heap.fill(reuse_mb);
    heap.free_all();
  });
  std::free(top);
}
