#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libtorch is taken from where it is: cmake follows TIDEMARK_TORCH_DIR, ./dev takes a wheel.

usage: torch_is_found.py SOURCE_DIR CMAKE
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(2)
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
# No compiler: nothing is built.
PROJECT = f"""cmake_minimum_required(VERSION 3.20)
project(looks_for_torch NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include({SOURCE}/cmake/TidemarkTorch.cmake)
"""


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class TorchDir(InAFolder):
    def fake_torch(self, name):
        for file in ("include/ATen/ATen.h", "include/torch/csrc/api/include/torch/torch.h",
                     "lib/libtorch.so", "lib/libtorch_cpu.so", "lib/libc10.so"):
            self.write(f"{name}/{file}")
        return self.root / name

    def configure(self, torch_dir):
        self.write("CMakeLists.txt", PROJECT)
        done = subprocess.run([CMAKE, "-S", self.root, "-B", self.root / "build",
                               f"-DTIDEMARK_TORCH_DIR={torch_dir}"],
                              check=True, capture_output=True, text=True)
        return done.stdout

    def test_is_followed_also_where_another_was_found_before(self):
        one, two = self.fake_torch("one"), self.fake_torch("two")

        self.assertIn(f"{one}/lib/libtorch_cpu.so", self.configure(one))
        self.assertIn(f"{two}/lib/libtorch_cpu.so", self.configure(two))

    def test_is_named_when_it_holds_none(self):
        self.configure(self.fake_torch("one"))

        self.assertIn(f"TIDEMARK_TORCH_DIR is {self.root}/nothing", self.configure(
            self.root / "nothing"))


class Dev(InAFolder):
    """./dev deps where every package is installed but libtorch-dev, and apt-get fails."""

    def deps(self, torch_module, headers=False):
        self.stand_in("dpkg-query", '[ "$3" = libtorch-dev ] || echo installed')
        self.stand_in("apt-get", f"echo \"$@\" >>{self.root}/asked; exit 1")
        self.stand_in("sudo", 'exec "$@"')
        self.write("modules/torch/__init__.py", torch_module)
        if headers:
            self.write("modules/torch/include/ATen/ATen.h", "")
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                       "PYTHONPATH": f"{self.root}/modules"}
        return subprocess.run([SOURCE / "dev", "deps"], env=environment, capture_output=True,
                              text=True)

    def stand_in(self, name, script):
        self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n").chmod(0o700)

    def test_takes_the_torch_of_a_wheel(self):
        done = self.deps("def compiled_with_cxx11_abi(): return True", headers=True)

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.root / "asked").exists())

    def test_takes_no_torch_without_headers(self):
        done = self.deps("def compiled_with_cxx11_abi(): return True")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("libtorch-dev", (self.root / "asked").read_text())

    def test_goes_on_without_torch(self):
        done = self.deps("raise ImportError")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("install -q -y --no-install-recommends libtorch-dev",
                      (self.root / "asked").read_text())
        self.assertIn("the trainer harness is not built", done.stderr)


if __name__ == "__main__":
    unittest.main()
