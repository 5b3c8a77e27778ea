# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: results with their bars, and runs in turns."""

import statistics


class Bars:
    def __init__(self):
        self.missed = 0

    def report(self, what, value, bar, unit="", detail=""):
        good = value <= bar
        self.missed += not good
        print(f"{'ok  ' if good else 'MISS'}  {what}: {value:.3g}{unit} (bar {bar:.3g}{unit})"
              f"{'; ' + detail if detail else ''}", flush=True)


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
