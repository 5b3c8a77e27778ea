#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: train_attached.py [STEPS]

A training loop that keeps a part of every batch, to be attached to. It prints how long each 20 steps
took, and at the end, after STEPS or when its standard input ends, the steps and a checksum of what was
learned: the same for the same number of steps.
"""

import hashlib
import select
import sys
import time

import torch

STEPS_AT_A_TIME = 20

torch.set_num_threads(1)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.Linear(16 * 62 * 62, 10))
optimizer = torch.optim.Adam(net.parameters())
kept = []


def collate():
    batch = torch.randn(8, 3, 64, 64)
    kept.append(batch[:1].clone())  # leaks
    return batch


def input_has_ended():
    return bool(select.select([sys.stdin], [], [], 0)[0]) and not sys.stdin.read(1)


def train(last_step):
    step = 0
    while step != last_step if last_step else not input_has_ended():
        begun = time.perf_counter()
        for _ in range(STEPS_AT_A_TIME):
            loss = net(collate()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"took {time.perf_counter() - begun}", flush=True)
    weights = b"".join(each.detach().numpy().tobytes() for each in net.parameters())
    print(f"done {step} {hashlib.sha256(weights).hexdigest()}", flush=True)


train(int(sys.argv[1]) if len(sys.argv) > 1 else None)
