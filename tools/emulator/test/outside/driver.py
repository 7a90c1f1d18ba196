# SPDX-License-Identifier: MIT
"""A few calls of the CUDA driver API by ctypes, for numpy's arrays."""
import ctypes

import numpy


class Pointer(int):
    """A device address."""


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            words = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(words))
            raise SystemExit(f"{name}: {(words.value or b'?').decode()} ({status})")

    def upload(self, array):
        address = ctypes.c_uint64()
        array = numpy.ascontiguousarray(array)
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_size_t(array.nbytes))
        return Pointer(address.value)

    def download(self, pointer, shape, dtype):
        array = numpy.empty(shape, dtype)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(pointer),
                  ctypes.c_size_t(array.nbytes))
        return array

    def launch(self, ptx, kernel, grid, threads, shared, arguments):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, shared)  # MAX_DYNAMIC_SHARED_SIZE_BYTES
        held = [self.argument(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(h) for h in held])
        x, y, z = (*grid, 1, 1)[:3]
        self.call("cuLaunchKernel", function, x, y, z, threads, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")

    @staticmethod
    def argument(value):
        if isinstance(value, Pointer):
            return ctypes.c_uint64(value)
        return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int32(value)
