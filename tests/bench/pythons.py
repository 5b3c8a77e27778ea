# SPDX-License-Identifier: Apache-2.0
"""The interpreters that the benchmarks run: those of this machine, and those below the root folders of
newer releases that debian_roots.sh has made."""

import contextlib
import glob
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing

FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/*/bin", "~/.pyenv/versions/*/bin")
ASK_VERSION = "import platform; print(platform.python_version())"

# Becomes a program below another root folder, with the same process id. ROOT HIDDEN BUILD PROGRAM...:
# hidden, it has a /dev/shm of its own and sees nothing of ours; else it sees the build folder, under
# the same name, and our /dev/shm. The mounts are in a namespace of its own and end with it.
BELOW_ROOT = r"""
root=$1 hidden=$2 build=$3
shift 3
mount -t proc proc "$root/proc" || exit 125
if [ "$hidden" = 1 ]; then
  mount --bind /dev "$root/dev" && mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm"
else
  mount --rbind /dev "$root/dev" && mkdir -p "$root$build" && mount --bind "$build" "$root$build"
fi || exit 125
exec chroot "$root" "$@"
"""


class Python(typing.NamedTuple):
    """An interpreter; `root`: below which folder its system is, "" for this one."""

    path: str  # in its own system
    version: str
    root: str = ""

    def __str__(self):
        return f"Python {self.version}" + (f" of {os.path.basename(self.root)}" if self.root else "")

    def command(self, arguments, build=None, variables=None):
        """Runs it. Of another system: `build` is the folder that it is to see of ours, None: nothing."""
        words = ["/usr/bin/env", *(f"{name}={value}" for name, value in (variables or {}).items()),
                 self.path, *map(str, arguments)]
        if not self.root:
            return words
        return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", BELOW_ROOT, "sh", self.root,
                "1" if build is None else "0", str(build or ""), *words]

    def can(self, code):
        """Whether it runs this to its end."""
        return subprocess.run(self.command(["-c", code]), capture_output=True, check=False,
                              stdin=subprocess.DEVNULL).returncode == 0

    @contextlib.contextmanager
    def folder(self):
        """A folder for files that it is to read and write, as we see it."""
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-",
                                         dir=f"{self.root}/tmp" if self.root else None) as folder:
            yield pathlib.Path(folder)

    def copy(self, path, folder):
        """A copy of a file of ours in such a folder, as the interpreter sees it."""
        return self.inside(shutil.copy(path, folder))

    def inside(self, path):
        """How the interpreter calls a path of ours."""
        return str(path)[len(self.root):]


def of_this_machine():
    """By their real paths; 3.9 and later."""
    paths = {os.path.realpath(path) for folder in FOLDERS
             for path in glob.glob(os.path.expanduser(f"{folder}/python3.*"))
             if re.fullmatch(r"python3\.(9|1\d)", os.path.basename(path))}
    return [python for path in paths for python in asked(path)]


def of_roots(folder):
    """Below the root folders in this one; None: there are none."""
    roots = folder and sorted(path.parents[2] for path in pathlib.Path(folder).glob("*/usr/bin/python3"))
    if not roots:
        return []
    if os.geteuid() != 0:
        print(f"left out: interpreters below {folder}, as only root can call chroot")
        return []
    return [python for root in roots for python in asked("/usr/bin/python3", str(root.resolve()))]


def asked(path, root=""):
    """The interpreter in a list; an empty one where it does not run."""
    run = subprocess.run(Python(path, "", root).command(["-c", ASK_VERSION]), capture_output=True,
                         text=True, check=False, stdin=subprocess.DEVNULL)
    if run.returncode != 0 and root:
        print(f"left out: the Python below {root} does not run: {run.stderr.strip()[-200:]}")
    return [Python(path, run.stdout.strip(), root)] if run.returncode == 0 else []


def found(roots):
    """All of them, by version. `roots`: the folder of the root folders."""
    return sorted(of_this_machine() + of_roots(roots),
                  key=lambda python: (list(map(int, re.findall(r"\d+", python.version))), python.root))
