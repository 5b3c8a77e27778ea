#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: integrations_test.py SOURCE_DIR TOOL

What is in integrations/ works: the script of the GitHub action does what action.yml says, and its
YAML and GitLab's can be read.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

SOURCE = pathlib.Path(sys.argv[1]).resolve()
TOOL = str(pathlib.Path(sys.argv[2]).resolve())
GITHUB = SOURCE / "integrations/github"


def run_action(folder, **inputs):
    for name in ("summary", "output"):
        (folder / name).write_text("")
    environment = dict(os.environ, GITHUB_ACTIONS="true", RUNNER_TEMP=str(folder),
                       GITHUB_STEP_SUMMARY=str(folder / "summary"),
                       GITHUB_OUTPUT=str(folder / "output"), TIDEMARK_PROGRAM=TOOL,
                       **{f"TIDEMARK_{name.upper()}": value for name, value in inputs.items()})
    done = subprocess.run([GITHUB / "run.sh"], env=environment, capture_output=True, text=True,
                          check=False)
    output = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    return done, output, (folder / "summary").read_text()


def check_github(folder):
    done, output, summary = run_action(folder, command="sleep 1.5",
                                       options="--max-peak 1KiB --interval 50ms")
    assert done.returncode == 1, done.stderr
    assert output["result"] == "fail", output
    assert "### FAIL: sleep" in summary, summary
    assert "::error title=" in done.stderr, done.stderr
    assert pathlib.Path(output["markdown"]).read_text() == summary

    done, output, _ = run_action(folder, command="sleep 1.5",
                                 options="--max-peak 1GiB --interval 50ms")
    assert done.returncode == 0 and output["result"] == "pass", done.stderr

    done, output, _ = run_action(folder, command="exit 0", options="--gpu-max-peak 1GiB",
                                 undetermined="pass")
    assert done.returncode == 0 and output["result"] == "undetermined", done.stderr

    done, output, summary = run_action(
        folder, command="echo 'now at  7'; sleep 1.5; true",
        options="--max-peak 1GiB\n--interval 50ms\n--step-regex 'now at  ([0-9]+)' --max-processes 1")
    assert done.returncode == 1, done.stderr
    assert "max_processes" in summary and "max_peak" in summary, summary

    done, output, _ = run_action(folder, command="true", options="--step-regex 'open")
    assert done.returncode == 2 and "quotes" in done.stderr, done.stderr

    done, output, _ = run_action(folder, command="true", options="--no-such-option")
    assert done.returncode == 2, done.stderr
    assert output == {"result": "error"}, output  # there is no report

    done, output, _ = run_action(folder, command="exit 5")
    assert done.returncode == 3 and output["result"] == "error", done.stderr


def check_yaml():
    action = yaml.safe_load((GITHUB / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    step = action["runs"]["steps"][0]
    assert "run.sh" in step["run"]
    for name in action["inputs"]:
        assert f"inputs.{name} " in str(step["env"]), name
    gitlab = yaml.safe_load((SOURCE / "integrations/gitlab/tidemark-check.yml").read_text())
    assert "tidemark check" in gitlab[".tidemark-check"]["script"][0]
    assert gitlab["memory"]["extends"] == ".tidemark-check"


def main():
    check_yaml()
    with tempfile.TemporaryDirectory() as folder:
        check_github(pathlib.Path(folder))


if __name__ == "__main__":
    main()
