# SPDX-License-Identifier: Apache-2.0
"""The tensors of heap_truth.py: makes some of every kind, and writes down what torch says of them."""

import gc
import json

import numpy
import torch

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
          torch.float64, torch.complex64, torch.complex128, torch.bool, torch.bfloat16]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        ctx.label = ["of a function of the user"]
        return value * value

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0]


def make_tensors():
    plain = [torch.zeros(3, 5, dtype=dtype) for dtype in DTYPES]
    base = torch.rand(64, 128)
    views = [base[3], base.t(), base[:, ::2], base.view(-1), base.expand(2, 64, 128), base.detach()]
    odd = [torch.tensor(1.5), torch.empty(0), torch.zeros(2, 2, 2, 2, 2, 2, 2),
           torch.from_numpy(numpy.arange(100.0)), torch.rand(4, 4).to_sparse()]
    network = torch.nn.Sequential(torch.nn.Linear(128, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    optimizer = torch.optim.Adam(network.parameters())
    network(base).pow(2).mean().backward()
    optimizer.step()
    outputs = [network(torch.rand(16, 128)).softmax(1).sum() for _ in range(3)]
    custom = Square.apply(torch.rand(10, requires_grad=True)).sum()
    hooked = torch.rand(5, requires_grad=True)
    hooked.register_hook(lambda gradient, factor=torch.rand(5): gradient * factor)
    return [plain, base, views, odd, network, optimizer, outputs, custom, hooked, (hooked * 2).exp()]


def storage_of(tensor):
    """Its untyped storage; None: it has none."""
    try:
        if hasattr(tensor, "untyped_storage"):
            return tensor.untyped_storage()
        return tensor.storage().untyped()
    except (NotImplementedError, RuntimeError):
        return None


def described(tensor, address):
    storage = storage_of(tensor)
    return {"object": address,
            "storage": storage._cdata if storage else None,
            "storage_bytes": storage.nbytes() if storage else None,
            "data": storage.data_ptr() if storage else None,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).replace("torch.", ""),
            "device": str(tensor.device),
            "requires_grad": tensor.requires_grad,
            "is_leaf": tensor.is_leaf,
            "node": type(tensor.grad_fn).__name__ if tensor.grad_fn is not None else None}


def saved_by(node):
    """The tensors that a node has saved, of those that can be asked for."""
    saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    saved.extend(getattr(node, "saved_tensors", ()))
    return [each for each in saved if isinstance(each, torch.Tensor)]


def nodes_of(heads):
    seen, todo = {}, list(heads)
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen[node] = None
            todo.extend(edge[0] for edge in node.next_functions)
    return list(seen)


def tensors_of_python():
    return [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]


def write_tensors(path):
    for each in tensors_of_python():
        _ = each.is_leaf and each.grad  # from now on this is an object of Python as well
    tensors = tensors_of_python()
    nodes = nodes_of(each.grad_fn for each in tensors)
    rows = [described(each, id(each)) for each in tensors]
    known = {row["storage"] for row in rows}
    for tensor in [each for node in nodes for each in saved_by(node)]:
        storage = storage_of(tensor)
        if storage and storage._cdata not in known:
            known.add(storage._cdata)
            rows.append(described(tensor, None))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"tensors": rows, "nodes": sorted(type(node).__name__ for node in nodes)}, file)
