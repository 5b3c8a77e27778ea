# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: results with their bars, counts of good runs, and runs in turns."""

import statistics
import typing


class Count(typing.NamedTuple):
    """How many of some runs were as they have to be; none of none: left out, the detail says why."""

    what: str
    good: int
    runs: int
    detail: str

    def holds(self):
        return self.good == self.runs

    def result(self):
        return "left out" if self.runs == 0 else "ok" if self.holds() else "MISS"

    def report(self):
        print(f"{self.result():4}  {self.what}: {self.good} of {self.runs} ({self.detail})", flush=True)


def print_table(counts):
    width = max(len(count.what) for count in counts)
    print(f"\n{'result':8}  {'what':{width}}  good of runs")
    for count in counts:
        print(f"{count.result():8}  {count.what:{width}}  {count.good} of {count.runs}; {count.detail}",
              flush=True)


class Bars:
    def __init__(self):
        self.missed = 0

    def report(self, what, value, bar, unit="", detail=""):
        good = value <= bar
        self.missed += not good
        print(f"{'ok  ' if good else 'MISS'}  {what}: {value:.3g}{unit} (bar {bar:.3g}{unit})"
              f"{'; ' + detail if detail else ''}", flush=True)

    def check(self, good, what, detail):
        self.missed += not good
        print(f"{'ok  ' if good else 'MISS'}  {what}: {detail}", flush=True)

    def miss(self, what, detail):
        """What was to be measured could not be."""
        self.check(False, what, detail)


def in_turns(rounds, variants):
    """The results of each variant, a function, called in turns: noise hits all of them alike."""
    results = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            results[name].append(run())
    return results


def median_ratio(results, name, base):
    """The median over the rounds of what one variant took against another in the same round."""
    ratios = [a / b for a, b in zip(results[name], results[base])]
    return statistics.median(ratios), f"{min(ratios):.2f}..{max(ratios):.2f}"
