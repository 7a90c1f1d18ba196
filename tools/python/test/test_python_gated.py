# SPDX-License-Identifier: MIT
"""gated_linear beside its formula, and layouts.split_gate_up beside rows taken one by one."""
import unittest

import package  # noqa: F401
import numpy as np

import gpus
import nvfp4gemm
from nvfp4gemm import checkpoints, layouts

M, N, K = 5, 136, 96


def floats(seed, *shape, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def silu(x, alpha=1.0):
    return x / (1 + np.exp(-alpha * x))


class Gated(unittest.TestCase):
    def setUp(self):
        self.x = floats(1, M, K)
        self.gate, self.up = (nvfp4gemm.quantize(floats(seed, N, K)) for seed in (2, 3))
        self.biases = floats(4, N), floats(5, N)

    def halves(self, x, *, biased):
        x = x.astype(np.float64)
        found = [x @ w.dequantize().astype(np.float64).T for w in (self.gate, self.up)]
        return [y + bias if biased else y for y, bias in zip(found, self.biases)]

    def near(self, found, expected):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

    def test_by_the_formula(self):
        g, u = self.halves(self.x, biased=False)
        self.near(nvfp4gemm.gated_linear(self.x, self.gate, self.up, out_dtype=np.float32),
                  silu(g) * u)
        self.near(nvfp4gemm.gated_linear(self.x, self.gate, self.up, activation="relu",
                                         out_dtype=np.float32), np.maximum(g, 0) * u)

    def test_biases_limit_alpha_and_beta(self):
        g, u = self.halves(self.x, biased=True)
        found = nvfp4gemm.gated_linear(self.x, self.gate, self.up, *self.biases, limit=7,
                                       alpha=1.702, beta=1, out_dtype=np.float32)
        self.assertTrue((g > 7).any() and (u < -7).any())
        self.near(found, silu(np.minimum(g, 7), 1.702) * (np.clip(u, -7, 7) + 1))

    def test_quantized_input_and_leading_dimensions(self):
        cube = self.x.reshape(5, 1, K)
        a = nvfp4gemm.quantize(self.x, "rows")
        expected = nvfp4gemm.gated_linear(a, self.gate, self.up)
        for x, shape in ((self.x, (M, N)), (cube, (M, 1, N))):
            found = nvfp4gemm.gated_linear(x, self.gate, self.up, quantize_input=True)
            np.testing.assert_array_equal(found, expected.reshape(shape))
        g, u = self.halves(a.dequantize(), biased=False)
        self.near(nvfp4gemm.gated_linear(a, self.gate, self.up, out_dtype=np.float32), silu(g) * u)

    def test_rows_of_codes_apart(self):
        wide = np.zeros((N, 96), np.uint8)
        wide[:, :48] = self.up.codes
        up = self.up.replace(codes=wide[:, :48])
        np.testing.assert_array_equal(nvfp4gemm.gated_linear(self.x, self.gate, up),
                                      nvfp4gemm.gated_linear(self.x, self.gate, self.up))

    def test_what_does_not_fit_is_said(self):
        x, gate, up = self.x, self.gate, self.up
        other = nvfp4gemm.quantize(floats(6, N, K), format="mxfp4")
        per_row = nvfp4gemm.quantize(floats(6, N, K), "rows")
        rotated = up.replace()
        rotated.pre_quant_scale = np.ones(K, np.float32)
        for call, words in (
                (lambda: nvfp4gemm.gated_linear(x, gate, x), "up is ndarray; expected"),
                (lambda: nvfp4gemm.gated_linear(x, x, up), "gate is ndarray; expected"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up.slice_rows(0, 8)),
                 r"gate has shape \(136, 96\), up has shape \(8, 96\)"),
                (lambda: nvfp4gemm.gated_linear(x, gate, other), "gate has format nvfp4, up has"),
                (lambda: nvfp4gemm.gated_linear(x, gate, per_row), "up has a tensor scale for"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up.with_scales("linear")),
                 "up has scale_layout linear"),
                (lambda: nvfp4gemm.gated_linear(x, gate, rotated), "up has a pre_quant_scale"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, self.biases[0]),
                 "gate_bias and up_bias are given together"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, *self.biases[:1],
                                                self.biases[1].astype(np.float32)),
                 "gate_bias has type float16, up_bias has type float32"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, activation=None),
                 "activation is None"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, activation="relu", limit=7),
                 "limit, alpha and beta are of silu"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, alpha=0), "alpha is 0"),
                (lambda: nvfp4gemm.gated_linear(x, gate, up, limit=-1), "gate_limit")):
            with self.subTest(words), self.assertRaisesRegex(
                    (TypeError, ValueError, nvfp4gemm.Error), words):
                call()


class OnTorch(gpus.OnTorch):
    def test_a_layer(self):
        torch = self.torch
        for device in self.devices:
            x, *w = (torch.from_numpy(floats(seed, rows, K)).to(device).bfloat16()
                     for seed, rows in ((1, M), (2, N), (3, N)))
            gate, up = (nvfp4gemm.quantize(one) for one in w)
            for a in (x, nvfp4gemm.quantize(x)):
                values = a if a is x else a.dequantize()
                g, u = (values.double() @ one.dequantize().double().T for one in (gate, up))
                found = nvfp4gemm.gated_linear(a, gate, up, out_dtype=torch.float32)
                expected = torch.nn.functional.silu(g) * u
                torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-3)
            with self.assertRaisesRegex(ValueError, "x requires a gradient"):
                nvfp4gemm.gated_linear(x.clone().requires_grad_(), gate, up)

    def test_torch_compile_keeps_a_layer_whole(self):
        torch = self.torch
        for device in self.devices:
            x, bias, bias2, *w = (torch.from_numpy(floats(seed, *shape)).to(device).bfloat16()
                                  for seed, *shape in ((1, M, K), (4, N), (5, N), (2, N, K),
                                                       (3, N, K)))
            gate, up = (nvfp4gemm.quantize(one) for one in w)
            a, out = nvfp4gemm.quantize(x), torch.empty(M, N, device=device)
            cases = (
                lambda x: nvfp4gemm.gated_linear(x, gate, up) + 1,
                lambda x: nvfp4gemm.gated_linear(x.reshape(1, M, K), gate, up, bias, bias2, limit=7,
                                                 alpha=1.702, beta=1, out_dtype=torch.float32),
                lambda x: nvfp4gemm.gated_linear(x, gate, up, activation="gelu",
                                                 quantize_input=True,
                                                 batch_invariant=device == "cpu"),  # no kernel
                lambda x: nvfp4gemm.gated_linear(a, gate, up, out=out).sum() + x.sum())
            for i, layer in enumerate(cases):
                with self.subTest(device=device, case=i):
                    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
                    found, expected = compiled(x), layer(x)
                    self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
                    self.assertTrue(torch.equal(found, expected))
            with self.assertRaisesRegex(Exception, "x requires a gradient"):
                torch.compile(cases[0], fullgraph=True, backend="aot_eager")(
                    x.clone().requires_grad_())


class Split(unittest.TestCase):
    ORDERS = {
        ("halves", 1): (lambda n: range(n), lambda n: range(n, 2 * n)),
        ("halves_up_first", 1): (lambda n: range(n, 2 * n), lambda n: range(n)),
        ("alternating", 1): (lambda n: range(0, 2 * n, 2), lambda n: range(1, 2 * n, 2)),
        ("alternating_up_first", 1): (lambda n: range(1, 2 * n, 2), lambda n: range(0, 2 * n, 2)),
        ("alternating", 4): (lambda n: [i for i in range(2 * n) if i % 8 < 4],
                             lambda n: [i for i in range(2 * n) if i % 8 >= 4]),
    }

    def test_each_order(self):
        for rows in (24, 256):
            for format_ in ("nvfp4", "mxfp4"):
                both = nvfp4gemm.quantize(floats(7, rows, 64), format=format_)
                whole, bias = both.dequantize(), floats(8, rows)
                for (order, block), taken in self.ORDERS.items():
                    with self.subTest(order=order, block=block, rows=rows, format=format_):
                        parts = layouts.split_gate_up(both, order, block=block)
                        biases = layouts.split_gate_up(bias, order, block=block)
                        for part, one, which in zip(parts, biases, taken):
                            at = list(which(rows // 2))
                            np.testing.assert_array_equal(part.dequantize(), whole[at])
                            np.testing.assert_array_equal(one, bias[at])
                            self.assertEqual((part.format, part.scale_layout), (format_, "128x4"))

    def test_a_weight_of_a_checkpoint(self):
        packed = nvfp4gemm.quantize(floats(9, 12, 32), scale_layout="linear")
        both = checkpoints.weight(packed.codes, packed.scales.reshape(12, 2), 0.5)
        both = both.beside(bias=np.arange(12, dtype=np.float32), input_scale=0.25)
        gate, up = layouts.split_gate_up(both, "alternating")
        np.testing.assert_array_equal(gate.bias, np.arange(0, 12, 2))
        np.testing.assert_array_equal(up.bias, np.arange(1, 12, 2))
        self.assertEqual((gate.input_scale, up.tensor_scale), (0.25, 0.5))
        np.testing.assert_array_equal(layouts.split_gate_up(both)[1].bias, np.arange(6, 12))

    def test_what_cannot_be_taken_apart(self):
        both = nvfp4gemm.quantize(floats(7, 24, 64))
        rows = nvfp4gemm.quantize(floats(7, 24, 64), "rows")
        for call, words in (
                (lambda: layouts.split_gate_up(both, "pairs"), "order is 'pairs'; there are"),
                (lambda: layouts.split_gate_up(both, "alternating", block=5),
                 "both has 24 rows, no multiple of 10"),
                (lambda: layouts.split_gate_up(both.slice_rows(0, 7)), "both has 7 rows"),
                (lambda: layouts.split_gate_up(both, block=2), "block is 2"),
                (lambda: layouts.split_gate_up(both, "alternating", block=0), "block is 0"),
                (lambda: layouts.split_gate_up(rows, "alternating"), "cannot keep")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()


if __name__ == "__main__":
    unittest.main()
