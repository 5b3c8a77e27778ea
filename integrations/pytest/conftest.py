# SPDX-License-Identifier: Apache-2.0
"""A fixture that runs a command under `tidemark check`. Copy it beside your tests.

def test_training_does_not_leak(leak_check):
    leak_check(["python", "train.py"], max_growth="1MiB/step", warmup="20steps")
"""

import os
import shutil
import subprocess
import tempfile

import pytest

UNDETERMINED = 4


@pytest.fixture
def leak_check():
    tool = os.environ.get("TIDEMARK", "tidemark")
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed (the variable TIDEMARK can name it)")

    def check(command, **settings):
        """Fails the test when `command`, a list of words, does not keep to its budgets.

        Settings are the options of `tidemark check`: max_growth="1MiB/step", repeat=3, profile=True.
        A run that was too short to tell fails as well: let it run for longer, or say warmup=.
        """
        options = []
        for name, value in settings.items():
            option = "--" + name.replace("_", "-")
            if value is not False:
                options += [option] if value is True else [option, str(value)]
        # Not a pipe: a process that the command leaves behind would keep it open.
        with tempfile.TemporaryFile() as report:
            done = subprocess.run([tool, "check", *options, "--", *command], stderr=report,
                                  check=False)
            report.seek(0)
            text = report.read().decode(errors="replace")
        if done.returncode != 0:
            why = " (it cannot tell)" if done.returncode == UNDETERMINED else ""
            pytest.fail(f"tidemark check: exit code {done.returncode}{why}\n{text}",
                        pytrace=False)

    return check
