#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a source file that nobody reads at one sitting any more.

usage: files_stay_small.py SOURCE_DIR
"""

import os
import pathlib
import sys

MOST_LINES = 500
ENDINGS = {".c", ".cpp", ".h", ".py"}
OUTSIDE = {"build", ".git"}


def too_long(root):
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - OUTSIDE)
        for path in (pathlib.Path(folder) / name for name in sorted(names)):
            lines = path.read_bytes().count(b"\n") if path.suffix in ENDINGS else 0
            if lines > MOST_LINES:
                yield (f"{path.relative_to(root)} has {lines} lines; at most {MOST_LINES}: "
                       "what else does it hold?")


def main():
    found = list(too_long(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "no file is too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
