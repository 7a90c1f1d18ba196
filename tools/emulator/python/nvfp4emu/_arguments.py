# SPDX-License-Identifier: MIT
"""Arguments of a kernel: arrays get device memory and come back, everything else becomes bytes."""
import ctypes
import struct

import numpy as np

from ._errors import Error

INTEGERS = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}


def what(value):
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


class Arguments:
    """The parameters of one launch. `device` has the arrays until `back` and `free`."""

    def __init__(self, device):
        self.device = device
        self.held = []  # (array, address)
        self.scratch = []  # addresses

    def address_of(self, array, where):
        """Of the array's copy on the device; the same array twice is one copy."""
        if not array.flags.c_contiguous:
            raise ValueError(f"{where} is not C-contiguous; pass numpy.ascontiguousarray of it")
        if array.dtype.hasobject:
            raise TypeError(f"{where} has Python objects as elements")
        if not array.nbytes:
            return 0
        for other, address in self.held:
            if other.ctypes.data == array.ctypes.data and other.nbytes == array.nbytes:
                return address
            if np.may_share_memory(other, array):
                raise ValueError(f"{where} shares memory with another array; pass one of both")
        address = self.device.allocate(array.nbytes)
        self.held.append((array, address))
        self.device.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address),
                         ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return address

    def zeros(self, size):
        """Memory that the kernel's compiler wants beside the arguments."""
        if not size:
            return 0
        self.scratch.append(self.device.allocate(size))
        self.device.call("cuMemsetD8_v2", ctypes.c_uint64(self.scratch[-1]), ctypes.c_ubyte(0),
                         ctypes.c_size_t(size))
        return self.scratch[-1]

    def scalar(self, value, kind, size, where):
        """The bytes of a number, for a parameter of that kind and size."""
        if isinstance(value, (bool, np.bool_)):
            value = int(value)
        if isinstance(value, int) and kind[0] == "f":
            value = float(value)
        if isinstance(value, int):
            low, high = -1 << size * 8 - 1, 1 << size * 8
            if size not in INTEGERS or not low <= value < high:
                raise ValueError(f"{where}: {value} does not fit in {size} bytes")
            return struct.pack("<" + INTEGERS[size][value >= 0], value)
        code = {4: "<f", 8: "<d"}.get(size)
        if code is None or kind[0] in "su":
            raise TypeError(f"{where} is a float, and the parameter .{kind}; "
                            "pass a numpy scalar of its type")
        return struct.pack(code, value)

    def element(self, value, where):
        """A member of a struct: its bytes and its alignment."""
        if isinstance(value, np.ndarray):
            return struct.pack("<Q", self.address_of(value, where)), 8
        if isinstance(value, np.generic):
            return value.tobytes(), value.dtype.alignment
        if isinstance(value, (bytes, bytearray)):
            return bytes(value), 1
        raise TypeError(f"{where} is of type {what(value)}; in a tuple, which is a struct, are "
                        "arrays, numpy scalars and bytes")

    def structure(self, values, where):
        out = b""
        for i, value in enumerate(values):
            data, align = self.element(value, f"{where}[{i}]")
            out += bytes(-len(out) % align) + data
        return out

    def pack(self, value, parameter, where):
        """The bytes of one parameter."""
        kind, size = parameter.kind, parameter.size
        if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
            return self.scalar(value, kind, size, where)
        if isinstance(value, tuple):
            data = self.structure(value, where)
            data += bytes(max(0, size - len(data)) if size - len(data) < 8 else 0)
        elif isinstance(value, (np.ndarray, np.generic, bytes, bytearray)):
            data, _ = self.element(value, where)
        else:
            raise TypeError(f"{where} is of type {what(value)}; arguments are numpy arrays and "
                            "scalars, int, float, bytes, and tuples for structs")
        if len(data) != size:
            raise ValueError(f"{where} has {len(data)} bytes, and the parameter {size}")
        return data

    def back(self):
        """The arrays as the kernel left them; those that are read-only stay as they are."""
        for array, address in self.held:
            if array.flags.writeable:
                status = self.device.status(
                    "cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data),
                    ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))
                if status:
                    return status
        return 0

    def free(self):
        for address in [each for _, each in self.held] + self.scratch:
            if self.device.status("cuMemFree_v2", ctypes.c_uint64(address)):
                raise Error("the emulator does not free what it gave out")
