# SPDX-License-Identifier: Apache-2.0
"""Tests of api/tidemark_jobs.py: `python3 tidemark_jobs_test.py [SUITE]`.

Each test runs a script, because a job imports the script that started it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
API = os.path.join(HERE, "..", "..", "..", "api")
MIB = 1 << 20
TIMEOUT_S = 240

# What the scripts below start with. Its functions are the jobs.
PRELUDE = """
import multiprocessing, os, signal, subprocess, sys, threading, time
sys.dont_write_bytecode = True
sys.path.insert(0, %r)
import tidemark

def wait_for(condition):
    while not condition():
        time.sleep(0.005)

def end_of(job):
    try:
        return job.result(120)
    except Exception as error:
        return "%%s: %%s" %% (type(error).__name__, error)

def processes_below(pid):
    import tidemark_memory
    return tidemark_memory.descendants_of(pid)

def runs(pid):
    try:
        with open("/proc/%%d/stat" %% pid) as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

def allocate(mib, gate):
    memory = bytearray(mib << 20)
    memory[::4096] = b"x" * len(memory[::4096])
    tidemark.progress(step=1)
    wait_for(lambda: os.path.exists(gate))
    return len(memory)

def hang(ignores_sigterm=False):
    if ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        tidemark.progress(started=True)
        while True:
            time.sleep(0.01)
    finally:
        tidemark.progress(tidied=True)
""" % API


class JobTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, jobs, main, guard="if __name__ == '__main__':\n"):
        path = os.path.join(self.folder, "script.py")
        main = textwrap.dedent(main)
        with open(path, "w", encoding="utf-8") as file:
            body = textwrap.indent(main, "    ") if guard else main
            file.write(PRELUDE + textwrap.dedent(jobs) + "\n" + guard + body)
        return subprocess.Popen(
            [sys.executable, path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            cwd=self.folder,
        )

    def run_script(self, jobs, main, **options):
        """What the script printed."""
        with self.start(jobs, main, **options) as script:
            try:
                out = script.communicate(timeout=TIMEOUT_S)[0].strip()
            except subprocess.TimeoutExpired:
                script.kill()
                raise
            self.status = script.returncode
        return out

    def run_well(self, jobs, main):
        out = self.run_script(jobs, main)
        self.assertEqual(self.status, 0, out)
        return out


class Memory(JobTest):
    def test_three_jobs_return_to_the_baseline(self):
        rows = eval(self.run_well("", """
            rows = []
            for number in range(3):
                gate = "gate%d" % number
                job = tidemark.run_isolated(allocate, 100, gate=gate)
                wait_for(lambda: (job.memory["job_peak_bytes"] or 0) > 100 << 20)
                open(gate, "w").close()
                rows.append((job.result(), job.state, *job.memory.values()))
            print(rows)
        """))
        for result, state, before, peak, after in rows:
            self.assertEqual((result, state), (100 * MIB, "done"))
            self.assertLess(peak, 150 * MIB)
            self.assertLess(abs(after - rows[0][2]), 3 * MIB)

    def test_ten_jobs_in_a_row_leave_nothing_in_the_parent(self):
        first, last = eval(self.run_well("def work(n): return n * n", """
            def left():
                return (job.memory["after_bytes"], len(os.listdir("/proc/self/fd")),
                        threading.active_count(), processes_below(os.getpid()))
            rows = []
            for number in range(10):
                job = tidemark.run_isolated(work, number)
                assert job.result() == number ** 2
                wait_for(lambda: threading.active_count() == 1)
                rows.append(left())
            print((rows[0], rows[-1]))
        """))
        self.assertLess(last[0] - first[0], MIB)
        self.assertEqual(last[1:], first[1:])
        self.assertEqual(last[2:], (1, []))

    def test_counts_shared_pages_of_forked_workers_once(self):
        peak = int(self.run_well("""
            def fork_workers():
                memory = bytearray(b"x" * (64 << 20))
                pipes = [os.pipe() for _ in range(3)]
                for r, w in pipes:
                    if os.fork() == 0:
                        os.close(w)
                        os.read(r, 1)
                        os._exit(0)
                tidemark.progress(step=1)
                wait_for(lambda: os.path.exists("gate"))
        """, """
            job = tidemark.run_isolated(fork_workers)
            wait_for(lambda: job.progress)
            for _ in range(2):  # the first may have begun before all workers were there
                job.memory["job_peak_bytes"] = 0
                wait_for(lambda: job.memory["job_peak_bytes"])
            print(job.memory["job_peak_bytes"])
            open("gate", "w").close()
            job.result()
        """))
        self.assertGreater(peak, 64 * MIB)
        self.assertLess(peak, 2 * 64 * MIB)

    def test_the_job_is_one_line(self):
        self.assertRegex(
            self.run_well("def quick(): pass", """
                job = tidemark.run_isolated(quick)
                job.result()
                print(job)
            """),
            r"^<job quick: done, [\d.]+ MiB -> [\d.?]+( MiB)? in the job -> [\d.]+ MiB>$")


class Progress(JobTest):
    def test_comes_from_progress_and_markers(self):
        self.assertEqual(
            self.run_well("""
                def train():
                    tidemark.epoch(1)
                    tidemark.progress(step=7, loss=0.5)
                    with tidemark.phase("eval"):
                        tidemark.progress(accuracy=0.9)
                    tidemark.step(8)
            """, """
                seen = []
                job = tidemark.run_isolated(train, on_progress=seen.append)
                job.result()
                print([fields["loss"] for fields in seen if "loss" in fields], sorted(job.progress.items()))
            """),
            "[0.5] [('accuracy', 0.9), ('epoch', 1), ('loss', 0.5), ('phase', None), ('step', 8)]")

    def test_each_call_of_progress_arrives_in_order(self):
        self.assertEqual(
            self.run_well("""
                def train():
                    for n in range(20):
                        tidemark.progress(step=n, message="line %d" % n)
            """, """
                seen = []
                tidemark.run_isolated(train, on_progress=seen.append).result()
                print(seen == [{"step": n, "message": "line %d" % n} for n in range(20)])
            """),
            "True")

    def test_a_parent_that_does_not_listen_holds_up_no_training(self):
        steps, last = eval(self.run_well("""
            def train():
                for n in range(5000):
                    tidemark.progress(step=n, message="x" * 100)
                open("trained", "w").close()
        """, """
            seen = []
            def on_progress(fields):
                if not seen:
                    wait_for(lambda: os.path.exists("trained"))
                seen.append(fields["step"])
            job = tidemark.run_isolated(train, on_progress=on_progress)
            job.result()
            print((len(seen), seen[-1]))
        """))
        self.assertLessEqual(steps, 5000)
        self.assertEqual(last, 4999)

    def test_takes_numbers_of_other_types_and_refuses_what_is_too_large(self):
        self.assertEqual(
            self.run_well("""
                class Scalar:
                    def item(self): return 0.25
                def train():
                    tidemark.progress(loss=Scalar(), where=object)
                    tidemark.progress(image="x" * 5000)
                    tidemark.progress(by_place={(1, 2): 3})
                    tidemark.progress(step=4)
            """, """
                problems = []
                def on_progress(fields): problems.append(fields.get("problem"))
                job = tidemark.run_isolated(train, on_progress=on_progress)
                job.result()
                print(*problems, sep="\\n")
                print([job.progress[name] for name in ("loss", "where", "step")])
            """),
            "None\nprogress was not sent: it has more than 4 KiB\nprogress was not sent: keys must be"
            " str, int, float, bool or None, not tuple\nNone\n[0.25, \"<class 'object'>\", 4]")

    def test_a_callback_that_raises_ends_nothing(self):
        out = self.run_well("def train(): tidemark.progress(step=1); return 5", """
            def on_progress(fields): raise KeyError("mine")
            print(tidemark.run_isolated(train, on_progress=on_progress).result())
        """)
        self.assertIn("on_progress of job train: Traceback", out)
        self.assertIn("KeyError: 'mine'", out)
        self.assertTrue(out.endswith("5"), out)

    def test_elsewhere_it_marks_the_step(self):
        self.assertEqual(
            self.run_well("", """
                tidemark.progress(step=3, loss=0.5)
                tidemark.progress(step="many")
                print(bool(tidemark._ring))
            """),
            "True")

    def test_output_of_the_job_is_ours(self):
        self.assertEqual(
            self.run_well("def talk(): print('err', file=sys.stderr); print('out', flush=True)", """
                tidemark.run_isolated(talk).result()
            """).split(),
            ["err", "out"])


class Cancel(JobTest):
    def test_lets_the_job_tidy_up(self):
        self.assertEqual(
            self.run_well("", """
                job = tidemark.run_isolated(hang)
                wait_for(lambda: job.progress)
                job.cancel()
                job.cancel()
                print(end_of(job), job.state, job.progress, job.exit_code, runs(job.pid))
                job.cancel()
            """),
            "JobCancelled: job hang was cancelled cancelled {'started': True, 'tidied': True} 143 False")

    def test_kills_a_job_that_does_not_end(self):
        self.assertEqual(
            self.run_well("", """
                job = tidemark.run_isolated(hang, ignores_sigterm=True, grace_s=0.05)
                wait_for(lambda: job.progress)
                job.cancel()
                print(end_of(job), job.state, job.signal, runs(job.pid))
            """),
            "JobCancelled: job hang was cancelled cancelled 9 False")

    def test_kills_it_also_while_on_progress_does_not_return(self):
        self.assertEqual(
            self.run_well("", """
                ended = threading.Event()
                job = tidemark.run_isolated(hang, True, grace_s=0.05, on_progress=lambda _: ended.wait())
                wait_for(lambda: job.progress)
                job.cancel()
                wait_for(lambda: not runs(job.pid))
                ended.set()
                print(end_of(job))
            """),
            "JobCancelled: job hang was cancelled")

    def test_a_job_that_has_ended_stays_as_it_is(self):
        self.assertEqual(
            self.run_well("def fail(): raise KeyError(1)", """
                job = tidemark.run_isolated(fail)
                print(end_of(job))
                job.cancel()
                print(end_of(job), job.state)
            """),
            "KeyError: 1\nKeyError: 1 failed")

    def test_a_job_that_has_returned_is_done(self):
        self.assertEqual(
            self.run_well("""
                def stubborn():
                    try:
                        hang()
                    except SystemExit:
                        return "checkpoint"
            """, """
                job = tidemark.run_isolated(stubborn)
                wait_for(lambda: job.progress)
                job.cancel()
                print(end_of(job), job.state)
            """),
            "checkpoint done")

    def test_waiting_has_a_timeout(self):
        self.assertEqual(
            self.run_well("", """
                job = tidemark.run_isolated(hang)
                try:
                    job.result(timeout=0.01)
                except TimeoutError as error:
                    print(error, job.state)
                job.cancel()
                end_of(job)
            """),
            "job hang still runs after 0.01 s running")


class Failure(JobTest):
    def test_exceptions_are_raised_with_their_traceback(self):
        self.assertEqual(
            self.run_well("""
                def deep(): raise ValueError("bad batch")
                def train(): deep()
            """, """
                job = tidemark.run_isolated(train)
                try:
                    job.result()
                except ValueError as error:
                    text = str(error.__cause__)
                    print(error, job.state, job.error, job.exit_code)
                    print("in train" in text, "in deep" in text, "tidemark_jobs" in text)
            """),
            "bad batch failed ValueError: bad batch 1\nTrue True False")

    def test_exceptions_that_cannot_be_sent_keep_their_text(self):
        self.assertEqual(
            self.run_well("""
                class Odd(Exception):
                    def __init__(self, one, two): super().__init__("odd")
                class Locked(Exception):
                    def __reduce__(self): raise TypeError
                def train(kind): raise Odd(1, 2) if kind == "odd" else Locked("locked")
                def leave(): raise KeyboardInterrupt
            """, """
                print(end_of(tidemark.run_isolated(train, "odd")))
                print(end_of(tidemark.run_isolated(train, "locked")))
                print(end_of(tidemark.run_isolated(leave)))
            """),
            "JobError: job train: __main__.Odd: odd\n"
            "JobError: job train: __main__.Locked: locked\n"
            "JobError: job leave: KeyboardInterrupt".replace("__main__", "__mp_main__"))

    def test_a_failure_imports_nothing_into_the_parent(self):
        self.assertEqual(
            self.run_well("""
                def train():
                    import xml.dom
                    raise xml.dom.SyntaxErr("bad")
            """, """
                print(end_of(tidemark.run_isolated(train)), "xml.dom" in sys.modules)
            """),
            "JobError: job train: xml.dom.SyntaxErr: bad False")

    def test_crashes_are_named(self):
        self.assertEqual(
            self.run_well("""
                def segfault(): os.kill(os.getpid(), signal.SIGSEGV)
                def leave(code): os._exit(code)
                def end(code): sys.exit(code)
            """, """
                for fn, args in ((segfault, ()), (leave, (5,)), (leave, (0,)), (end, (3,)), (end, (0,))):
                    job = tidemark.run_isolated(fn, *args)
                    print(end_of(job), job.state, job.signal)
                print("alive")
            """),
            "JobError: job segfault: killed by signal 11 (SIGSEGV) failed 11\n"
            "JobError: job leave: ended with exit code 5 before it returned failed None\n"
            "JobError: job leave: ended with exit code 0 before it returned failed None\n"
            "JobError: job end: ended with exit code 3 before it returned failed None\n"
            "None done None\nalive")

    def test_a_kill_may_be_the_kernels(self):
        out = self.run_well("def train(): os.kill(os.getpid(), signal.SIGKILL)", """
            import tidemark_jobs
            print(end_of(tidemark.run_isolated(train)))
            for before, after in ((None, 1), (1, 1), (1, 2)):
                print(tidemark_jobs._signal_in_words(9, before, after))
        """).splitlines()
        self.assertTrue(out[0].startswith("JobError: job train: killed by signal 9 (SIGKILL), "), out)
        self.assertEqual(out[1:], [
            "killed by signal 9 (SIGKILL), perhaps by the kernel's OOM killer",
            "killed by signal 9 (SIGKILL), not by the kernel's OOM killer",
            "killed by signal 9 (SIGKILL), probably by the kernel's OOM killer, which has just killed"
            " a process",
        ])

    def test_what_cannot_be_sent_is_said_before_anything_starts(self):
        out = self.run_well("", """
            def inner(): pass
            for fn, args in ((lambda: 1, ()), (print, (threading.Lock(),))):
                try:
                    tidemark.run_isolated(fn, *args)
                except TypeError as error:
                    print(error)
            print(processes_below(os.getpid()))
        """).splitlines()
        self.assertIn("tidemark.run_isolated cannot send <lambda> to a new process (", out[0])
        self.assertIn("The function has to be at the top level of a module", out[0])
        self.assertIn("cannot send print to a new process (cannot pickle '_thread.lock'", out[1])
        self.assertEqual(out[2], "[]")

    def test_a_result_that_cannot_be_sent_is_named(self):
        self.assertIn(
            "TypeError: the result cannot be sent to the parent: cannot pickle",
            self.run_well("def make(): return threading.Lock()", """
                print(end_of(tidemark.run_isolated(make)))
            """))

    def test_a_function_in_no_file_is_refused(self):
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + "\ntidemark.run_isolated(hang)"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=60)
        self.assertIn("hang is in no file, so that a new process cannot import it", done.stdout)

    def test_a_script_without_a_guard_ends_with_a_clear_error(self):
        out = self.run_script("def train(): pass\n", """
            print("imported", flush=True)
            tidemark.run_isolated(train).result()
        """, guard="")
        self.assertNotEqual(self.status, 0)
        self.assertEqual(out.count("imported"), 2)  # the script, and once its job
        self.assertIn("A script that calls it needs `if __name__ == '__main__':`", out.splitlines()[-1])

    def test_no_pool_either_starts_without_a_guard(self):
        out = self.run_script("def train(): pass\n", """
            print("imported", flush=True)
            if "job" in sys.orig_argv if hasattr(sys, "orig_argv") else __name__ != "__main__":
                multiprocessing.get_context("spawn").Process(target=train).start()
            tidemark.run_isolated(train).result()
        """, guard="")
        self.assertNotEqual(self.status, 0)
        self.assertEqual(out.count("imported"), 2)


class NothingIsLeft(JobTest):
    JOB = """
        def leave(how, is_stubborn):
            from multiprocessing import shared_memory
            segment = shared_memory.SharedMemory(create=True, size=1 << 20)
            forked = os.fork()
            if forked == 0:
                if is_stubborn:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                while True:
                    time.sleep(1)
            command = [sys.executable, "-c", "import time; time.sleep(300)"]
            detached = subprocess.Popen(command, start_new_session=True)
            tidemark.step(1)
            tidemark.progress(pids=[os.getpid(), forked, detached.pid], segment=segment.name)
            wait_for(lambda: os.path.exists("gate"))
            if how == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
    """
    MAIN = """
        import tidemark_jobs
        tidemark_jobs._TIDY_UP_LOOKS = %r
        job = tidemark.run_isolated(leave, %r, %r)
        wait_for(lambda: "pids" in job.progress)
        pids = job.progress["pids"]
        measure = tidemark_jobs._Job._measure
        def measure_and_open(self, family):
            measure(self, family)
            if set(pids) <= set(family):
                open("gate", "w").close()
        tidemark_jobs._Job._measure = measure_and_open
        end_of(job)
        wait_for(lambda: not any(runs(pid) for pid in pids))
        marked = os.listdir("/dev/shm/tidemark-%%d" %% os.geteuid())
        print([name for name in marked if name.startswith("%%d-" %% job.pid)],
              os.path.exists("/dev/shm/" + job.progress["segment"]))
    """

    def test_of_a_job_that_crashes(self):
        out = self.run_well(self.JOB, self.MAIN % (9999, "crash", False))
        self.assertEqual(out.splitlines()[-1], "[] False")  # Python says what it had to remove

    def test_of_a_job_that_returns(self):
        out = self.run_well(self.JOB, self.MAIN % (9999, "return", False))
        self.assertEqual(out.splitlines()[-1], "[] False")

    def test_of_workers_that_ignore_sigterm(self):
        out = self.run_well(self.JOB, self.MAIN % (100, "crash", True))
        self.assertEqual(out.splitlines()[-1], "[] False")

    def test_of_jobs_that_run_when_the_parent_exits(self):
        out = self.run_well("""
            def train():
                try:
                    hang()
                finally:
                    print("tidied", os.getpid(), flush=True)
        """, """
            job = tidemark.run_isolated(train)
            wait_for(lambda: job.progress)
            print("pid", job.pid)
        """)
        lines = dict(line.split() for line in out.splitlines())
        self.assertEqual(lines["pid"], lines["tidied"])
        self.assertFalse(os.path.exists("/proc/" + lines["pid"]))

    def test_of_jobs_whose_parent_is_killed(self):
        with self.start("", """
            job = tidemark.run_isolated(hang, True)
            wait_for(lambda: job.progress)
            print(job.pid, flush=True)
            time.sleep(1000)
        """) as script:
            pid = int(script.stdout.readline())
            script.send_signal(signal.SIGKILL)
            deadline = time.monotonic() + TIMEOUT_S
            while os.path.exists("/proc/%d" % pid) and time.monotonic() < deadline:
                with open("/proc/%d/stat" % pid) as file:
                    if file.read().rpartition(")")[2].split()[0] in "ZX":
                        break
            self.assertLess(time.monotonic(), deadline)

    def test_of_a_thread_that_started_a_job_and_ended(self):
        self.assertEqual(
            self.run_well("""
                def wait(): wait_for(lambda: os.path.exists("gate")); return "lives"
            """, """
                jobs = []
                starter = threading.Thread(target=lambda: jobs.append(tidemark.run_isolated(wait)))
                starter.start()
                starter.join()
                open("gate", "w").close()
                print(end_of(jobs[0]))
            """),
            "lives")


class Together(JobTest):
    def test_several_jobs_run_at_once(self):
        self.assertEqual(
            self.run_well("""
                def meet(name, others):
                    open(name, "w").close()
                    wait_for(lambda: all(os.path.exists(other) for other in others))
                    return name
            """, """
                jobs = [tidemark.run_isolated(meet, name, "abc") for name in "abc"]
                print([end_of(job) for job in jobs])
            """),
            "['a', 'b', 'c']")

    def test_a_job_runs_a_job(self):
        self.assertEqual(
            self.run_well("""
                def inner(n): return n + 1
                def outer(n): return tidemark.run_isolated(inner, n).result() * 10
            """, """
                print(end_of(tidemark.run_isolated(outer, 1)))
            """),
            "20")

    def test_a_job_has_workers_of_multiprocessing(self):
        self.assertEqual(
            self.run_well("""
                def square(n): return n * n
                def pool():
                    with multiprocessing.get_context("spawn").Pool(2) as workers:
                        return workers.map(square, range(4))
            """, """
                print(end_of(tidemark.run_isolated(pool)))
            """),
            "[0, 1, 4, 9]")

    def test_workers_that_a_job_forks_end_by_sigterm(self):
        self.assertEqual(
            self.run_well("""
                def fork_a_worker():
                    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(99,))
                    worker.start()
                    worker.terminate()
                    worker.join()
                    return worker.exitcode
            """, """
                print(end_of(tidemark.run_isolated(fork_a_worker)))
            """),
            "-15")

    def test_large_arguments_and_results_pass(self):
        self.assertEqual(
            self.run_well("def double(data): return data + data", """
                print(len(end_of(tidemark.run_isolated(double, b"x" * (8 << 20)))) >> 20)
            """),
            "16")

    def test_a_program_that_waits_for_all_children_is_told(self):
        self.assertEqual(
            self.run_well("def leave(): os._exit(0)", """
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel discards how they ended
                print(end_of(tidemark.run_isolated(leave)))
            """),
            "JobError: job leave: ended, and how is unknown: this program waits for all of its children")


class Torch(JobTest):
    def test_its_memory_goes_with_the_job(self):
        loss, before, peak, after, is_imported = eval(self.run_well("""
            def train(gate):
                import torch
                from torch.utils.data import DataLoader
                model = torch.nn.Linear(8, 1)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                cache = []
                for n, batch in enumerate(DataLoader(torch.ones(64, 8), batch_size=8, num_workers=2)):
                    loss = model(batch).square().mean()
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    cache.append(torch.ones(2048, 2048))
                    tidemark.progress(step=n + 1, loss=loss)
                wait_for(lambda: os.path.exists(gate))
                return loss.item()
        """, """
            job = tidemark.run_isolated(train, "gate")
            wait_for(lambda: (job.memory["job_peak_bytes"] or 0) > 128 << 20)
            open("gate", "w").close()
            loss = job.result()
            assert job.progress == {"step": 8, "loss": loss}, job.progress
            print((loss, *job.memory.values(), "torch" in sys.modules))
        """))
        self.assertGreaterEqual(loss, 0)
        self.assertLess(abs(after - before), 3 * MIB)
        self.assertFalse(is_imported)


def has_torch():
    command = [sys.executable, "-c", "import torch"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["Torch"] and not has_torch():
        print("/usr/bin/python3 has no torch")
        sys.exit(77)
    unittest.main()
