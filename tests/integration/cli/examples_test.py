#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: examples_test.py SOURCE_DIR TOOL

Every example that the help of a command, README.md and docs/ print, run as it stands beside a small
training job. Only numbers of processes are replaced. Those of `check` that pass have a test of their
own (tests/integration/check/examples_test.py).
"""

import concurrent.futures
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
TOOL = pathlib.Path(sys.argv[2]).resolve()
HARNESS = TOOL.parent / "tidemark-harness"

# A job that prints what {line} says. It ends after some steps beside a tidemark, however late that comes.
JOB = """
import glob, time
step = 0
end = time.monotonic() + 100
while step < 60 and time.monotonic() < end:
    batch = bytearray(1 << 20)
    time.sleep(0.04)
    names = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            names.append(open(path).read())
        except OSError:
            pass
    step += "tidemark\\n" in names
    print(f"{line}", flush=True)
"""

# Exit codes, and what is printed. A job of seconds is too short for some verdicts: 4.
EXPECTED = {
    "": ({0, 4}, r"(?m)^training job: pid \d+ \(python train.py\)"),
    "find": ({0}, r"(?m)^training job: pid \d+, trainer"),
    "monitor": ({0}, r"(?m)^summary: .* samples"),
    "track": ({0, 4}, r"(?m)^(No leak|CANNOT TELL|TOO EARLY|LIKELY|GROWING)"),
    "profile": ({0}, r"(?m)^(NOTHING GROWS|TOO SHORT TO TELL|LEAK: |GROWING: )"),
    "owners": ({0, 4}, r"(?m)^(ONE LOOK|NOTHING KEEPS GROWING|NO OWNER GROWS|GROWING)"),
    "explain": ({0}, r"(?m)^answer   (most of|the largest parts of|nothing grew|.+ grew by) "),
    "diagnose": ({0, 4}, r"(?m)^(seen  |CANNOT TELL)"),
    "rule-out": ({0, 3, 4}, r"(?m)^  suspect  "),  # 3: the job has ended meanwhile
    "guard": ({0}, r"(?m)^tidemark: guard: keeps .* free below "),
    "check": ({1}, r"(?m)^FAIL tidemark-harness: max_growth: "),
    "diff": ({0}, r"(?m)^A  before.tidemark$"),
    "export": ({0}, r"^$"),
    "demo": ({0}, r"(?m)^1 of 1 right"),
}
LEAKS = {  # of the harness
    "track": ({1, 4}, r"(?m)^(LEAK|LIKELY LEAK|CANNOT TELL YET)"),
    "profile": ({0}, r"(?m)^(LEAK|GROWING): (scratch_buffer image_decoder.c:12|.* model.cpp:\d+) "),
}

# Alone on a machine, with a /dev/shm of its own: `find` must see no other jobs.
OWN_MACHINE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount",
               "--map-root-user", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
if subprocess.run([*OWN_MACHINE, "true"], capture_output=True, check=False).returncode != 0:
    OWN_MACHINE = []


def examples_in_help():
    listed = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
    for name in filter(None, EXPECTED):
        assert re.search(rf"(?m)^\s+{name}\s", listed), f"{name} is not in the help:\n{listed}"
        shown = subprocess.run([TOOL, name, "--help"], capture_output=True, text=True, check=True)
        examples = re.findall(r"(?m)^  (tidemark .*)", shown.stdout)
        assert examples, f"the help of {name} has no example"
        yield from examples


def examples_in_pages():
    for page in [SOURCE / "README.md", *sorted(SOURCE.glob("docs/*.md"))]:
        for block in re.findall(r"(?ms)^```[a-z]*\n(.*?)^```", page.read_text()):
            yield from re.findall(r"(?m)^(?:\$ )?(tidemark(?: .*)?)$", block)


def make_project(folder):
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "tidemark").symlink_to(TOOL)
    if HARNESS.exists():
        (programs / "tidemark-harness").symlink_to(HARNESS)
    (folder / "train.py").write_text(JOB.replace("{line}", "Step {step}"))
    (folder / "server.py").write_text(JOB.replace("{line}", "job {step} done"))
    (folder / "last.pt").touch()
    (folder / "logs").mkdir()
    for name, command in (("train", "python train.py"), ("train.sh", "python train.py"),
                          ("bin/mail", "cat > sent")):
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    return folder


def in_project(folder, command):
    environment = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}",
                       HOME=str(folder), XDG_CACHE_HOME=str(folder / "cache"))
    done = subprocess.run([*OWN_MACHINE, "sh", "-c", command], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=200)
    return done.returncode, done.stdout + done.stderr


def make_recordings(folder):
    """What the examples expect to be there."""
    code, text = in_project(folder, "tidemark profile --mode exact -o run.tidemark -- ./train")
    assert code == 0, text
    with sqlite3.connect(folder / "run.tidemark") as recording:  # as if of minutes
        for table, in recording.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in recording.execute(f"PRAGMA table_info({table})").fetchall():
                if column[1] in ("t_s", "started_s", "exited_s", "first_s", "last_s", "end_s"):
                    recording.execute(f"UPDATE {table} SET {column[1]} = {column[1]} * 300")
    recording.close()
    code, text = in_project(folder, "tidemark owners --looks 2 --every 1s -o looks.tidemark -- ./train")
    assert code == 0, text
    code, text = in_project(folder, "tidemark explain --every 500ms --looks 1 -o ledger.tidemark -- ./train")
    assert code == 0, text
    code, text = in_project(folder, "python train.py & sleep 0.5; "
                            "tidemark rule-out --pid $! --only page-cache -o looked.tidemark")
    assert code == 0, text
    code, text = in_project(folder, "script -qec 'tidemark monitor -- ./train' /dev/null")
    assert code == 0, text
    for name in ("before.tidemark", "after.tidemark"):
        (folder / name).write_bytes((folder / "run.tidemark").read_bytes())


def needs_job(command):
    return command == "tidemark" or re.search(r"\s(find|--find-training|--pid|\d{4,})\b", command)


def run(folder, recordings, command):
    for recording in recordings:
        target = folder / recording.relative_to(recordings[0].parent)
        if not target.exists() and f"-o {target.name}" not in command:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(recording.read_bytes())
    beside = ""
    if needs_job(command):
        job = "server.py" if "server.log" in command else "train.py"
        log = re.search(r"--log-file (\S+)", command)
        beside = f"python {job} > {log.group(1) if log else '/dev/null'} & job=$!; sleep 0.5; "
        command = re.sub(r"(--pid|track|monitor|diagnose) \d+", r"\1 $job", command)
    return in_project(folder, beside + command)


def expected_of(command):
    name = (command.split() + [""])[1]
    if "tidemark-harness" in command and name in LEAKS:
        return LEAKS[name]
    return EXPECTED[name]


def check(folder, recordings, command):
    codes, pattern = expected_of(command)
    code, text = run(make_project(folder), recordings, command)
    assert code in codes, f"{command}: exit code {code}\n{text}"
    assert re.search(pattern, text), f"{command}: no line {pattern}\n{text}"
    for name in re.findall(r" -o (\S+)", command):
        assert (folder / name).stat().st_size > 0, f"{command}: {name} is empty"


def is_run(command):
    if re.match(r"tidemark check", command):
        return "train leak" in command
    return command != "tidemark demo"  # a minute and a half: demo.sh and its own tests run it


def main():
    examples = {}
    for line in [*examples_in_help(), *examples_in_pages()]:
        command = re.sub(r"\s+#.*", "", line).strip()
        if not is_run(command):
            continue
        if re.search("demo|tidemark-harness", command) and not HARNESS.exists():
            print(f"not run, because there is no harness: {command}")
        elif not OWN_MACHINE and re.search("tidemark( find|$)|--find-training", command):
            print(f"not run, because the machine may have other jobs: {command}")
        else:
            examples[command] = None
    assert len(examples) > 20, examples
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = make_project(pathlib.Path(folder) / "first")
        make_recordings(first)
        recordings = [first / "run.tidemark", first / "looks.tidemark", first / "ledger.tidemark",
                      first / "looked.tidemark", first / "before.tidemark", first / "after.tidemark",
                      *(path for path in first.glob("cache/**/*") if path.is_file())]
        running = [pool.submit(check, pathlib.Path(folder) / str(i), recordings, command)
                   for i, command in enumerate(examples)]
        for each in running:
            each.result()
    print(f"{len(examples)} examples were run")


if __name__ == "__main__":
    main()
