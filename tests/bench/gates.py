#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gates.py BUILD_DIR [--flake-runs 200] [--guard-runs 20] [--guard-only PART[,PART...]]

What stands between a leak and those who do not look: how often `tidemark check` is wrong (flake.py),
then whether `tidemark guard` acts in time (guard.py); one table of both at the end. Exits with 1 when
a run went wrong. About 20 minutes on two cores.
"""

import argparse
import pathlib
import sys

import flake
import guard
from bars import print_table


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--flake-runs", type=int, default=200)
    parser.add_argument("--guard-runs", type=int, default=20)
    parser.add_argument("--guard-only", default=",".join(guard.PARTS))
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "bin/tidemark-harness").exists():
        sys.exit("the harness was not built: it needs libtorch (./dev deps)")
    counts = [flake.bench(build, scenario, options.flake_runs) for scenario in flake.SCENARIOS]
    counts += guard.bench_all(build, options.guard_only.split(","), options.guard_runs)
    print_table(counts)
    return 0 if all(count.holds() for count in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
