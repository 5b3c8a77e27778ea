#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps tensors and arrays in one of many ways, each with a known owner: array_shapes.py SHAPE (see
leak_loop.py). Exits with 77 where there is no torch or no numpy."""

import ctypes
import sys

try:
    import numpy
    import torch
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

import leak_loop
from leak_loop import shape, steps

ROWS, COLUMNS = 64, 128
NBYTES = 4 * ROWS * COLUMNS
TENSOR = {"type": "torch.Tensor", "dtype": "float32", "shape": [ROWS, COLUMNS], "device": "cpu"}
ARRAY = {"type": "numpy.ndarray", "dtype": "float32", "shape": [ROWS, COLUMNS]}


def batch(number):
    return torch.full((ROWS, COLUMNS), float(number))


cache = {}


@shape("__main__.cache", bytes_per_step=NBYTES, holds=TENSOR)
def tensor_cache():
    for number in steps():
        cache[number] = batch(number)


model = torch.nn.Linear(COLUMNS, COLUMNS)
total = 0


# Kept of each step: what the square and the product were computed from. Beside them, the nodes of the
# graph, of some 4 KB, are few.
@shape("__main__.total", kind="variable", bytes_per_step=2 * 4 * NBYTES, decoys=["__main__.model"])
def autograd_graph():
    global total
    for number in steps():
        large = torch.full((4 * ROWS, COLUMNS), float(number))
        loss = model(large).pow(2).mean()
        total = total + loss


def make_hook(activation):
    def hook(module, inputs, output):
        return None if activation.numel() else output

    return hook


@shape("__main__.model._forward_hooks", bytes_per_step=NBYTES, holds=TENSOR)
def forward_hooks():
    for number in steps():
        model.register_forward_hook(make_hook(batch(number)))
        with torch.no_grad():
            model(batch(number)[:1])


dataset = None
outputs = []


@shape("__main__.outputs", bytes_per_step=NBYTES, holds=TENSOR,
       decoys=["__main__.dataset", "__main__.model", "__main__.optimizer"],
       text="the state of an optimizer and a data set are constant")
def constants_beside():
    global dataset, optimizer
    dataset = torch.rand(256, ROWS, COLUMNS)
    optimizer = torch.optim.Adam(model.parameters())
    for number in steps():
        output = model(dataset[number % len(dataset)])
        optimizer.zero_grad()
        output.pow(2).mean().backward()
        optimizer.step()
        outputs.append(output.detach())


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.seen = []

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        sample = batch(index)
        self.seen.append(sample)
        return sample


# The objects of the worker are those that it was forked with.
@shape(("__main__.dataset.seen", "_worker_loop() locals: dataset.seen"), bytes_per_step=NBYTES,
       holds=TENSOR, text="of a DataLoader, in its worker")
def loader_worker():
    global dataset
    dataset = Samples()
    loader = torch.utils.data.DataLoader(dataset, batch_size=1, num_workers=1)
    batches = iter(loader)
    leak_loop.truth["pid"] = batches._workers[0].pid
    for _ in steps():
        next(batches)


arrays = []


@shape("__main__.arrays", bytes_per_step=NBYTES, holds=ARRAY)
def numpy_arrays():
    for number in steps():
        arrays.append(numpy.full((ROWS, COLUMNS), number, dtype=numpy.float32))


samples = []


@shape("__main__.samples", bytes_per_step=NBYTES, holds=ARRAY, text="tensors that share the memory of arrays")
def borrowed_arrays():
    for number in steps():
        samples.append(torch.from_numpy(numpy.full((ROWS, COLUMNS), number, dtype=numpy.float32)))


crops = []


@shape("__main__.crops", bytes_per_step=NBYTES, text="small views of large arrays")
def numpy_views():
    for number in steps():
        image = numpy.full((ROWS, COLUMNS), number, dtype=numpy.float32)
        crops.append(image[:8, :8])


@shape(f"numpy arrays float32 [{ROWS}, {COLUMNS}]", kind="native", bytes_per_step=NBYTES, holds=ARRAY,
       text="C code forgets to release a reference to an array")
def native_arrays():
    for number in steps():
        image = numpy.full((ROWS, COLUMNS), number, dtype=numpy.float32)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(image))


@shape(bytes_per_step=None, decoys=["__main__"], text="training, and nothing is kept")
def steady_training():
    global optimizer
    optimizer = torch.optim.Adam(model.parameters())
    for number in steps():
        loss = model(batch(number)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    leak_loop.run(globals())
