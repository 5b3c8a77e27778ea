#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a *_test.cpp below tests/ is compiled by no target.

usage: every_test_is_in_a_target.py SOURCE_DIR COMPILE_COMMANDS [FOLDER...]

FOLDER: below SOURCE_DIR, of tests that are not built here because a library is missing.
"""

import json
import pathlib
import sys


def orphans(source_dir, compile_commands, *left_out):
    compiled = {pathlib.Path(entry["directory"], entry["file"]).resolve()
                for entry in json.loads(pathlib.Path(compile_commands).read_text())}
    tests = sorted(pathlib.Path(source_dir, "tests").resolve().rglob("*_test.cpp"))
    folders = [pathlib.Path(source_dir, folder).resolve() for folder in left_out]
    return [test for test in tests if test not in compiled
            and not any(folder in test.parents for folder in folders)]


def main():
    found = orphans(*sys.argv[1:])
    for test in found:
        print(f"{test}: in no target; add it to the CMakeLists.txt beside it")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
