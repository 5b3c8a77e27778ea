#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps blocks of several sorts, each made at the line that says so: made_at.py plain|torch

Prints "ready", then goes on for as long as who has started it lives.
"""

import array
import collections
import os
import sys
import time

EACH = 64 << 10  # bytes, about, at each step and of each sort


class Keeper:
    def __init__(self):
        self.buffers = {}
        self.lists = []
        self.dicts = []
        self.blobs = collections.deque()
        self.doubles = []
        self.queues = []
        self.arrays = []
        self.tensors = {}


keep = Keeper()


def collate(step):
    keep.buffers[step] = bytearray(EACH)  # makes buffers
    keep.lists.append([None] * (EACH // 8))  # makes lists
    keep.dicts.append(dict.fromkeys(range(900)))  # makes dicts
    keep.blobs.append(b"x" * EACH)  # makes blobs
    keep.doubles.append(array.array("d", bytes(EACH)))  # makes doubles
    keep.queues.append(collections.deque([None] * (EACH // 8)))  # makes queues


def load(step):
    keep.arrays.append(numpy.ones(EACH // 8))  # makes arrays
    keep.tensors[step] = torch.ones(EACH // 4)  # makes tensors


if sys.argv[1] == "torch":
    import numpy
    import torch
parent = os.getppid()
work = load if sys.argv[1] == "torch" else collate
number = 0
print("ready", flush=True)
while os.getppid() == parent:
    work(number)
    number += 1
    time.sleep(0.02)
