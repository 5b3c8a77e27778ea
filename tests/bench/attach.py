#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: attach.py BUILD_DIR [soak [ROUNDS]]

How long a training job in Python stands still while the tracer is loaded into it, how long it takes
until there is data, and what the job costs while it is traced, against the same job before, in
turns. `soak`: attaches to and detaches from a program with eight busy threads 200 times and from a
training loop 50 times; both check themselves.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from bars import Bars

# A training loop that keeps every batch, and prints how long its steps take.
JOB = r"""
import sys, time, torch
torch.set_num_threads(1)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.Linear(16 * 62 * 62, 10))
optimizer = torch.optim.Adam(net.parameters())
kept = []
def collate():
    batch = torch.randn(8, 3, 64, 64)
    kept.append(batch[:1].clone())
    return batch
step = 0
while True:
    begun = time.perf_counter()
    for _ in range(20):
        loss = net(collate()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(step, time.perf_counter() - begun, bool(loss == loss), flush=True)
    del kept[:-1000]
"""
FIGURES = re.compile(r"attached to pid \d+ in ([\d.]+) s; one thread of it stood still for ([\d.]+) ms,"
                     r" all of them for ([\d.]+) ms; \d+ function pointers in (\d+) modules")


def start_job():
    job = subprocess.Popen(["/usr/bin/python3", "-c", JOB], stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    return job


def end(job):
    job.kill()
    job.wait()


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return sum(1 for _ in maps)


def profile(build, pid, seconds, *options):
    return subprocess.run([build / "bin/tidemark", "profile", "--pid", str(pid), "--duration",
                           f"{seconds}s", "--interval", "200ms", "--plain", *options],
                          capture_output=True, text=True, check=False)


def batches(job, seconds):
    """How long each 20 steps took."""
    times = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        times.append(float(job.stdout.readline().split()[1]))
    return times


def measure_attaching(build, bars, rounds=9):
    thread_ms, process_ms, attach_s, modules = [], [], [], 0
    for _ in range(rounds):
        job = start_job()
        done = profile(build, job.pid, 1)
        found = FIGURES.search(done.stderr)
        end(job)
        if not found:
            print(done.stderr)
            return
        attach_s.append(float(found[1]))
        thread_ms.append(float(found[2]))
        process_ms.append(float(found[3]))
        modules = int(found[4])
    bars.report(f"one thread stood still, {modules} modules, median", statistics.median(thread_ms), 50,
                " ms", f"most {max(thread_ms):.1f}")
    bars.report("all threads stood still, median", statistics.median(process_ms), 50, " ms",
                f"most {max(process_ms):.1f}")
    bars.report("from the command to the first block recorded, median", statistics.median(attach_s), 2,
                " s", f"most {max(attach_s):.2f}")


def measure_cost(build, bars, turns=10):
    for mode, bar in (("sampled", 1.02), ("exact", 1.10)):
        job = start_job()
        batches(job, 3)
        ratios = []
        for _ in range(turns):
            plain = statistics.median(batches(job, 2))
            with subprocess.Popen([build / "bin/tidemark", "profile", "--pid", str(job.pid), "--mode",
                                   mode, "--plain"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as tool:
                tool.stderr.readline()
                traced = statistics.median(batches(job, 2))
                tool.send_signal(2)
                tool.stderr.read()
            ratios.append(traced / plain)
        end(job)
        bars.report(f"a step while traced, {mode}, median", statistics.median(ratios), bar, "x",
                    f"{min(ratios):.2f}..{max(ratios):.2f}")


def soak(build, rounds):
    program = subprocess.Popen([build / "tests/programs/busy_threads", "3600", "libsqlite3.so.0"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    good = soak_one(build, program.pid, rounds, "eight busy threads")
    program.stdin.close()
    said = program.stdout.read().strip()
    good = program.wait() == 0 and good
    print(f"{'ok  ' if good else 'MISS'}  eight busy threads: {said}", flush=True)
    job = start_job()
    good = soak_one(build, job.pid, rounds // 4, "a training loop") and good
    last = job.stdout.readline().split()
    good = job.poll() is None and last[2] == "True" and good
    print(f"{'ok  ' if good else 'MISS'}  a training loop: goes on at step {last[0]}", flush=True)
    end(job)
    return good


def soak_one(build, pid, rounds, what):
    failed = 0
    profile(build, pid, 0.3)
    maps, files = mappings(pid), len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(rounds - 1):
        failed += profile(build, pid, 0.3).returncode not in (0, 4)
    more_maps = mappings(pid) - maps
    more_files = len(os.listdir(f"/proc/{pid}/fd")) - files
    good = failed == 0 and more_maps < 40 and more_files < 4
    print(f"{'ok  ' if good else 'MISS'}  {what}: {rounds} times, {failed} failed, {more_maps} mappings "
          f"and {more_files} files more than after the first", flush=True)
    return good


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if sys.argv[2:3] == ["soak"]:
        return 0 if soak(build, int(sys.argv[3]) if len(sys.argv) > 3 else 200) else 1
    bars = Bars()
    measure_attaching(build, bars)
    measure_cost(build, bars)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
