#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tracer.py BUILD_DIR [PART...]

Measures the allocation tracer against plain runs and heaptrack, in turns, and prints medians and
ratios with their bars. Parts: pairs, memory, compile, import, python, harness, growth, exact
(default: all).
Exits with 1 when a bar is missed.
"""

import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bars import Bars, in_turns, median_ratio

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # the one that may have torch
ROUNDS = 7
LIGHT_ROUNDS = 61
IMPORT_ROUNDS = 31  # one takes a second, and varies by a tenth of it
SAMPLE_EVERY = 512 * 1024
MOST_BYTES = 4 << 30
SHORT_STEPS = 10
TRAINING = {8: 1500, 64: 300}  # steps by size of a batch: some 6 s each, as fast as they go
PYTHON_STEPS = 100  # some 8 s
TRAINING_BARS = {"sampled": 1.02, "exact": 1.10}


class Tracer:
    def __init__(self, build):
        self.library = build / "lib/libtidemark_tracer.so"
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-bench-", dir=base))

    def environment(self, mode):
        return dict(os.environ, **({} if mode == "plain" else self.variables(mode)))

    def variables(self, mode):
        return {"LD_PRELOAD": str(self.library),
                "TIDEMARK_TRACE": f"1:{mode}:{SAMPLE_EVERY}:{MOST_BYTES}:f:{self.folder}"}

    def file_bytes(self):
        return sum(path.stat().st_size for path in self.folder.glob("*.trace"))

    def clear(self):
        for path in self.folder.iterdir():
            path.unlink()

    def output(self, mode, command, **options):
        self.clear()
        return self._run(mode, command, **options)

    def seconds(self, mode, command, **options):
        self.clear()  # not in the time of this run: it is what the one before has written
        start = time.monotonic()
        self._run(mode, command, **options)
        return time.monotonic() - start

    def _run(self, mode, command, **options):
        return subprocess.run(list(map(str, command)), env=self.environment(mode), check=True,
                              capture_output=True, text=True, **options).stdout


def heaptrack(command):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["heaptrack", "-o", f"{folder}/trace", *map(str, command)], check=True,
                             capture_output=True, text=True)
        # heaptrack writes around the output of the command.
        return next(line for line in run.stdout.splitlines() if line[:1].isdigit())


def heaptrack_seconds(command):
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        subprocess.run(["heaptrack", "-o", f"{folder}/trace", *map(str, command)], check=True,
                       capture_output=True)
        return time.monotonic() - start


def first_number(text):
    return float(text.split()[0])


def bench_pairs(build, tracer, bars):
    program = build / "tests/bench/malloc_pairs"
    peer = shutil.which("heaptrack")
    if not peer:
        print("skip  heaptrack is not installed: no ratios against it")
    for threads, depth in ((1, 10), (2, 10), (1, 40), (2, 40)):
        command = [program, threads, depth, 400_000]

        def pairs(mode, command=command):
            return lambda: first_number(tracer.output(mode, command))

        # Where memory happens to lie makes a larger difference than these modes do.
        light = in_turns(LIGHT_ROUNDS, {mode: pairs(mode) for mode in ("plain", "dormant", "sampled")})
        variants = {"exact": pairs("exact")}
        if peer:
            variants["heaptrack"] = lambda command=command: first_number(heaptrack(command))
        heavy = in_turns(ROUNDS, variants)
        print(f"      {threads} thread(s), up to {depth} frames, ns per pair: " +
              ", ".join(f"{name} {statistics.median(values):.0f}"
                        for name, values in (light | heavy).items()))
        where = f"{threads} thread(s), depth {depth}"
        for mode, bar in (("dormant", 2), ("sampled", 6)):
            extra = statistics.median(a - b for a, b in zip(light[mode], light["plain"]))
            bars.report(f"{mode} over plain, {where}", extra, bar, " ns")
        if peer:
            ratio, spread = median_ratio(heavy, "exact", "heaptrack")
            bars.report(f"exact against heaptrack, {where}", ratio, 1 / 3 if threads == 1 else 1 / 6,
                        detail=spread)


def bench_memory(build, tracer, bars):
    program = build / "tests/bench/malloc_pairs"
    kept = 1_000_000
    resident = {mode: [float(tracer.output(mode, [program, 1, 10, 1000, kept]).split()[1])
                       for _ in range(3)] for mode in ("plain", "sampled", "exact")}
    plain = statistics.median(resident["plain"])
    bars.report("resident memory that sampling adds",
                (statistics.median(resident["sampled"]) - plain) / 2**20, 8, " MiB")
    bars.report("resident memory that exact tracing adds, per live block",
                (statistics.median(resident["exact"]) - plain) / kept, 64, " bytes")


SOURCE = "".join(f"#include <{name}>\n" for name in
                 ("map", "string", "vector", "regex", "iostream", "algorithm", "functional")) + (
    "int main() { std::map<std::string, std::vector<int>> m; std::regex r(\"a+b\");\n"
    "  for (auto& x : m) std::cout << x.first; return std::regex_match(\"aab\", r); }\n")


def bench_compile(_build, tracer, bars):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "large.cpp"
        source.write_text(SOURCE)
        command = ["g++", "-O1", "-c", source, "-o", f"{folder}/large.o"]
        report_whole_runs(tracer, bars, "g++ -O1", command, {"sampled": 1.05, "exact": 2.5},
                          with_peer=False)


def has_torch():
    found = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode != 0:
        print(f"skip  {PYTHON} has no torch (python3-torch): not measured")
    return found.returncode == 0


def report_whole_runs(tracer, bars, what, command, limits, rounds=ROUNDS, with_peer=True):
    """Wall time of a command from its start to its end; heaptrack, which is slow, comes after."""
    modes = {mode: lambda mode=mode: tracer.seconds(mode, command)
             for mode in ("plain", "sampled", "exact")}
    report_ratios(bars, what, in_turns(rounds, modes), limits)
    if with_peer and shutil.which("heaptrack"):
        peer = {"plain": modes["plain"], "heaptrack": lambda: heaptrack_seconds(command)}
        report_ratios(bars, what, in_turns(ROUNDS, peer), limits)


def report_ratios(bars, what, results, limits):
    """Each variant against the plain one; those without a limit are for comparison."""
    for name in results:
        if name == "plain":
            continue
        ratio, spread = median_ratio(results, name, "plain")
        if name in limits:
            bars.report(f"{what}, {name} against plain", ratio, limits[name], "x", spread)
        else:
            print(f"      {what}, {name} against plain: {ratio:.3g}x; {spread}", flush=True)


def bench_import(_build, tracer, bars):
    if has_torch():
        report_whole_runs(tracer, bars, "import torch", [PYTHON, "-c", "import torch"],
                          {"sampled": 1.05, "exact": 1.8}, rounds=IMPORT_ROUNDS)


def bench_python(_build, tracer, bars):
    """A short job as people write them, which computes most of the time: for comparison."""
    if has_torch():
        report_whole_runs(tracer, bars, f"training with python, {PYTHON_STEPS} steps",
                          [PYTHON, HERE / "train_images.py", PYTHON_STEPS], {})


def bench_harness(build, tracer, bars):
    """The harness as it comes has the bars. Then, for comparison, steps as fast as they go: its model
    is so small that it does little but allocate; with larger batches it is more like others. What
    start-up and one step cost is printed, too."""
    program = build / "bin/tidemark-harness"
    if not program.exists():
        print("skip  tidemark-harness was not built: training not measured")
        return
    report_whole_runs(tracer, bars, "the harness", [program, "train", "steady"], TRAINING_BARS,
                      with_peer=False)
    modes = ("plain", "sampled", "exact")
    for batch, long_steps in TRAINING.items():
        def train(steps):
            return [program, "train", "steady", "--steps", steps, "--step-time", "0", "--seed", "1",
                    "--batch", batch]

        def measure(steps):
            variants = {mode: lambda mode=mode: tracer.seconds(mode, train(steps)) for mode in modes}
            if shutil.which("heaptrack"):
                variants["heaptrack"] = lambda: heaptrack_seconds(train(steps))
            return in_turns(ROUNDS, variants)

        short, long = measure(SHORT_STEPS), measure(long_steps)
        light = {mode: lambda mode=mode: tracer.seconds(mode, train(long_steps))
                 for mode in ("plain", "sampled")}
        for mode, seconds in in_turns(ROUNDS, light).items():  # 2 % take some rounds more to be seen
            long[mode] += seconds
        for mode, seconds in long.items():
            start, run = statistics.median(short[mode]), statistics.median(seconds)
            step = (run - start) / (long_steps - SHORT_STEPS)
            print(f"      {mode}: {start:.2f} s for start-up and {SHORT_STEPS} steps, {run:.2f} s for "
                  f"{long_steps}, {step * 1e3:.2f} ms per step")
        report_ratios(bars, f"as fast as it goes, {long_steps} steps, batches of {batch}", long, {})


def bench_growth(build, tracer, bars):
    """The shared file of a steady program does not grow with time."""
    program = build / "tests/bench/malloc_pairs"
    sizes = []
    for pairs in (2_000_000, 20_000_000):
        tracer.output("exact", [program, 1, 10, pairs])
        sizes.append(tracer.file_bytes())
    bars.report("shared file after ten times the work", sizes[1] / sizes[0], 1, "x",
                f"{sizes[0] >> 10} KiB, then {sizes[1] >> 10} KiB")


def peaks_while_it_runs(process):
    """The most resident memory, in bytes, of a process and of the largest of its children."""
    peaks = {"own": 0, "child": 0}

    def most(pid):
        try:
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)

    while process.poll() is None:
        peaks["own"] = max(peaks["own"], most(process.pid))
        try:
            tasks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            children = tasks.read_text().split()
        except OSError:
            children = []
        peaks["child"] = max([peaks["child"], *map(most, children)])
        time.sleep(0.05)
    return peaks


def bench_exact(build, _tracer, bars):
    """What `tidemark profile --mode exact` costs as a whole: the job, and the tool beside it."""
    if not has_torch():
        return
    tool = build / "bin/tidemark"

    def run(prefix, command):
        start = time.monotonic()
        with subprocess.Popen([*map(str, prefix), *map(str, command)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            peaks = peaks_while_it_runs(process)
        return time.monotonic() - start, peaks

    training = HERE / "train_images.py"
    profile = [tool, "profile", "--mode", "exact", "--"]
    one = [PYTHON, training, PYTHON_STEPS]
    ten = ["sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9 10; do {PYTHON} {training} 5 & done; wait"]
    for what, command, bar in (("one process", one, 1.12), ("ten processes", ten, 1.3)):
        runs = in_turns(ROUNDS, {"plain": lambda command=command: run([], command),
                                 "exact": lambda command=command: run(profile, command)})
        seconds = {name: [each[0] for each in values] for name, values in runs.items()}
        ratio, spread = median_ratio(seconds, "exact", "plain")
        bars.report(f"profile --mode exact, {what}, wall time against plain", ratio, bar, "x", spread)
        if command is one:
            plain = statistics.median(each[1]["own"] for each in runs["plain"])
            traced = statistics.median(each[1]["child"] for each in runs["exact"])
            bars.report("peak memory of the job against plain", traced / plain, 1.15, "x",
                        f"{traced / 2**20:.0f} MiB, plain {plain / 2**20:.0f} MiB")
        own = statistics.median(each[1]["own"] for each in runs["exact"])
        bars.report(f"peak memory of the tool, {what}", own / 2**20, 60, " MiB")


PARTS = {"pairs": bench_pairs, "memory": bench_memory, "compile": bench_compile,
         "import": bench_import, "python": bench_python, "harness": bench_harness,
         "growth": bench_growth, "exact": bench_exact}


def main():
    if len(sys.argv) < 2 or any(part not in PARTS for part in sys.argv[2:]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
          f"{ROUNDS} rounds in turns")
    tracer, bars = Tracer(build), Bars()
    try:
        for part in sys.argv[2:] or PARTS:
            PARTS[part](build, tracer, bars)
    finally:
        shutil.rmtree(tracer.folder)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
