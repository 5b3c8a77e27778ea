# SPDX-License-Identifier: Apache-2.0
"""Tells Tidemark where a training loop is: steps, epochs, phases and gauges.

    import tidemark

    for n, batch in enumerate(loader, 1):
        train(batch)
        tidemark.step(n)
        if n % 500 == 0:
            with tidemark.phase("eval"):
                evaluate()

One file, standard library only, Python 3.8 or later: copy it into your project or put its directory
on the path. Hugging Face Trainer: ``callbacks=[tidemark.hf_callback()]``. Lightning:
``callbacks=[tidemark.lightning_callback()]``.

Each call writes one record into a private shared-memory file that ``tidemark`` finds by the
process's pid and start time, also when it attaches later. No call raises; when the file cannot be
made, or TIDEMARK_MARKERS=off is set, they do nothing. A forked child gets a file of its own.

With tidemark_memory.py beside this file there are ``tidemark.memory_logger()`` and
``tidemark.cleanup()``, with tidemark_jobs.py as well ``tidemark.run_isolated()``.
"""

import atexit
import errno
import importlib
import itertools
import mmap
import os
import stat
import struct
import sys
import threading
import time

__all__ = [
    "step",
    "epoch",
    "phase",
    "phase_begin",
    "phase_end",
    "gauge",
    "torch_memory",
    "hf_callback",
    "lightning_callback",
    "progress",
]

# What the files beside this one define. They are imported when it is used.
_ELSEWHERE = {
    "memory_logger": "tidemark_memory",
    "cleanup": "tidemark_memory",
    "run_isolated": "tidemark_jobs",
    "JobError": "tidemark_jobs",
    "JobCancelled": "tidemark_jobs",
}


def __getattr__(name):
    if name not in _ELSEWHERE:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    beside = __name__.rpartition(".")[0]
    module = "%s.%s" % (beside, _ELSEWHERE[name]) if beside else _ELSEWHERE[name]
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in (module, "tidemark_memory"):
            raise
        needed = "tidemark.%s needs %s.py beside tidemark.py" % (name, error.name)
        raise ImportError(needed) from error


# The layout of the ring file is described in tidemark.h; tests compare these numbers with it.
_MAGIC = 0x676E69724B4D4454
_VERSION = 1
_CAPACITY = 4096
_HEADER_BYTES = 128
_RECORD_BYTES = 64
_NAME_BYTES = 32
_FILE_BYTES = _HEADER_BYTES + _CAPACITY * _RECORD_BYTES
_STEP, _EPOCH, _PHASE_BEGIN, _PHASE_END, _GAUGE = 1, 2, 3, 4, 5

# Positions in units of 8 bytes (header) and 4 bytes (the 32-bit fields).
_U64_MAGIC, _U64_START_TICKS, _U64_USERS = 0, 3, 4
_U32_VERSION, _U32_RECORD_BYTES, _U32_CAPACITY, _U32_PID = 2, 3, 4, 5
_U64_NEXT = 8
_LATEST_AT = {_STEP: 72, _EPOCH: 88}  # bytes
_RECORD_BODY = struct.Struct("@QqII")  # after the sequence: time, value, kind, length of the name
_LATEST = struct.Struct("@qQ")  # step or epoch, and its time


_STATE, _SESSION, _START = 0, 3, 19  # positions in what _stat_of returns


def _stat_of(pid):
    """/proc/PID/stat after field 2, the name, which may hold blanks and parentheses."""
    with open("/proc/%s/stat" % pid, "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _open_directory():
    """A descriptor and the path of a directory that only we can use.

    Another user may have taken the name in /dev/shm, which is everybody's.
    """
    try:
        return _open_directory_in("/dev/shm")
    except OSError:
        if "XDG_RUNTIME_DIR" not in os.environ:
            raise
        return _open_directory_in(os.environ["XDG_RUNTIME_DIR"])


def _open_directory_in(base):
    path = "%s/tidemark-%d" % (base, os.geteuid())
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    info = os.fstat(fd)
    if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) != 0o700:
        os.close(fd)
        raise PermissionError(path)
    return fd, path


def _check_file_size_limit():
    """Beyond the limit the kernel sends SIGXFSZ, which kills unless Python's own main ignores it."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < _FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _is_left_behind(name, pid_namespace):
    """Whether this is a file of a process of our pid namespace that has ended."""
    try:
        pid, _, rest = name.split("-")
        if int(rest.partition(".")[0]) == pid_namespace and int(pid) > 0:
            os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, ValueError):
        pass
    return False


def _remove_left_behind(directory, pid_namespace):
    """Removes what processes that were killed could not: at most 64 files, to be quick."""
    with os.scandir(directory) as entries:
        names = [entry.name for entry in itertools.islice(entries, 1024)]
    dead = (name for name in names if _is_left_behind(name, pid_namespace))
    for name in itertools.islice(dead, 64):
        try:
            os.unlink(name, dir_fd=directory)
        except OSError:
            pass  # somebody else was faster


class _Ring:
    """The ring file of this process. Python has no atomic addition on shared memory, so it shares
    its file with no other writer: every copy of this module makes one under a tag of its own."""

    def __init__(self):
        self.pid = os.getpid()
        start = int(_stat_of("self")[_START])
        pid_namespace = os.stat("/proc/self/ns/pid").st_ino
        prefix = "%d-%d-%d" % (self.pid, start, pid_namespace)
        directory, self._directory = _open_directory()
        try:
            _remove_left_behind(directory, pid_namespace)
            self._make(directory, prefix, start)
        finally:
            os.close(directory)
        self._next = 0
        # Re-entrant: a signal handler of Python runs in the thread that it interrupts.
        self._lock = threading.RLock()

    def _make(self, directory, prefix, start):
        _check_file_size_limit()
        draft = "%s.py.%x.new" % (prefix, id(self))
        fd = os.open(
            draft,
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
            dir_fd=directory,
        )
        try:
            os.posix_fallocate(fd, 0, _FILE_BYTES)  # a hole of a full file system would be SIGBUS
            memory = mmap.mmap(fd, _FILE_BYTES)
            for at in range(0, _FILE_BYTES, mmap.PAGESIZE):
                memory[at] = 0  # all pages at once: one by one they would look like growth
            self._bytes = memoryview(memory)
            # Native 8-byte items: each assignment is one store, so a reader sees no half number.
            self._u64 = self._bytes.cast("Q")
            self._u32 = self._bytes.cast("I")
            self._u64[_U64_MAGIC] = _MAGIC
            self._u32[_U32_VERSION] = _VERSION
            self._u32[_U32_RECORD_BYTES] = _RECORD_BYTES
            self._u32[_U32_CAPACITY] = _CAPACITY
            self._u32[_U32_PID] = self.pid
            self._u64[_U64_START_TICKS] = start
            self._u64[_U64_USERS] = 1
            self._name = self._link(directory, draft, prefix)
        finally:
            os.close(fd)
            os.unlink(draft, dir_fd=directory)

    @staticmethod
    def _link(directory, draft, prefix):
        for tag in ("py", "py1", "py2", "py3", "py4", "py5", "py6", "py7"):
            name = "%s.%s.markers" % (prefix, tag)
            try:
                os.link(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
                return name
            except FileExistsError:
                pass
        raise FileExistsError(prefix)

    def mark(self, kind, value, name):
        now = time.monotonic_ns()
        body = _RECORD_BODY.pack(now, value, kind, len(name)) + name
        u64 = self._u64
        with self._lock:
            index = self._next
            self._next = u64[_U64_NEXT] = index + 1
            at = _HEADER_BYTES + (index % _CAPACITY) * _RECORD_BYTES
            self._bytes[at + 8 : at + 8 + len(body)] = body
            u64[at >> 3] = index + 1  # the sequence, last: it publishes the record
            if kind in _LATEST_AT:
                _LATEST.pack_into(self._bytes, _LATEST_AT[kind], value, now)

    def remove(self):
        os.unlink(os.path.join(self._directory, self._name))


_ring = None  # a _Ring; False when markers are off
_job_pipe = None  # in a job of run_isolated(): what tells its parent
_open_lock = threading.RLock()
_opening = False


def _open():
    global _ring, _opening
    with _open_lock:
        if _opening:  # a signal handler that came while this thread was at it
            return False
        if _ring is None or (_ring and _ring.pid != os.getpid()):
            _opening = True
            ring = False
            try:
                if os.environ.get("TIDEMARK_MARKERS") != "off":
                    ring = _Ring()
                    _finalize_with_multiprocessing()
            finally:
                _ring = ring  # not before: other threads wait for it, they lose nothing
                _opening = False
        return _ring


def _mark(kind, value, name=b""):
    # Not even a wrong argument may stop the training: marking is best effort.
    try:
        ring = _ring
        if ring is None or (ring and ring.pid != os.getpid()):
            ring = _open()
        if ring:
            ring.mark(kind, value, name)
    except Exception:
        pass


def _name_bytes(name):
    try:
        return os.fsencode(name)[:_NAME_BYTES]
    except Exception:
        return repr(name).encode("ascii", "replace")[:_NAME_BYTES]


def _after_fork_in_child():
    """The parent's ring is not ours, and its locks may be held by threads that do not exist here."""
    global _ring, _open_lock, _opening, _job_pipe
    _open_lock = threading.RLock()
    _opening = False
    if _ring:
        _ring = None
    if _job_pipe:
        _job_pipe.close()
        _job_pipe = None


def _at_exit():
    global _ring
    ring, _ring = _ring, False
    try:
        if ring and ring.pid == os.getpid():
            ring.remove()
    except Exception:
        pass


def _finalize_with_multiprocessing():
    """A child that multiprocessing has forked ends with os._exit: its own finalizers run, atexit
    does not. Negative: after those that join its children."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _at_exit, exitpriority=-100)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)


def step(n):
    """Step ``n`` is done. Count in any way that goes up; once per step."""
    try:
        n = int(n)
    except Exception:
        return
    _mark(_STEP, n)
    _tell_parent({"step": n})


def epoch(n):
    """Epoch ``n`` begins."""
    try:
        n = int(n)
    except Exception:
        return
    _mark(_EPOCH, n)
    _tell_parent({"epoch": n})


def phase_begin(name):
    """A phase such as "eval" or "checkpoint" begins. Phases may nest; names are cut at 32 bytes."""
    _mark(_PHASE_BEGIN, 0, _name_bytes(name))
    _tell_parent({"phase": name})


def phase_end(name):
    """The phase ends."""
    _mark(_PHASE_END, 0, _name_bytes(name))
    _tell_parent({"phase": None})


class phase:
    """``with tidemark.phase("eval"): ...`` marks the begin and the end, also when it raises."""

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        phase_begin(self._name)
        return self

    def __exit__(self, *exception):
        phase_end(self._name)
        return False


def gauge(name, value):
    """What something inside the program amounts to now, for example the bytes that a cache holds."""
    try:
        value = int(value)
        if not -(2**63) <= value < 2**63:
            return
    except Exception:
        return
    _mark(_GAUGE, value, _name_bytes(name))


def _tell_parent(fields, at_once=False):
    if _job_pipe:
        try:
            _job_pipe.send_progress(fields, at_once)
        except Exception:
            pass  # the parent is gone; this process will be soon


def progress(**fields):
    """Tells the parent of a job of run_isolated() how far it is: ``progress(step=n, loss=0.3)``.
    ``step`` is marked, too. Elsewhere it does nothing else."""
    if "step" in fields:
        try:
            _mark(_STEP, int(fields["step"]))
        except Exception:
            pass
    _tell_parent(fields, at_once=True)


_TORCH_EVERY_NS = 500_000_000
_torch_due_ns = 0


def torch_memory():
    """Marks what torch's caching allocator has in use and holds, over all GPUs: then Tidemark can
    tell growth of GPU memory inside it from growth beside it. Call it once per step: more often than
    twice a second it does nothing, nor before the program has used a GPU. It never starts CUDA."""
    global _torch_due_ns
    try:
        now = time.monotonic_ns()
        if now < _torch_due_ns or not _uses_cuda():
            return
        _torch_due_ns = now + _TORCH_EVERY_NS
        allocated, reserved = _gpu_memory()
        gauge("torch_gpu_allocated_bytes", allocated)
        gauge("torch_gpu_reserved_bytes", reserved)
    except Exception:
        pass


def _uses_cuda():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _gpu_memory():
    """Bytes that torch's caching allocator has in use, and that it holds, over all GPUs."""
    cuda = sys.modules["torch"].cuda
    allocated = reserved = 0
    for device in range(cuda.device_count()):
        stats = cuda.memory_stats_as_nested_dict(device)
        allocated += stats["allocated_bytes"]["all"]["current"]
        reserved += stats["reserved_bytes"]["all"]["current"]
    return allocated, reserved


def hf_callback():
    """A callback for ``transformers.Trainer(callbacks=[...])``: optimizer steps, epochs, the phases
    "train" and "eval", and torch_memory()."""
    from transformers import TrainerCallback

    class TidemarkCallback(TrainerCallback):
        def __init__(self):
            self._evaluating = False

        def on_train_begin(self, args, state, control, **kwargs):
            phase_begin("train")

        def on_train_end(self, args, state, control, **kwargs):
            phase_end("train")

        def on_epoch_begin(self, args, state, control, **kwargs):
            epoch(round(state.epoch or 0))

        def on_step_end(self, args, state, control, **kwargs):
            step(state.global_step)
            torch_memory()

        # The trainer announces the end of an evaluation, not its begin.
        def on_prediction_step(self, args, state, control, **kwargs):
            if not self._evaluating:
                self._evaluating = True
                phase_begin("eval")

        def _end_evaluation(self):
            if self._evaluating:
                self._evaluating = False
                phase_end("eval")

        def on_evaluate(self, args, state, control, **kwargs):
            self._end_evaluation()

        def on_predict(self, args, state, control, metrics=None, **kwargs):
            self._end_evaluation()

    return TidemarkCallback()


def _lightning_base():
    """The Callback class of the Lightning that the program uses: of two that are installed, the one
    that it has imported."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in sorted(names, key=lambda candidate: candidate not in sys.modules):
        try:
            module = __import__(name + ".callbacks", fromlist=["Callback"])
            return module.Callback
        except ImportError:
            pass
    raise ImportError("tidemark.lightning_callback() needs lightning or pytorch_lightning")


def lightning_callback():
    """A callback for ``lightning.Trainer(callbacks=[...])``: optimizer steps, epochs, the phases
    "train", "eval", "test" and "predict", and torch_memory()."""

    class TidemarkCallback(_lightning_base()):
        def __init__(self):
            super().__init__()
            self._last_step = None

        def on_train_start(self, trainer, pl_module):
            self._last_step = trainer.global_step
            phase_begin("train")

        def on_train_end(self, trainer, pl_module):
            phase_end("train")

        def on_train_epoch_start(self, trainer, pl_module):
            epoch(trainer.current_epoch)

        # With gradient accumulation several batches make one step.
        def on_train_batch_end(self, trainer, *args, **kwargs):
            if trainer.global_step != self._last_step:
                self._last_step = trainer.global_step
                step(trainer.global_step)
                torch_memory()

        def on_validation_start(self, trainer, pl_module):
            phase_begin("eval")

        def on_validation_end(self, trainer, pl_module):
            phase_end("eval")

        def on_test_start(self, trainer, pl_module):
            phase_begin("test")

        def on_test_end(self, trainer, pl_module):
            phase_end("test")

        def on_predict_start(self, trainer, pl_module):
            phase_begin("predict")

        def on_predict_end(self, trainer, pl_module):
            phase_end("predict")

    return TidemarkCallback()
