# SPDX-License-Identifier: MIT
"""What the emulator's page shows runs as it stands there, and so do kernels of Triton, numba-cuda
and CuTe DSL, each part where its packages are: EMU_PYTHON names a Python that has tinygrad, Triton,
numba-cuda, nvidia-cutlass-dsl or pytest (this one otherwise). `make check-outside` runs this with
the Python that it is given."""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../README.md")
COMMAND = os.path.abspath(os.path.join(HERE, "../nvfp4emu"))
MODULE = os.path.abspath(os.path.join(HERE, "../python"))
PYTHON = os.path.abspath(shutil.which(os.environ.get("EMU_PYTHON", sys.executable)))


def block(name):
    with open(PAGE) as file:
        found = re.search(rf"<!-- run: {name} -->\n```\w+\n(.*?)```", file.read(), re.S)
    return found[1]


@functools.cache
def has(package):
    look = f"import importlib.util as u; exit(not u.find_spec({package!r}))"
    return subprocess.run([PYTHON, "-c", look], stderr=subprocess.DEVNULL).returncode == 0


def needs(*packages):
    missing = [each for each in packages if not has(each)]
    return unittest.skipIf(missing, f"EMU_PYTHON has no {', '.join(missing)}")


NUMBA = """
import numpy, nvfp4emu
from numba import cuda, float32
def kernel(meet):
    @cuda.jit
    def reverse(x, by):
        row, t = cuda.shared.array(128, float32), cuda.threadIdx.x
        row[t] = x[t]
        if meet: cuda.syncthreads()
        x[t] = by * row[127 - t]
    return reverse
x = numpy.arange(128, dtype=numpy.float32)
nvfp4emu.simulate(kernel(True), 1, x, 2.0, block=128)
print("right" if (x == 2 * numpy.arange(128)[::-1]).all() else x)
try: nvfp4emu.simulate(kernel(False), 1, x, 2.0, block=128)
except nvfp4emu.KernelError as found: print(found.run.errors[0].rule)
"""
TRITON = """
import numpy, nvfp4emu, triton, triton.language as tl
@triton.jit
def double(x, n, size: tl.constexpr):
    i = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
@triton.autotune(configs=[triton.Config({"size": 64})], key=["n"])
@triton.jit
def tuned(x, n, size: tl.constexpr): tl.store(x, n)
x = numpy.arange(100, dtype=numpy.float32)
for kernel, arguments, named, said in (
        (double, (x,), {"size": 64}, "argument 'n' is missing"),
        (double, (x, 100), {}, "argument 'size' is missing"),
        (double, (x, 100, 64, 1), {}, "4 arguments are given"),
        (double, ("x", 100), {"size": 64}, "argument 'x' is of type str"),
        (double, (x, 100), {"size": 64, "odd": 1}, "no argument 'odd'"),
        (double, (x, 100), {"size": 64, "name": "k"}, "a Triton kernel is one"),
        (tuned, (x, 100), {}, "pass its .fn and the constants")):
    try: nvfp4emu.simulate(kernel, 2, *arguments, **named)
    except TypeError as error: assert said in str(error), error
    else: raise SystemExit(said)
nvfp4emu.simulate(double, 2, x, 100, 64, num_warps=2)
nvfp4emu.simulate(tuned.fn, 1, x[:1], 7, size=64)
assert x[0] == 7 and (x[1:] == 2 * numpy.arange(1, 100)).all(), x
"""
CUTE = """
import numpy, nvfp4emu, cutlass, cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack
@cute.kernel
def double(a: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < n: a[i] = a[i] * 2.0
@cute.jit
def host(a: cute.Tensor, n: cutlass.Int32):
    double(a, n).launch(grid=[3, 1, 1], block=[128, 1, 1])
x, options = numpy.arange(300, dtype=numpy.float32), "--gpu-arch sm_90a --keep-ptx"
made = cute.compile(host, from_dlpack(x), 300, options=options)
print(nvfp4emu.simulate(made, 3, x, 300).device)
made = cute.compile(host, from_dlpack(x).mark_layout_dynamic(), 300, options=options)
nvfp4emu.simulate(made, 3, (x, numpy.int32(300), numpy.int32(1)), 300)
print("right" if (x == 4 * numpy.arange(300)).all() else x)
"""


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

    @needs("numba_cuda", "numpy")
    def test_a_kernel_of_numba_with_and_without_its_barrier(self):
        self.write("kernel.py", NUMBA)
        self.assertEqual(self.run_here("python", "kernel.py").split(), ["right", "unordered"])

    @needs("triton", "numpy")
    def test_what_is_wrong_with_arguments_for_triton_is_said(self):
        self.write("kernel.py", TRITON)
        self.run_here("python", "kernel.py")

    @needs("cutlass.cute", "numpy")
    def test_a_kernel_of_cute_dsl_with_static_and_dynamic_shape(self):
        self.write("kernel.py", CUTE)
        self.assertEqual(self.run_here("python", "kernel.py").split(), ["H200", "right"])

    # tinygrad in two, Triton and pytest in five.
    def test_the_first_parts_stay_short(self):
        for name, lines in (("tinygrad", 2), ("triton", 5), ("pytest", 5)):
            self.assertEqual(block(name).count("\n"), lines, name)


if __name__ == "__main__":
    unittest.main()
