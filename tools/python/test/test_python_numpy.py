# SPDX-License-Identifier: MIT
"""The Python package on NumPy arrays, against NumPy's own products of the dequantized values."""
import inspect
import os
import pickle
import unittest

import package  # noqa: F401
import numpy as np

import nvfp4gemm

# The library computes activations by formulas of its own, within a few units of the last place.
WITHIN = 2e-5


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def plain_signature(call):
    """Without types, as the page has it."""
    signature = inspect.signature(call)
    return str(signature.replace(return_annotation=signature.empty, parameters=[
        one.replace(annotation=one.empty) for one in signature.parameters.values()]))


class Page(unittest.TestCase):
    def test_the_signatures_in_the_readme_are_the_calls(self):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
            page = " ".join(file.read().split())
        for name in ("quantize", "mm", "linear", "Packed"):
            with self.subTest(name):
                self.assertIn(name + plain_signature(getattr(nvfp4gemm, name)), page)


class Quantize(unittest.TestCase):
    def test_values_are_near_and_leading_dimensions_are_rows(self):
        x = normal(1, 3, 5, 48)
        packed = nvfp4gemm.quantize(x)
        self.assertEqual(packed.shape, (15, 48))
        self.assertEqual(packed.codes.shape, (15, 32), "48 elements in rows of 64")
        error = np.linalg.norm(packed.dequantize() - x.reshape(15, 48)) / np.linalg.norm(x)
        self.assertLess(error, 0.12)
        self.assertGreater(error, 0.01)

    def test_layouts_hold_the_same_values(self):
        x = normal(2, 130, 80)
        a, b = (nvfp4gemm.quantize(x, scale_layout=name) for name in ("128x4", "linear"))
        self.assertEqual((a.scales.size, b.scales.size), (256 * 8, 130 * 5))
        np.testing.assert_array_equal(a.dequantize(), b.dequantize())

    def test_what_is_exact_comes_back(self):
        x = np.tile(np.array([0, .5, 1, 1.5, 2, 3, 4, 6] * 2, np.float32), (4, 2))
        np.testing.assert_array_equal(nvfp4gemm.quantize(x, 1.0).dequantize(), x)
        self.assertEqual(nvfp4gemm.quantize(x, 0.5).tensor_scale, 0.5)

    def test_a_largest_value_that_is_not_finite_does_not_count(self):
        x = normal(3, 2, 32)
        x[0, 0], x[1, 1] = np.inf, np.nan
        finite = np.abs(x[np.isfinite(x)]).max()
        self.assertAlmostEqual(nvfp4gemm.quantize(x).tensor_scale, finite / 2688, places=7)
        self.assertEqual(nvfp4gemm.quantize(np.zeros((1, 16), np.float32)).tensor_scale, 1.0)


class Nothing(unittest.TestCase):
    """Matrices without elements, of which the library writes nothing."""

    def test_scales_of_what_has_no_elements_are_1(self):
        for shape in ((6, 0), (0, 32), (2, 3, 0)):
            # Pages that were free before hold no zeros and no ones by chance.
            filled = [np.full(6, np.nan, np.float32) for _ in range(64)]
            del filled
            rows = nvfp4gemm.quantize(np.ones(shape, np.float32), "rows")
            self.assertEqual(rows.tensor_scale.tolist(), [1.0] * rows.rows)
            self.assertEqual(nvfp4gemm.quantize(np.ones(shape, np.float32)).tensor_scale, 1.0)

    def test_an_amax_too_small_for_a_scale(self):
        """amax / 2688 is 0 in float32: the scale is 1, as on a GPU."""
        for by in (None, "rows"):
            packed = nvfp4gemm.quantize(np.full((2, 16), 1e-42, np.float32), by)
            self.assertEqual(np.unique(packed.tensor_scale).tolist(), [1.0])
            self.assertFalse(packed.dequantize().any())

    def test_a_tensor_scale_of_0_makes_zeros(self):
        packed = nvfp4gemm.quantize(np.ones((2, 16), np.float32)).replace(tensor_scale=0.0)
        self.assertFalse(packed.dequantize().any())


class Multiply(unittest.TestCase):
    def setUp(self):
        self.a = nvfp4gemm.quantize(normal(4, 37, 96))
        self.b = nvfp4gemm.quantize(normal(5, 70, 96), scale_layout="linear")
        self.product = self.a.dequantize().astype(np.float64) @ self.b.dequantize().T

    def near(self, d, expected, within=WITHIN):
        self.assertLess(np.max(np.abs(d.astype(np.float64) - expected)), within * 40)

    def test_types(self):
        self.assertEqual(nvfp4gemm.mm(self.a, self.b).dtype, np.float16)
        self.near(nvfp4gemm.mm(self.a, self.b, np.float32), self.product)
        out = np.empty((37, 70), np.float32)
        self.assertIs(nvfp4gemm.mm(self.a, self.b, out=out), out)
        self.near(out, self.product)
        columns = np.empty((70, 37), np.float32).T
        nvfp4gemm.mm(self.a, self.b, out=columns)
        np.testing.assert_array_equal(columns, out)

    def test_rows_of_codes_may_lie_apart(self):
        apart = np.full((70, 80), 0xFF, np.uint8)
        apart[:, :48] = self.b.codes[:, :48]
        b = nvfp4gemm.Packed(apart[:, :48], self.b.scales, 70, 96, self.b.tensor_scale, "linear")
        np.testing.assert_array_equal(b.dequantize(), self.b.dequantize())
        np.testing.assert_array_equal(nvfp4gemm.mm(self.a, b), nvfp4gemm.mm(self.a, self.b))
        b = b.replace(codes=np.asfortranarray(b.codes))
        np.testing.assert_array_equal(b.dequantize(), self.b.dequantize())
        with self.assertRaises(AttributeError):
            b.codes = apart

    def test_bias_and_activations(self):
        bias = normal(6, 70, dtype=np.float16)
        x = self.product + bias
        tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
        erf = np.vectorize(__import__("math").erf)
        for name, expected in {None: x, "relu": np.maximum(x, 0), "silu": x / (1 + np.exp(-x)),
                               "gelu": 0.5 * x * (1 + erf(x / np.sqrt(2))),
                               "gelu_tanh": tanh, "relu_squared": np.maximum(x, 0) ** 2}.items():
            with self.subTest(name):
                d = nvfp4gemm.mm(self.a, self.b, np.float32, bias=bias, activation=name)
                self.near(d, expected)

    def test_c_alpha_and_beta(self):
        c = normal(7, 37, 70)
        d = nvfp4gemm.mm(self.a, self.b, np.float32, c=c, alpha=0.5, beta=-2.0)
        self.near(d, 0.5 * self.product - 2 * c)
        nvfp4gemm.mm(self.a, self.b, c=c, out=c)
        self.near(c, self.product + normal(7, 37, 70))

    def test_activations_that_are_not_quantized(self):
        x = normal(8, 2, 3, 96, dtype=np.float16)
        y = nvfp4gemm.linear(x, self.b)
        self.assertEqual((y.shape, y.dtype), ((2, 3, 70), np.float16))
        self.near(y, x.astype(np.float64) @ self.b.dequantize().T, 1e-3)
        both = nvfp4gemm.linear(x, self.b, quantize_input=True)
        self.assertEqual((both.shape, both.dtype), ((2, 3, 70), np.float16))
        self.assertFalse(np.array_equal(both, y))

    def test_bfloat16_by_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("this Python has no ml_dtypes")
        x = normal(9, 4, 96, dtype=ml_dtypes.bfloat16)
        y = nvfp4gemm.linear(x, self.b)
        self.assertEqual(y.dtype, ml_dtypes.bfloat16)
        self.near(y.astype(np.float32), x.astype(np.float64) @ self.b.dequantize().T, 2e-3)


class Rows(unittest.TestCase):
    """A tensor scale for each row."""

    def setUp(self):
        self.x = normal(10, 37, 96) * np.exp2(np.arange(37, dtype=np.float32) - 26)[:, None]
        self.b = nvfp4gemm.quantize(normal(2, 70, 96))

    def test_a_row_is_quantized_as_if_it_were_alone(self):
        packed = nvfp4gemm.quantize(self.x, "rows")
        scale = packed.tensor_scale
        self.assertEqual((scale.shape, scale.dtype), ((37,), np.float32))
        for i in (0, 5, 36):
            alone = nvfp4gemm.quantize(self.x[i:i + 1])
            self.assertEqual(packed.tensor_scale[i], np.float32(alone.tensor_scale))
            np.testing.assert_array_equal(packed.codes[i], alone.codes[0])
            np.testing.assert_array_equal(packed.dequantize()[i], alone.dequantize()[0])
        self.assertIn("for each row", repr(packed))

    def test_products_and_slices_have_each_rows_scale(self):
        packed = nvfp4gemm.quantize(self.x, "rows")
        d = nvfp4gemm.mm(packed, self.b, np.float32)
        expected = packed.dequantize().astype(np.float64) @ self.b.dequantize().T
        size = np.linalg.norm(expected, axis=1)
        self.assertLess((np.linalg.norm(d - expected, axis=1) / size).max(), 1e-5)
        for begin, end in ((0, 5), (3, 37), (36, 37)):
            part = packed.slice_rows(begin, end)
            np.testing.assert_array_equal(nvfp4gemm.mm(part, self.b, np.float32), d[begin:end])
        np.testing.assert_array_equal(packed.slice_k(32, 96).dequantize(),
                                      packed.dequantize()[:, 32:])
        again = pickle.loads(pickle.dumps(packed))
        np.testing.assert_array_equal(nvfp4gemm.mm(again, self.b, np.float32), d)

    def test_a_stale_row_changes_no_bit_of_its_neighbours(self):
        x = self.x.astype(np.float16)
        y = nvfp4gemm.linear(x, self.b, quantize_input=True)
        for value in (6e4, np.nan, np.inf, 0):
            stale = x.copy()
            stale[7] = value
            changed = nvfp4gemm.linear(stale, self.b, quantize_input=True)
            np.testing.assert_array_equal(np.delete(changed, 7, 0), np.delete(y, 7, 0))
        np.testing.assert_array_equal(nvfp4gemm.linear(x[5:8], self.b, quantize_input=True), y[5:8])

    def test_an_input_scale_of_a_checkpoint_wins(self):
        x, weight = self.x.astype(np.float16), self.b
        weight.input_scale = 0.01
        np.testing.assert_array_equal(
            nvfp4gemm.linear(x, weight, quantize_input=True),
            nvfp4gemm.mm(nvfp4gemm.quantize(x, 0.01), weight, np.float16))

    def test_refused_in_words(self):
        rows = nvfp4gemm.quantize(self.x, "rows")
        with self.assertRaisesRegex(ValueError, "b has a tensor scale for each row"):
            nvfp4gemm.mm(rows, rows)
        with self.assertRaisesRegex(ValueError, "the only word is 'rows'"):
            nvfp4gemm.quantize(self.x, "columns")
        with self.assertRaisesRegex(ValueError, r"\(5,\); expected a number or .* or 37 of them"):
            rows.replace(tensor_scale=np.ones(5, np.float32))


class Refused(unittest.TestCase):
    def test_in_words(self):
        a, b = nvfp4gemm.quantize(normal(1, 4, 32)), nvfp4gemm.quantize(normal(2, 8, 48))
        same = nvfp4gemm.quantize(normal(2, 8, 32))
        for call, kind, words in [
            (lambda: nvfp4gemm.mm(a, b), ValueError, "a has k = 32, b has k = 48"),
            (lambda: nvfp4gemm.mm(a, normal(3, 8, 32)), TypeError,
             "b is ndarray; expected what quantize"),
            (lambda: nvfp4gemm.mm(normal(3, 4, 32), same), TypeError,
             "a is of float32; expected float16 or bfloat16"),
            (lambda: nvfp4gemm.mm(a, same, np.int8), TypeError,
             "out_dtype is of .*int8.*; there are"),
            (lambda: nvfp4gemm.mm(a, same, bias=np.ones(7, np.float32)), ValueError,
             r"bias is \(7,\), expected \(8,\)"),
            (lambda: nvfp4gemm.mm(a, same, activation="tanh"), ValueError,
             "there are None, 'relu'"),
            (lambda: nvfp4gemm.mm(a, same, out=np.empty(
                (4, 8, 2), np.float16)[..., 0]), ValueError, "rows or columns must be contiguous"),
            (lambda: nvfp4gemm.mm(a, same, out=np.empty((2, 3, 8), np.float16)[:, :2]), ValueError,
             "its leading dimensions cannot be seen as rows"),
            (lambda: nvfp4gemm.quantize([[1.0]]), TypeError, "x is list; expected a NumPy array"),
            (lambda: nvfp4gemm.quantize(normal(1, 4, 24)), nvfp4gemm.Error,
             "NVFP4_STATUS_INVALID_VALUE: k = 24 is not a multiple of 16"),
            (lambda: nvfp4gemm.quantize(normal(1, 4, 32), scale_layout="8x4"), ValueError,
             "scale_layout is '8x4'; there are '128x4', 'linear'"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                call()

    def test_an_error_has_number_and_name(self):
        with self.assertRaises(nvfp4gemm.Error) as raised:
            nvfp4gemm.quantize(normal(1, 4, 32), 0.0)
        self.assertEqual((raised.exception.status, raised.exception.name),
                         (22, "NVFP4_STATUS_INVALID_VALUE"))


if __name__ == "__main__":
    unittest.main()
