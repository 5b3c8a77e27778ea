#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: killed.py BUILD_DIR [KILLS]

Kills a process that takes copies of another at any moment, 300 times for each of several programs,
which have to go on as if nothing had happened. Ends with 1 when one of them does not.
"""

import os
import pathlib
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    kills = sys.argv[2] if len(sys.argv) > 2 else "300"
    done = subprocess.run([build / "tests/frozen_copy_killed_test"], check=False,
                          env=dict(os.environ, TIDEMARK_TEST_KILLS=kills))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
