#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A busy job with a heap of a given size that leaks a little:
sized_heap.py --log FILE [--objects N] [--gib N] [--seconds 600]

It has N small lists beside what the interpreter has, and N GiB of large blocks, and changes some of
them in each step; `__main__.history` keeps 4 KB of each. It prints "ready" when all is there. FILE gets
lines "Step NUMBER END SECONDS": when the step ended, on CLOCK_MONOTONIC, and how long it took. It ends
when its standard input is closed.

On SIGUSR1 it counts its objects by type within a step, as profilers inside of a job do, and prints
"census NUMBER SECONDS"; on SIGUSR2 it does so with objgraph, where that is installed, and looks for what
keeps a record: "objgraph NUMBER SECONDS", or "objgraph missing".
"""

import argparse
import collections
import gc
import os
import random
import select
import signal
import sys
import time

CELLS_PER_STEP = 500
PAGES_PER_STEP = 100
MIB = 1 << 20

history = []
rows = []
blocks = []


def record(number):
    return {"step": number, "text": f"{number:08}" * 500}


def fill(objects, gib):
    gc.disable()
    rows.extend([i] for i in range(objects))
    for _ in range(int(gib * 1024)):
        blocks.append(bytearray(os.urandom(4096) * (MIB // 4096)))
    gc.collect()
    gc.enable()


def step(number):
    for _ in range(CELLS_PER_STEP if rows else 0):
        row = rows[random.randrange(len(rows))]
        row[0] = number
    for _ in range(PAGES_PER_STEP if blocks else 0):
        blocks[random.randrange(len(blocks))][random.randrange(MIB)] = number & 255
    history.append(record(number))


def census(*_):
    begin = time.perf_counter()
    counts, sizes = collections.Counter(), collections.Counter()
    objects = gc.get_objects()
    for each in objects:
        counts[type(each)] += 1
        sizes[type(each)] += sys.getsizeof(each)
    print("census", len(objects), time.perf_counter() - begin, flush=True)


def objgraph_growth(*_):
    try:
        import objgraph
    except ImportError:
        print("objgraph missing", flush=True)
        return
    begin = time.perf_counter()
    growth = objgraph.growth(limit=10)
    objgraph.find_backref_chain(history[-1], objgraph.is_proper_module)
    print("objgraph", len(growth), time.perf_counter() - begin, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--gib", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    fill(options.objects, options.gib)
    signal.signal(signal.SIGUSR1, census)
    signal.signal(signal.SIGUSR2, objgraph_growth)
    log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    print("ready", flush=True)
    end = time.monotonic() + options.seconds
    number = 0
    while time.monotonic() < end and not select.select([0], [], [], 0.001)[0]:
        begin = time.perf_counter()
        step(number)
        taken = time.perf_counter() - begin
        os.write(log, f"Step {number} {time.monotonic():.6f} {taken:.7f}\n".encode())
        number += 1


if __name__ == "__main__":
    main()
