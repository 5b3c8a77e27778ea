# SPDX-License-Identifier: Apache-2.0
"""What DevTools of Chromium make of the heap snapshots that `tidemark owners` writes.

The code of DevTools itself loads two snapshots of one job: Comparison has to count what the job has
kept between them, and Retainers have to lead from that to the variable of the module.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from bars import Bars

SHAPES = pathlib.Path(__file__).resolve().parents[1] / "programs/owners/shapes.py"
PYTHON = "/usr/bin/python3"
DEVTOOLS = "devtools://devtools/bundled/"
RATE = 200
BETWEEN_S = 3
PART_BYTES = 4 << 20
TIMEOUT_S = 120

# In the page: what the worker of the memory panel does, without the panel. `texts` is filled before.
LOAD = """
globalThis.texts = {};
globalThis.load = async name => {
  const worker = await import('%sentrypoints/heap_snapshot_worker/heap_snapshot_worker.js');
  const dispatcher = new worker.HeapSnapshotWorkerDispatcher.HeapSnapshotWorkerDispatcher(() => {});
  const loader = new worker.HeapSnapshotLoader.HeapSnapshotLoader(dispatcher);
  for (const text of texts[name]) loader.write(text);
  loader.close();
  const channel = new MessageChannel();
  new worker.HeapSnapshot.SecondaryInitManager(channel.port2);
  globalThis[name] = await loader.buildSnapshot(channel.port1);
  delete texts[name];
  return {nodes: globalThis[name].nodeCount, bytes: globalThis[name].totalSize};
};
globalThis.compare = (before, after) => {
  const aggregates = before.aggregatesForDiff(after.interfaceDefinitions());
  const names = Object.assign({}, ...[before.getAggregatesByClassKey(true, 'allObjects'),
                                      after.getAggregatesByClassKey(true, 'allObjects')]);
  return Object.entries(after.calculateSnapshotDiff(1, aggregates)).map(([key, diff]) => ({
    name: names[key]?.name ?? key, added: diff.addedCount, removed: diff.removedCount,
    bytes: diff.sizeDelta, indexes: Array.from(diff.addedIndexes)}));
};
// All ways of up to so many steps, the last of which comes from a root.
globalThis.retainers = (snapshot, index, steps) => {
  const all = snapshot.createRetainingEdgesProvider(index).serializeItemsRange(0, 1000).items;
  return all.flatMap(each => {
    const way = `${each.name} in ${each.node.name}`;
    if (each.node.name === '(roots)') return [[way]];
    return steps > 1 ? retainers(snapshot, each.node.nodeIndex, steps - 1).map(rest => [way, ...rest]) : [];
  });
};
""" % DEVTOOLS


class DevTools:
    """A page of Chromium with the code of DevTools, without a window."""

    def __init__(self, folder):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        # It reads commands from 3 and answers on 4.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", "chromium", "--headless=new",
             "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}", *as_root,
             "about:blank"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._rest = b""
        self._number = 0
        target = self._call("Target.createTarget", url=DEVTOOLS + "devtools_app.html")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._wait_until_loaded()
        self.run(LOAD)

    def _wait_until_loaded(self):
        end = time.monotonic() + TIMEOUT_S
        while self.run("location.href + document.readyState") != DEVTOOLS + "devtools_app.htmlcomplete":
            if time.monotonic() > end:
                raise RuntimeError("Chromium does not open DevTools")
            time.sleep(0.1)

    def _call(self, method, session=None, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        with open(self._commands, "wb", closefd=False) as commands:
            commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def run(self, script):
        result = self._call("Runtime.evaluate", self._session, expression=script, awaitPromise=True,
                            returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def load(self, name, path):
        self.run(f"texts.{name} = [];")
        with open(path, encoding="utf-8") as text:
            while part := text.read(PART_BYTES):
                self.run(f"texts.{name}.push({json.dumps(part)});")
        return self.run(f"load({json.dumps(name)})")

    def end(self):
        self._call("Browser.close")
        self._process.wait(TIMEOUT_S)
        os.close(self._commands)
        os.close(self._answers)


class StoppedJob:
    """One that keeps a record in each step, and stands still where it is looked at."""

    def __init__(self, folder):
        self._log = folder / "steps"
        self._log.touch()
        self._process = subprocess.Popen(
            [PYTHON, SHAPES, "module_list", "--rate", str(RATE), "--log", self._log],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        while self._process.stdout.readline() not in ("ready\n", ""):
            pass
        time.sleep(0.5)

    def stop(self):
        """How many steps it has taken."""
        self._process.send_signal(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.pid}/stat")
        while stat.read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.01)
        return len(self._log.read_text().splitlines())

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def end(self):
        self._process.kill()
        self._process.communicate()


def write_snapshot(build, pid, path):
    done = subprocess.run([build / "bin/tidemark", "owners", "--pid", str(pid), "--looks", "1",
                           "--heapsnapshot", path], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S)
    if not path.exists():
        raise RuntimeError(f"no snapshot; exit status {done.returncode}: {done.stderr[-300:]}")


def two_snapshots(build, folder):
    """Their paths, and how many steps the job has taken between them."""
    job = StoppedJob(folder)
    try:
        paths = folder / "before.heapsnapshot", folder / "after.heapsnapshot"
        before = job.stop()
        write_snapshot(build, job.pid, paths[0])
        job.go_on()
        time.sleep(BETWEEN_S)
        after = job.stop()
        write_snapshot(build, job.pid, paths[1])
        return paths, after - before
    finally:
        job.end()


def check_comparison(bars, diff, steps):
    added = {each["name"]: each["added"] - each["removed"] for each in diff}
    # A step may be over and not be in the log yet; garbage of the start may have been freed.
    for name, per_step in (("dict", 1), ("list", 1), ("float", 100)):
        count = added.get(name, 0)
        bars.check(abs(count - per_step * steps) <= per_step + 20, f"Comparison: {name}",
                   f"{count} more; the job has kept {per_step * steps}")
    wrong = {each["name"]: (each["added"], each["removed"]) for each in diff if each["removed"] > 20}
    bars.check(not wrong, "Comparison: what is in both is taken for the same", wrong or "it is")


def check_retainers(bars, devtools, diff):
    """The record is an element of a list, and that has a name in the module."""
    expected = ["history in dict", "__dict__ in module", "__main__ in (roots)"]
    indexes = next((each["indexes"] for each in diff if each["name"] == "dict"), [])
    some = indexes[::max(1, len(indexes) // 50)]
    ways = [devtools.run(f"retainers(after, {index}, {len(expected) + 1})") for index in some]
    found = sum(any(way[1:] == expected and way[0].endswith(" in list") for way in each) for each in ways)
    bars.check(found >= 0.9 * len(some) > 0, "Retainers",
               f"{found} of {len(some)} new records have {' <- '.join(['[*] in list'] + expected)}")


def bench_exports(build):
    bars = Bars()
    if not shutil.which("chromium"):
        print("left out: exports: there is no Chromium")
        return True
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        try:
            paths, steps = two_snapshots(build, folder)
            devtools = DevTools(folder / "profile")
            try:
                sizes = [devtools.load(name, path) for name, path in zip(("before", "after"), paths)]
                diff = devtools.run("compare(before, after)")
                bars.check(True, "DevTools load it", f"{sizes[1]['nodes']} objects, "
                           f"{sizes[1]['bytes'] / (1 << 20):.1f} MiB")
                check_comparison(bars, diff, steps)
                check_retainers(bars, devtools, diff)
            finally:
                devtools.end()
        except (RuntimeError, subprocess.TimeoutExpired) as failure:
            bars.miss("exports", failure)
    return bars.missed == 0
