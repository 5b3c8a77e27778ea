#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: harness.py BUILD_DIR [--runs 3] [--seeds 5] [--only PART[,PART...]] [--scenario NAME]

Grades the tools on the trainer harness, whose ground truth is known, in two parts:
  verdicts  every scenario of `tidemark demo --all` with every seed, several times: is it right about
            the verdict, the rate of a leak, its process and line, and the plateau of a recorded job?
  pace      steps per second of a job with and without the monitor at 1 Hz, by turns: within 1 %?
--scenario chooses one scenario and leaves the pace out. Exits with 1 when a bar is missed. All of it
takes about an hour on two cores.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bars import Bars

PACE_TOLERANCE = 0.01
PACE_ROUNDS = 100
PACE_TURN_S = 1
PACE_SETTLE_S = 10  # the job warms up

PARTS = {"verdicts", "pace"}

# The advice that fits what a scenario does to memory (docs/harness.md); for others none does.
KEPT = {"kept_per_step"}
FITTING_ADVICE = {
    "warmup": {"first_epoch_cache"}, "spikes": {"eval_outputs"}, "valspike": {"eval_outputs"},
    "leak-collator": KEPT, "leak-native": KEPT, "leak-autograd": KEPT, "leak-optimizer": KEPT,
    "leak-pinned": KEPT | {"pinned_host_memory"}, "wrapper": KEPT, "slowleak": KEPT,
    "catastrophic": KEPT, "leak-shm": {"unheld_shm"}, "staircase": {"checkpoint_state_kept"},
    "compile-workers": {"compile_workers"}, "sawtooth": {"collector_sawtooth"},
    "fragmentation": {"freed_but_kept"}, "dataloader-cow": {"dataloader_copy_on_write"},
}
ADVICE_PRECISION = 0.95


def demo(build, seed, scenario):
    """The graded scenarios, as `tidemark demo` has them in its JSON."""
    command = [build / "bin/tidemark", "demo", "--json", "--seed", str(seed), scenario or "--all"]
    process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not process.stdout:
        sys.exit(f"the demo with seed {seed} failed:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout)["scenarios"]


def rate_error(result):
    """Of a leak that was found: measured over true, less one."""
    true, found = result["truth"]["bytes_per_step"], result["found"]["bytes_per_step"]
    return found / true - 1 if true and found else None


def bench_verdicts(build, runs, seeds, scenario):
    """Prints one row per scenario: a mark for each seed, in groups of one run each."""
    results = {}
    for run in range(1, runs + 1):
        for seed in range(1, seeds + 1):
            graded = demo(build, seed, scenario)
            right = sum(result["right"] for result in graded)
            print(f"run {run}, seed {seed}: {right} of {len(graded)} right", flush=True)
            for result in graded:
                results.setdefault(result["name"], []).append(result)
    width = max(17, runs * (seeds + 1))
    print(f"\n{'scenario':<16} {'truth':<7} {'. right, x wrong':<{width}} worst rate error")
    missed = 0
    for name, graded in results.items():
        marks = "".join("." if result["right"] else "x" for result in graded)
        groups = " ".join(marks[i:i + seeds] for i in range(0, len(marks), seeds))
        errors = [error for error in map(rate_error, graded) if error is not None]
        worst = f"{max(errors, key=abs):+.1%}" if errors else "-"
        problems = sorted({result["problem"] for result in graded if not result["right"]})
        truth = next((r["truth"]["verdict"] for r in graded if r["ran"]), "?")
        print(f"{name:<16} {truth:<7} {groups:<{width}} {worst}"
              f"{'  MISS: ' + '; '.join(problems) if problems else ''}", flush=True)
        missed += marks.count("x")
    print(f"{missed} misses\n")
    return missed + grade_advice(results)


def grade_advice(results):
    """Prints what was advised where it does not fit, and the share that does."""
    given = fitting = 0
    for name, graded in results.items():
        wrong = []
        for result in graded:
            fits = [advice in FITTING_ADVICE.get(name, set()) for advice in result["advice"]]
            given += len(fits)
            fitting += sum(fits)
            wrong += [advice for advice, fit in zip(result["advice"], fits) if not fit]
        if wrong:
            print(f"{name}: advice that does not fit: {', '.join(sorted(set(wrong)))} ({len(wrong)} times)")
    bars = Bars()
    bars.report("advice that does not fit", 100 * (1 - fitting / max(given, 1)),
                100 * (1 - ADVICE_PRECISION), " %", f"{given - fitting} of {given}")
    return bars.missed


class StepTimes:
    """How long each step of a trainer took, from the lines that it writes at the end of each."""

    def __init__(self, fd):
        self._seconds = []
        threading.Thread(target=self._read, args=(fd,), daemon=True).start()

    def _read(self, fd):
        before = None
        with os.fdopen(fd) as lines:
            for _ in lines:
                now = time.monotonic()
                if before:
                    self._seconds.append(now - before)
                before = now

    def during(self, seconds):
        """Of the steps of that time; those that the machine held up, not a process, are cut short."""
        self._seconds = []
        time.sleep(seconds)
        taken = self._seconds[:]
        if len(taken) < 10:
            sys.exit(f"the harness made {len(taken)} steps in a turn: has it ended?")
        longest = 4 * statistics.median(taken)
        return [min(step, longest) for step in taken]


def bench_pace(build):
    """One job of one thread, and a monitor on the same processor that is stopped and goes on by
    turns: what it takes, it takes from the job. Two runs of a job differ by 10 %."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder, contextlib.ExitStack() as ends:
        processor = str(max(os.sched_getaffinity(0)))
        progress, write_end = os.pipe()
        job = subprocess.Popen(
            ["taskset", "-c", processor, build / "bin/tidemark-harness", "train", "steady", "--steps",
             "1000000", "--step-time", "0ms", "--progress-fd", str(write_end)],
            env=dict(os.environ, OMP_NUM_THREADS="1"), pass_fds=[write_end],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        ends.callback(end, job)
        os.close(write_end)
        monitor = subprocess.Popen(
            ["taskset", "-c", processor, build / "bin/tidemark", "monitor", "--interval", "1s", "--pid",
             str(job.pid), "-o", f"{folder}/run.tidemark"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ends.callback(end, monitor)
        steps = StepTimes(progress)
        time.sleep(PACE_SETTLE_S)
        rates = {False: [], True: []}
        for i in range(PACE_ROUNDS):
            for is_watched in (False, True) if i % 2 == 0 else (True, False):
                monitor.send_signal(signal.SIGCONT if is_watched else signal.SIGSTOP)
                if monitor.poll() is not None:
                    sys.exit("the monitor has ended before the job")
                rates[is_watched].append(1 / statistics.fmean(steps.during(PACE_TURN_S)))
    ratios = sorted(watched / alone for watched, alone in zip(rates[True], rates[False]))
    loss = 1 - statistics.median(ratios)
    quartiles = statistics.quantiles(ratios, n=4)
    doubt = 1.57 * (quartiles[2] - quartiles[0]) / len(ratios) ** 0.5  # of a median, 95 %
    bars = Bars()
    bars.report("steps lost to the monitor at 1 Hz", 100 * loss, 100 * PACE_TOLERANCE, " %",
                f"+- {doubt:.2%}; {statistics.median(rates[False]):.1f} steps per second alone, "
                f"{statistics.median(rates[True]):.1f} with it; median of {PACE_ROUNDS} pairs of turns "
                f"of {PACE_TURN_S} s, ratios {ratios[0]:.3f}..{ratios[-1]:.3f}")
    return bars.missed


def end(process):
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="verdicts,pace")
    parser.add_argument("--scenario")
    options = parser.parse_args()
    parts = options.only.split(",")
    unknown = sorted(set(parts) - PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(PARTS))}")
    build = options.build.resolve()
    if not (build / "bin/tidemark-harness").exists():
        sys.exit("there is no tidemark-harness in the build: it needs libtorch (./dev deps)")
    print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} CPUs\n")
    missed = 0
    if "verdicts" in parts:
        missed += bench_verdicts(build, options.runs, options.seeds, options.scenario)
    if "pace" in parts and options.scenario is None:
        missed += bench_pace(build)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
