# SPDX-License-Identifier: MIT
"""The reference's epilogue against numpy and ml_dtypes: types, C, bias, tensor scales,
activations."""
import ctypes
import os
import re
import unittest

import ml_dtypes
import numpy as np

import activations
import nvfp4

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/nvfp4_gemm.h")
TYPES = {1: np.float16, 2: ml_dtypes.bfloat16, 3: np.float32}
EXACT_SCALES = [0x30, 0x38, 0x40]
STATED = {activations.RELU: 0, activations.GELU_TANH: 3.29, activations.SILU: 3.26,
          activations.GELU_ERF: 6.06, activations.RELU_SQUARED: 0.5}


def bits(x):
    """As integers, one NaN for all."""
    whole = x.view(np.uint32 if x.dtype == np.float32 else np.uint16)
    return np.where(np.isnan(x.astype(np.float32)), 0x7FFF, whole)


def sample():
    """Every exponent with fractions that have no pattern, and the edges."""
    magnitudes = np.arange(0, 0x7F800000, 16411, dtype=np.uint32)
    edges = np.array([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x43000000,
                      0x41300000, 0x41700000], np.uint32)
    both = np.concatenate([magnitudes, edges])
    return np.concatenate([both, both | np.uint32(0x80000000)]).view(np.float32)


class Epilogue(unittest.TestCase):
    def setUp(self):
        self.library = nvfp4.load()
        self.rng = np.random.default_rng(7)

    def run_reference(self, g):
        status = self.library.nvfp4_gemm_reference(ctypes.byref(g))
        self.assertEqual(status, 0, self.library.nvfp4_last_error())

    def values(self, shape, dtype):
        return (self.rng.integers(-64, 65, shape) / 8).astype(np.float32).astype(dtype)

    def one_case(self, m, n, k, kinds, order, axis, rows):
        d_type, c_type, bias_type = kinds
        a, sfa = nvfp4.random_operand(self.rng, m, k, EXACT_SCALES)
        b, sfb = nvfp4.random_operand(self.rng, n, k, EXACT_SCALES)
        acc = (nvfp4.decode(a, sfa) @ nvfp4.decode(b, sfb).T + 0.0).astype(np.float32)
        layout = "C" if order == 0 else "F"
        c = np.asarray(self.values((m, n), TYPES[c_type]), order=layout)
        d = np.empty((m, n), TYPES[d_type], order=layout)
        bias = self.values(n if axis == 0 else m, TYPES[bias_type])
        alpha, beta = np.float32(0.37), np.float32(-1.25)
        a_scale = self.rng.uniform(0.01, 1, m if rows else 1).astype(np.float32)
        b_scale = np.float32([0.7, 0.3, 1.9])
        g = nvfp4.make_desc(m, n, k, float(alpha), nvfp4.LAYOUT_LINEAR)
        g.beta, g.cd_order, g.bias_axis = float(beta), order, axis
        g.a, g.a_scales, g.b, g.b_scales, g.c, g.d, g.bias, g.a_tensor_scale, g.b_tensor_scale = (
            x.ctypes.data for x in (a, sfa, b, sfb, c, d, bias, a_scale, b_scale))
        g.d_type, g.c_type, g.bias_type, g.b_tensor_scale_columns = d_type, c_type, bias_type, 64
        g.a_tensor_scale_rows = rows
        g.d_ld = g.c_ld = n if order == 0 else m
        self.run_reference(g)
        factors = (alpha * a_scale)[:, None] * np.repeat(b_scale, 64)[:n]
        x = activations.fma(beta, c.astype(np.float32), factors * acc)
        x = x + bias.astype(np.float32)[None if axis == 0 else slice(None), ...].reshape(
            (1, n) if axis == 0 else (m, 1))
        np.testing.assert_array_equal(bits(d), bits(x.astype(TYPES[d_type])))

    def test_types_order_c_and_bias_have_equal_bits(self):
        for d_type in TYPES:
            for c_type in TYPES:
                for bias_type in TYPES:
                    order, axis, rows = (int(self.rng.integers(2)) for _ in range(3))
                    kinds = (d_type, c_type, bias_type)
                    with self.subTest(kinds=kinds, order=order, axis=axis, rows=rows):
                        self.one_case(33, 150, 96, kinds, order, axis, rows)

    def test_conversions_round_like_numpy_and_ml_dtypes(self):
        x = sample()
        for kind, dtype in TYPES.items():
            with self.subTest(type=kind):
                d = np.empty(len(x), dtype)
                g = nvfp4.make_desc(1, len(x), 0, -0.0, nvfp4.LAYOUT_LINEAR)
                g.d, g.d_type, g.bias, g.bias_type = d.ctypes.data, kind, x.ctypes.data, 3
                self.run_reference(g)
                with np.errstate(over="ignore"):
                    np.testing.assert_array_equal(bits(d), bits(x.astype(dtype)))

    def test_each_activation_of_the_header_has_a_bound_and_a_formula(self):
        with open(HEADER, encoding="utf-8") as header:
            numbers = re.findall(r"NVFP4_ACTIVATION_\w+ = ([1-9]\d*)", header.read())
        self.assertEqual(sorted(STATED), sorted(map(int, numbers)))
        self.assertEqual(set(STATED), set(activations.BY_PAGE))

    def test_activations_have_the_bits_of_the_page(self):
        x = sample()
        for activation in STATED:
            with self.subTest(activation=activation):
                np.testing.assert_array_equal(activations.by_library(self.library, activation, x),
                                              activations.by_page(activation, x))

    def test_activations_are_within_the_stated_error_of_double(self):
        x = sample()
        x = x[np.isfinite(x)]
        for activation, stated in STATED.items():
            with self.subTest(activation=activation):
                exact = activations.exact(activation, x)
                got = activations.by_library(self.library, activation, x)
                infinite = exact >= 2.0**128
                self.assertTrue(np.all(got[infinite] == 0x7F800000))
                worst = activations.error_in_ulp(got[~infinite], exact[~infinite]).max()
                self.assertLessEqual(worst, stated)
                self.assertGreaterEqual(worst, stated / 2)


if __name__ == "__main__":
    unittest.main()
