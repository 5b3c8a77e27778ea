#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: guard.py BUILD_DIR [--runs 20] [--only PART[,PART...]]

Proves `tidemark guard` on jobs below real control groups, each part many times:
  chunks   a leak of 1.9 GB/min is stopped with a checkpoint and started again, until all steps are
           done and without one kill by the kernel
  warmup   a warm-up that peaks at 90 % of the limit is left alone
  spikes   so are spikes of that height
  frozen   and spikes to 80 % of --limit while guard and job stand still at random for up to 3 s;
           ten times as many runs
  deaf     a job that ignores the signal is killed
  bomb     a bounded fork bomb is ended to the last process, before the kernel kills one
  burst    so is a job that takes 10 MB per ms
Where no control group can be made, --limit stands in, and what needs a real one is left out. Exits
with 1 when a run went wrong. All of it takes about 13 minutes on two cores.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from bars import Count

AT_A_TIME = 2
LONGEST_RUN_S = 600
MIB = 1 << 20
STEPS = 900
# 1.9 GB a minute at 50 steps a second.
LEAK = ["leak", "--steps", str(STEPS), "--step-time", "20ms", "--from-step", "1",
        "--mb-per-step", f"{1900 / 60 / 50 * 1e6 / MIB:.3f}"]
LEAK_LIMIT = 640 * MIB
SHARE_AT_PEAK = 0.9
numbers = itertools.count(1)


def own_group():
    """The folder of the control group for memory that we are in, and its version."""
    memberships = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().split()]
    for mount in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = mount.split(" - ")
        kind, options, place = right.split()[0], right.split()[-1].split(","), left.split()[4]
        for _, controllers, path in memberships:
            if kind == "cgroup" and "memory" in options and "memory" in controllers.split(","):
                return pathlib.Path(place + path), 1
            if kind == "cgroup2" and controllers == "":
                found = pathlib.Path(place + path)
                if (found / "memory.current").exists():
                    return found, 2
    return None, 0


class Group:
    """A control group with a limit; `usable` is false where none can be made."""

    def __init__(self, limit):
        self.limit, self.path, self.usable = limit, None, False
        above, self.version = own_group()
        if above is None:
            return
        path = above / f"tidemark-bench-{os.getpid()}-{next(numbers)}"
        try:
            path.mkdir()
            self.path = path
            if self.version == 2:
                (path / "memory.max").write_text(str(limit))
                (path / "memory.swap.max").write_text("0")
            else:
                (path / "memory.limit_in_bytes").write_text(str(limit))
            self.usable = True
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(500):
            try:
                if self.path:
                    self.path.rmdir()
                return
            except OSError:
                time.sleep(0.02)
        sys.exit(f"{self.path} cannot be removed: somebody is left in it")

    def wrap(self, command):
        if not self.usable:
            return command
        return ["/bin/sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh", *command]

    def limit_options(self):
        return [] if self.usable else ["--limit", str(self.limit)]

    def oom_kills(self):
        if not self.usable:
            return 0
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return int(re.search(r"^oom_kill (\d+)", (self.path / name).read_text(), re.M)[1])

    def processes(self):
        """Who is left; the killed have some seconds to die on a busy machine."""
        for _ in range(250):
            left = len((self.path / "cgroup.procs").read_text().split()) if self.usable else 0
            if left == 0:
                break
            time.sleep(0.02)
        return left


class Run:
    """One guarded run."""

    def __init__(self, build, group, options, command, disturb=None):
        self.begin = time.monotonic()
        with subprocess.Popen(
                [build / "bin/tidemark", "guard", *group.limit_options(), *options, "--",
                 *group.wrap([str(word) for word in command])],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True, start_new_session=True) as process:
            if disturb:
                threading.Thread(target=disturb, args=(process,), daemon=True).start()
            try:
                self.log = process.communicate(timeout=LONGEST_RUN_S)[1]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # all of it is ours
                self.log = process.communicate()[1] + "\nran for too long"
            self.status = process.returncode
        self.seconds = time.monotonic() - self.begin
        self.oom_kills = group.oom_kills()
        self.left = group.processes()
        self.problem = ""

    def count(self, word):
        return len(re.findall(rf" {word}: ", self.log))

    def expect(self, holds, problem):
        if not holds and not self.problem:
            self.problem = problem


def train(build, arguments):
    return [build / "bin/tidemark-harness", "train", *arguments]


def run_chunks(build, _limit):
    with Group(LEAK_LIMIT) as group, tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        checkpoint, truth = f"{folder}/checkpoint", f"{folder}/truth.json"
        command = ["/bin/sh", "-c",
                   f'if [ -e {checkpoint} ]; then exec "$@" --resume {checkpoint}; fi; exec "$@"',
                   "sh", *train(build, [*LEAK, "--checkpoint", checkpoint, "--truth", truth])]
        run = Run(build, group, ["--restart", "-o", f"{folder}/night.tidemark"], command)
        done = json.loads(pathlib.Path(truth).read_text())["steps_done"]
        run.detail = f"{run.count('RESTART')} restarts"
        run.expect(run.status == 0, f"status {run.status}")
        run.expect(done == STEPS, f"{done} of {STEPS} steps")
        run.expect(run.count("RESTART") >= 1, "was never stopped")
        run.expect(run.count("KILL") == 0, "killed without a checkpoint")
        run.expect(run.oom_kills == 0, "the kernel was faster")
        return run


def peak_of(build, scenario):
    """What the job holds at most, as the control group (or the tree) counts it."""
    with Group(1 << 40) as group, tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        file = f"{folder}/run.tidemark"
        run = Run(build, group, ["-i", "100ms", "-o", file], train(build, scenario))
        if run.status != 0:
            sys.exit(f"{scenario} failed:\n{run.log}")
        what = ("max(cgroup_used_bytes) FROM system_samples" if group.usable
                else "max(footprint_bytes) FROM tree_memory")
        with sqlite3.connect(file) as database:
            return database.execute(f"SELECT {what}").fetchone()[0]


def run_calm(scenario):
    def run_one(build, limit):
        with Group(limit) as group:
            run = Run(build, group, [], train(build, scenario))
            run.detail = f"{run.count('WARNING')} warnings"
            run.expect(run.status == 0, f"status {run.status}")
            run.expect(run.count("STOP") == 0, "stopped without need")
            run.expect(run.oom_kills == 0, "the limit is too low for it")
            return run
    return run_one


def freeze_at_random(guard):
    """Stops the guard or its job for a while, again and again, as a busy machine does."""
    children = pathlib.Path(f"/proc/{guard.pid}/task/{guard.pid}/children")
    while guard.poll() is None:
        try:
            pid = random.choice([guard.pid, *(int(child) for child in children.read_text().split())])
            os.kill(pid, signal.SIGSTOP)
            time.sleep(random.uniform(0.1, 3.0))
            os.kill(pid, signal.SIGCONT)
        except OSError:
            pass  # it has ended
        time.sleep(random.uniform(0.0, 0.5))


def run_frozen(build, _limit):
    with Group(1 << 40) as group:
        run = Run(build, group, ["--limit", "200MiB", "--interval", "100ms"],
                  [build / "tests/programs/guarded_job", "--spike-mb", "160", "--count", "150",
                   "--step-ms", "20"], freeze_at_random)
        run.detail = "at random"
        run.expect(run.status == 0, f"status {run.status}")
        run.expect(run.count("STOP") == 0 and run.count("KILL") == 0, "stopped without need")
        return run


def run_hostile(limit, options, victim, needs_group):
    def run_one(build, _limit):
        with Group(limit) as group:
            if needs_group and not group.usable:
                return None
            run = Run(build, group, options,
                      [build / "tests/programs/guarded_job", "--steps", "--life-s", "60",
                       "--count", "100000", *victim])
            run.detail = f"{run.count('KILL')} kills"
            run.expect(run.status == 1, f"status {run.status}")
            run.expect(run.count("STOP") == 1 and run.count("KILL") == 1, "was not killed")
            run.expect(run.oom_kills == 0, "the kernel was faster")
            run.expect(run.left == 0, f"{run.left} processes are left")
            return run
    return run_one


WARMUP = ["warmup", "--mb", "400", "--steps", "300", "--step-time", "20ms"]
SPIKES = ["spikes", "--mb", "400", "--steps", "300", "--step-time", "20ms"]
PARTS = {
    "chunks": (run_chunks, "a leak of 1.9 GB/min, stopped and resumed until all steps are done", None),
    "warmup": (run_calm(WARMUP), "a warm-up to 90 % of the limit, left alone", WARMUP),
    "spikes": (run_calm(SPIKES), "spikes to 90 % of the limit, left alone", SPIKES),
    "frozen": (run_frozen, "spikes while guard and job stand still at random, left alone", None),
    "deaf": (run_hostile(256 * MIB, ["--grace", "500ms"],
                         ["--deaf", "1", "--leak-mb", "1", "--max-mb", "245", "--step-ms", "5"], False),
             "a job that ignores SIGTERM, killed", None),
    "bomb": (run_hostile(512 * MIB, ["--keep-free", "128MiB", "--grace", "200ms"],
                         ["--deaf", "1", "--bomb", "400", "--step-ms", "200"], True),
             "a fork bomb, ended to the last process before the kernel kills", None),
    "burst": (run_hostile(1024 * MIB, ["--keep-free", "256MiB"],
                          ["--deaf", "1", "--burst-mb", "1800", "--step-ms", "200"], True),
              "bursts of 10 MB per ms, ended before the kernel kills", None),
}
TRAINS = ("chunks", "warmup", "spikes")


def bench(build, name, runs):
    run_one, what, scenario = PARTS[name]
    limit = int(peak_of(build, scenario) / SHARE_AT_PEAK) if scenario else None
    if name == "frozen":
        runs *= 10
    # A bomb and a burst want the machine for themselves; who stands still takes nothing of it.
    at_a_time = {"bomb": 1, "burst": 1, "frozen": 6}.get(name, AT_A_TIME)
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        done = [future.result()
                for future in [pool.submit(run_one, build, limit) for _ in range(runs)]]
    if None in done:
        return left_out(name, "no control group can be made here")
    details = ", ".join(sorted({run.detail for run in done}))
    count = Count(f"guard: {what}", sum(not run.problem for run in done), runs,
                  f"{details}; {sum(run.seconds for run in done) / runs:.1f} s each")
    count.report()
    for run in done:
        if run.problem:
            print(f"      {run.problem}; the log ends with\n{run.log[-1500:]}", flush=True)
    return count


def left_out(name, why):
    count = Count(f"guard: {PARTS[name][1]}", 0, 0, why)
    count.report()
    return count


def bench_all(build, names, runs):
    has_trainer = (build / "bin/tidemark-harness").exists()
    return [bench(build, name, runs) if has_trainer or name not in TRAINS
            else left_out(name, "libtorch is missing, so there is no trainer") for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    build = options.build.resolve()
    names = options.only.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}")
    return 0 if all(count.holds() for count in bench_all(build, names, options.runs)) else 1


if __name__ == "__main__":
    sys.exit(main())
