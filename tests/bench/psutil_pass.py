#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: psutil_pass.py PID ROUNDS

Prints the CPU time that psutil needs for the RSS of a process tree, in microseconds (median).
"""

import statistics
import sys
import time

import psutil


def main():
    root = psutil.Process(int(sys.argv[1]))
    costs = []
    for _ in range(int(sys.argv[2])):
        before = time.thread_time_ns()
        total = sum(p.memory_info().rss for p in [root, *root.children(recursive=True)])
        costs.append((time.thread_time_ns() - before) / 1e3)
        assert total > 0
    print(f"{statistics.median(costs):.1f}")


if __name__ == "__main__":
    main()
