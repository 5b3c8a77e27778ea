#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: ctest ... | skipped_tests.py LAST_TEST_LOG ALLOWED_SKIPS

Passes the output of ctest on and says, before its summary, which tests were skipped and why. Exits
with 1 when ALLOWED_SKIPS does not know the reason: a suite that nobody runs proves nothing.
"""

import fnmatch
import pathlib
import re
import sys

SUMMARY = re.compile(r"\d+% tests passed, ")
SKIPPED = re.compile(r"\s+\d+ - (.*) \(Skipped\)$")
TEST = re.compile(r"^\d+/\d+ Test: (.*)$", re.MULTILINE)
OUTPUT = re.compile(r"^Output:\n-+\n(.*?)^<end of output>$", re.MULTILINE | re.DOTALL)
GTEST_SKIP = re.compile(r": Skipped\n(.*?)\n*^\[  SKIPPED \]", re.MULTILINE | re.DOTALL)


def skipped_in(summary):
    """Names of tests, from the last lines of ctest."""
    matches = (SKIPPED.match(line.rstrip("\n")) for line in summary)
    return [match.group(1) for match in matches if match]


def reasons_in(log):
    """Why, by the name of the test: what GTEST_SKIP was given, or the last line that it printed."""
    parts = TEST.split(log)[1:]
    reasons = {}
    for name, block in zip(parts[::2], parts[1::2]):
        output = OUTPUT.search(block)
        text = output.group(1) if output else ""
        skip = GTEST_SKIP.search(text)
        lines = text.split("\n")
        reasons[name] = " ".join(skip.group(1).split()) if skip else next(
            (line.strip() for line in reversed(lines) if line.strip()), "")
    return reasons


def patterns_in(allowed):
    lines = (line.strip() for line in allowed.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def is_allowed(reason, patterns):
    return any(fnmatch.fnmatchcase(reason, pattern) for pattern in patterns)


def report(skips, patterns):
    """Lines about (name, reason) of the skipped tests, one per reason; whether all are allowed."""
    by_reason = {}
    for name, reason in skips:
        by_reason.setdefault(reason or "no reason given", []).append(name)
    were = "test was" if len(skips) == 1 else "tests were"
    lines = [f"{len(skips)} {were} skipped:"] if skips else []
    fine = True
    for reason, names in sorted(by_reason.items()):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        allowed = is_allowed(reason, patterns)
        fine = fine and allowed
        lines.append(f"  {'' if allowed else 'NOT ALLOWED  '}{reason}: {names[0]}{more}")
    if not fine:
        lines.append("NOT ALLOWED: ./dev deps installs what these need. Let them run, or add the"
                     " reason to tests/allowed_skips.txt.")
    return lines, fine


def main():
    log, allowed = (pathlib.Path(argument) for argument in sys.argv[1:])
    sys.stdin.reconfigure(errors="replace")
    sys.stdout.reconfigure(errors="replace")
    summary = []  # held back: it stays the last that is printed
    for line in sys.stdin:
        if summary or SUMMARY.match(line):
            summary.append(line)
        else:
            print(line, end="", flush=True)
    names = skipped_in(summary)
    reasons = reasons_in(log.read_text(errors="replace")) if names else {}
    lines, fine = report([(name, reasons.get(name, "")) for name in names],
                         patterns_in(allowed.read_text()))
    print("".join(line + "\n" for line in lines), end="\n" if lines else "")
    print("".join(summary), end="", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
