#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: train_twins.py SHAPE [--rate 40] [--mib 0.25] [--log FILE]   |   train_twins.py --list

A small training loop on torch whose memory does what SHAPE says: the Python twins of the scenarios
of tidemark-harness. It prints its ground truth as one line of JSON, then trains until its standard
input is closed. FILE gets a line "Step NUMBER" for each step.

The ground truth:
  grows     "leak", "warmup" (a cache that ends with the data set), "spikes", "stable"
  owner     spellings of how the path begins of what holds the growth; []: nothing in Python does
  line      the line that allocates it; null: not graded
  suspect   which of the nine usual suspects it is, or several that fit; null: none of them
  cause     a known cause that fits; null: none
"""

import argparse
import collections
import ctypes
import functools
import gc
import itertools
import json
import os
import select
import sys
from multiprocessing import shared_memory

import torch

torch.set_num_threads(1)
FLOATS_PER_MIB = 1 << 18
SAMPLES = 100_000

shapes = {}


def shape(grows, *owner, line=True, suspect=None, cause=None):
    """Declares the ground truth of a class whose step() is called in each step."""

    def declare(kind):
        source = open(__file__, encoding="utf-8").read().splitlines()
        mark = f"# makes {kind.__name__}"
        number = next((i for i, text in enumerate(source, 1) if text.endswith(mark)), None)
        kind.truth = {"grows": grows, "owner": list(owner), "line": number if line else None,
                      "suspect": suspect, "cause": cause}
        shapes[kind.__name__] = kind
        return kind

    return declare


class Twin:
    def __init__(self, floats):
        self.floats = floats

    def tensor(self):
        return torch.ones(self.floats)

    def step(self, number, loss):
        pass


@shape("stable")
class steady(Twin):
    pass


@shape("leak", "__main__.twin.cache", suspect="collator")
class collator(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.cache = {}

    def step(self, number, loss):
        self.cache[number] = torch.ones(self.floats)  # makes collator


@shape("warmup", "__main__.twin.cache")
class warmup(Twin):
    """A cache by sample of a data set that is all seen after a while."""

    def __init__(self, floats):
        super().__init__(floats)
        self.cache = {}
        dataset.extend(bytearray(200) for _ in range(SAMPLES))

    def step(self, number, loss):
        key = number % len(dataset)
        if key not in self.cache:
            self.cache[key] = torch.ones(self.floats)  # makes warmup


@shape("leak", "__main__.twin.losses", suspect=["gradient_accumulation", "metrics_lists"])
class autograd(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.losses = []
        self.weight = torch.nn.Parameter(torch.ones(floats))

    def step(self, number, loss):
        self.losses.append((self.weight * 2).exp().sum())  # makes autograd


@shape("leak", "__main__.twin.optimizer.state", "__main__.twin.optimizer.param_groups",
       "__main__.twin.weights", line=False, suspect="optimizer_state")
class optimizer(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(4))])

    def step(self, number, loss):
        weight = torch.nn.Parameter(torch.ones(self.floats // 3))
        weight.grad = torch.zeros(self.floats // 3)
        self.optimizer.add_param_group({"params": [weight]})
        self.optimizer.state[weight]["exp_avg"] = torch.zeros(self.floats // 3)  # makes optimizer


@shape("leak", "__main__.twin.log_history", suspect="log_history")
class history(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.log_history = []

    def step(self, number, loss):
        self.log_history.append({"step": number, "logits": [0.5] * (self.floats // 2)})  # makes history


@shape("leak", "__main__.twin.metrics", suspect="metrics_lists")
class metrics(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.metrics = collections.defaultdict(list)

    def step(self, number, loss):
        self.metrics["accuracy"].append(torch.ones(self.floats))  # makes metrics


@shape("leak", line=False)
class processor(Twin):
    """functools.lru_cache without a bound keeps its entries in C."""

    def step(self, number, loss):
        tokenized(number, self.floats)


@functools.lru_cache(maxsize=None)
def tokenized(number, floats):
    return bytearray(4 * floats)  # makes processor


@shape("leak", line=False)
class closure(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        self.hook = None

    def step(self, number, loss):
        before = self.hook
        kept = torch.ones(self.floats)  # makes closure
        self.hook = lambda: (before, kept)


@shape("leak", line=False, suspect="garbage")
class garbage(Twin):
    def __init__(self, floats):
        super().__init__(floats)
        gc.disable()

    def step(self, number, loss):
        batch = {"data": bytearray(4 * self.floats)}  # makes garbage
        batch["self"] = batch


@shape("leak")
class native(Twin):
    def step(self, number, loss):
        block = ctypes.CDLL(None).malloc
        block.restype = ctypes.c_void_p
        address = block(ctypes.c_size_t(4 * self.floats))  # makes native
        ctypes.memset(address, 1, 4 * self.floats)


@shape("leak", line=False, cause="unheld_shm")
class shm(Twin):
    def step(self, number, loss):
        name = f"torch_{os.getpid()}_{number}"  # as torch calls those of a DataLoader
        segment = shared_memory.SharedMemory(name, create=True, size=4 * self.floats)
        segment.buf[:] = b"x" * (4 * self.floats)
        segment.close()
        made.append(segment)


@shape("spikes", line=False)
class spikes(Twin):
    def step(self, number, loss):
        if number % 200 == 100:
            self.kept = torch.ones(100 * FLOATS_PER_MIB)
        elif number % 200 == 120:
            self.kept = None


dataset = []
made = collections.deque()  # segments, to be removed at the end


def main():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.ones(16, 64)
    print(json.dumps({**twin.truth, "pid": os.getpid()}), flush=True)
    with open(options.log or os.devnull, "a", encoding="utf-8", buffering=1) as log:
        for number in itertools.count(1):
            loss = model(batch).square().mean()
            sgd.zero_grad(set_to_none=True)
            loss.backward()
            sgd.step()
            twin.step(number, loss.item())
            log.write(f"Step {number} loss={loss.item():.4f}\n")
            if select.select([sys.stdin], [], [], 1 / options.rate)[0]:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rate", type=float, default=40)
    parser.add_argument("--mib", type=float, default=0.25)
    parser.add_argument("--log")
    options = parser.parse_args()
    if options.list:
        print("\n".join(shapes))
        sys.exit()
    twin = shapes[options.shape](int(options.mib * FLOATS_PER_MIB))
    try:
        main()
    finally:
        for each in made:
            each.unlink()
