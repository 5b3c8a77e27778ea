#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: diagnose.py BUILD_DIR [--only NAME[,NAME...]] [--duration 60s]

Is the page of `tidemark diagnose` right? Diagnoses every scenario of the trainer harness (from its
start to its end) and its Python twins on torch (train_twins.py, which run already), two at a time,
and grades what the ground truth knows: verdict, line, owner, cause or usual suspect, and the time to
the answer. Prints a table. Exits with 1 when something is wrong. About 20 minutes on two cores.

A leak that runs for a minute cannot be told from a warm-up by its curve: of the twins the likelihood
has to be on the right side.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing

AT_A_TIME = min(2, os.cpu_count() or 1)
LONGEST_ANSWER_S = 150
LONGEST_RUN_S = 400
TWINS = pathlib.Path(__file__).resolve().parent / "train_twins.py"
PYTHON = "/usr/bin/python3"
WARM_S = 5  # torch has loaded what it loads

# As `tidemark demo` runs them: what they do, and the cause that may be told (docs/known-causes.md).
HARNESS = {
    "steady": ("steady --steps 400", set()),
    "warmup": ("warmup --steps 300", {"first_epoch_cache"}),
    "spikes": ("spikes --steps 300", {"eval_outputs"}),
    "leak-collator": ("leak --cause collator --from-step 100 --mb-per-step 0.5", {"kept_per_step"}),
    "leak-native": ("leak --cause native --from-step 100 --mb-per-step 0.5", {"kept_per_step"}),
    "leak-autograd": ("leak --cause autograd", {"kept_per_step"}),
    "leak-optimizer": ("leak --cause optimizer", {"kept_per_step"}),
    "leak-pinned": ("leak --cause pinned", {"kept_per_step", "pinned_host_memory"}),
    "leak-shm": ("leak --cause shm", {"unheld_shm"}),
    "wrapper": ("leak --cause autograd --from-step 100 --mb-per-step 0.5 --wrapper",
                {"kept_per_step"}),
    "staircase": ("staircase", {"checkpoint_state_kept"}),
    "sawtooth": ("sawtooth", {"collector_sawtooth"}),
    "fragmentation": ("fragmentation", {"freed_but_kept"}),
    "compile-workers": ("compile-workers --workers 8 --steps 300", {"compile_workers"}),
    "dataloader-cow": ("dataloader-cow", {"dataloader_copy_on_write"}),
    "job1": ("--replay job1 --steps 240", set()),
    "valspike": ("--replay valspike --steps 240", set()),
    "slowleak": ("--replay slowleak --steps 480", {"kept_per_step"}),
    "catastrophic": ("--replay catastrophic --steps 400", {"kept_per_step"}),
}
LINE_CAUSES = ("leak-collator", "leak-native", "leak-autograd", "leak-optimizer", "leak-pinned")


class Grade(typing.NamedTuple):
    """A mark for each question, None where the ground truth has no answer."""

    name: str
    verdict: bool
    line: typing.Optional[bool]
    owner: typing.Optional[bool]
    cause: typing.Optional[bool]
    seconds: float
    answer: str

    def is_right(self):
        return (self.verdict and self.line is not False and self.owner is not False
                and self.cause is not False and self.seconds <= LONGEST_ANSWER_S)


def advice_of(page):
    owners = page["owners"] or {}
    return {each["id"] for each in page["verdict"].get("advice", []) + owners.get("advice", [])}


def lines_of(page):
    """The fastest lines that grow."""
    lines = (page["lines"] or {}).get("lines", [])
    return [(os.path.basename(line["file"] or "?"), line["line"]) for line in lines
            if line["growth_bytes_per_s"] > 0][:3]


def suspects_of(page):
    return {row["suspect"] for row in page["suspects"] if row["state"] == "this_is_it"}


def diagnosed(command, name):
    begin = time.monotonic()
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=LONGEST_RUN_S)
    seconds = time.monotonic() - begin
    try:
        return json.loads(run.stdout), seconds
    except json.JSONDecodeError:
        sys.exit(f"{name}: no answer, exit code {run.returncode}\n{run.stderr[-2000:]}")


def grade_harness(build, name, duration):
    arguments, fitting = HARNESS[name]
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        truth_file = pathlib.Path(folder) / "truth.json"
        page, seconds = diagnosed(
            [build / "bin/tidemark", "diagnose", "--json", "--interval", "200ms", "--duration",
             duration, "--", build / "bin/tidemark-harness", "train", *arguments.split(), "--truth",
             truth_file], name)
        truth = json.loads(truth_file.read_text())
    verdict = page["verdict"]["verdict"] == truth["class"]
    line = None
    if name in LINE_CAUSES:
        right = tuple(os.path.basename(truth["allocating_line"]).split(":"))
        line = bool(lines_of(page)) and (lines_of(page)[0][0], str(lines_of(page)[0][1])) == right
    cause = advice_of(page) <= fitting
    if name == "leak-shm":
        cause = "unheld_shm" in advice_of(page)
    return Grade(name, verdict, line, None, cause, seconds, page["answer"])


def grade_verdict(page, grows):
    """Of a job that has run for a minute without marked epochs."""
    verdict = page["verdict"]
    if grows == "leak":
        return verdict["verdict"] == "leak" or (verdict["verdict"] == "growing"
                                                and verdict["likelihood"] >= 0.5)
    if grows == "warmup":  # the data set tells it, or the curve
        return verdict["verdict"] in ("warmup", "growing") and (
            verdict["verdict"] == "warmup" or "as many as `dataset` has" in (page["deciding"] or ""))
    return verdict["verdict"] not in ("leak", "growing")


def grade_twin(build, name, duration):
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        log = pathlib.Path(folder) / "log"
        log.touch()
        twin = subprocess.Popen([PYTHON, TWINS, name, "--log", log], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        try:
            truth = json.loads(twin.stdout.readline())
            time.sleep(WARM_S)
            page, seconds = diagnosed(
                [build / "bin/tidemark", "diagnose", "--json", "--pid", str(twin.pid), "--duration",
                 duration, "--log-file", log], name)
        finally:
            twin.stdin.close()
            twin.wait()
    owners = [owner["path"] for owner in (page["owners"] or {"owners": []})["owners"]
              if owner["verdict"] in ("growing", "leak")]
    owner = None
    if truth["owner"]:
        owner = any(owners[0].startswith(path) for path in truth["owner"]) if owners else False
    line = (TWINS.name, truth["line"]) in lines_of(page) if truth["line"] else None
    cause = None
    if truth["suspect"]:
        fitting = truth["suspect"]
        cause = bool(suspects_of(page) & set([fitting] if isinstance(fitting, str) else fitting))
    elif truth["cause"]:
        cause = truth["cause"] in advice_of(page)
    return Grade("py-" + name, grade_verdict(page, truth["grows"]), line,
                 owner, cause, seconds, page["answer"])


def mark(good):
    return "-" if good is None else "ok" if good else "MISS"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", help="names of the table")
    parser.add_argument("--duration", default="60s")
    options = parser.parse_args()
    build = options.build.resolve()
    tasks = {}
    if (build / "bin/tidemark-harness").exists():
        tasks.update({name: lambda name=name: grade_harness(build, name, options.duration)
                      for name in HARNESS})
    else:
        print("tidemark-harness was not built: it needs libtorch (./dev deps)")
    shapes = subprocess.run([PYTHON, TWINS, "--list"], capture_output=True, text=True, check=True)
    tasks.update({"py-" + name: lambda name=name: grade_twin(build, name, options.duration)
                  for name in shapes.stdout.split()})
    if options.only:
        tasks = {name: tasks[name] for name in options.only.split(",")}
    print(f"{'scenario':<18} {'verdict':<8} {'line':<5} {'owner':<6} {'cause':<6} {'seconds':>7}  answer")
    right = 0
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for future in [pool.submit(task) for task in tasks.values()]:
            grade = future.result()
            right += grade.is_right()
            print(f"{grade.name:<18} {mark(grade.verdict):<8} {mark(grade.line):<5} "
                  f"{mark(grade.owner):<6} {mark(grade.cause):<6} {grade.seconds:>7.0f}  "
                  f"{grade.answer[:110]}", flush=True)
    print(f"{right} of {len(tasks)} right")
    return 0 if right == len(tasks) else 1


if __name__ == "__main__":
    sys.exit(main())
