#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: flake.py BUILD_DIR [--runs N] [--at-once N] [--only steady|leak]

How often `tidemark check` is wrong: N runs (200) of the harness's `steady`, which must all pass, and
as many of its `leak` at three times the budget, which must all fail. Each has a seed of its own.
Ends with 1 when one of them was wrong, and shows what was said about it.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import subprocess
import sys
import time

from bars import Count

BUDGET_KIB_PER_STEP = 200
LEAK_MB_PER_STEP = 3 * BUDGET_KIB_PER_STEP / 1024
STEPS = ["--steps", "180", "--step-time", "15ms", "--mb", "40"]
SCENARIOS = {
    "steady": (["steady"], 0, "check: a steady run passes"),
    "leak": (["leak", "--mb-per-step", f"{LEAK_MB_PER_STEP:.6f}"], 1,
             "check: a leak of three times the budget fails"),
}
AT_ONCE = 2


def run(build, scenario, seed):
    words, wanted, _ = SCENARIOS[scenario]
    done = subprocess.run(
        [build / "bin/tidemark", "check", "--max-growth", f"{BUDGET_KIB_PER_STEP}KiB/step",
         "--warmup", "30steps", "--interval", "100ms", "--timeout", "10min", "--",
         build / "bin/tidemark-harness", "train", *words, *STEPS, "--seed", str(seed)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", check=False)
    if done.returncode != wanted:
        print(f"\nMISS  {scenario}, seed {seed}: exit code {done.returncode}, not {wanted}\n"
              f"{done.stderr}", flush=True)
    return done.returncode


def bench(build, scenario, runs, at_once=AT_ONCE):
    _, wanted, what = SCENARIOS[scenario]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        codes = list(pool.map(lambda seed: run(build, scenario, seed), range(1, runs + 1)))
    told = ", ".join(f"{count} x exit code {code}"
                     for code, count in sorted(collections.Counter(codes).items()))
    count = Count(what, codes.count(wanted), runs,
                  f"{told}, {wanted} is right; {time.monotonic() - start:.0f} s")
    count.report()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--only", choices=SCENARIOS)
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "bin/tidemark-harness").exists():
        sys.exit("the harness was not built: it needs libtorch (./dev deps)")
    counts = [bench(build, scenario, options.runs, options.at_once)
              for scenario in SCENARIOS if options.only in (None, scenario)]
    return 0 if all(count.holds() for count in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
