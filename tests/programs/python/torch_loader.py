#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small model while the collator of its DataLoader keeps every batch:
torch_loader.py WORKERS [STEPS]"""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

kept = []
BATCH = 4


class Samples(Dataset):
    def __init__(self, steps):
        self.steps = steps

    def __len__(self):
        return BATCH * self.steps

    def __getitem__(self, index):
        return torch.full((4096,), float(index))


def collate(samples):
    batch = torch.stack(samples)  # leaks
    kept.append(batch)
    time.sleep(0.02)
    return batch.sum(dim=1)


def train(workers, steps):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-12)
    loader = DataLoader(Samples(steps), batch_size=BATCH, collate_fn=collate, num_workers=workers)
    for step, sums in enumerate(loader, 1):
        loss = model(sums.unsqueeze(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"Step {step}", flush=True)


if __name__ == "__main__":
    train(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80)
