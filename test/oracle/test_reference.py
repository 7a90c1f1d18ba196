# SPDX-License-Identifier: MIT
"""nvfp4_gemm_reference, the scale layout and the quantizer against numpy and ml_dtypes."""
import ctypes
import unittest

import numpy as np

import nvfp4
from nvfp4 import ml_dtypes

SHAPES = [(1, 1, 64), (7, 63, 128), (65, 129, 320), (128, 256, 1024), (33, 200, 7168)]
INTEGERS = [0x00, 0x38, 0x40, 0x44]  # 0, 1, 2, 3
FINITE = range(0x7F)


class Reference(unittest.TestCase):
    def setUp(self):
        self.library = nvfp4.load()

    def product(self, a, sfa, b, sfb, k, alpha):
        m, n = len(a), len(b)
        d = np.full((m, n), np.nan, dtype=np.float16)
        g = nvfp4.make_desc(m, n, k, alpha, nvfp4.LAYOUT_LINEAR)
        g.a, g.a_scales, g.b, g.b_scales, g.d = (x.ctypes.data for x in (a, sfa, b, sfb, d))
        status = self.library.nvfp4_gemm_reference(ctypes.byref(g))
        self.assertEqual(status, 0, self.library.nvfp4_last_error())
        return d

    def test_exact_sums_have_equal_bits(self):
        rng = np.random.default_rng(1)
        for m, n, k in SHAPES:
            with self.subTest(m=m, n=n, k=k):
                a, sfa = nvfp4.random_operand(rng, m, k, INTEGERS)
                b, sfb = nvfp4.random_operand(rng, n, k, INTEGERS)
                want = nvfp4.decode(a, sfa) @ nvfp4.decode(b, sfb).T
                self.assertLess(np.abs(want).max(), 65504)
                got = self.product(a, sfa, b, sfb, k, 1.0)
                # Adding 0 turns -0 into +0: a sum that cancels is +0.
                np.testing.assert_array_equal(got.view(np.uint16),
                                              (want + 0.0).astype(np.float16).view(np.uint16))

    def test_random_scales_are_inside_the_bound(self):
        rng = np.random.default_rng(2)
        for m, n, k in SHAPES:
            with self.subTest(m=m, n=n, k=k):
                a, sfa = nvfp4.random_operand(rng, m, k, FINITE)
                b, sfb = nvfp4.random_operand(rng, n, k, FINITE)
                values_a, values_b = nvfp4.decode(a, sfa), nvfp4.decode(b, sfb)
                alpha = float(np.float32(1e-6))
                d = self.product(a, sfa, b, sfb, k, alpha)
                error = np.abs(d - alpha * (values_a @ values_b.T))
                bound = nvfp4.error_bound(values_a, values_b, k, alpha, 100)
                self.assertLessEqual((error / bound).max(), 1)

    def test_a_nan_scale_reaches_its_row_only(self):
        rng = np.random.default_rng(3)
        a, sfa = nvfp4.random_operand(rng, 5, 64, INTEGERS)
        b, sfb = nvfp4.random_operand(rng, 6, 64, INTEGERS)
        sfa[2, 1] = 0x7F
        nans = np.isnan(self.product(a, sfa, b, sfb, 64, 1.0))
        self.assertTrue(nans[2].all())
        self.assertEqual(nans.sum(), 6)


class ScaleLayout(unittest.TestCase):
    def test_tiles_match_a_reshape_by_numpy(self):
        library = nvfp4.load()
        rng = np.random.default_rng(4)
        for rows, k in [(1, 64), (128, 64), (130, 320), (300, 192)]:
            linear = rng.integers(1, 127, (rows, k // 16), dtype=np.uint8)
            size = library.nvfp4_scale_bytes(rows, k, nvfp4.LAYOUT_128X4)
            tiles = np.full(size, 0xFF, dtype=np.uint8)
            status = library.nvfp4_scale_convert_host(linear.ctypes.data, nvfp4.LAYOUT_LINEAR,
                                                      tiles.ctypes.data, nvfp4.LAYOUT_128X4,
                                                      rows, k)
            self.assertEqual(status, 0, library.nvfp4_last_error())
            # 128 rows are 4 groups of 32; a tile stores [32 rows][4 groups][4 scales].
            padded = np.zeros((-(-rows // 128) * 128, -(-k // 64) * 4), dtype=np.uint8)
            padded[:rows, :k // 16] = linear
            blocks = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4)
            np.testing.assert_array_equal(tiles, blocks.reshape(-1))


class Quantizer(unittest.TestCase):
    def test_codes_and_scales_match_ml_dtypes(self):
        library = nvfp4.load()
        rng = np.random.default_rng(5)
        rows, k = 33, 256
        magnitudes = 10.0 ** rng.integers(-3, 4, (rows, 1))
        x = (rng.standard_normal((rows, k)) * magnitudes).astype(np.float32)
        x[4, 16:32] = 0
        t = np.float32(np.abs(x).max() / 2688)
        codes = np.zeros((rows, k // 2), dtype=np.uint8)
        scales = np.zeros((rows, k // 16), dtype=np.uint8)
        status = library.nvfp4_quantize_host(x.ctypes.data, k, rows, k, t, codes.ctypes.data, k,
                                             scales.ctypes.data, nvfp4.LAYOUT_LINEAR)
        self.assertEqual(status, 0, library.nvfp4_last_error())
        blocks = x.reshape(rows, k // 16, 16)
        amax = np.abs(blocks).max(axis=2)
        wanted_scales = (amax / np.float32(6) / t).astype(ml_dtypes.float8_e4m3fn)
        np.testing.assert_array_equal(scales, wanted_scales.view(np.uint8))
        divisor = wanted_scales.astype(np.float32) * t
        safe = np.where(divisor == 0, np.float32(1), divisor)[:, :, None]
        ratio = np.where(divisor[:, :, None] == 0, np.float32(0), blocks / safe)
        ratio = np.clip(ratio, np.float32(-6), np.float32(6))
        wanted = ratio.astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(rows, k)
        np.testing.assert_array_equal(codes & 15, wanted[:, 0::2] & 15)
        np.testing.assert_array_equal(codes >> 4, wanted[:, 1::2] & 15)


if __name__ == "__main__":
    unittest.main()
