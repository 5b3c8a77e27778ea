#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev build and ./dev demo build the product without the tests; ./dev test adds the tests to it.

usage: dev_builds_what_is_asked.py SOURCE_DIR
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()

# Leaves in the build folder what ./dev asks it for, and remembers how it was called.
CMAKE = """echo "cmake $*" >>calls
case $* in
  --preset*)
    mkdir -p build/release/bin
    touch build/release/build.ninja
    for word in "$@"; do case $word in -DBUILD_TESTING=*) echo "BUILD_TESTING:BOOL=${word#*=}" ;; esac; done \\
      >build/release/CMakeCache.txt
    ;;
esac"""


class Dev(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name)
        for name in ("dev", "CMakePresets.json"):
            shutil.copy(SOURCE / name, self.root / name)
        os.utime(self.root / "CMakePresets.json", (0, 0))
        self.program("tools/dpkg-query", 'for package; do :; done; echo "$package" >>packages; echo installed')
        self.program("tools/cmake", CMAKE)
        self.program("tools/ctest", 'echo "ctest" >>calls')
        self.program("build/release/bin/tidemark-harness", "")
        self.program("build/release/bin/tidemark", 'echo "tidemark $*" >>calls')

    def program(self, name, script):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def dev(self, *arguments):
        """What it called, and the packages that it asked for."""
        for log in ("calls", "packages"):
            (self.root / log).write_text("")
        environment = {**os.environ, "PATH": f"{self.root}/tools:{os.environ['PATH']}"}
        done = subprocess.run([self.root / "dev", *arguments], env=environment, cwd=self.root,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ((self.root / "calls").read_text().splitlines(),
                (self.root / "packages").read_text().split())

    BUILD_PRODUCT = "cmake --build --preset release --target tidemark_product"

    def test_demo_builds_the_product_without_what_tests_need(self):
        calls, packages = self.dev("demo", "leak")

        self.assertEqual(calls, ["cmake --preset release -DBUILD_TESTING=OFF", self.BUILD_PRODUCT,
                                 "tidemark demo leak"])
        self.assertIn("libsqlite3-dev", packages)
        self.assertNotIn("libgtest-dev", packages)

    def test_build_after_demo_configures_nothing_again(self):
        self.dev("demo")

        self.assertEqual(self.dev("build")[0], [self.BUILD_PRODUCT])

    def test_tests_are_added_to_the_same_folder_and_stay(self):
        self.dev("build")

        calls, packages = self.dev("test")
        self.assertEqual(calls, ["cmake --preset release -DBUILD_TESTING=ON",
                                 "cmake --build --preset release", "ctest"])
        self.assertIn("libgtest-dev", packages)
        self.assertEqual(self.dev("build")[0], [self.BUILD_PRODUCT])

        os.utime(self.root / "CMakePresets.json")  # it has changed: configure again
        self.assertEqual(self.dev("build")[0],
                         ["cmake --preset release -DBUILD_TESTING=ON", self.BUILD_PRODUCT])


if __name__ == "__main__":
    unittest.main()
