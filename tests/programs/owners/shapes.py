#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps memory in one of many ways, each with a known owner: shapes.py SHAPE (see leak_loop.py)

The standard library only, Python 3.9 and later. Shapes of tensors and arrays: array_shapes.py.
"""

import asyncio
import collections
import ctypes
import functools
import gc
import logging
import logging.handlers
import queue
import threading
import weakref

import leak_loop
from leak_loop import READY_STEP, record, shape, steps

history = []


@shape("__main__.history")
def module_list():
    for number in steps():
        history.append(record(number))


class Collator:
    def __init__(self):
        self.cache = {}

    def collate(self, number):
        self.cache[number] = record(number)
        return len(self.cache)


collator = Collator()


@shape("__main__.collator.cache", decoys=["__main__.Collator"])
def object_attribute():
    for number in steps():
        collator.collate(number)


def make_collate():
    shared = Collator()

    def collate(number):
        return shared.collate(number)

    return collate


@shape(("collate() closure: shared.cache", "__main__.collate() closure: shared.cache"))
def closure_attribute():
    global collate
    collate = make_collate()
    for number in steps():
        collate(number)


def make_counter():
    items = []

    def count(number):
        items.append(record(number))
        return len(items)

    return count


@shape(("count() closure: items", "__main__.count() closure: items"))
def closure_list():
    global count
    count = make_counter()
    for number in steps():
        count(number)


class Tokenizer:
    seen = {}

    def encode(self, number):
        self.seen[f"word {number}"] = record(number)


@shape("__main__.Tokenizer.seen")
def class_attribute():
    for number in steps():
        Tokenizer().encode(number)


@functools.lru_cache(maxsize=None)
def load(path):
    return record(int(path.partition(" ")[2]))


@shape("__main__.load (lru_cache)")
def lru_cache_function():
    for number in steps():
        load(f"sample {number}")


class Samples:
    @functools.lru_cache(maxsize=1 << 20)
    def item(self, index):
        return record(index)


samples = Samples()


@shape("__main__.Samples.item (lru_cache)", decoys=["__main__.samples"])
def lru_cache_method():
    for number in steps():
        samples.item(number)


def augment(sample, bucket=[]):
    bucket.append(sample)
    return len(bucket)


@shape(("augment() default: bucket", "__main__.augment() default: bucket"))
def default_argument():
    for number in steps():
        augment(record(number))


def batches():
    served = []
    while True:
        served.append(record(len(served)))
        yield len(served)


@shape("batches() locals: served")
def generator_local():
    source = batches()
    for _ in steps():
        next(source)


request = threading.local()


def serve():
    request.log = []
    for number in steps():
        request.log.append(record(number))


@shape("__main__.request.log")
def thread_local():
    server = threading.Thread(target=serve, name="server")
    server.start()
    server.join()


memory_log = logging.handlers.MemoryHandler(capacity=1 << 30)


@shape("__main__.memory_log.buffer")
def logging_handler():
    logger = logging.getLogger("job")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(memory_log)
    for number in steps():
        logger.info("step %d: %s", number, record(number))


class Callback:
    def on_step_end(self, trainer, number):
        pass


class ProgressCallback(Callback):
    def __init__(self):
        self.last = None

    def on_step_end(self, trainer, number):
        self.last = number


class HistoryCallback(Callback):
    def __init__(self):
        self.logs = []

    def on_step_end(self, trainer, number):
        self.logs.append(trainer.metrics)


class BaseTrainer:
    def __init__(self, callbacks):
        self.callbacks = callbacks
        self.metrics = None

    def train(self):
        for number in steps():
            self.train_step(number)
            for callback in self.callbacks:
                callback.on_step_end(self, number)


class Trainer(BaseTrainer):
    def train_step(self, number):
        self.metrics = record(number)


@shape("__main__.trainer.callbacks[*].logs", decoys=["__main__.trainer.metrics"])
def trainer_callback():
    global trainer
    trainer = Trainer([ProgressCallback(), HistoryCallback()])
    trainer.train()


failures = []


def parse(number):
    fields = record(number)
    raise ValueError(len(fields))


def convert(number):
    try:
        parse(number)
    except ValueError as error:
        raise RuntimeError(f"step {number}") from error


@shape("__main__.failures")
def exceptions():
    for number in steps():
        try:
            convert(number)
        except RuntimeError as error:
            failures.append(error)


results = queue.Queue()


@shape("__main__.results.queue")
def unread_queue():
    for number in steps():
        results.put(record(number))


@shape("frame_local() locals: losses")
def frame_local():
    losses = []
    for number in steps():
        losses.append(record(number))


tasks = set()


async def fetch(number):
    await asyncio.sleep(0)
    return record(number)


async def fetch_all():
    for number in steps():
        task = asyncio.create_task(fetch(number))
        tasks.add(task)
        await task


@shape("__main__.tasks", small=["asyncio"], text="tasks that are done")
def asyncio_tasks():
    asyncio.run(fetch_all())


class Node:
    def __init__(self, value, following):
        self.value = value
        self.following = following


newest = None


@shape("__main__.newest", kind="variable")
def linked_list():
    global newest
    for number in steps():
        newest = Node(record(number), newest)


class Listener:
    def __init__(self, number):
        self.state = record(number)

    def on_event(self, event):
        return event in self.state


class Bus:
    def __init__(self):
        self.listeners = []

    def subscribe(self, listener):
        self.listeners.append(listener)


bus = Bus()


@shape("__main__.bus.listeners")
def bound_methods():
    for number in steps():
        bus.subscribe(Listener(number).on_event)


recent = collections.deque(maxlen=32)
archive = []


@shape("__main__.archive", decoys=["__main__.recent"], text="the newest are in a bounded deque, too")
def bounded_decoy():
    for number in steps():
        each = record(number)
        recent.append(each)
        archive.append(each)


in_order = []
by_number = {}


@shape("__main__.in_order", "__main__.by_number", text="both lead to all of it")
def two_owners():
    for number in steps():
        each = record(number)
        in_order.append(each)
        by_number[number] = each


class Span:
    def __init__(self, parent, data):
        self.parent = parent
        self.data = data
        self.children = []
        self.last = None

    def add(self, data):
        self.last = Span(self, data)
        self.children.append(self.last)


trace = Span(None, None)


@shape("__main__.trace.children", decoys=["__main__.trace.last", "__main__.trace.parent"])
def parent_pointers():
    for number in steps():
        trace.add(record(number))


class Image:
    def __init__(self, number):
        self.pixels = record(number)


images = []
images_by_number = weakref.WeakValueDictionary()


@shape("__main__.images", small=["__main__.images_by_number"],
       text="a weak dictionary has its own small objects for them")
def weak_dictionary():
    for number in steps():
        image = Image(number)
        images.append(image)
        images_by_number[number] = image


buckets = {length: [] for length in range(8)}


@shape("__main__.buckets[*]")
def lists_in_dict():
    for number in steps():
        buckets[number % len(buckets)].append(record(number))


unsent = []


# Looks that are more than half a period apart, and less than one, never see three times more.
@shape(bytes_per_step=None, decoys=["__main__"], text="a buffer, sent and cleared each 1.5 seconds")
def saw_tooth():
    for number in steps():
        unsent.append(record(number))
        if number % 75 == 74:
            unsent.clear()


vocabulary = {}


@shape(bytes_per_step=None, decoys=["__main__"], text="a cache that is full within the first second")
def warm_up_cache():
    for number in steps():
        key = min(number, READY_STEP + 40)
        if key not in vocabulary:
            vocabulary[key] = record(key)


@shape(kind="garbage", text="cycles, and the collector is off")
def cyclic_garbage():
    gc.disable()
    for number in steps():
        span = Span(None, record(number))
        span.parent = span


@shape(kind="native_hold", text="C code forgets to release a reference")
def native_hold():
    for number in steps():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object([record(number)]))


if __name__ == "__main__":
    leak_loop.run(globals())
