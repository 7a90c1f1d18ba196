# SPDX-License-Identifier: MIT
"""D from the device against numpy and ml_dtypes, everything through ctypes: a program in another
language that dlopens the library and the driver. numpy makes the 128x4 scales, so the library
converts nothing."""
import ctypes
import unittest

import numpy as np

import nvfp4

INTEGERS = [0x00, 0x38, 0x40, 0x44]  # 0, 1, 2, 3


class Driver:
    """The primary context of device 0 and memory in it."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name} answered {result}")

    def upload(self, array):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self.call("cuMemcpyHtoD_v2", address, array.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(array.nbytes))
        return address

    def download(self, address, array):
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), address,
                  ctypes.c_size_t(array.nbytes))


def tiles(scales):
    """128x4 tiles: [rows / 128][scales / 4][32 rows][4 groups of rows][4 scales], padding NaN."""
    rows, count = scales.shape
    padded = np.full((-(-rows // 128) * 128, -(-count // 4) * 4), 0x7F, dtype=np.uint8)
    padded[:rows, :count] = scales
    blocks = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(blocks).reshape(-1)


class Device(unittest.TestCase):
    def setUp(self):
        self.library = nvfp4.load()
        self.driver = Driver()
        self.capability = nvfp4.compute_capability()

    def product(self, a, sfa, b, sfb, k, alpha):
        m, n = len(a), len(b)
        d = np.full((m, n), np.nan, dtype=np.float16)
        arrays = (a, tiles(sfa), b, tiles(sfb), d)
        addresses = [self.driver.upload(array) for array in arrays]
        g = nvfp4.make_desc(m, n, k, alpha, nvfp4.LAYOUT_128X4)
        g.a, g.a_scales, g.b, g.b_scales, g.d = (address.value for address in addresses)
        needed = ctypes.c_uint64()
        status = self.library.nvfp4_gemm_workspace_bytes(ctypes.byref(g), self.capability,
                                                         ctypes.byref(needed))
        self.assertEqual(status, 0, self.library.nvfp4_last_error())
        if needed.value:
            workspace = np.zeros(needed.value, np.uint8)
            addresses.append(self.driver.upload(workspace))
            g.workspace, g.workspace_bytes = addresses[-1].value, workspace.nbytes
        status = self.library.nvfp4_gemm_run(ctypes.byref(g), None)
        self.assertEqual(status, 0, self.library.nvfp4_last_error())
        self.driver.download(addresses[4], d)
        for address in addresses:
            self.driver.call("cuMemFree_v2", address)
        return d

    def test_exact_sums_have_equal_bits(self):
        rng = np.random.default_rng(6)
        for m, n, k in [(1, 1, 64), (65, 129, 320), (128, 256, 256), (200, 136, 2112)]:
            with self.subTest(m=m, n=n, k=k):
                a, sfa = nvfp4.random_operand(rng, m, k, INTEGERS)
                b, sfb = nvfp4.random_operand(rng, n, k, INTEGERS)
                want = nvfp4.decode(a, sfa) @ nvfp4.decode(b, sfb).T
                got = self.product(a, sfa, b, sfb, k, 1.0)
                np.testing.assert_array_equal(got.view(np.uint16),
                                              (want + 0.0).astype(np.float16).view(np.uint16))

    def test_random_scales_are_inside_the_bound(self):
        rng = np.random.default_rng(7)
        for m, n, k in [(128, 128, 7168), (65, 129, 320)]:
            with self.subTest(m=m, n=n, k=k):
                a, sfa = nvfp4.random_operand(rng, m, k, range(0x7F))
                b, sfb = nvfp4.random_operand(rng, n, k, range(0x7F))
                values_a, values_b = nvfp4.decode(a, sfa), nvfp4.decode(b, sfb)
                alpha = float(np.float32(1e-6))
                d = self.product(a, sfa, b, sfb, k, alpha)
                error = np.abs(d - alpha * (values_a @ values_b.T))
                bound = nvfp4.error_bound(values_a, values_b, k, alpha, self.capability)
                self.assertLessEqual((error / bound).max(), 1)


if __name__ == "__main__":
    unittest.main()
