# SPDX-License-Identifier: MIT
"""Weights as ModelOpt and compressed-tensors store them (docs/integration.md), made here in numpy
from that page's description, go into the library as the page says: the product is that of the
values which the checkpoint's own convention gives."""
import ctypes
import unittest

import numpy as np

import nvfp4
from nvfp4 import ml_dtypes

M, N, K = 9, 40, 128


def packed(values):
    """E2M1 of values, the lower k in the low nibble."""
    codes = np.clip(values, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    return np.ascontiguousarray(codes[:, 0::2] | codes[:, 1::2] << 4)


def blocks(x):
    return x.reshape(len(x), -1, 16)


def modelopt(w):
    """weight, weight_scale, weight_scale_2, and the values that they stand for."""
    weight_scale_2 = np.abs(w).max() / np.float32(6 * 448)
    scale = np.abs(blocks(w)).max(axis=2) / (np.float32(6) * weight_scale_2)
    scale = np.clip(np.where(scale == 0, np.float32(1), scale), 2.0 ** -9, None)
    scale = scale.astype(ml_dtypes.float8_e4m3fn)
    step = scale.astype(np.float32)[:, :, None] * weight_scale_2
    weight = packed((blocks(w) / step).reshape(w.shape))
    values = nvfp4.decode(weight, scale.view(np.uint8)) * float(weight_scale_2)
    return weight, scale.view(np.uint8), float(weight_scale_2), values


def compressed_tensors(w):
    """weight_packed, weight_scale, weight_global_scale (a divisor), and the values."""
    weight_global_scale = np.float32(6 * 448) / np.abs(w).max()
    scale = (np.abs(blocks(w)).max(axis=2) / np.float32(6) * weight_global_scale)
    scale = np.minimum(scale, 448).astype(ml_dtypes.float8_e4m3fn)
    step = scale.astype(np.float32)[:, :, None] / weight_global_scale
    safe = np.where(step == 0, np.float32(1), step)
    weight_packed = packed((blocks(w) / safe).reshape(w.shape))
    values = nvfp4.decode(weight_packed, scale.view(np.uint8)) / float(weight_global_scale)
    return weight_packed, scale.view(np.uint8), float(weight_global_scale), values


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.library = nvfp4.load()
        rng = np.random.default_rng(12)
        self.w = (rng.standard_normal((N, K)) * 0.03).astype(np.float32)
        self.w[3, 16:32] = 0  # where the conventions differ in the scale that they store
        self.x = rng.standard_normal((M, K)).astype(np.float32)

    def product(self, codes, scales, alpha, layout):
        """x, quantized as compressed-tensors does at run time, times the weights."""
        a, sa, input_global_scale, self.activations = compressed_tensors(self.x)
        d = np.empty((M, N), np.float16)
        g = nvfp4.make_desc(M, N, K, alpha / input_global_scale, layout)
        if layout == nvfp4.LAYOUT_128X4:
            sa, scales = self.tiled(sa), self.tiled(scales)
        g.a, g.a_scales, g.b, g.b_scales, g.d = (
            array.ctypes.data for array in (a, sa, codes, scales, d))
        self.assertEqual(self.library.nvfp4_gemm_reference(ctypes.byref(g)), 0,
                         self.library.nvfp4_last_error())
        return d

    def tiled(self, scales):
        out = np.empty(self.library.nvfp4_scale_bytes(len(scales), K, nvfp4.LAYOUT_128X4), np.uint8)
        status = self.library.nvfp4_scale_convert_host(
            scales.ctypes.data, nvfp4.LAYOUT_LINEAR, out.ctypes.data, nvfp4.LAYOUT_128X4,
            len(scales), K)
        self.assertEqual(status, 0, self.library.nvfp4_last_error())
        return out

    def check(self, codes, scales, t, values):
        self.assertLess(np.linalg.norm(values - self.w) / np.linalg.norm(self.w), 0.12)
        d = self.product(codes, scales, t, nvfp4.LAYOUT_LINEAR)
        want = self.activations @ values.T
        np.testing.assert_allclose(d, want, rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(
            d.view(np.uint16), self.product(codes, scales, t, nvfp4.LAYOUT_128X4).view(np.uint16))

        # Each mistake that the page names shows.
        def far(wrong):
            return not np.linalg.norm(wrong - want) < 0.3 * np.linalg.norm(want)
        self.assertTrue(far(self.product(codes << 4 | codes >> 4, scales, t, nvfp4.LAYOUT_LINEAR)))
        self.assertTrue(far(self.product(codes, scales, 1 / t, nvfp4.LAYOUT_LINEAR)))

    def test_modelopt_stores_a_multiplier(self):
        weight, scale, weight_scale_2, values = modelopt(self.w)
        self.assertEqual(scale[3, 1], 0x38)  # a block of zeros: 1
        self.check(weight, scale, weight_scale_2, values)

    def test_compressed_tensors_stores_a_divisor(self):
        weight_packed, scale, weight_global_scale, values = compressed_tensors(self.w)
        self.assertEqual(scale[3, 1], 0x00)  # a block of zeros: 0
        self.check(weight_packed, scale, 1 / weight_global_scale, values)


if __name__ == "__main__":
    unittest.main()
