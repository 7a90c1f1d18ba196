# SPDX-License-Identifier: MIT
"""GPU kernels on the CPU, with every check of the emulator: for tests on machines without a GPU.

    run = nvfp4emu.simulate(kernel, grid, array, 300, block=128)

runs a kernel on NumPy arrays, in place; run.findings has what the checks found, and an error among
them is an exception. A kernel is PTX text, or one of Triton, numba-cuda or CuTe DSL. The pytest
fixture `emulator` fails a test in whose course an error was found."""
from ._errors import Error, KernelError, PtxError
from ._findings import Finding
from ._simulate import Run, simulate

__all__ = ["Error", "Finding", "KernelError", "PtxError", "Run", "simulate"]
