# SPDX-License-Identifier: MIT
"""What the emulator's page shows runs as it stands there, each part where its packages are:
EMU_PYTHON names a Python that has tinygrad, Triton and pytest (this one otherwise)."""
import functools
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../README.md")
COMMAND = os.path.abspath(os.path.join(HERE, "../nvfp4emu"))
MODULE = os.path.abspath(os.path.join(HERE, "../python"))
PYTHON = os.environ.get("EMU_PYTHON", sys.executable)


def block(name):
    with open(PAGE) as file:
        found = re.search(rf"<!-- run: {name} -->\n```\w+\n(.*?)```", file.read(), re.S)
    return found[1]


@functools.cache
def has(package):
    return subprocess.run([PYTHON, "-c", f"import importlib.util as u; exit(not u.find_spec("
                           f"{package!r}))"]).returncode == 0


def needs(*packages):
    missing = [each for each in packages if not has(each)]
    return unittest.skipIf(missing, f"EMU_PYTHON has no {', '.join(missing)}")


class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        tools = os.path.join(self.folder, "bin")
        os.mkdir(tools)
        os.symlink(COMMAND, os.path.join(tools, "nvfp4emu"))
        with open(os.path.join(tools, "python"), "w") as file:
            file.write(f"#!/bin/sh\nexec '{PYTHON}' \"$@\"\n")
        os.chmod(file.name, 0o755)
        self.environment = {
            **os.environ, "PATH": tools + ":" + os.environ["PATH"], "PYTHONPATH": MODULE,
            "NVFP4EMU_LIBRARY": os.path.join(os.environ["NVFP4_BUILD"], "emulator")}

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def run_here(self, *command):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @needs("tinygrad")
    def test_tinygrad(self):
        self.assertEqual(self.run_here("sh", "-ec", block("tinygrad")).strip(), "[4.0, 5.0]")

    @needs("triton", "numpy")
    def test_triton(self):
        self.write("kernel.py", block("triton"))
        self.assertEqual(self.run_here("python", "kernel.py").strip(), "[] [0. 2. 4.]")

    @needs("triton", "numpy", "pytest")
    def test_pytest(self):
        self.write("kernel.py", block("triton"))
        self.write("test_kernel.py", block("pytest"))
        said = self.run_here("python", "-m", "pytest", "-q", "-p", "nvfp4emu._pytest")
        self.assertIn("1 passed", said)

    @needs("triton")
    def test_ctypes(self):
        self.write("kernel.py", block("ctypes"))
        said = self.run_here("nvfp4emu", "run", "--device", "H200", "python", "kernel.py")
        self.assertEqual(said.strip(), "True")

    # tinygrad in two, Triton and pytest in five.
    def test_the_first_parts_stay_short(self):
        for name, lines in (("tinygrad", 2), ("triton", 5), ("pytest", 5)):
            self.assertEqual(block(name).count("\n"), lines, name)


if __name__ == "__main__":
    unittest.main()
