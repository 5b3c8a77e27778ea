#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: owners.py BUILD_DIR [--roots FOLDER] [--only VERSION[,VERSION...]] [PART...]

What `tidemark owners` finds and costs. Parts (default: all):
  matrix  the owners of all programs with known ones, in every Python that is found (owners_matrix.py)
  sizes   time, our memory and how long the job stands still, for heaps of 0.1, 1 and 5 million objects
          and of 0.25, 1 and 4 GiB
  steps   the steps of a busy job with a million objects: alone, beside us, and with profilers that run
          inside of it, in turns
  stress  a thousand copies of each of three busy programs, which must not notice them
  exports what DevTools of Chromium make of two heap snapshots of one job (owners_exports.py)
--only is of the matrix. Exits with 1 when a bar is missed.
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
import time
import typing

import owners_exports
import owners_matrix
import pythons
from bars import Bars

PARTS = ("matrix", "sizes", "steps", "stress", "exports")
PROGRAM = owners_matrix.PROGRAMS / "sized_heap.py"
PYTHON = owners_matrix.SYSTEM_PYTHON
# Million objects, GiB, and for how long the job may stand still at a look.
SIZES = ((0.1, 0, 20), (1, 0, 30), (5, 0, 60), (0.1, 0.25, 30), (0.1, 1, 80), (0.1, 4, 320))
SECONDS_PER_LOOK = 10
OWN_MIB = 1024
AFTER_LAST_S = 15
LOOKS = 3
FREE_FACTOR = 1.5  # of what a job needs; else the size is left out
ROUNDS = 5
TURN_S = 4
COPIES = 1000
P50_BAR = 1.10
PAUSE_OF_PEER = 0.1  # of the pause that the same job makes for a profiler inside of it


class Steps(typing.NamedTuple):
    taken: list
    gaps: list


class Job:
    """A busy process with a heap of this size."""

    def __init__(self, folder, objects, gib=0):
        self.log = folder / f"{objects}-{gib}.log"
        self.log.touch()
        self._process = subprocess.Popen(
            [PYTHON, PROGRAM, "--log", self.log, "--objects", str(objects), "--gib", str(gib)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{PROGRAM} did not get ready")

    def ask(self, number):
        """What it prints on this signal."""
        self._process.send_signal(number)
        return self._process.stdout.readline().split()

    def steps(self, begin, end):
        """How long each took that ended in this time, and the time since the one before."""
        rows = [list(map(float, line.split()[2:])) for line in self.log.read_text().splitlines()]
        return Steps([taken for ended, taken in rows if begin < ended <= end],
                     [row[0] - before[0] for before, row in zip(rows, rows[1:]) if begin < row[0] <= end])

    def end(self):
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def job(*size):
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        running = Job(pathlib.Path(folder), *size)
        try:
            yield running
        finally:
            running.end()


def look(build, pid):
    """The report, how long it came after the last look, and how much memory we took."""
    begin = time.monotonic()
    tool = subprocess.Popen([build / "bin/tidemark", "owners", "--pid", str(pid), "--looks", str(LOOKS),
                             "--every", "1s", "--json"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with tool.stdout, tool.stderr:
        text = tool.stdout.read()
        errors = tool.stderr.read()
    _, status, usage = os.wait4(tool.pid, 0)
    tool.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begin
    try:
        report = json.loads(text)
    except json.JSONDecodeError:
        raise RuntimeError(f"exit status {tool.returncode}: {errors.strip()[-300:]}") from None
    return report, seconds - report["looks"][-1]["t_s"], usage.ru_maxrss / 1024


def free_gib():
    lines = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) / (1 << 20)


def bench_size(bars, build, millions, gib, most_pause_ms):
    what = f"{millions} million objects" + (f", {gib} GiB" if gib else "")
    if free_gib() < FREE_FACTOR * (gib + millions * 0.3) + 1:
        print(f"left out: {what}: {free_gib():.1f} GiB are free")
        return
    try:
        with job(int(millions * 1e6), gib) as running:
            report, after_s, own_mib = look(build, running.pid)
    except RuntimeError as failure:
        bars.miss(what, failure)
        return
    looks = report["looks"]
    detail = f"{looks[-1]['objects']} objects; {', '.join(str(each.get('way')) for each in looks)}"
    bars.report(f"{what}: longest pause", max(each["paused_ms"] for each in looks), most_pause_ms, " ms",
                ", ".join(f"{each['paused_ms']:.1f}" for each in looks))
    bars.report(f"{what}: until the answer is there", after_s, AFTER_LAST_S, " s", detail)
    bars.report(f"{what}: one look, with the time between", (looks[-1]["t_s"] - looks[0]["t_s"])
                / (len(looks) - 1), SECONDS_PER_LOOK + 1, " s")
    bars.report(f"{what}: our memory", own_mib, OWN_MIB, " MiB")
    first = report["owners"][0]["path"] if report["owners"] else "nothing"
    bars.check(first == "__main__.history", f"{what}: the owner", first)


def bench_sizes(build):
    bars = Bars()
    for millions, gib, most_pause_ms in SIZES:
        bench_size(bars, build, millions, gib, most_pause_ms)
    return bars.missed == 0


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def turn(running, act):
    """The steps of a turn in which something is done; what that returned."""
    begin = time.monotonic()
    result = act()
    time.sleep(max(0, begin + TURN_S - time.monotonic()))
    return running.steps(begin, time.monotonic()), result


def bench_steps(build):
    bars = Bars()
    acts = {
        "alone": lambda running: None,
        "tidemark": lambda running: look(build, running.pid)[0]["looks"],
        "census": lambda running: running.ask(signal.SIGUSR1),
        "objgraph": lambda running: running.ask(signal.SIGUSR2),
    }
    taken = {name: [] for name in acts}
    results = {}
    try:
        with job(1_000_000) as running:
            time.sleep(2)
            for _ in range(ROUNDS):
                for name, act in acts.items():
                    steps, results[name] = turn(running, lambda: act(running))
                    taken[name].append(steps)
    except RuntimeError as failure:
        bars.miss("steps", failure)
        return False
    if results["objgraph"][1] == "missing":
        print("left out: objgraph, which is not installed")
        del taken["objgraph"]
    report_steps(bars, taken)
    return bars.missed == 0


def report_steps(bars, taken):
    print(f"{'steps, ms':12} {'p50':>8} {'p99':>8} {'standing':>9} {'count':>7}   of {ROUNDS} turns")
    for name, turns in taken.items():
        steps = [1000 * each for part in turns for each in part.taken]
        longest = 1000 * max(each for part in turns for each in part.gaps)
        print(f"{name:12} {percentile(steps, 50):8.3f} {percentile(steps, 99):8.3f} {longest:9.2f} "
              f"{len(steps):7}")
    for percent, bar in ((50, P50_BAR), (99, None)):
        ratios = [percentile(ours.taken, percent) / percentile(alone.taken, percent)
                  for ours, alone in zip(taken["tidemark"], taken["alone"])]
        if bar:
            bars.report(f"p{percent} of steps beside us, over alone", statistics.median(ratios), bar)
        else:
            print(f"      p{percent} of steps beside us, over alone: {statistics.median(ratios):.2f}")
    longest = {name: statistics.median(max(part.gaps) for part in turns) for name, turns in taken.items()}
    for peer in [name for name in taken if name not in ("alone", "tidemark")]:
        bars.report(f"longest time without a step beside us, over that with {peer} inside",
                    longest["tidemark"] / longest[peer], PAUSE_OF_PEER, "",
                    f"{1000 * longest['tidemark']:.1f} and {1000 * longest[peer]:.1f} ms; alone "
                    f"{1000 * longest['alone']:.1f} ms")


def bench_stress(build):
    bars = Bars()
    for name in ("ABusyJob", "AJobThatHandlesTheEndOfChildren", "SubprocessesOfPython"):
        done = subprocess.run([build / "tests/frozen_copy_stress_test",
                               f"--gtest_filter=FrozenCopyStress.NothingChangesFor{name}"],
                              env=dict(os.environ, TIDEMARK_TEST_COPIES=str(COPIES)),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        bars.check(done.returncode == 0, f"{COPIES} copies: nothing changes for {name}",
                   "" if done.returncode == 0 else done.stdout.strip()[-1000:])
    return bars.missed == 0


def bench_matrix(options):
    options.shapes, options.keep, options.looks, options.every = (), None, LOOKS, "1s"
    options.with_steps = False
    options.at_once = 2 * os.cpu_count()
    only = tuple(options.only.split(",")) if options.only else ("",)
    return owners_matrix.run(options, [python for python in pythons.found(options.roots)
                                       if python.version.startswith(only)])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--roots")
    parser.add_argument("--only")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} CPUs\n", flush=True)
    runs = {"matrix": lambda: bench_matrix(options), "sizes": lambda: bench_sizes(options.build),
            "steps": lambda: bench_steps(options.build),
            "stress": lambda: bench_stress(options.build),
            "exports": lambda: owners_exports.bench_exports(options.build)}
    good = [runs[part]() for part in PARTS if not options.parts or part in options.parts]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
