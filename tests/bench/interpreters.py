#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: interpreters.py BUILD_DIR [--roots FOLDER] [--only VERSION[,VERSION...]] [PART...]

The tracer in every Python that is found, on this machine and in the systems below FOLDER (see
debian_roots.sh): does it name the lines that leak, launched and attached, do the interpreter's own
tests give the same results, and what does it cost? Parts: lines, attach, torch, calls, suite, training
(default: all). --only: versions that begin so, for example 3.14. Exits with 1 when a bar is missed or a
result differs.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import pythons
from bars import Bars, Count, in_turns, median_ratio
from tracer import HERE, Tracer, report_ratios

SCRIPTS = HERE.parent / "programs/python"
LEAST_WAYS = 11  # of leaking_lines.py, without numpy
RATE_TOLERANCE = 0.20
LAUNCHED_STEPS = 50
ATTACHED_STEPS = 400
TORCH_STEPS = {0: 300, 2: 500}  # by workers, which share the steps
WAIT_S = 120
SUITE = ("test_threading", "test_subprocess", "test_multiprocessing_fork", "test_asyncio", "test_ctypes",
         "test_gc")
WHOLE_RUN = "the whole run"
SHOWN = 5
TRIES = 3
MODES = ("sampled", "exact")
ROUNDS = 15
TRAINING_ROUNDS = 7
TRAINING_STEPS = 100
TRAINING_BARS = {"sampled": 1.02, "exact": 1.10}

# Half a second of calls of functions that allocate nothing: all numbers are small ones. The time is that
# of the processor, without start-up: other work on the machine changes it least.
CALLS = """
import time
def leaf(a, b):
    return a
def twice(a):
    return leaf(leaf(a, 1), 2)
def loop():
    n = 3
    for _ in range(%d):
        for _ in range(250):
            twice(n)
begin = time.process_time()
loop()
print(time.process_time() - begin)
""" % 16_000


class Bench:
    """What all parts need."""

    def __init__(self, build, interpreters):
        self.build = build
        self.interpreters = interpreters
        self.tracer = Tracer(build)
        self.bars = Bars()

    def command(self, python, mode, arguments):
        """Of the interpreter with the tracer in it."""
        return python.command(arguments, self.build,
                              {} if mode == "plain" else self.tracer.variables(mode))

    def profile(self, options):
        """Runs the tool; its exit status, its report and what it says beside it."""
        words = [self.build / "bin/tidemark", "profile", "--json", "--top", "20", "--interval", "50ms",
                 "--warmup", "5steps", *options]
        run = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False,
                             stdin=subprocess.DEVNULL)
        begin = run.stdout.find('{"schema"')  # behind the output of the command
        try:
            report = json.loads(run.stdout[begin:]) if begin >= 0 else None
        except json.JSONDecodeError:
            report = None
        return run.returncode, report, run.stderr.strip()


@contextlib.contextmanager
def running(command, log):
    """A job that writes to this file; it is killed at the end unless it has ended before."""
    with open(log, "w", encoding="utf-8") as output:
        job = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL)
    try:
        yield job
    finally:
        if job.poll() is None:
            job.kill()
        job.wait()


def wait_for_text(job, log, text):
    deadline = time.monotonic() + WAIT_S
    while f"{text}\n" not in log.read_text(encoding="utf-8", errors="replace"):
        if job.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def profile_attached(bench, python, arguments, options, steps, folder):
    """A job that takes so many steps is attached to while it runs; the report, and what went wrong."""
    log = folder / "log"
    with running(python.command(arguments), log) as job:
        if not wait_for_text(job, log, "Step 10"):
            return None, [f"the job did not get to step 10: {log.read_text(errors='replace')[-300:]}"]
        status, report, said = bench.profile(["--pid", job.pid, "--log-file", log, "--duration", "4s",
                                              *options])
        problems = [] if status == 0 and report else [f"exit status {status}: {said[-300:]}"]
        if not wait_for_text(job, log, f"Step {steps}") or job.wait(WAIT_S) != 0:
            problems.append(f"the job itself ended with {job.poll()}: "
                            f"{log.read_text(errors='replace')[-300:]}")
    return report, problems


def profile_launched(bench, python, arguments, options):
    status, report, said = bench.profile([*options, "--", *python.command(arguments, bench.build)])
    return report, [] if status == 0 and report else [f"exit status {status}: {said[-300:]}"]


def grows(line):
    return line["growth_bytes"] > 0 and line["growth_bytes_per_step"] is not None


def wrong_lines(truth, lines):
    """Each way to leak has its line, in the order of what they leak, with its rate."""
    wrong = []
    for each, line in itertools.zip_longest(truth, lines[:len(truth)]):
        name = each["name"]
        if line is None:
            wrong.append(f"{name} is missing")
        elif (line["file"], line["line"]) != (each["file"], each["line"]):
            wrong.append(f"{name} is {line['file']}:{line['line']}")
        elif abs((line["growth_bytes_per_step"] or 0) / each["bytes_per_step"] - 1) > RATE_TOLERANCE:
            wrong.append(f"{name} at {line['growth_bytes_per_step'] or 0:.0f} of "
                         f"{each['bytes_per_step']} bytes per step")
    return wrong


def leaking_lines(bench, python, is_attached):
    """The truth, the report, and what went wrong. A run in which the machine stood still has too few
    samples to tell what grows: then once more."""
    steps = ATTACHED_STEPS if is_attached else LAUNCHED_STEPS
    for _ in range(TRIES):
        with python.folder() as folder:
            truth_file = folder / "truth.json"
            arguments = [python.copy(SCRIPTS / "leaking_lines.py", folder), python.inside(truth_file),
                         python.copy(bench.build / "tests/programs/native_calls.so", folder), steps]
            options = ["--mode", "exact"]
            report, problems = (
                profile_attached(bench, python, arguments, options, steps, folder) if is_attached
                else profile_launched(bench, python, arguments, options))
            truth = json.loads(truth_file.read_text("utf-8")) if truth_file.exists() else []
        if len(truth) < LEAST_WAYS:
            problems.append("the job has leaked nothing")
        if problems or sum(map(grows, report["lines"])) >= len(truth):
            break
    return truth, report, problems


def leaking_lines_count(bench, python, is_attached):
    truth, report, problems = leaking_lines(bench, python, is_attached)
    wrong = wrong_lines(truth, report["lines"] if report else [])
    what = f"leaking lines, {python}, {'attached' if is_attached else 'launched'}"
    runs = max(len(truth), LEAST_WAYS)
    good = 0 if problems else runs - len(wrong)
    return Count(what, good, runs, "; ".join(problems + wrong) or python.path)


def report_counts(counts):
    """Prints each as it comes; whether all of them hold."""
    good = True
    for count in counts:
        count.report()
        good = count.holds() and good
    return good


def bench_lines(bench):
    return report_counts(leaking_lines_count(bench, python, False) for python in bench.interpreters)


def bench_attach(bench):
    return report_counts(leaking_lines_count(bench, python, True) for python in bench.interpreters)


def wrong_collator(report, script, workers):
    """What the first line of a report has to be: the collator, in the processes that call it."""
    lines = (SCRIPTS / "torch_loader.py").read_text("utf-8").splitlines()
    number = next(i for i, text in enumerate(lines, 1) if text.endswith("# leaks"))
    if not report["lines"]:
        return ["there is no line"]
    line = report["lines"][0]
    found = line["file"], line["line"], line["function"]
    wrong = [] if found == (script, number, "collate") else [f"the first line is {found}"]
    if not grows(line):
        wrong.append("it does not grow")
    if workers and (line["role"], len(line["pids"])) != ("dataloader_worker", workers):
        wrong.append(f"it is of {line['role']}, in {len(line['pids'])} processes")
    return wrong


def collator(bench, python, is_attached, workers):
    """What went wrong with a training loop whose collator keeps every batch."""
    problems = []
    for _ in range(TRIES):
        with python.folder() as folder:
            script = python.copy(SCRIPTS / "torch_loader.py", folder)
            arguments = [script, workers, TORCH_STEPS[workers]]
            options = ["--sample-every", "64KiB"]
            if is_attached:
                options += ["--role", "dataloader_worker"] if workers else []
                report, problems = profile_attached(bench, python, arguments, options,
                                                    TORCH_STEPS[workers], folder)
            else:
                report, problems = profile_launched(bench, python, arguments, options)
        if problems or any(map(grows, report["lines"])):
            break
    return problems or wrong_collator(report, script, workers)


def bench_torch(bench):
    """In the main process and in workers, which are forked."""
    def counts():
        for python in bench.interpreters:
            if not python.can("import torch"):
                yield Count(f"torch, {python}", 0, 0, "it has no torch")
                continue
            for is_attached, workers in itertools.product((False, True), TORCH_STEPS):
                wrong = collator(bench, python, is_attached, workers)
                yield Count(f"torch, {python}, {'attached' if is_attached else 'launched'}, {workers} "
                            "workers", int(not wrong), 1, "; ".join(wrong) or "the collator is first")

    return report_counts(counts())


def bench_calls(bench):
    """Calls cost nothing: the tracer has no hook in them."""
    for python in bench.interpreters:
        def seconds(mode, python=python):
            bench.tracer.clear()
            run = subprocess.run(bench.command(python, mode, ["-c", CALLS]), check=True,
                                 capture_output=True, text=True)
            return float(run.stdout)

        results = in_turns(ROUNDS, {mode: lambda mode=mode: seconds(mode) for mode in ("plain", *MODES)})
        for mode in MODES:
            ratio, spread = median_ratio(results, mode, "plain")
            bench.bars.report(f"calls in {python}, {mode} against plain", ratio, 1.01, "x", spread)
    return True


def outcome(case):
    """Of a test, from the element that the interpreter's own test runner has written for it."""
    return {child.tag for child in case} & {"failure", "error", "skipped"} or {"ok"}


def suite_outcomes(bench, mode, python, test):
    """What became of each of its tests, and of the whole run; of a run that crashed only the latter."""
    bench.tracer.clear()
    with python.folder() as folder:
        results = folder / "results.xml"
        arguments = ["-m", "test", "-v", "--junit-xml", python.inside(results), test]
        run = subprocess.run(bench.command(python, mode, arguments), capture_output=True, check=False,
                             cwd=folder, stdin=subprocess.DEVNULL)
        outcomes = {WHOLE_RUN: {f"exit status {run.returncode}"}}
        if results.exists():
            for case in xml.etree.ElementTree.parse(results).iter("testcase"):
                outcomes.setdefault(case.get("name"), set()).update(outcome(case))
    return {name: "+".join(sorted(each)) for name, each in outcomes.items()}


def suite_differences(bench, python, test, mode, plain):
    """The tests whose outcome under the tracer is none that they had without it, each time in three
    tries: some tests fail now and then. `plain`: outcomes by name, which gets more of them."""
    different = {}
    for attempt in range(TRIES):
        if attempt > 0:
            add_outcomes(plain, suite_outcomes(bench, "plain", python, test))
        traced = suite_outcomes(bench, mode, python, test)
        now = {name: traced.get(name, "missing") for name in plain
               if traced.get(name, "missing") not in plain[name]}
        different = now if attempt == 0 else {name: now[name] for name in different if name in now}
        if not different:
            break
    return different


def add_outcomes(known, outcomes):
    for name, what in outcomes.items():
        known.setdefault(name, set()).add(what)


def suite_counts(bench, python, test):
    if not python.can(f"import test.{test}"):
        yield Count(f"{test}, {python}", 0, 0, "it has no such tests")
        return
    plain = {}
    add_outcomes(plain, suite_outcomes(bench, "plain", python, test))
    for mode in MODES:
        different = suite_differences(bench, python, test, mode, plain)
        failing = sum("failure" in text or "error" in text for text in map("".join, plain.values()))
        names = sorted(different, key=lambda name: (name != WHOLE_RUN, name))
        detail = ", ".join(f"{name}: {different[name]}" for name in names[:SHOWN]) + (
            f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        good = len(plain) - len(different) if len(plain) > 1 else 0
        yield Count(f"{test}, {python}, {mode}", good, max(len(plain), 2), detail or
                    (f"{failing} fail without it" if len(plain) > 1 else "the plain run has no results"))


def bench_suite(bench):
    """Each test of the interpreter's own gives the same result under the tracer as without it."""
    return report_counts(count for python in bench.interpreters for test in SUITE
                         for count in suite_counts(bench, python, test))


def bench_training(bench):
    for python in bench.interpreters:
        if not python.can("import torch"):
            continue
        with python.folder() as folder:
            script = python.copy(HERE / "train_images.py", folder)

            def seconds(mode, python=python, script=script):
                bench.tracer.clear()
                start = time.monotonic()
                subprocess.run(bench.command(python, mode, [script, TRAINING_STEPS]), check=True,
                               capture_output=True)
                return time.monotonic() - start

            results = in_turns(TRAINING_ROUNDS, {mode: lambda mode=mode: seconds(mode)
                                                 for mode in ("plain", *MODES)})
        report_ratios(bench.bars, f"training with torch, {python}, {TRAINING_STEPS} steps", results,
                      TRAINING_BARS)
    return True


PARTS = {"lines": bench_lines, "attach": bench_attach, "torch": bench_torch, "calls": bench_calls,
         "suite": bench_suite, "training": bench_training}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--roots", help="the folder of the root folders")
    parser.add_argument("--only", default="")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_intermixed_args()
    if any(part not in PARTS for part in options.parts):
        parser.error(f"the parts are {', '.join(PARTS)}")
    versions = tuple(options.only.split(","))
    interpreters = [python for python in pythons.found(options.roots)
                    if python.version.startswith(versions)]
    if not interpreters:
        sys.exit("there is no such Python on this machine")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    bench, good = Bench(options.build.resolve(), interpreters), True
    try:
        for part in options.parts or PARTS:
            good = PARTS[part](bench) and good
    finally:
        shutil.rmtree(bench.tracer.folder)
    return 1 if bench.bars.missed or not good else 0


if __name__ == "__main__":
    sys.exit(main())
