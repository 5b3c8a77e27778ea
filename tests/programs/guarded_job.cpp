// SPDX-License-Identifier: Apache-2.0
// A training job for `tidemark guard`: steps, a leak, a checkpoint on SIGTERM; and hostile ones.
// However it goes wrong it is bounded: by --max-mb of its own memory, by the count of its processes
// and by --life-s.
//
//   guarded_job [--count N] [--step-ms MS] [--steps] [--base-mb M] [--leak-mb M at each step]
//               [--peak-mb M, reached at a third of the steps and held] [--spike-mb M every 20
//               steps]
//               [--burst-mb M, at 10 MB per ms and at step 10] [--deaf 1: ignores SIGTERM]
//               [--bomb N: N processes of 1 MB that fork each other at step 10]
//               [--max-mb M] [--life-s S] [--checkpoint FILE]
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

volatile sig_atomic_t g_stop = 0;

struct Job {
  double base_mb = 16;
  double leak_mb = 0;
  double peak_mb = 0;
  double spike_mb = 0;
  double burst_mb = 0;
  double deaf = 0;
  double bomb = 0;
  double max_mb = 2048;
  double life_s = 60;
};

// Takes the flags that are not numbers out.
std::string take_checkpoint(int& argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--checkpoint") == 0) {
      const std::string path = argv[i + 1];
      for (int j = i; j + 2 <= argc; ++j) {
        argv[j] = argv[j + 2];
      }
      argc -= 2;
      return path;
    }
  }
  return "";
}

long load(const std::string& path) {
  std::ifstream in(path);
  long step = 0;
  in >> step;
  return step;
}

void save(const std::string& path, long step) {
  if (path.empty()) {
    return;
  }
  std::ofstream(path + ".new") << step << '\n';
  std::rename((path + ".new").c_str(), path.c_str());
}

// 10 MB, a millisecond, 10 MB, ...: as fast as the machine gives it, and no faster.
void burst(double megabytes, std::vector<Block>& kept) {
  auto due = std::chrono::steady_clock::now();
  for (double got = 0; got < megabytes && g_stop == 0; got += 10) {
    kept.emplace_back(10);
    due += std::chrono::milliseconds(1);
    std::this_thread::sleep_until(due);
  }
}

// Each process has two children, until there are `most` of them: all that a bomb does, and no more.
void explode(std::atomic<int>& born, int most, unsigned life_s) {
  while (born.fetch_add(1) < most) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(life_s);
      const Block memory(1);
      explode(born, most, life_s);
      while (true) {
        ::pause();
      }
    }
    ::usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Pace pace;
  Job job;
  const std::string checkpoint = take_checkpoint(argc, argv);
  parse_options(argc, argv, pace,
                {{"--base-mb", &job.base_mb},
                 {"--leak-mb", &job.leak_mb},
                 {"--peak-mb", &job.peak_mb},
                 {"--spike-mb", &job.spike_mb},
                 {"--burst-mb", &job.burst_mb},
                 {"--deaf", &job.deaf},
                 {"--bomb", &job.bomb},
                 {"--max-mb", &job.max_mb},
                 {"--life-s", &job.life_s}});
  const auto most = static_cast<rlim_t>((job.max_mb + 256) * kMegabyte);
  const rlimit bound{most, most};
  ::setrlimit(RLIMIT_DATA, &bound);
  ::alarm(static_cast<unsigned>(job.life_s));
  ::signal(
      SIGTERM, job.deaf > 0 ? SIG_IGN : [](int) { g_stop = 1; });
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const born = new (shared) std::atomic<int>(0);

  long step = load(checkpoint);
  const Block base(job.base_mb);
  std::printf("pid %d begins after step %ld\n", static_cast<int>(::getpid()), step);
  std::fflush(stdout);
  std::vector<Block> kept;
  const long steps = static_cast<long>(pace.count);
  double held_mb = job.base_mb;
  while (step < steps && g_stop == 0) {
    ++step;
    if (job.leak_mb > 0 && held_mb + job.leak_mb <= job.max_mb) {
      kept.emplace_back(job.leak_mb);
      held_mb += job.leak_mb;
    }
    if (job.peak_mb > 0 && step <= steps / 3) {
      kept.emplace_back((job.peak_mb - job.base_mb) / static_cast<double>(steps / 3));
    }
    const Block spike(step % 20 < 4 ? job.spike_mb : 0);
    if (step == 10) {
      burst(job.burst_mb, kept);
      explode(*born, static_cast<int>(job.bomb), static_cast<unsigned>(job.life_s));
    }
    if (pace.announce) {
      tidemark_step(step);
    }
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pace.step_ms));
  }
  save(checkpoint, step);
  std::printf("%s after step %ld\n", g_stop != 0 ? "stopped" : "done", step);
  return 0;
}
