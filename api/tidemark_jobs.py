# SPDX-License-Identifier: Apache-2.0
"""Runs a job in a process of its own: ``tidemark.run_isolated()`` (docs/callbacks.md).

Copy this file with tidemark.py and tidemark_memory.py. Standard library only, Python 3.8 or later.
"""

import atexit
import ctypes
import json
import os
import pickle
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing import process, spawn

try:
    from . import tidemark
    from .tidemark_memory import descendants_of, format_bytes, memory_of, print_line
except ImportError:
    import tidemark
    from tidemark_memory import descendants_of, format_bytes, memory_of, print_line

__all__ = ["run_isolated", "JobError", "JobCancelled"]

_SHARES = re.compile(rb"^(Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB", re.MULTILINE)

# A job sends frames to its parent: "p" progress, as JSON; "r" its result, "e" what it raised.
_FRAME = struct.Struct("=cQ")  # kind, bytes of the body
_PIPE_BYTES = select.PIPE_BUF  # a write of this size is all or nothing, and never waits for space
_PROGRESS_EVERY_S = 0.1
_running_jobs = set()


class JobError(RuntimeError):
    """A job of run_isolated() failed: it crashed, exited, or raised what cannot be raised here."""


class JobCancelled(JobError):
    """The job was cancelled."""


class _JobTraceback(Exception):
    def __str__(self):
        return '\n"""\n%s"""' % self.args


def _plain(value):
    """A number of numpy or torch as one of Python; all else as text."""
    try:
        return value.item()
    except Exception:
        return str(value)


class _JobPipe:
    """The job's end of the pipe to its parent."""

    def __init__(self, fd):
        self._fd = fd
        self._lock = threading.RLock()
        self._pending = {}
        self._sent_at = 0.0
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def send_progress(self, fields, at_once):
        """Never waits: what a busy parent has not read yet is sent later, with newer values."""
        with self._lock:
            self._pending.update(fields)
            is_due = at_once or time.monotonic() >= self._sent_at + _PROGRESS_EVERY_S
            if is_due and self._poll.poll(0):
                self._send_pending()

    def _send_pending(self):
        pending, self._pending = self._pending, {}
        try:
            body = json.dumps(pending, default=_plain).encode()
            if len(body) > _PIPE_BYTES - _FRAME.size:
                raise ValueError("it has more than 4 KiB")
        except Exception as error:
            body = json.dumps({"problem": "progress was not sent: %.99s" % error}).encode()
        os.write(self._fd, _FRAME.pack(b"p", len(body)) + body)
        self._sent_at = time.monotonic()

    def send_last(self, kind, body):
        with self._lock:
            if self._pending:
                self._send_pending()
            with open(self._fd, "wb", closefd=False) as file:
                file.write(_FRAME.pack(kind, len(body)))
                file.write(body)

    def close(self):
        os.close(self._fd)


def _job_main(payload, fd):
    """The main function of a job's process."""
    os.set_inheritable(fd, False)
    pipe = tidemark._job_pipe = _JobPipe(fd)
    kind, body = b"r", pickle.dumps(None)
    try:
        result = _run_job(payload)
        try:
            body = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError("the result cannot be sent to the parent: %s" % error) from error
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    except BaseException as error:
        kind, body = b"e", _pickled_error(error)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is too late to cancel
    pipe.send_last(kind, body)
    if kind == b"e":
        sys.exit(1)


def _run_job(payload):
    preparation, parent = pickle.load(payload)
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the parent has ended already
    signal.signal(signal.SIGTERM, _on_sigterm)
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    process.current_process()._inheriting = True  # refuses to start processes
    try:
        spawn.prepare(preparation)  # imports the main module
        fn, args, kwargs = pickle.load(payload)
    finally:
        del process.current_process()._inheriting
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, payload.fileno())
    os.close(null)
    return fn(*args, **kwargs)


def _on_sigterm(*_):
    sys.exit(128 + signal.SIGTERM)  # finally blocks run


# Workers that a job forks end by SIGTERM as they do elsewhere. CPython loses a signal with a handler
# that comes early in a child, so it has to wait.
_forking = threading.local()


def _before_fork():
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def _after_fork():
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _after_fork_in_child():
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


def _pickled_error(error):
    trace = error.__traceback__
    while trace.tb_next and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    try:
        body = pickle.dumps(error)
    except Exception:
        body = None
    return pickle.dumps((type(error).__module__, body, last, text))


def _share_of(pid):
    """As memory_of(), where each page that several processes share counts in parts."""
    try:
        with open("/proc/%d/smaps_rollup" % pid, "rb") as file:
            kib = [int(value) for _, value in _SHARES.findall(file.read())]
        return sum(kib) << 10 if len(kib) == 3 else None
    except OSError:
        return None


def _oom_kills():
    """How often the kernel's OOM killer has killed since the start of the machine, if known."""
    try:
        with open("/proc/vmstat", "rb") as file:
            return int(re.search(rb"^oom_kill (\d+)$", file.read(), re.MULTILINE).group(1))
    except (OSError, AttributeError):
        return None


def _signal_in_words(number, oom_before, oom_after):
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    words = "killed by signal %d (%s)" % (number, name)
    if number != signal.SIGKILL:
        return words
    if oom_before is None or oom_after is None:
        return words + ", perhaps by the kernel's OOM killer"
    if oom_after > oom_before:
        return words + ", probably by the kernel's OOM killer, which has just killed a process"
    return words + ", not by the kernel's OOM killer"


def _start_of(pid):
    """When the process was started, in ticks; None when it has exited."""
    try:
        fields = tidemark._stat_of(pid)
        return None if fields[tidemark._STATE] in b"ZX" else int(fields[tidemark._START])
    except (OSError, IndexError):
        return None


def _signal_process(pid, start, number):
    try:
        if not hasattr(os, "pidfd_open"):  # before Python 3.9
            if _start_of(pid) == start:
                os.kill(pid, number)
            return
        fd = os.pidfd_open(pid)
        try:
            if _start_of(pid) == start:  # not another process that has been given the pid
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
    except OSError:
        pass  # it has exited


# What the new interpreter does: it reads where modules are, then what to call.
_JOB_CODE = (
    "import pickle, sys; f = sys.stdin.buffer; sys.path[:] = pickle.load(f); pickle.load(f)(f, %d)"
)
_WATCH_EVERY_S = 0.02
_REST_PER_READ = 20  # of the time for reading memory: it holds a lock of the job
_TIDY_UP_LOOKS = 100  # not seconds: what is stopped for a while has time all the same


class _Job:
    """A function that runs in a process of its own. Made by run_isolated()."""

    def __init__(self, fn, args, kwargs, on_progress, grace_s):
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self.pid = None
        self.state = "running"  # then "done", "failed" or "cancelled"
        self.error = None  # why it failed
        self.exit_code = self.signal = None
        self.progress = {}  # the last value of each field
        # Footprints (docs/memory-metrics.md): ours before and after, and of the job at its peak.
        self.memory = {"before_bytes": memory_of()[0], "job_peak_bytes": None, "after_bytes": None}
        self._on_progress, self._grace_s = on_progress, grace_s
        self._process = None
        self._kill_at = None
        self._frames = {}  # the last ones, by kind
        self._gone = threading.Event()  # the process has exited
        self._ended = threading.Event()  # and everything about it is known
        started = threading.Event()
        payload = _job_payload(self.name, fn, args, kwargs)
        # The kernel ends the job with the thread that started it: this one lives as long.
        threading.Thread(target=self._run, args=(payload, started), daemon=True).start()
        del payload
        started.wait()
        if self.pid is None:
            raise self._failure

    def __repr__(self):
        error = ": " + self.error if self.error else ""
        sizes = "%s -> %s in the job -> %s" % tuple(map(format_bytes, self.memory.values()))
        return "<job %s: %s, %s%s>" % (self.name, self.state, sizes, error)

    def cancel(self):
        """Asks the job to end, with a SIGTERM that raises SystemExit there, and kills it when that
        does not help within ``grace_s``."""
        if not self._gone.is_set() and self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace_s
            _signal_process(self.pid, self._start_ticks, signal.SIGTERM)

    def result(self, timeout=None):
        """What the function returned. Raises what it raised, JobCancelled, JobError after a crash,
        or TimeoutError while it still runs."""
        if not self._ended.wait(timeout):
            raise TimeoutError("job %s still runs after %g s" % (self.name, timeout))
        if self._failure is not None:
            raise self._failure
        body = self._frames.get(b"r")
        if body is not None:  # not sooner: it may import what the parent does not need
            self._result = pickle.loads(body)
            self._frames.clear()
        return self._result

    def _run(self, payload, started):
        self._failure = self._result = None
        try:
            fd = self._start(payload)
        except Exception as error:
            self._failure = error
            return
        finally:
            del payload
            started.set()
        family = {self.pid: self._start_ticks}
        try:
            reader = threading.Thread(target=self._read, args=(fd,), daemon=True)
            reader.start()
            oom_before = _oom_kills()
            is_ours = self._watch(family)
            _end_processes(self.pid if is_ours else None, family)
            self._gone.set()
            reader.join()
            status = self._process.wait()
            self._conclude(status if is_ours else None, oom_before)
        except Exception as error:
            self._fail("failed", JobError("job %s: %r while it was watched" % (self.name, error)))
        finally:
            _remove_markers_of(family)
            self.memory["after_bytes"] = memory_of()[0]
            _running_jobs.discard(self)
            self._gone.set()
            self._ended.set()

    def _start(self, payload):
        read_end, write_end = os.pipe()
        try:
            with tempfile.TemporaryFile() as file:
                file.write(payload)
                file.seek(0)
                flags = subprocess._args_from_interpreter_flags()
                code = _JOB_CODE % write_end
                command = [spawn.get_executable(), *flags, "-c", code, "job", self.name]
                self._process = subprocess.Popen(
                    command, stdin=file, pass_fds=[write_end], start_new_session=True
                )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self.pid = self._process.pid
        self._start_ticks = _start_of(self.pid)
        _running_jobs.add(self)
        return read_end

    def _watch(self, family):
        """Until the process has exited; it stays a zombie, so that nobody gets its pid. False when
        something else in this program has taken that."""
        due = 0.0
        while True:
            try:
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return True
            except ChildProcessError:
                return False
            now = time.monotonic()
            if now >= due:
                self._measure(family)
                spent = time.monotonic() - now
                due = now + max(_WATCH_EVERY_S, _REST_PER_READ * spent)
            if self._kill_at is not None and now >= self._kill_at:
                _signal_process(self.pid, self._start_ticks, signal.SIGKILL)
            time.sleep(_WATCH_EVERY_S)

    def _measure(self, family):
        below = descendants_of(self.pid) or []
        for pid in below:
            family.setdefault(pid, _start_of(pid))
        # Forked relatives share pages: only their shares can be added.
        size = _share_of(self.pid) if below else memory_of(self.pid)[0]
        if size is not None:
            size += sum(_share_of(pid) or 0 for pid in below)
            self.memory["job_peak_bytes"] = max(self.memory["job_peak_bytes"] or 0, size)

    def _read(self, fd):
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        data = bytearray()
        while True:
            is_gone = self._gone.is_set()  # what it wrote before is in the pipe
            if poll.poll(0 if is_gone else 100):
                piece = os.read(fd, 1 << 20)
                if not piece:
                    break
                data += piece
                self._take_frames(data)
            elif is_gone:
                break  # a process that was forked meanwhile has the pipe open
        os.close(fd)

    def _take_frames(self, data):
        while len(data) >= _FRAME.size:
            kind, length = _FRAME.unpack_from(data)
            if len(data) < _FRAME.size + length:
                return
            body = bytes(data[_FRAME.size : _FRAME.size + length])
            del data[: _FRAME.size + length]
            if kind != b"p":
                self._frames[kind] = body
                continue
            fields = json.loads(body.decode())
            self.progress.update(fields)
            if self._on_progress:
                try:
                    self._on_progress(fields)
                except Exception:
                    print_line("on_progress of job %s: %s" % (self.name, traceback.format_exc()))
                    self._on_progress = None

    def _conclude(self, status, oom_before):
        if status is not None:
            self.exit_code, self.signal = (status, None) if status >= 0 else (None, -status)
        if b"r" in self._frames:
            self.state = "done"
        elif self._kill_at is not None:
            self._fail("cancelled", JobCancelled("job %s was cancelled" % self.name))
        elif b"e" in self._frames:
            self._fail("failed", self._raised(*pickle.loads(self._frames.pop(b"e"))))
        else:
            if status is None:
                self.error = "ended, and how is unknown: this program waits for all of its children"
            elif self.signal:
                self.error = _signal_in_words(self.signal, oom_before, _oom_kills())
            else:
                self.error = "ended with exit code %d before it returned" % status
            self._fail("failed", JobError("job %s: %s" % (self.name, self.error)))

    def _fail(self, state, failure):
        self.state, self._failure = state, failure
        self.error = self.error or str(failure)

    def _raised(self, module, body, last, text):
        self.error = last
        failure = None
        if body is not None and module in sys.modules:  # imports nothing into the parent
            try:
                failure = pickle.loads(body)
            except Exception:
                pass
        if not isinstance(failure, Exception):  # no SystemExit for the parent
            failure = JobError("job %s: %s" % (self.name, last))
        failure.__cause__ = _JobTraceback(text)
        return failure


def _job_payload(name, fn, args, kwargs):
    main = sys.modules["__main__"]
    is_in_no_file = not getattr(main, "__file__", None) and not getattr(main, "__spec__", None)
    if getattr(fn, "__module__", None) == "__main__" and is_in_no_file:
        raise TypeError(
            "tidemark.run_isolated: %s is in no file, so that a new process cannot import it."
            " Put it into a module" % name
        )
    preparation = spawn.get_preparation_data(name)
    del preparation["authkey"]
    try:
        context = (preparation, os.getpid())
        parts = (preparation["sys_path"], _job_main, context, (fn, args, kwargs))
        return b"".join(pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts)
    except Exception as error:
        raise TypeError(
            "tidemark.run_isolated cannot send %s to a new process (%s). The function has to be at"
            " the top level of a module, and pickle must know its arguments" % (name, error)
        ) from error


def _running_of(session, family):
    """What still runs of a session without its leader, or of no session (None), and of other processes
    that were seen: start times by pid."""
    running = {}
    for pid in {int(name) for name in os.listdir("/proc") if name.isdigit()} - {session}:
        try:
            fields = tidemark._stat_of(pid)
        except OSError:
            continue  # it has exited
        start = int(fields[tidemark._START])
        is_one = int(fields[tidemark._SESSION]) == session or family.get(pid) == start
        if is_one and fields[tidemark._STATE] not in b"ZX":
            running[pid] = start
    return running


def _is_resource_tracker(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def _end_processes(session, family):
    """Ends what a job left. Resource trackers ignore SIGTERM: when all others are gone, they remove
    the shared memory of the job and exit."""
    for number, spares_trackers in (
        (signal.SIGTERM, False),
        (signal.SIGKILL, True),
        (signal.SIGKILL, False),
    ):
        for _ in range(_TIDY_UP_LOOKS):
            left = _running_of(session, family)
            if not left:
                return
            family.update(left)
            for pid, start in left.items():
                if not spares_trackers or not _is_resource_tracker(pid):
                    _signal_process(pid, start, number)
            time.sleep(_WATCH_EVERY_S)


def _remove_markers_of(family):
    """Removes the marker files of processes that could not."""
    try:
        directory, _ = tidemark._open_directory()
    except OSError:
        return
    prefixes = tuple("%d-%s-" % process for process in family.items())
    for name in os.listdir(directory):
        if name.startswith(prefixes):
            try:
                os.unlink(name, dir_fd=directory)
            except OSError:
                pass  # somebody else was faster
    os.close(directory)


def _cancel_jobs_at_exit():
    for job in list(_running_jobs):
        job.cancel()
    for job in list(_running_jobs):
        job._ended.wait(job._grace_s + 10)


atexit.register(_cancel_jobs_at_exit)
os.register_at_fork(after_in_child=_running_jobs.clear)


def run_isolated(fn, *args, on_progress=None, grace_s=10.0, **kwargs):
    """Runs ``fn(*args, **kwargs)`` in a new process: its memory goes back to the system with it, and
    its crash is not ours. Returns the job at once: ``.result(timeout)``, ``.cancel()``, ``.state``,
    ``.error``, ``.progress`` and ``.memory``. ``on_progress`` is called in a thread, with a dict of
    what the job tells by progress(), step(), epoch() and phase(). A job that still runs when this
    process exits is cancelled."""
    if getattr(process.current_process(), "_inheriting", False):
        raise RuntimeError(
            "tidemark.run_isolated was called while a new process imports the main module. A script"
            " that calls it needs `if __name__ == '__main__':` around what it does"
        )
    return _Job(fn, args, kwargs, on_progress, grace_s)
