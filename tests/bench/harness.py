#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: harness.py BUILD_DIR [--runs 3] [--seeds 5] [--only PART[,PART...]] [--preset NAME]

Grades the tools on the trainer harness, whose truth is known, in three parts:
  matrix   every preset with every seed, several runs in a row: is the verdict the truth, and is the
           rate of a leak within 10 % of it?
  replay   the replayed jobs at scale 0.05: is the plateau found between step 80 and 100, and is the
           growth within 5 %?
  pace     steps per second of a job with and without the monitor at 1 Hz, by turns: within 1 %?
--preset chooses one preset or replayed job, and leaves the pace out. Exits with 1 when a bar is
missed. All of it takes about 50 minutes on two cores.
"""

import argparse
import concurrent.futures
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

AT_A_TIME = min(2, os.cpu_count() or 1)
RATE_TOLERANCE = 0.10
GROWTH_TOLERANCE = 0.05
PLATEAU = (80, 100)
PACE_TOLERANCE = 0.01
PACE_ROUNDS = 100
PACE_TURN_S = 1
PACE_SETTLE_S = 10  # the job warms up
LONGEST_RUN_S = 180

PARTS = {"matrix", "replay", "pace"}
PRESETS = {
    "steady": ["steady"],
    "warmup": ["warmup"],
    "spikes": ["spikes"],
    "leak collator": ["leak", "--cause", "collator"],
    "leak autograd": ["leak", "--cause", "autograd"],
    "leak optimizer": ["leak", "--cause", "optimizer"],
    "leak native": ["leak", "--cause", "native"],
    "leak shm": ["leak", "--cause", "shm"],
    "leak pinned": ["leak", "--cause", "pinned"],
    "staircase": ["staircase"],
    "sawtooth": ["sawtooth"],
    "fragmentation": ["fragmentation"],
    "compile-workers": ["compile-workers"],
    "dataloader-cow": ["dataloader-cow"],
}
REPLAYS = {
    "job1": ["replay", "--replay", "job1"],
    "job2": ["replay", "--replay", "job2"],
    "valspike": ["replay", "--replay", "valspike"],
    # They were logged for too short a time to tell a leak from a warm-up; so they go on.
    "slowleak": ["replay", "--replay", "slowleak", "--steps", "480"],
    "catastrophic": ["replay", "--replay", "catastrophic", "--steps", "400"],
}


class Run:
    """One watched run: what the tracker said, and what is true."""

    def __init__(self, build, arguments):
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
            truth = pathlib.Path(folder) / "truth.json"
            process = subprocess.run(
                [build / "bin/tidemark", "track", "--json", "--interval", "200ms",
                 "--pss", "always", "--",
                 build / "bin/tidemark-harness", "train", *arguments, "--truth", truth],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_RUN_S)
            if process.returncode not in (0, 1, 4):
                sys.exit(f"harness {' '.join(arguments)} failed:\n{process.stderr[-2000:]}")
            self.said = json.loads(process.stdout)
            self.truth = json.loads(truth.read_text())

    @staticmethod
    def _pattern(of, kind):
        return next((p for p in of["patterns"] if p["kind"] == kind), None)

    def rate_error(self):
        """Of a leak that was found: measured over true, less one."""
        true, found = self._pattern(self.truth, "leak"), self._pattern(self.said, "leak")
        return found["rate_bytes_per_step"] / true["bytes_per_step"] - 1 if true and found else None

    def growth_error(self):
        true, found = self._pattern(self.truth, "warmup"), self._pattern(self.said, "warmup")
        return found["growth_bytes"] / true["growth_bytes"] - 1 if true and found else None

    def plateau_step(self):
        found = self._pattern(self.said, "warmup")
        return found and found["to_step"]

    def verdict_is_right(self):
        return self.said["verdict"] == self.truth["class"]

    def problem(self):
        """Empty: right; else a word or two."""
        if not self.verdict_is_right():
            return self.said["verdict"]
        error = self.rate_error()
        return f"rate {error:+.0%}" if error is not None and abs(error) > RATE_TOLERANCE else ""


def in_parallel(tasks):
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def bench_matrix(build, presets, runs, seeds):
    """Prints one row per preset: a mark for each seed, in groups of one run each."""
    print(f"verdicts: {runs} runs in a row of every preset, {seeds} seeds each\n"
          f"{'preset':<16} {'truth':<7} {'. right, x wrong':<{max(17, runs * (seeds + 1))}} "
          f"worst rate error", flush=True)
    missed = 0
    for name, arguments in presets.items():
        tasks = [lambda seed=seed: Run(build, [*arguments, "--seed", str(seed)])
                 for _ in range(runs) for seed in range(1, seeds + 1)]
        # Segments that nobody holds belong to the machine: one run would see those of the other.
        graded = [task() for task in tasks] if "shm" in arguments else in_parallel(tasks)
        problems = [run.problem() for run in graded]
        marks = "".join("x" if problem else "." for problem in problems)
        groups = " ".join(marks[i:i + seeds] for i in range(0, len(marks), seeds))
        errors = [run.rate_error() for run in graded if run.rate_error() is not None]
        worst = f"{max(errors, key=abs):+.1%}" if errors else "-"
        found = ", ".join(sorted({problem for problem in problems if problem}))
        print(f"{name:<16} {graded[0].truth['class']:<7} {groups:<{max(17, runs * (seeds + 1))}} "
              f"{worst}{'  MISS: ' + found if found else ''}", flush=True)
        missed += sum(bool(problem) for problem in problems)
    print(f"{missed} misses\n")
    return missed


def bench_replays(build, presets, runs, seeds):
    del runs
    print(f"replayed jobs at scale 0.05, {seeds} seeds each\n"
          f"{'job':<13} {'truth':<7} {'verdicts':<16} {'plateau step':<13} {'growth':<15} rate", flush=True)
    missed = 0
    for name, arguments in presets.items():
        graded = in_parallel([
            lambda seed=seed: Run(build, [*arguments, "--scale", "0.05", "--seed", str(seed)])
            for seed in range(1, seeds + 1)])
        bad = [run.problem() for run in graded if run.problem()]
        plateaus = growths = []
        if name.startswith("job"):
            plateaus = [run.plateau_step() for run in graded]
            growths = [run.growth_error() for run in graded]
            bad += ["plateau" for step in plateaus
                    if step is None or not PLATEAU[0] <= step <= PLATEAU[1]]
            bad += ["growth" for error in growths
                    if error is None or abs(error) > GROWTH_TOLERANCE]
        rates = [run.rate_error() for run in graded if run.rate_error() is not None]
        print(f"{name:<13} {graded[0].truth['class']:<7} "
              f"{','.join(sorted({run.said['verdict'] for run in graded})):<16} "
              f"{span(plateaus, '.0f'):<13} {span(growths, '+.1%'):<15} {span(rates, '+.1%')}"
              f"{'  MISS: ' + ', '.join(sorted(set(bad))) if bad else ''}", flush=True)
        missed += len(bad)
    print(f"{missed} misses\n")
    return missed


def span(values, form):
    known = [value for value in values if value is not None]
    return f"{min(known):{form}}..{max(known):{form}}" if known else "-"


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
    parser.add_argument("--only", default="matrix,replay,pace")
    parser.add_argument("--preset")
    options = parser.parse_args()
    parts = options.only.split(",")
    unknown = sorted(set(parts) - PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(PARTS))}")
    if options.preset not in (None, *PRESETS, *REPLAYS):
        parser.error(f"there is no preset {options.preset}; there are "
                     f"{', '.join([*PRESETS, *REPLAYS])}")
    build = options.build.resolve()
    if not (build / "bin/tidemark-harness").exists():
        sys.exit("there is no tidemark-harness in the build: it needs libtorch (./dev deps)")

    def chosen(presets):
        return {name: arguments for name, arguments in presets.items()
                if options.preset in (None, name)}

    print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"{AT_A_TIME} runs at a time\n")
    missed = 0
    if "matrix" in parts and chosen(PRESETS):
        missed += bench_matrix(build, chosen(PRESETS), options.runs, options.seeds)
    if "replay" in parts and chosen(REPLAYS):
        missed += bench_replays(build, chosen(REPLAYS), options.runs, options.seeds)
    if "pace" in parts and options.preset is None:
        missed += bench_pace(build)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
