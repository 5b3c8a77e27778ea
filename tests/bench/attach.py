#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: attach.py BUILD_DIR [soak [ROUNDS]]

How long a training job in Python stands still while the tracer is loaded into it, how long it takes
until there is data, and what the job costs while it is traced, against the same job before, in turns;
and the same of `memray attach` where memray is installed. `soak`: attaches to and detaches from a
program with eight busy threads 200 times and from a training loop 50 times. Both check themselves, and
the training has to learn the same as without us. Exits with 1 when a bar is missed, or when something
that was to be measured could not be.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bars import Bars
from tracer import HERE, PYTHON, has_torch

JOB = HERE / "train_attached.py"
LEAST_MODULES = 250
LONGEST_STALL_MS = 50
LONGEST_WAIT_S = 60
FIGURES = re.compile(r"attached to pid \d+ in [\d.]+ s; one thread of it stood still for ([\d.]+) ms,"
                     r" all of them for ([\d.]+) ms; ")
WOKEN = "already, and is woken"
# A line of output with something that was recorded.
DATA = re.compile(r" traced  sites (?!0 B)")


class Job:
    """The training loop. A thread reads its output, so that it never waits for us."""

    def __init__(self):
        self.process = subprocess.Popen([PYTHON, JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.pid = self.process.pid
        self._rounds = []  # when each ended, and how long it took
        self._done = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.rounds(0.1)

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("took "):
                self._rounds.append((time.monotonic(), float(line.split()[1])))
            else:
                self._done = line

    def rounds(self, seconds):
        """How long those took that began and ended within so many seconds, or more if it has to be."""
        begun = time.monotonic()
        while True:
            time.sleep(seconds)
            took = self.rounds_since(begun)
            if took:
                return took
            if self.process.poll() is not None or time.monotonic() - begun > LONGEST_WAIT_S:
                sys.exit("the training loop does not go on")

    def rounds_since(self, begun):
        return [took for ended, took in list(self._rounds) if ended - took >= begun]

    def modules(self):
        """The files that are mapped as code."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            return len({line.split()[5] for line in maps if " r-xp " in line and "/" in line})

    def end(self):
        """Lets it end by itself; its exit status and what it printed last."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._reader.join(LONGEST_WAIT_S)
        if self._reader.is_alive():
            self.process.kill()
        self._reader.join()
        return self.process.wait(), self._done.split()


def command(build, pid, *options):
    return [str(build / "bin/tidemark"), "profile", "--pid", str(pid), *options]


@contextlib.contextmanager
def profiling(build, pid, *options):
    """The tool, attached for as long as the block takes. It is ended by Ctrl-C at the end, and has then
    a `status` and `said`, its messages."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as messages:
        tool = subprocess.Popen(command(build, pid, "--plain", *options), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=messages, text=True)
        kill = threading.Timer(LONGEST_WAIT_S, tool.kill)  # then what it has to say never came
        kill.start()
        try:
            yield tool
        finally:
            tool.send_signal(signal.SIGINT)
            tool.stdout.read()
            tool.status = tool.wait()
            kill.cancel()
            messages.seek(0)
            tool.said = messages.read()


def wait_for_data(tool):
    """Whether its output ever showed some."""
    return any(DATA.search(line) for line in iter(tool.stdout.readline, ""))


def median_of(bars, what, values, bar, unit):
    bars.report(f"{what}, median", statistics.median(values), bar, f" {unit}", f"most {max(values):.3g}")


def measure_attaching(build, bars, rounds=9):
    thread_ms, process_ms, data_s, modules = [], [], [], []
    for _ in range(rounds):
        job = Job()
        modules.append(job.modules())
        begun = time.monotonic()
        with profiling(build, job.pid) as tool:
            has_data = wait_for_data(tool)
            took_s = time.monotonic() - begun
        found = FIGURES.search(tool.said)
        job.end()
        if not has_data or not found or tool.status != 0:
            bars.miss("attaching", f"exit status {tool.status}: {tool.said.strip()[-300:]}")
            continue
        thread_ms.append(float(found[1]))
        process_ms.append(float(found[2]))
        data_s.append(took_s)
    if min(modules) < LEAST_MODULES:
        bars.miss("a process as large as real ones", f"{min(modules)} modules, not {LEAST_MODULES}")
    if not data_s:
        return
    median_of(bars, f"one thread stood still, {min(modules)} modules", thread_ms, LONGEST_STALL_MS, "ms")
    median_of(bars, "all threads stood still", process_ms, LONGEST_STALL_MS, "ms")
    median_of(bars, "from the command to the first data in its output", data_s, 2, "s")


def measure_memray(rounds=5):
    """For comparison: how long the command takes that attaches, and the longest 20 steps meanwhile."""
    has_memray = subprocess.run([PYTHON, "-c", "import memray"], capture_output=True,
                                check=False).returncode == 0
    if not has_memray or not (shutil.which("gdb") or shutil.which("lldb")):
        print("left out  memray attach: " + ("it needs gdb or lldb" if has_memray
                                             else f"{PYTHON} has no memray"), flush=True)
        return
    took_s, paused_s = [], []
    for _ in range(rounds):
        job = Job()
        usual = statistics.median(job.rounds(3))
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            done = subprocess.run([PYTHON, "-m", "memray", "attach", "-o", f"{folder}/trace",
                                   str(job.pid)], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                took_s.append(time.monotonic() - begun)
                job.rounds(1)
                paused_s.append(max(job.rounds_since(begun - usual)) - usual)
            else:
                print(f"      memray attach failed: {done.stderr.strip()[-200:]}")
            job.end()
    if took_s:
        print(f"      memray attach: {statistics.median(took_s):.2f} s until it records; 20 steps took up "
              f"to {max(paused_s) * 1e3:.0f} ms longer (median {statistics.median(paused_s) * 1e3:.0f})",
              flush=True)


def measure_cost(build, bars, turns=10):
    for mode, bar in (("sampled", 1.02), ("exact", 1.10)):
        job = Job()
        job.rounds(3)
        ratios = []
        for _ in range(turns):
            plain = statistics.median(job.rounds(2))
            with profiling(build, job.pid, "--mode", mode, "--interval", "200ms") as tool:
                has_data = wait_for_data(tool)
                traced = statistics.median(job.rounds(2))
            if not has_data or tool.status != 0:
                bars.miss(f"attaching, {mode}", f"exit status {tool.status}: {tool.said.strip()[-300:]}")
                continue
            ratios.append(traced / plain)
        job.end()
        if ratios:
            bars.report(f"a step while traced, {mode}, median", statistics.median(ratios), bar, "x",
                        f"{min(ratios):.2f}..{max(ratios):.2f}")


class Stalls(threading.Thread):
    """Looks a thousand times a second for how long threads of a process are stopped by a tracer: of
    detaching, and of a tracer that was there before, the tool prints no figures."""

    def __init__(self, pid):
        super().__init__()
        self._tasks = f"/proc/{pid}/task"
        self._ends = threading.Event()
        self.longest_ms = 0.0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self.join()

    def _stopped(self):
        for thread in os.listdir(self._tasks):
            with contextlib.suppress(OSError):  # it has ended
                stat = pathlib.Path(self._tasks, thread, "stat").read_bytes()
                if stat.rpartition(b")")[2].split()[0] == b"t":
                    yield thread

    def run(self):
        since = {}
        while not self._ends.wait(0.001):
            now = time.monotonic()
            since = {thread: since.get(thread, now) for thread in self._stopped()}
            for begun in since.values():
                self.longest_ms = max(self.longest_ms, (now - begun) * 1e3)


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return sum(1 for _ in maps)


def soak_round(build, pid, stalls_ms):
    """Empty: all went well."""
    with Stalls(pid) as stalls:
        done = subprocess.run(command(build, pid, "--duration", "300ms", "--interval", "100ms", "--plain"),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    figures = FIGURES.search(done.stderr)
    stalls_ms.append(max([stalls.longest_ms, *map(float, figures.groups() if figures else ())]))
    if done.returncode not in (0, 4):
        return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"
    return "" if figures or WOKEN in done.stderr else f"not attached: {done.stderr.strip()[-300:]}"


def soak_process(build, bars, pid, rounds, what):
    """Attaches and detaches so many times."""
    stalls_ms = []
    failed = [soak_round(build, pid, stalls_ms)]
    before = mappings(pid), open_files(pid)
    failed += [soak_round(build, pid, stalls_ms) for _ in range(rounds - 1)]
    failed = list(filter(None, failed))
    if failed:
        bars.miss(f"{what}, {len(failed)} of {rounds} times", failed[0])
    else:
        print(f"ok    {what}: {rounds} times", flush=True)
    longest_ms = max(stalls_ms)
    bars.report(f"{what}, the longest stall", longest_ms, LONGEST_STALL_MS, " ms",
                f"round {stalls_ms.index(longest_ms) + 1}; median {statistics.median(stalls_ms):.3g}, "
                f"all but the first at most {max(stalls_ms[1:], default=0):.3g}")
    bars.report(f"{what}, mappings more than after the first time", mappings(pid) - before[0], 40)
    bars.report(f"{what}, open files more", open_files(pid) - before[1], 4)


def last_report(build, pid):
    """The report of a longer round behind all others."""
    done = subprocess.run(command(build, pid, "--duration", "6s", "--interval", "200ms", "--json",
                                  "--mode", "exact"), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    return json.loads(done.stdout) if done.returncode in (0, 4) else {"lines": [], "sites": []}


def soak_busy_threads(build, bars, rounds):
    what = "eight busy threads"
    program = subprocess.Popen([build / "tests/programs/busy_threads", "36000", "libsqlite3.so.0"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    program.stdout.readline()
    soak_process(build, bars, program.pid, rounds, what)
    if not last_report(build, program.pid)["sites"]:
        bars.miss(what, "nothing is recorded in the last round")
    program.stdin.close()
    said = program.stdout.read().strip()
    bars.check(program.wait() == 0, f"{what}, at its end", said)


def soak_training(build, bars, rounds):
    what = "a training loop"
    job = Job()
    soak_process(build, bars, job.pid, rounds, what)
    lines = last_report(build, job.pid)["lines"]
    leaking = next(number for number, text in enumerate(JOB.read_text("utf-8").splitlines(), 1)
                   if text.endswith("# leaks"))
    found = (lines[0]["file"], lines[0]["line"]) if lines else None
    bars.check(found == (str(JOB), leaking), f"{what}, the line in the last round", str(found))
    status, done = job.end()
    if status != 0 or len(done) != 3:
        bars.miss(f"{what}, at its end", f"exit status {status}, {done}")
        return
    plain = subprocess.run([PYTHON, JOB, done[1]], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=True).stdout.splitlines()[-1].split()
    bars.check(plain == done, f"{what}, learned the same in {done[1]} steps as without us", done[2][:16])


def main():
    if len(sys.argv) < 2 or sys.argv[2:3] not in ([], ["soak"]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    bars = Bars()
    if not has_torch():
        return 1
    if len(sys.argv) > 2:
        rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 200
        soak_busy_threads(build, bars, rounds)
        soak_training(build, bars, max(1, rounds // 4))
    else:
        measure_attaching(build, bars)
        measure_memray()
        measure_cost(build, bars)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
