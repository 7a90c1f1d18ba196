# SPDX-License-Identifier: MIT
"""The CUDA driver through ctypes, as far as an example needs it: memory of the first device.

    with Device() as device:
        x = device.upload(array)      # a device address, an integer
        device.download(x, array)     # waits for the work before, then copies back

Programs that use torch or CuPy have both already: a tensor's data_ptr() and its current stream.
"""

import ctypes

import numpy as np


class NoDevice(RuntimeError):
    """There is no driver or no device here."""


class Device:
    def __init__(self):
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoDevice(f"no CUDA driver here: {error}") from error
        context = ctypes.c_void_p()
        for name, arguments in [("cuInit", (0,)),
                                ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
                                ("cuCtxSetCurrent", (context,))]:
            if self._call(name, *arguments) != 0:
                raise NoDevice(f"no CUDA device here: {name} failed")
        self._addresses = []

    def _call(self, name, *arguments):
        return getattr(self._cuda, name)(*arguments)

    def _must(self, name, *arguments):
        result = self._call(name, *arguments)
        if result != 0:
            raise RuntimeError(f"{name} answers {result}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for address in self._addresses:
            self._must("cuMemFree_v2", address)
        self._addresses = []

    def compute_capability(self):
        """10 * major + minor."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        for number, attribute in ((major, 75), (minor, 76)):  # ..._COMPUTE_CAPABILITY_*
            self._must("cuDeviceGetAttribute", ctypes.byref(number), attribute, 0)
        return 10 * major.value + minor.value

    def upload(self, array):
        """A copy of the array's bytes in device memory, freed with the device."""
        array = np.ascontiguousarray(array)
        address = ctypes.c_uint64()
        self._must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self._addresses.append(address)
        self._must("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data),
                   ctypes.c_size_t(array.nbytes))
        return address.value

    def download(self, address, array):
        """Into the array, all its bytes, after the default stream's work."""
        self._must("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address),
                   ctypes.c_size_t(array.nbytes))
        return array
