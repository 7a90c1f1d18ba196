# SPDX-License-Identifier: MIT
"""Kernels of numba.cuda, compiled to PTX without a GPU."""
import numpy as np

from ._arguments import what
from ._kernels import Kernel, find_entry, no_constants


def flattened(value, where):
    """numba's type of an argument, and the parameters that the kernel has for it."""
    import numba
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError(f"{where} is not C-contiguous; pass numpy.ascontiguousarray of it")
        kind = numba.types.Array(numba.from_dtype(value.dtype), value.ndim, "C")
        # Two pointers to objects of the host, sizes, the data, shape and strides.
        sizes = [np.int64(n) for n in (*value.shape, *value.strides)]
        return kind, [np.uint64(0), np.uint64(0), np.int64(value.size), np.int64(value.itemsize),
                      value, *sizes]
    if isinstance(value, np.generic):
        return numba.from_dtype(value.dtype), [value]
    if isinstance(value, (bool, int, float)):
        typed = np.bool_(value) if isinstance(value, bool) else (
            np.int64(value) if isinstance(value, int) else np.float64(value))
        return numba.from_dtype(typed.dtype), [typed]
    raise TypeError(f"{where} is of type {what(value)}; numba's kernels take numpy arrays and "
                    "scalars, bool, int and float")


def compiled(kernel, arguments, device, name, constants):
    from numba import cuda
    no_constants(constants, "a kernel of numba")
    if name is not None:
        raise TypeError("name= is for PTX with several kernels; a numba kernel is one")
    kinds, remaining = [], []
    for i, value in enumerate(arguments):
        kind, values = flattened(value, f"argument {i}")
        kinds.append(kind)
        remaining += values
    text, _ = cuda.compile(kernel.py_func, tuple(kinds), cc=device.capability, device=False,
                           abi="numba", output="ptx", lineinfo=True)
    if isinstance(text, bytes):
        text = text.rstrip(b"\0").decode()
    return Kernel(text, find_entry(text, None), remaining)
