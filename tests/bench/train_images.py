#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: train_images.py STEPS

A training job as people write them: a small residual network on made-up images, loaded in batches
by a DataLoader, trained by Adam. For the cost of tracing a whole run, import included.
"""

import sys

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, images):
        return torch.relu(images + self.body(images))


def train(steps):
    torch.manual_seed(1)
    images = torch.utils.data.TensorDataset(torch.randn(512, 3, 32, 32), torch.randint(10, (512,)))
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Residual(32), nn.MaxPool2d(2), Residual(32),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters())
    step = 0
    while True:
        for batch, labels in torch.utils.data.DataLoader(images, batch_size=32, shuffle=True):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
            step += 1
            if step == steps:
                return


if __name__ == "__main__":
    train(int(sys.argv[1]))
