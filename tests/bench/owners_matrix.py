#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: owners_matrix.py BUILD_DIR [--roots FOLDER] [--only VERSION[,VERSION...]]
       [--shape NAME[,NAME...]] [--fast] [--at-once N] [--looks 3] [--every 1s] [--with-steps]
       [--keep FOLDER]

Does `tidemark owners` name what keeps the memory, in every Python that is found? Runs the programs of
tests/programs/owners, whose owners are known, looks at each and prints a table. An answer is right when
the owner stands first by its exact path, its growth is that of the program within 5 %, what merely
stands beside it is not named, and nothing is named where nothing grows for long.

--fast: a few shapes with the system's Python; --with-steps: the tool reads the steps from a log;
--keep: leaves the JSON of all answers in this folder.
Exits with 1 when, with one interpreter, more than one owner of those of the standard library is not
named right, or anything else is wrong.
"""

import argparse
import bisect
import concurrent.futures
import contextlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import typing

import pythons
from bars import Count, print_table

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs/owners"
SCRIPTS = ("shapes.py", "array_shapes.py")
FAST = ("object_attribute", "closure_attribute", "lru_cache_function", "generator_local", "frame_local",
        "linked_list", "bounded_decoy", "saw_tooth", "autograd_graph", "loader_worker")
SYSTEM_PYTHON = "/usr/bin/python3"
GROWS = ("growing", "leak")
GROWS_NOT = ("stable", "warmup", "spikes")
TOLERANCE = 0.05
SMALL_SHARE = 0.05
MOST_SECONDS_AFTER_LAST_LOOK = 15
WAIT_S = 120
NOT_FIRST_ALLOWED = 1


class Shape(typing.NamedTuple):
    script: str
    name: str
    has_owner: bool


class Answer(typing.NamedTuple):
    """What the tool made of one program."""

    python: pythons.Python
    shape: Shape
    problems: list
    first: str = ""
    growth_error: typing.Optional[float] = None
    paused_ms: float = 0
    ways: tuple = ()
    after_last_s: float = 0


def is_below(path, prefix):
    return path == prefix or path.startswith((prefix + ".", prefix + "[", prefix + " ("))


def is_named(owner):
    """As something that grows."""
    verdict = owner.get("verdict")
    return verdict in GROWS or (verdict not in GROWS_NOT and (owner.get("growth_bytes") or 0) > 0)


def wrong_names(truth, owners):
    """Of the true owners: which does not stand first, or nowhere?"""
    problems = []
    spellings = [spelling for each in truth["owners"] for spelling in each]
    first = owners[0]
    if spellings and first["path"] not in spellings:
        problems.append(f"first is {first['path']}, not {' or '.join(spellings)}")
    if truth["kind"] and first.get("kind") != truth["kind"]:
        problems.append(f"{first['path']} is of kind {first.get('kind')}, not {truth['kind']}")
    seen = {path for owner in owners for path in (owner["path"], owner.get("shared_with"))}
    problems += [f"{each[0]} is not named" for each in truth["owners"] if not seen.intersection(each)]
    return problems


def wrong_decoys(truth, owners, kept):
    problems = [f"{owner['path']} is named" for owner in owners
                for decoy in truth["decoys"] if is_below(owner["path"], decoy)
                and not any(owner["path"] in spellings for spellings in truth["owners"])]
    problems += [f"{owner['path']} is named with {owner['growth_bytes']} of {kept:.0f} bytes"
                 for owner in owners for decoy in truth["small"]
                 if is_below(owner["path"], decoy) and owner["growth_bytes"] > SMALL_SHARE * kept]
    return problems


def wrong_growth(truth, first, kept, seconds):
    wanted = {"growth_bytes": kept, "growth_bytes_per_s": kept / seconds,
              "growth_bytes_per_step": truth["bytes_per_step"]}
    return [f"{name} is {first[name]:.0f}, not {value:.0f} ({first[name] / value - 1:+.1%})"
            for name, value in wanted.items()
            if first.get(name) is not None and abs(first[name] / value - 1) > TOLERANCE]


def wrong_holds(truth, first):
    wanted = truth["holds"]
    if not wanted:
        return []
    held = (first.get("holds") or [{}])[0]
    differs = [f"{name} {held.get(name)}" for name, value in wanted.items() if held.get(name) != value]
    return [f"it holds most of {', '.join(differs)}, not {wanted}"] if differs else []


def grade(truth, report, kept, seconds):
    """What is wrong. `kept`: the bytes that the program kept between the first look and the last."""
    owners = [owner for owner in report["owners"] if is_named(owner)]
    if truth["bytes_per_step"] is None:
        return [f"{owner['path']} is named, {owner.get('verdict')}" for owner in owners]
    if not owners:
        return [f"no owner is named{', not even' if report['owners'] else ''}"
                + ",".join(f" {owner['path']} ({owner.get('verdict')})" for owner in report["owners"][:2])]
    problems = wrong_names(truth, owners) + wrong_decoys(truth, owners, kept)
    if not problems and owners[0].get("growth_bytes") is None:
        problems = ["its growth is not known"]
    if not problems:
        problems = wrong_growth(truth, owners[0], kept, seconds) + wrong_holds(truth, owners[0])
    return problems


class StepLog:
    """When a program took its steps, on CLOCK_MONOTONIC."""

    def __init__(self, path):
        rows = [line.split() for line in path.read_text().splitlines()]
        self._times = [float(row[2]) for row in rows]

    def steps_between(self, begin, end):
        return bisect.bisect(self._times, end) - bisect.bisect(self._times, begin)


@contextlib.contextmanager
def programs_for(python):
    """Copies that the interpreter can read and write beside, in a folder of their own."""
    with python.folder() as folder:
        for path in PROGRAMS.glob("*.py"):
            shutil.copy(path, folder)
        yield folder


@contextlib.contextmanager
def running(python, folder, shape, options=()):
    """A program that has printed its ground truth and is ready; it exits at the end."""
    log = folder / f"{shape.name}.steps"
    command = python.command([python.inside(folder / shape.script), shape.name, "--seconds", WAIT_S,
                              "--log", python.inside(log), *options],
                             variables={"PYTHONDONTWRITEBYTECODE": "1"})
    errors = (folder / f"{shape.name}.errors").open("w+")
    with errors, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                  text=True) as program:
        try:
            line = program.stdout.readline()
            if program.stdout.readline() != "ready\n":
                errors.seek(0)
                raise RuntimeError(f"{python} did not run {shape.name}: {errors.read()[-500:]}")
            yield json.loads(line), log
        finally:
            program.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(10)
            program.kill()


def ask(build, pid, looks, every, options=()):
    """The report of the tool, what was wrong with the run, when it began and ended."""
    begin = time.monotonic()
    done = subprocess.run([build / "bin/tidemark", "owners", "--pid", str(pid), "--looks", str(looks),
                           "--every", every, "--json", *options], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=WAIT_S)
    end = time.monotonic()
    try:
        return json.loads(done.stdout), "", begin, end
    except json.JSONDecodeError:
        return None, f"exit status {done.returncode}: {done.stderr.strip()[-300:]}", begin, end


def judge(options, python, folder, shape):
    try:
        with running(python, folder, shape) as (truth, log):
            time.sleep(0.2)
            report, error, begin, end = ask(options.build, truth["pid"], options.looks, options.every,
                                            ["--log-file", log] if options.with_steps else [])
            if report is None:
                return Answer(python, shape, [error])
            steps = StepLog(log)
    except (RuntimeError, subprocess.TimeoutExpired) as failure:
        return Answer(python, shape, [str(failure)])
    if options.keep:
        name = f"{python.version}{'-' if python.root else ''}{os.path.basename(python.root)}"
        (options.keep / f"{name}.{shape.name}.json").write_text(
            json.dumps({"truth": truth, "report": report}, indent=1))
    return answer_of(python, shape, truth, report, steps, begin, end)


def answer_of(python, shape, truth, report, steps, begin, end):
    looks = [look for look in report["looks"] if look.get("pid", truth["pid"]) == truth["pid"]]
    failed = [look["problem"] for look in looks if look.get("problem")]
    if failed or len(looks) < 2:
        return Answer(python, shape, [f"{len(looks)} looks, {len(failed)} failed: {', '.join(failed[:1])}"])
    first_s, last_s = looks[0]["t_s"], looks[-1]["t_s"]
    kept = (truth["bytes_per_step"] or 0) * steps.steps_between(begin + first_s, begin + last_s)
    problems = grade(truth, report, kept, last_s - first_s)
    after_last_s = end - begin - last_s
    if after_last_s > MOST_SECONDS_AFTER_LAST_LOOK:
        problems.append(f"{after_last_s:.0f} s after the last look")
    first = next(filter(is_named, report["owners"]), {})
    return Answer(python, shape, problems, first.get("path", ""),
                  first["growth_bytes"] / kept - 1 if kept and first else None,
                  max(look.get("paused_ms") or 0 for look in looks),
                  tuple(str(look.get("way")) for look in looks), after_last_s)


def shapes_of(python, folder, wanted):
    """Those that the interpreter can run, and what it misses for the others."""
    shapes, missing = [], []
    for script in SCRIPTS:
        done = subprocess.run(python.command([python.inside(folder / script), "--list"]),
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode == 77:
            missing.append(f"{script}: {done.stderr.strip()}")
            continue
        shapes += [Shape(script, truth["shape"], truth["bytes_per_step"] is not None)
                   for truth in json.loads(done.stdout)
                   if not wanted or truth["shape"] in wanted]
    return shapes, missing


def judge_all(options, found):
    """All answers, and for each interpreter what was left out."""
    answers, left_out = [], {}
    with contextlib.ExitStack() as folders, \
            concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        asked = []
        for python in found:
            folder = folders.enter_context(programs_for(python))
            shapes, left_out[python] = shapes_of(python, folder, options.shapes)
            asked += [pool.submit(judge, options, python, folder, shape) for shape in shapes]
        for each in concurrent.futures.as_completed(asked):
            answer = each.result()
            answers.append(answer)
            for problem in answer.problems:
                print(f"MISS  {answer.python}, {answer.shape.name}: {problem}", flush=True)
    return answers, left_out


def print_marks(answers, found):
    """A row for each shape, a column for each interpreter: right, wrong, not run."""
    marks = {(answer.shape, answer.python): "x" if answer.problems else "." for answer in answers}
    errors = {}
    for answer in answers:
        if answer.growth_error is not None:
            errors.setdefault(answer.shape, []).append(answer.growth_error)
    shapes = list(dict.fromkeys(answer.shape for answer in answers))
    print(f"\n{'shape':20} {' '.join(f'{python.version:>8}' for python in found)}   growth error, pause")
    for shape in sorted(shapes, key=lambda each: (each.script != SCRIPTS[0], each.name)):
        row = " ".join(f"{marks.get((shape, python), '-'):>8}" for python in found)
        worst = max(errors.get(shape, [0]), key=abs)
        pause = max(answer.paused_ms for answer in answers if answer.shape == shape)
        print(f"{shape.name:20} {row}   {worst:+8.1%}, {pause:6.1f} ms")


def counts_of(answers, found):
    """For each interpreter: owners of the standard library, those of arrays, and what has none."""
    parts = (("owners named", lambda shape: shape.has_owner and shape.script == SCRIPTS[0]),
             ("owners of tensors and arrays", lambda shape: shape.has_owner and shape.script != SCRIPTS[0]),
             ("nothing named where nothing grows", lambda shape: not shape.has_owner))
    for python in found:
        for what, belongs in parts:
            own = [answer for answer in answers if answer.python == python and belongs(answer.shape)]
            if own:
                wrong = [answer.shape.name for answer in own if answer.problems]
                yield Count(f"{python}: {what}", len(own) - len(wrong), len(own),
                            "not " + ", ".join(wrong) if wrong else "all")


def is_enough(count):
    allowed = NOT_FIRST_ALLOWED if count.what.endswith("owners named") and count.runs > 20 else 0
    return count.good >= count.runs - allowed


def run(options, found):
    """Whether all is well."""
    begin = time.monotonic()
    answers, left_out = judge_all(options, found)
    if not answers:
        print("no shape was run")
        return False
    print_marks(answers, found)
    for python, missing in left_out.items():
        for each in missing:
            print(f"left out with {python}: {each}")
    counts = list(counts_of(answers, found))
    print_table(counts)
    ways = sorted({way for answer in answers for way in answer.ways})
    print(f"\n{sum(not answer.problems for answer in answers)} of {len(answers)} right; looks: "
          f"{', '.join(ways)}; longest pause {max(answer.paused_ms for answer in answers):.1f} ms; longest "
          f"wait after the last look {max(answer.after_last_s for answer in answers):.1f} s; all "
          f"{time.monotonic() - begin:.0f} s")
    return all(map(is_enough, counts))


def chosen(options):
    if options.fast:
        system = os.path.realpath(SYSTEM_PYTHON)
        return pythons.asked(system if os.path.exists(system) else sys.executable)
    only = options.only.split(",") if options.only else [""]
    return [python for python in pythons.found(options.roots)
            if python.version.startswith(tuple(only))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--roots")
    parser.add_argument("--only")
    parser.add_argument("--shape")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--looks", type=int, default=3)
    parser.add_argument("--every", default="1s")
    parser.add_argument("--with-steps", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    options.shapes = options.shape.split(",") if options.shape else FAST if options.fast else ()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} CPUs\n")
    sys.exit(0 if run(options, chosen(options)) else 1)


if __name__ == "__main__":
    main()
