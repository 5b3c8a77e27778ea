#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: examples_test.py SOURCE_DIR TOOL

Every example of `tidemark check` that we print, as it stands: in its help, docs/check.md and
integrations/. A normal training script that does not grow passes each of them.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

SOURCE = pathlib.Path(sys.argv[1]).resolve()
TOOL = str(pathlib.Path(sys.argv[2]).resolve())
PAGE = (SOURCE / "docs/check.md").read_text()

TRAIN = """
import sys, time
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 250
for step in range(1, steps + 1):
    batch = bytearray(1 << 20)
    time.sleep(0.02)
    if step % 2 == 0:
        print(f"step {step}/{steps} loss {1 / step:.3f}", flush=True)
"""
SILENT = "import time\nfor _ in range(300):\n    batch = bytearray(1 << 20)\n    time.sleep(0.02)\n"


# Segments that others leave in /dev/shm meanwhile are not ours: where that is allowed, it is an own one.
OWN_SHM = ["unshare", "--mount", "--map-root-user", "sh", "-c",
           'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
if subprocess.run([*OWN_SHM, "true"], capture_output=True, check=False).returncode != 0:
    OWN_SHM = []


def block(language, text=PAGE):
    return re.search(rf"```{language}\n(.*?)```", text, re.S).group(1)


def make_project(folder):
    """A folder as the examples expect it."""
    folder.mkdir()
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    (programs / "tidemark").symlink_to(TOOL)
    (folder / "train.py").write_text(TRAIN)
    for name, command in (("train.sh", "python train.py"), ("serve", "sleep 60")):
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    return folder


def run(folder, command, **variables):
    environment = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", **variables)
    environment.pop("GITHUB_ACTIONS", None)
    words = ["sh", "-c", command] if isinstance(command, str) else command
    done = subprocess.run([*OWN_SHM, *words], cwd=folder, env=environment, capture_output=True,
                          text=True, check=False, timeout=110)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def commands_of(text):
    return [line.split("#")[0].strip() for line in text.splitlines()
            if re.match(r"\s*tidemark check -", line)]


def help_and_page(folder):
    """In one project, one after the other: a baseline is made before it is compared with."""
    shown = subprocess.run([TOOL, "check", "--help"], capture_output=True, text=True, check=True)
    examples = commands_of(shown.stdout)
    assert len(examples) >= 3, shown.stdout
    assert commands_of(PAGE)
    for command in examples:
        run(folder, command)
    for command in commands_of(PAGE):
        if command not in examples:
            run(folder, command)


def settings_file(folder):
    text = block("json").replace('"2min"', '"4s"').replace('"30s"', '"1s"')
    (folder / "tidemark.json").write_text(text)
    report = run(folder, "tidemark check")
    assert "2 passed" in report, report


def github(folder):
    steps = yaml.safe_load(block("yaml"))["jobs"]["memory"]["steps"]
    inputs = next(step["with"] for step in steps if "with" in step)
    run(folder, [str(SOURCE / "integrations/github/run.sh")], TIDEMARK_PROGRAM=TOOL,
        TIDEMARK_COMMAND=inputs["command"], TIDEMARK_OPTIONS=inputs["options"],
        RUNNER_TEMP=str(folder))


def pytest_fixture(folder):
    fixture = SOURCE / "integrations/pytest/conftest.py"
    shutil.copy(fixture, folder)
    of_fixture = re.search(r'^def test_.*?\n\n?(?=""")', fixture.read_text(), re.S | re.M).group(0)
    (folder / "test_page.py").write_text(block("python"))
    (folder / "test_fixture.py").write_text(of_fixture)
    # It ends when this folder is removed, and has the output open until then.
    (folder / "test_stray.py").write_text(
        "def test_a_stray_does_not_hold_it_up(leak_check):\n"
        "    leak_check(['sh', '-c', '(while [ -e train.py ]; do sleep 0.1; done) & sleep 1'],\n"
        "               max_peak='1GiB')\n")
    # Our own pipe would be held up in the same way.
    run(folder, f"{sys.executable} -m pytest -q -p no:cacheprovider > report 2>&1 < /dev/null"
                " || { cat report; exit 1; }", TIDEMARK=TOOL)
    report = (folder / "report").read_text()
    assert "3 passed" in report, report


def without_steps(folder):
    (folder / "train.py").write_text(SILENT)
    run(folder, "tidemark check --max-growth 1MiB/step --warmup 20steps -- python train.py")


def main():
    tests = [help_and_page, settings_file, github, without_steps]
    try:
        import pytest  # noqa: F401
        tests.append(pytest_fixture)
    except ImportError:
        print("the pytest fixture is not tested: no pytest")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(test, make_project(pathlib.Path(folder) / test.__name__))
                   for test in tests]
        for each in running:
            each.result()


if __name__ == "__main__":
    main()
