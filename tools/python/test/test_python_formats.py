# SPDX-License-Identifier: MIT
"""MXFP4 and E2M1 with a UE8M0 scale per 16, through quantize, mm, linear, slices and modules,
beside the definitions of test/oracle/ue8m0.py; and the rule 4over6 of NVFP4."""
import copy
import os
import pickle
import sys
import unittest

import package
import numpy as np

try:
    import ml_dtypes
except ImportError as error:
    raise unittest.SkipTest("this Python has no ml_dtypes") from error

import gpus
import nvfp4gemm

sys.path.append(os.path.join(package.HERE, "../../../test/oracle"))
import four_over_six  # noqa: E402
import ue8m0  # noqa: E402

N, K = 136, 224
FORMATS = ue8m0.BLOCKS


def floats(seed, *shape, dtype=np.float32):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-9, 9, (*shape[:-1], 1)))
    return x.astype(np.float32).astype(dtype)


def nibbles(packed):
    codes = packed.codes[:, :packed.k // 2]
    return np.stack([codes & 15, codes >> 4], axis=2).reshape(packed.shape)


class Quantize(unittest.TestCase):
    def test_by_the_definition(self):
        for format_, block in FORMATS.items():
            for layout in ("128x4", "linear"):
                x = floats(1, N, K)
                x[3, :block], x[4, block:2 * block] = 0, 1e-40
                x[5, 0], x[6, 1] = 3e38, 1.5
                packed = nvfp4gemm.quantize(x, scale_layout=layout, format=format_)
                self.assertEqual((packed.format, packed.block, packed.tensor_scale),
                                 (format_, block, 1.0))
                codes, scales = ue8m0.quantized(x, block)
                linear = packed.with_scales("linear")
                np.testing.assert_array_equal(linear.scales.reshape(N, K // block), scales)
                np.testing.assert_array_equal(nibbles(packed), codes)
                with np.errstate(over="ignore"):  # 4 * 2^126 and more
                    values = ue8m0.values(codes, scales, block).astype(np.float32)
                np.testing.assert_array_equal(packed.dequantize(), values)

    def test_4over6_by_the_definition(self):
        for layout in ("128x4", "linear"):
            for scale in (None, 0.001, "rows"):
                x = floats(2, N, K)
                x[3, :16], x[5, 16:32] = 0, 12
                packed = nvfp4gemm.quantize(x, scale, scale_layout=layout, scale_rule="4over6")
                self.assertEqual((packed.format, packed.scale_layout), ("nvfp4", layout))
                codes, scales = four_over_six.quantized(x, packed.tensor_scale)
                linear = packed.with_scales("linear")
                np.testing.assert_array_equal(linear.scales.reshape(N, K // 16), scales)
                np.testing.assert_array_equal(nibbles(packed), codes)
                plain = nvfp4gemm.quantize(x, scale, scale_layout=layout)
                np.testing.assert_array_equal(plain.tensor_scale, packed.tensor_scale)
                self.assertFalse(np.array_equal(plain.scales, packed.scales))

    def test_4over6_has_less_error_on_normal_weights(self):
        x = np.random.default_rng(7).standard_normal((64, 1024)).astype(np.float32)
        plain, other = (nvfp4gemm.quantize(x, scale_rule=rule) for rule in (None, "4over6"))
        errors = [np.linalg.norm(packed.dequantize() - x) for packed in (plain, other)]
        self.assertLess(errors[1], 0.94 * errors[0])
        self.assertGreater(errors[1], 0.91 * errors[0])

    def test_what_a_format_has_not_is_refused(self):
        x = np.ones((2, 48), np.float32)
        for call, said in (
                (lambda: nvfp4gemm.quantize(x, format="mxfp8"), "format is 'mxfp8'; there are"),
                (lambda: nvfp4gemm.quantize(x, scale_rule="mae"), "scale_rule is 'mae'; there are "
                 "None, '4over6'"),
                (lambda: nvfp4gemm.quantize(x, scale_rule="4over6", format="e2m1_ue8m0"),
                 "scale_rule is '4over6'; e2m1_ue8m0 has none"),
                (lambda: nvfp4gemm.quantize(x, format="mxfp4"), "k = 48 is not a multiple of 32"),
                (lambda: nvfp4gemm.quantize(x, 0.5, format="e2m1_ue8m0"), "e2m1_ue8m0 has none"),
                (lambda: nvfp4gemm.quantize(x, "rows", format="e2m1_ue8m0"), "has none"),
                (lambda: nvfp4gemm.quantize(x, format="e2m1_ue8m0").replace(tensor_scale=2.0),
                 "tensor_scale is 2.0; e2m1_ue8m0 has none"),
                (lambda: nvfp4gemm.quantize(x).replace(format="mxfp4"), "k = 48 is not a multiple"),
                (lambda: nvfp4gemm.mm(nvfp4gemm.quantize(x),
                                      nvfp4gemm.quantize(x, format="e2m1_ue8m0")),
                 "a is in nvfp4, b in e2m1_ue8m0")):
            with self.assertRaisesRegex((ValueError, nvfp4gemm.Error), said):
                call()


class Multiply(unittest.TestCase):
    def test_by_the_definition(self):
        x = floats(2, 5, K, dtype=ml_dtypes.bfloat16)
        bias = floats(4, N)
        for format_ in FORMATS:
            weight = nvfp4gemm.quantize(floats(3, N, K), format=format_)
            w = weight.dequantize().astype(np.float64)
            for a in (x, nvfp4gemm.quantize(x, format=format_)):
                values = (x if a is x else a.dequantize()).astype(np.float64)
                y = nvfp4gemm.mm(a, weight, np.float32, bias=bias)
                bound = (np.abs(values) @ np.abs(w).T + np.abs(bias)) * 2.0 ** -22
                self.assertTrue((np.abs(y - (values @ w.T + bias)) <= bound).all())
            np.testing.assert_array_equal(
                nvfp4gemm.linear(x, weight, bias, quantize_input=True),
                nvfp4gemm.mm(nvfp4gemm.quantize(x, format=format_), weight, x.dtype, bias=bias))

    def test_of_scales_that_are_1_as_nvfp4(self):
        rng = np.random.default_rng(5)
        codes = [rng.integers(0, 256, (rows, K // 2), np.uint8) for rows in (7, N)]

        def product(format_, one):
            block = FORMATS.get(format_, 16)
            a, b = (nvfp4gemm.Packed(c, np.full(c.size * 2 // block, one, np.uint8), len(c), K, 1.0,
                                     "linear", format_) for c in codes)
            return nvfp4gemm.mm(a, b, np.float32)

        expected = product("nvfp4", 0x38)
        for format_ in FORMATS:
            np.testing.assert_array_equal(product(format_, 127), expected)

    def test_what_is_left_for_later_is_refused(self):
        x = floats(10, 3, K)
        weight = nvfp4gemm.quantize(floats(3, N, K), format="mxfp4")
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.uint8, np.float32):
            a, name = x.astype(dtype), np.dtype(dtype).name
            for call, said in ((lambda: nvfp4gemm.mm(a, weight), f"a is of {name}; expected"),
                               (lambda: nvfp4gemm.linear(a, weight), f"x is of {name}; expected")):
                with self.subTest(name), self.assertRaisesRegex(TypeError, said):
                    call()
        for layout in ("8x4", "deepgemm"):
            said = f"scale_layout is '{layout}'; there are '128x4', 'linear'"
            for call in (lambda: nvfp4gemm.quantize(x, format="mxfp4", scale_layout=layout),
                         lambda: weight.with_scales(layout)):
                with self.subTest(layout), self.assertRaisesRegex(ValueError, said):
                    call()


class Parts(unittest.TestCase):
    def test_slices_have_the_values_of_the_whole(self):
        for format_, block in FORMATS.items():
            for layout in ("128x4", "linear"):
                packed = nvfp4gemm.quantize(floats(6, 300, K), scale_layout=layout, format=format_)
                whole = packed.dequantize()
                for begin, end in ((0, 128), (128, 300), (37, 165), (5, 5)):
                    part = packed.slice_rows(begin, end)
                    self.assertEqual((part.format, part.scale_layout), (format_, layout))
                    np.testing.assert_array_equal(part.dequantize(), whole[begin:end])
                for begin, end in ((0, 128), (128, 224), (64, 192), (32, 96), (96, 224)):
                    part = packed.slice_k(begin, end)
                    np.testing.assert_array_equal(part.dequantize(), whole[:, begin:end])
                if block == 32:
                    with self.assertRaisesRegex(ValueError, "k 16 to 64 are no multiples of 32"):
                        packed.slice_k(16, 64)

    def test_copies_and_words(self):
        packed = nvfp4gemm.quantize(floats(7, 40, 64), format="mxfp4")
        self.assertIn("[40, 64], mxfp4", repr(packed))
        for again in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
            self.assertEqual(again.format, "mxfp4")
            np.testing.assert_array_equal(again.dequantize(), packed.dequantize())
        both = nvfp4gemm.checkpoints.fuse([packed, packed])
        np.testing.assert_array_equal(both.dequantize(), np.tile(packed.dequantize(), (2, 1)))


class OnTorch(gpus.OnTorch):
    def test_a_layer_compiled_and_with_gradients(self):
        torch = self.torch
        from nvfp4gemm.nn import Linear
        for device in self.devices:
            for format_ in FORMATS:
                w = torch.from_numpy(floats(8, N, K)).to(device)
                weight = nvfp4gemm.quantize(w, format=format_)
                here = nvfp4gemm.quantize(w.cpu().numpy(), format=format_)
                np.testing.assert_array_equal(weight.dequantize().cpu().numpy(), here.dequantize())
                for quantize_input in (False, True):
                    layer = Linear(weight, quantize_input=quantize_input)
                    x = torch.from_numpy(floats(9, 5, K)).to(device).bfloat16()
                    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
                    y = layer(x)
                    self.assertTrue(torch.equal(compiled(x), y))
                    x.requires_grad_()
                    layer(x).sum().backward()
                    expected = torch.ones_like(y) @ weight.dequantize(torch.bfloat16)
                    torch.testing.assert_close(x.grad, expected)
                self.states(layer, Linear(nvfp4gemm.quantize(w)), x.detach())

    def states(self, layer, nvfp4, x):
        again = copy.deepcopy(layer)
        again.codes.zero_()
        again.load_state_dict(layer.state_dict())
        self.assertTrue(self.torch.equal(again(x), layer(x)))
        for one, other in ((layer, nvfp4), (nvfp4, layer)):
            with self.assertRaises(RuntimeError):
                copy.deepcopy(one).load_state_dict(other.state_dict())


if __name__ == "__main__":
    unittest.main()
