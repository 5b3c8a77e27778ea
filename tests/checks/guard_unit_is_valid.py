#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: guard_unit_is_valid.py SOURCE_DIR

systemd finds nothing wrong with the unit file of docs/guard.md. Exits with 77 where there is no
systemd to ask.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

UNIT = "tidemark-guard@.service"


def verify(text):
    with tempfile.TemporaryDirectory(prefix="tidemark-unit-") as folder:
        unit = pathlib.Path(folder) / UNIT.replace("@", "@night")
        unit.write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    if shutil.which("systemd-analyze") is None:
        print("there is no systemd-analyze here")
        return 77
    text = (pathlib.Path(sys.argv[1]) / "docs" / UNIT).read_text()
    status, said = verify(text)
    complaints = [line for line in said.splitlines() if "tidemark-guard" in line]
    if status != 0 or complaints:
        print(f"status {status}:\n{said}")
        return 1
    # The question is worth asking only if a wrong unit is refused.
    status, said = verify(text.replace("WatchdogSec=60", "WatchdogSec=often"))
    if status == 0 and "tidemark-guard" not in said:
        print("systemd-analyze accepts anything")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
