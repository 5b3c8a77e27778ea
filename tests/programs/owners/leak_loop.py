# SPDX-License-Identifier: Apache-2.0
"""The loop of programs that keep memory in ways whose owner is known (shapes.py, array_shapes.py).

usage of each: SCRIPT SHAPE [--rate 50] [--seconds 120] [--log FILE]
               SCRIPT --list

A program takes a few steps, prints its ground truth as one line of JSON and then the line "ready".
From then on it takes RATE steps per second (0: as fast as it can), until its standard input, a pipe,
is closed or the time is over. FILE gets a line "Step NUMBER TIME" for each step; TIME is that of
CLOCK_MONOTONIC.

The ground truth:
  owners          lists of spellings: each owner is to be named in one of them, and one of them first
  decoys          paths that are not owners: neither they nor what begins so may be named as growing
  small           likewise, but they do grow a little: less than a twentieth of all
  kind            "container", "variable", "garbage", "native_hold"; null: not graded
  bytes_per_step  what is kept in each step; null: nothing grows for long, and no owner may be named
  holds           some members of what the first owner holds most of; null: not graded
  pid             the process that keeps it
"""

import argparse
import gc
import json
import os
import select
import sys
import time
import warnings

FIRST_STEPS = 20  # imports and caches of the interpreter
MEASURED_STEPS = 40
READY_STEP = FIRST_STEPS + MEASURED_STEPS

options = None
truth = None


def shape(*owners, decoys=(), small=(), kind=None, bytes_per_step="measured", holds=None,
          text=""):
    """Declares the ground truth of a function. `owners`: a path, or a tuple of its spellings.
    `text`: what the function does, where its name does not say it."""

    def declare(function):
        function.truth = {
            "shape": function.__name__,
            "owners": [[owner] if isinstance(owner, str) else list(owner) for owner in owners],
            "decoys": list(decoys), "small": list(small), "kind": kind,
            "bytes_per_step": bytes_per_step, "holds": holds, "text": text}
        return function

    return declare


def record(number):
    """What a careless job keeps of a step: some 16 KB in a hundred objects."""
    return {"step": number,
            "grads": [number + i / 128 for i in range(100)],
            "text": f"{number:012}" * 1024}


def heap_bytes():
    """The sizes of all objects that the collector knows and of all that they lead to."""
    seen = set()
    todo = gc.get_objects()
    seen.update((id(seen), id(todo)))
    total = 0
    while todo:
        each = todo.pop()
        if id(each) not in seen:
            seen.add(id(each))
            total += sys.getsizeof(each, 0)
            todo.extend(gc.get_referents(each))
    return total


def heap_bytes_now():
    """Counted in a copy of the process: this one has no holes afterwards that hide what it keeps."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that it has threads
        copy = os.fork()
    if copy == 0:
        os.write(write_end, b"%d" % heap_bytes())
        os._exit(0)
    os.close(write_end)
    count = int(os.read(read_end, 32))
    os.close(read_end)
    os.waitpid(copy, 0)
    return count


def has_input_ended(wait_s):
    return bool(select.select([0], [], [], wait_s)[0])


def say_ready():
    print(json.dumps(truth))
    print("ready", flush=True)


def steps():
    """The numbers of the steps, each when it is due."""
    measured = truth["bytes_per_step"] == "measured"
    before = 0
    for number in range(READY_STEP):
        if number == FIRST_STEPS and measured:
            before = heap_bytes_now()
        yield number
    if measured:
        truth["bytes_per_step"] = (heap_bytes_now() - before) / MEASURED_STEPS
    say_ready()
    log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if options.log else None
    period = 1 / options.rate if options.rate else 0
    due = time.monotonic()
    end = due + options.seconds
    number = READY_STEP
    while due < end and not has_input_ended(max(due - time.monotonic(), 0)):
        yield number
        if log is not None:
            os.write(log, f"Step {number} {time.monotonic():.6f}\n".encode())
        number += 1
        due = due + period if period else time.monotonic()


def run(module):
    """Of the script whose globals these are."""
    global options, truth
    shapes = {name: each for name, each in module.items() if callable(each) and hasattr(each, "truth")}
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("shape", nargs="?", choices=sorted(shapes))
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--log")
    options = parser.parse_args()
    if options.list:
        print(json.dumps([each.truth for each in shapes.values()], ))
        return
    if not options.shape:
        parser.error("which shape?")
    truth = dict(shapes[options.shape].truth, steps_per_second=options.rate, pid=os.getpid())
    shapes[options.shape]()
