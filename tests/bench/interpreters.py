#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: interpreters.py BUILD_DIR [PART...]

The tracer in every Python that is found: does it name the lines that leak, do the interpreter's own
tests give the same results, and what does it cost? Parts: lines, calls, suite, training (default:
all). Exits with 1 when a bar is missed or a result differs.
"""

import glob
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from bars import Bars, Count, in_turns, median_ratio
from tracer import HERE, PYTHON, Tracer, has_torch, report_ratios

SCRIPTS = HERE.parent / "programs/python"
FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/*/bin", "~/.pyenv/versions/*/bin")
SUITE = ("test_threading", "test_subprocess", "test_multiprocessing_fork", "test_asyncio", "test_ctypes",
         "test_gc")
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


def interpreters():
    """By their real paths, with their versions; 3.9 and later."""
    found = {}
    for folder in FOLDERS:
        for path in glob.glob(os.path.expanduser(f"{folder}/python3.*")):
            if re.fullmatch(r"python3\.(9|1\d)", os.path.basename(path)):
                found[os.path.realpath(path)] = path
    versions = {}
    for path in found:
        asked = subprocess.run([path, "-c", "import platform; print(platform.python_version())"],
                               capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            versions[path] = asked.stdout.strip()
    return dict(sorted(versions.items(), key=lambda item: list(map(int, re.findall(r"\d+", item[1])))))


def bench_lines(build, _tracer, _bars):
    """Launched by the tool: each way to leak has its line, in the order of what they leak."""
    counts = []
    for python, version in interpreters().items():
        with tempfile.TemporaryDirectory() as folder:
            truth_file = f"{folder}/truth.json"
            command = [build / "bin/tidemark", "profile", "--json", "--top", "20", "--mode", "exact",
                       "--interval", "50ms", "--warmup", "5steps", "--", python,
                       SCRIPTS / "leaking_lines.py", truth_file,
                       build / "tests/programs/native_calls.so"]
            run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            truth = json.loads(pathlib.Path(truth_file).read_text(encoding="utf-8"))
            lines = json.loads(run.stdout[run.stdout.index("{"):])["lines"]
            wrong = [each["name"] for each, line in zip(truth, lines)
                     if (each["file"], each["line"]) != (line["file"], line["line"])]
            counts.append(Count(f"leaking lines, Python {version}", len(truth) - len(wrong), len(truth),
                                ", ".join(wrong) or python))
            counts[-1].report()
    return all(count.holds() for count in counts)


def bench_calls(_build, tracer, bars):
    """Calls cost nothing: the tracer has no hook in them."""
    for python, version in interpreters().items():
        variants = {mode: lambda mode=mode: float(tracer.output(mode, [python, "-c", CALLS]))
                    for mode in ("plain", *MODES)}
        results = in_turns(ROUNDS, variants)
        for mode in MODES:
            ratio, spread = median_ratio(results, mode, "plain")
            bars.report(f"calls in Python {version}, {mode} against plain", ratio, 1.01, "x", spread)
    return True


def suite_results(tracer, mode, python, test):
    """Which of its tests failed, and how many there were: what a run prints that is no time."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([python, "-m", "test", "-v", test], env=tracer.environment(mode),
                             capture_output=True, text=True, check=False, cwd=folder, errors="replace",
                             stdin=subprocess.DEVNULL)
    tests = re.findall(r"^(test\w* \(\S+?\)).*?\.\.\. .*?(ok|skipped|FAIL|ERROR|expected failure)?",
                       run.stdout, re.MULTILINE)
    failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+ \(\S+?\))", run.stdout + run.stderr, re.MULTILINE))
    return run.returncode, len(tests), failed


def bench_suite(_build, tracer, _bars):
    """What fails under the tracer and not without it, in three tries: some tests fail now and then."""
    good = True
    for python, version in interpreters().items():
        if subprocess.run([python, "-c", "import test.test_gc"], capture_output=True,
                          check=False).returncode != 0:
            print(f"skip  Python {version} has no tests of its own")
            continue
        for test in SUITE:
            if subprocess.run([python, "-c", f"import test.{test}"], capture_output=True,
                              check=False).returncode != 0:
                continue  # of later versions
            _, plain_count, plain = suite_results(tracer, "plain", python, test)
            for mode in MODES:
                tracer.clear()
                _, _, failed = suite_results(tracer, mode, python, test)
                for _ in range(2):
                    if failed - plain:
                        failed &= suite_results(tracer, mode, python, test)[2]
                        plain |= suite_results(tracer, "plain", python, test)[2]
                new = sorted(failed - plain)
                Count(f"{test}, Python {version}, {mode}", plain_count - len(new), plain_count,
                      ", ".join(new) or f"{len(plain)} fail without it").report()
                good = good and not new
    return good


def bench_training(_build, tracer, bars):
    if has_torch():
        variants = {mode: lambda mode=mode: tracer.seconds(
            mode, [PYTHON, HERE / "train_images.py", TRAINING_STEPS]) for mode in ("plain", *MODES)}
        report_ratios(bars, f"training with torch, {TRAINING_STEPS} steps",
                      in_turns(TRAINING_ROUNDS, variants), TRAINING_BARS)
    return True


PARTS = {"lines": bench_lines, "calls": bench_calls, "suite": bench_suite, "training": bench_training}


def main():
    if len(sys.argv) < 2 or any(part not in PARTS for part in sys.argv[2:]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    tracer, bars, good = Tracer(build), Bars(), True
    try:
        for part in sys.argv[2:] or PARTS:
            good = PARTS[part](build, tracer, bars) and good
    finally:
        shutil.rmtree(tracer.folder)
    return 1 if bars.missed or not good else 0


if __name__ == "__main__":
    sys.exit(main())
