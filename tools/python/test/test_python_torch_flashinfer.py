# SPDX-License-Identifier: MIT
"""nvfp4gemm.flashinfer_api on the CPU, beside float64 and beside the package's own calls, and a
Packed of float4_e2m1fn_x2 codes. SIGNATURES is FlashInfer's of flashinfer-python 0.7.4."""
import inspect
import os
import unittest
from unittest import mock

import package  # noqa: F401

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

from torch.fx.experimental.proxy_tensor import make_fx

import gpus
import nvfp4gemm
from nvfp4gemm import flashinfer_api as api
from nvfp4gemm import layouts
from nvfp4gemm._kept import Kept

SIGNATURES = {
    "mm_fp4": "a b a_descale b_descale alpha=None out_dtype=torch.bfloat16 out=None block_size=16 "
              "use_8x4_sf_layout=False backend='auto' use_nvfp4=True enable_pdl=True * "
              "batch_invariant=False",
    "grouped_mm_fp4": "a b a_descale b_descale m_indptr alpha=None out=None "
                      "out_dtype=torch.bfloat16 block_size=16 * backend='cudnn' tactic=-1",
    "prepare_bf16_fp4_weights": "b b_descale alpha=None * backend block_size=16",
    "mm_bf16_fp4": "a b b_descale alpha=None * backend out_dtype=None out=None block_size=16 "
                   "enable_pdl=True",
    "fp4_linear_swiglu": "a_packed a_block_scale a_global_scale weight_packed weight_block_scale "
                         "weight_global_scale bias=None * out_dtype=torch.bfloat16 "
                         "output_quant_scale=None out=None",
    "nvfp4_quantize": "a a_global_sf sfLayout=0 do_shuffle=False sf_vec_size=16 enable_pdl=None "
                      "backend='auto' per_token_activation=False expanded_idx_to_permuted_idx=None "
                      "out_scale=None nvfp4_4over6=_UNSET * batch_invariant=False",
}
M, N, K = 37, 136, 208


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def factor(x):
    """What FlashInfer's callers pass as the global scale."""
    return 448 * 6 / x.float().abs().max()


def quantized(x, **options):
    """(codes, scales, global scale, values in float64)."""
    scale = factor(x)
    codes, scales = api.nvfp4_quantize(x, scale, **options)
    made = nvfp4gemm.quantize(x, float(1 / scale))
    return codes, scales, scale, made.dequantize(torch.float32).double()


def mxfp4(x):
    made = nvfp4gemm.quantize(x, format="mxfp4")
    return made.codes[:, :x.shape[1] // 2].contiguous(), made.scales, made.dequantize().double()


class Same(unittest.TestCase):
    def near(self, found, exact, bound=.005):
        self.assertEqual(tuple(found.shape), tuple(exact.shape))
        error = float((found.double() - exact).norm() / exact.norm())
        self.assertLess(error, bound)


class Signatures(unittest.TestCase):
    def test_names_and_defaults(self):
        for name, expected in SIGNATURES.items():
            said = []
            for one in inspect.signature(getattr(api, name)).parameters.values():
                if one.kind is one.KEYWORD_ONLY and "*" not in said:
                    said.append("*")
                default = "_UNSET" if one.default is api._UNSET else (
                    int(one.default) if isinstance(one.default, api.SfLayout) else one.default)
                said.append(one.name if one.default is one.empty else
                            f"{one.name}={default if default == '_UNSET' else repr(default)}")
            self.assertEqual(" ".join(said), expected, name)


class Quantize(Same):
    def test_layouts(self):
        x = drawn(1, M, K)
        made = nvfp4gemm.quantize(x, float(1 / factor(x)))
        linear = made.with_scales("linear").scales.reshape(M, K // 16)
        shapes = {"128x4": (128, 16), "8x4": (40, 16), "linear": (M, K // 16)}
        for name, shape in shapes.items():
            codes, scales = api.nvfp4_quantize(x, factor(x), getattr(api.SfLayout,
                                                                     f"layout_{name}"))
            self.assertEqual((codes.shape, scales.shape), ((M, K // 2), shape))
            self.assertTrue(torch.equal(codes, made.codes[:, :K // 2]))
            again = layouts.from_flashinfer(codes, scales, factor(x), layout=name)
            self.assertTrue(torch.equal(again.with_scales("linear").scales.reshape(M, K // 16),
                                        linear))
            self.assertTrue(torch.equal(again.dequantize(), made.dequantize()))

    def test_a_scale_for_each_row(self):
        x = drawn(2, M, K)
        codes, scales, rows = api.nvfp4_quantize(x, 1 / 2688, per_token_activation=True)
        made = nvfp4gemm.quantize(x, "rows")
        self.assertTrue(torch.equal(codes, made.codes[:, :K // 2]))
        self.assertTrue(torch.equal(rows, made.tensor_scale))

    def test_numbers_and_tensors(self):
        x = drawn(3, 8, 32).half()
        one, other = (api.nvfp4_quantize(x, scale) for scale in (
            factor(x).reshape(1), float(factor(x))))
        self.assertTrue(all(map(torch.equal, one, other)))


class Products(Same):
    def test_mm_fp4(self):
        a, b = drawn(1, M, K), drawn(2, N, K)
        b_codes, b_scales, b_factor, b_values = quantized(b)
        for layout in ("128x4", "8x4"):
            codes, scales, a_factor, values = quantized(
                a, sfLayout=getattr(api.SfLayout, f"layout_{layout}"))
            alpha = 1 / (a_factor * b_factor)
            found = api.mm_fp4(codes, b_codes.T, scales, b_scales.T, alpha,
                               use_8x4_sf_layout=layout == "8x4")
            self.assertEqual(found.dtype, torch.bfloat16)
            self.near(found, values @ b_values.T)
            for other in (float(alpha), alpha.reshape(1)):
                self.assertTrue(torch.equal(found, api.mm_fp4(
                    codes, b_codes.T, scales, b_scales.T, other,
                    use_8x4_sf_layout=layout == "8x4", enable_pdl=False)))

    def test_types_of_one_byte(self):
        a, b = drawn(1, M, K), drawn(2, N, K)
        codes, scales, *_ = quantized(a)
        b_codes, b_scales, *_ = quantized(b)
        expected = api.mm_fp4(codes, b_codes.T, scales, b_scales.T)
        found = api.mm_fp4(codes.view(torch.float4_e2m1fn_x2),
                           b_codes.view(torch.float4_e2m1fn_x2).T,
                           scales.view(torch.float8_e4m3fn), b_scales.view(torch.float8_e4m3fn).T)
        self.assertTrue(torch.equal(found, expected))

    def test_a_factor_for_each_row(self):
        a, b = drawn(1, M, K), drawn(2, N, K)
        codes, scales, rows = api.nvfp4_quantize(a, 1 / 2688, per_token_activation=True)
        b_codes, b_scales, b_factor, b_values = quantized(b)
        found = api.mm_fp4(codes, b_codes.T, scales, b_scales.T, rows / b_factor)
        self.near(found, nvfp4gemm.quantize(a, "rows").dequantize().double() @ b_values.T)

    def test_out_and_its_type(self):
        codes, scales, *_ = quantized(drawn(1, M, K))
        b_codes, b_scales, *_ = quantized(drawn(2, N, K))
        out = torch.empty(M, N, dtype=torch.float16)
        given = codes, b_codes.T, scales, b_scales.T, 1e-4
        self.assertIs(api.mm_fp4(*given, out=out, batch_invariant=True), out)
        self.assertTrue(torch.equal(out, api.mm_fp4(*given, torch.float16)))

    def test_mxfp4(self):
        a, b = drawn(1, M, 224), drawn(2, N, 224)
        codes, scales, values = mxfp4(a)
        b_codes, b_scales, b_values = mxfp4(b)
        for view in (torch.uint8, torch.float8_e8m0fnu):
            found = api.mm_fp4(codes, b_codes.T, scales.view(view), b_scales.view(view), 0.5,
                               block_size=32, use_nvfp4=False)
            self.near(found, values @ b_values.T / 2)

    def test_bf16_fp4(self):
        for k in (K, 192):
            a, b = drawn(1, M, k), drawn(2, N, k)
            codes, scales, scale, values = quantized(b)
            alpha = (1 / scale).reshape(1)
            given = api.prepare_bf16_fp4_weights(codes, scales, alpha, backend="cute-dsl")
            for _ in range(2):
                found = api.mm_bf16_fp4(a, *given, backend="cute-dsl")
                self.near(found, a.double() @ values.T)
            codes.copy_(quantized(drawn(3, N, k))[0])  # what is kept follows
            again = api.mm_bf16_fp4(a, codes.clone(), scales, alpha, backend="cudnn")
            self.assertTrue(torch.equal(api.mm_bf16_fp4(a, *given, backend="cute-dsl"), again))
            self.assertFalse(torch.equal(found, again))

    def test_compiled(self):
        codes, scales, *_ = quantized(drawn(1, M, K))
        b_codes, b_scales, *_ = quantized(drawn(2, N, K))
        alpha = torch.tensor([1e-4])

        def call(codes, alpha):
            return api.mm_fp4(codes, b_codes.T, scales, b_scales.T, alpha)

        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(codes, alpha), call(codes, alpha)))


class Grouped(Same):
    def operands(self, n, make):
        parts = [make(drawn(10 + e, n, 224)) for e in range(3)]
        return (torch.stack([part[0] for part in parts]),
                torch.stack([part[1].reshape(-1) for part in parts]),
                [part[-1] for part in parts])

    def test_groups(self):
        ends = torch.tensor([0, 20, 20, M], dtype=torch.int32)
        for n in (N, 128):
            for make, options in ((quantized, {}), (mxfp4, {"block_size": 32})):
                tokens = make(drawn(1, M, 224))
                codes, scales, values = self.operands(n, make)
                alpha = torch.tensor([0.25]) if make is quantized else 0.25
                scale = 1.0
                if make is quantized:  # each expert has its own values, one global scale for all
                    values = [nvfp4gemm.Packed(c, s, n, 224).dequantize().double()
                              for c, s in zip(codes, scales)]
                    scale = float(tokens[2])
                exact = torch.cat([scale * tokens[-1][begin:end] @ value.T / 4 for begin, end, value
                                   in zip(ends.tolist(), ends[1:].tolist(), values)])
                found = api.grouped_mm_fp4(tokens[0], codes, tokens[1], scales, ends, alpha,
                                           **options)
                self.near(found, exact)
                out = torch.empty(M, n, dtype=torch.float32)
                self.assertIs(out, api.grouped_mm_fp4(tokens[0], codes, tokens[1], scales, ends,
                                                      alpha, out, **options))
                self.near(out, exact, 1e-5)


class SwiGlu(Same):
    def test_pairs(self):
        for k in (K, 192):
            a, w, bias = drawn(1, M, k), drawn(2, N, k), drawn(3, N)
            codes, scales, a_factor, values = quantized(a)
            w_codes, w_scales, w_factor, w_values = quantized(w)
            given = (codes, scales.reshape(-1), float(1 / a_factor), w_codes, w_scales.reshape(-1),
                     float(1 / w_factor))
            for b in (None, bias):
                y = values @ w_values.T + (0 if b is None else b.double())
                exact = y[:, 0::2] * torch.nn.functional.silu(y[:, 1::2])
                self.near(api.fp4_linear_swiglu(*given, b), exact)
            out = torch.empty(M, N // 2)
            self.assertIs(api.fp4_linear_swiglu(*given, bias, out=out), out)
            self.near(out, exact, 1e-5)

    def test_rows_are_taken_apart_once(self):
        codes, scales, *_ = quantized(drawn(1, M, K))
        w_codes, w_scales, *_ = quantized(drawn(2, N, K))
        given = codes, scales, 0.01, w_codes, w_scales
        with mock.patch.object(api, "split_gate_up", wraps=api.split_gate_up) as split:
            first = api.fp4_linear_swiglu(*given, 0.01)
            self.assertTrue(torch.equal(first, api.fp4_linear_swiglu(*given, 0.01)))
            self.assertEqual(split.call_count, 1)
            self.assertFalse(torch.equal(first, api.fp4_linear_swiglu(*given, 0.02)))
            w_codes.copy_(w_codes.flip(0))
            self.assertFalse(torch.equal(first, api.fp4_linear_swiglu(*given, 0.01)))
            self.assertEqual(split.call_count, 3)

    def test_tensors_of_inference_mode(self):
        """They count no changes: what was copied is not kept, nor what had to be copied."""
        with torch.inference_mode():
            for apart in (False, True):
                kept, made = Kept(), []
                base = torch.zeros(6, 64, dtype=torch.uint8)
                x = base[:, :32] if apart else base
                for _ in range(2):
                    kept.of((x,), None, lambda: made.append(None), copies=False)
                self.assertEqual(len(made), 1 + apart)


WHY_NOT = gpus.why_not(torch, 1)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class OnAGpu(Same):
    """The same calls there, beside the CPU."""

    def both(self, call, *arguments, bound=.005):
        def moved(device):
            return [one.to(device) if isinstance(one, torch.Tensor) else one for one in arguments]

        self.near(call(*moved("cuda")).cpu(), call(*moved("cpu")).double(), bound)

    def test_products(self):
        a, b = drawn(1, M, 224), drawn(2, N, 224)
        codes, scales, *_ = quantized(a)
        b_codes, b_scales, *_ = quantized(b)
        alpha, bias = torch.tensor([1e-6]), drawn(3, N)
        self.both(lambda *x: api.mm_fp4(x[0], x[1].T, x[2], x[3].T, x[4]), codes, b_codes, scales,
                  b_scales, alpha)
        self.both(lambda *x: api.mm_bf16_fp4(*x, backend="cudnn"), a, b_codes, b_scales, alpha)
        self.both(lambda a, s, b, t, c: api.fp4_linear_swiglu(a, s, 1e-3, b, t, 1e-3, c), codes,
                  scales, b_codes, b_scales, bias)
        ends = torch.tensor([0, 5, 5, M], dtype=torch.int32)
        self.both(api.grouped_mm_fp4, codes, torch.stack([b_codes] * 3), scales,
                  torch.stack([b_scales] * 3), ends, alpha)
        self.both(lambda x, y, c: nvfp4gemm.mm(x, nvfp4gemm.quantize(y), alpha=c), a, b, alpha)

    def test_quantize(self):
        a = drawn(1, M, K)
        for layout in api.SfLayout:
            found = api.nvfp4_quantize(a.cuda(), factor(a).cuda(), layout)
            for one, other in zip(found, api.nvfp4_quantize(a, factor(a), layout)):
                self.assertEqual(one.shape, other.shape)
            again, other = (layouts.from_flashinfer(
                *(part.cpu() for part in parts), layout=layout.name.removeprefix("layout_"))
                for parts in (found, api.nvfp4_quantize(a, factor(a), layout)))
            self.assertTrue(torch.equal(again.dequantize(), other.dequantize()))


class Refused(unittest.TestCase):
    def setUp(self):
        self.codes, self.scales, *_ = quantized(drawn(1, M, K))
        self.b, self.b_scales, *_ = quantized(drawn(2, N, K))
        self.x = drawn(1, M, K)

    def refused(self, function, arguments, changes):
        for change, words in changes:
            with self.subTest(f"{function.__name__}: {words}"):
                with self.assertRaisesRegex((ValueError, TypeError), words):
                    function(**{**arguments, **change})

    def test_mm_fp4(self):
        self.refused(api.mm_fp4, dict(a=self.codes, b=self.b.T, a_descale=self.scales,
                                      b_descale=self.b_scales.T), (
            ({"backend": "trtllm"}, "^backend is 'trtllm'; .* rows shuffled"),
            ({"block_size": 32}, "^block_size is 32; expected 16, since use_nvfp4 is True"),
            ({"use_nvfp4": False}, "^block_size is 16; expected 32"),
            ({"a": self.codes[0]}, r"^a is torch.uint8 \(104,\); .* of 2 dimensions"),
            ({"a": self.codes.int()}, "^a is torch.int32 .*; expected torch.uint8 or torch.float4"),
            ({"a": self.codes[:, :100]}, "^a is .*: k = 200 is no multiple of 16"),
            ({"b": self.b}, r"^b is \(136, 104\), a \(37, 104\); expected b \(104, n\)"),
            ({"b": self.b.T.contiguous()}, "^b is .* strides .*; expected the transpose"),
            ({"b_descale": self.b_scales}, r"^b_descale is \(256, 16\) .*; expected the transpose"),
            ({"b_descale": self.b_scales.T.float()}, "^b_descale is torch.float32"),
            ({"a_descale": self.scales[:64]}, r"^a_descale is \(64, 16\), 1024 bytes; expected 2048"
                                              r", 128x4 tiles of \[37, 208\]"),
            ({"use_8x4_sf_layout": True}, "^a_descale is .*; expected 640, 8x4 tiles"),
            ({"alpha": torch.ones(2)}, r"^alpha is torch.float32 \(2,\); .* or 37, one for each"),
            ({"alpha": torch.ones(1).double()}, "^alpha is torch.float64"),
            ({"alpha": torch.ones(1, device="meta")}, "^alpha lies on meta, a on cpu"),
            ({"out_dtype": torch.int8}, "^out_dtype is "),
            ({"out": torch.empty(3, N)}, r"^out is \(3, 136\), expected \(37, 136\)")))
        codes, scales, _ = mxfp4(drawn(1, M, 224))
        self.refused(api.mm_fp4, dict(a=codes, b=codes.T, a_descale=scales, b_descale=scales,
                                      use_nvfp4=False, block_size=32), (
            ({"alpha": torch.ones(1)}, "^alpha is a tensor, use_nvfp4 False; expected None"),))

    def test_grouped_mm_fp4(self):
        ends = torch.tensor([0, 5, M], dtype=torch.int32)
        self.refused(api.grouped_mm_fp4, dict(
            a=self.codes, b=torch.stack([self.b] * 2), a_descale=self.scales,
            b_descale=torch.stack([self.b_scales] * 2), m_indptr=ends), (
            ({"backend": "cutlass"}, "^backend is 'cutlass'; expected 'cudnn'"),
            ({"tactic": 3}, "^tactic is 3; expected -1"),
            ({"block_size": 8}, "^block_size is 8; expected 16 or 32"),
            ({"b": self.b}, "^b is .* of 3 dimensions"),
            ({"b_descale": self.b_scales}, "^b_descale is .*; expected 8192, 2 times 128x4 tiles"),
            ({"m_indptr": ends.long()}, "^m_indptr is torch.int64"),
            ({"m_indptr": ends[1:]}, r"^m_indptr is \(2,\); expected \(3,\)"),
            ({"m_indptr": ends + 1}, r"^m_indptr is \[1, 6, 38\]; expected 0 first"),
            ({"alpha": torch.ones(2)}, "^alpha is torch.float32 .*; expected torch.float32 of on")))

    def test_bf16_fp4(self):
        for function, more in ((api.prepare_bf16_fp4_weights, {}),
                               (api.mm_bf16_fp4, {"a": self.x})):
            given = dict(b=self.b, b_descale=self.b_scales, backend="cudnn", **more)
            self.refused(function, given, (
                ({"backend": "auto"}, "^backend is 'auto'; expected 'cudnn' or"),
                ({"block_size": 32}, "^block_size is 32; expected 16"),
                ({"b": self.b.int()}, "^b is torch.int32"),
                ({"b_descale": self.b_scales[1:]}, "^b_descale is "),
                ({"alpha": torch.ones(3)}, "^alpha is ")))
        self.refused(api.mm_bf16_fp4, dict(a=self.x, b=self.b, b_descale=self.b_scales,
                                           backend="cudnn"), (
            ({"a": self.x.float()}, "^a is torch.float32"),
            ({"a": self.x[:, :192].contiguous()}, "^a has k = 192, b has k = 208")))

    def test_fp4_linear_swiglu(self):
        self.refused(api.fp4_linear_swiglu, dict(
            a_packed=self.codes, a_block_scale=self.scales, a_global_scale=1.0,
            weight_packed=self.b, weight_block_scale=self.b_scales, weight_global_scale=1.0), (
            ({"out_dtype": torch.uint8}, "^out_dtype is torch.uint8; expected torch.bfloat16"),
            ({"out_dtype": torch.float8_e4m3fn}, "^out_dtype is "),
            ({"output_quant_scale": torch.ones(1)}, "^output_quant_scale is "),
            ({"weight_packed": self.b[1:]}, r"^weight_packed is \(135, 104\).* n even"),
            ({"a_packed": self.codes[:, :96]}, "^weight_packed is .*; expected .n, 96."),
            ({"weight_block_scale": self.b_scales[1:]}, "^weight_block_scale is "),
            ({"a_block_scale": self.scales[1:]}, "^a_block_scale is "),
            ({"a_global_scale": torch.ones(1)}, "^a_global_scale is Tensor; expected a number"),
            ({"bias": torch.ones(3)}, r"^bias is \(3,\); expected \(136,\)")))

    def test_nvfp4_quantize(self):
        self.refused(api.nvfp4_quantize, dict(a=self.x, a_global_sf=1.0), (
            ({"a": self.x.float()}, "^a is torch.float32"),
            ({"a": self.x.to(torch.float8_e4m3fn)}, "^a is torch.float8_e4m3fn"),
            ({"a": self.x[:, :200]}, "^a is .*: k = 200"),
            ({"do_shuffle": True}, "^do_shuffle is True; expected False"),
            ({"sf_vec_size": 32}, "^sf_vec_size is 32; expected 16"),
            ({"sfLayout": 7}, "^sfLayout is 7; expected <SfLayout.layout_128x4: 0> or"),
            ({"backend": "triton"}, "^backend is 'triton'"),
            ({"per_token_activation": True}, "^a_global_sf is 1.0, .*; expected 1 / 2688"),
            ({"out_scale": torch.ones(1)}, "^out_scale is "),
            ({"nvfp4_4over6": "mse"}, "^nvfp4_4over6 is 'mse'; expected None"),
            ({"expanded_idx_to_permuted_idx": self.x}, "^expanded_idx_to_permuted_idx is ")))
        with mock.patch.dict(os.environ, {"FLASHINFER_NVFP4_4OVER6": "1"}):
            self.refused(api.nvfp4_quantize, dict(a=self.x, a_global_sf=1.0), (
                ({}, "^nvfp4_4over6 is left to FLASHINFER_NVFP4_4OVER6, which is '1'"),))
            api.nvfp4_quantize(self.x, 1.0, nvfp4_4over6=None)


class PackedOfTheirTypes(unittest.TestCase):
    def test_codes_and_scales(self):
        for format_, type_ in (("nvfp4", torch.float8_e4m3fn), ("mxfp4", torch.float8_e8m0fnu),
                               ("e2m1_ue8m0", torch.float8_e8m0fnu)):
            made = nvfp4gemm.quantize(drawn(1, N, 192), format=format_)
            again = nvfp4gemm.Packed(made.codes.view(torch.float4_e2m1fn_x2),
                                     made.scales.view(type_), N, 192, made.tensor_scale,
                                     format=format_)
            self.assertEqual((again.codes.data_ptr(), again.scales.data_ptr(), again.codes.dtype,
                              again.scales.dtype),
                             (made.codes.data_ptr(), made.scales.data_ptr(), torch.uint8,
                              torch.uint8))
            stacked = nvfp4gemm.Stack(made.codes.view(torch.float4_e2m1fn_x2)[None],
                                      made.scales.view(type_), 1, N, 192, format=format_)
            self.assertEqual(stacked.codes.dtype, torch.uint8)
            other = torch.float8_e8m0fnu if format_ == "nvfp4" else torch.float8_e4m3fn
            with self.assertRaisesRegex(TypeError, f"^scales are of {other}"):
                nvfp4gemm.Packed(made.codes, made.scales.view(other), N, 192, format=format_)

    def test_alpha_on_the_device(self):
        a, b = drawn(1, M, 192), drawn(2, N, 192)
        c = drawn(3, M, N)
        for scale in (None, 0.01):
            weight = nvfp4gemm.quantize(b, scale)
            for alpha in (torch.tensor(0.25), torch.tensor([[2.0]])):
                for operand in (a, nvfp4gemm.quantize(a)):
                    self.assertTrue(torch.equal(
                        nvfp4gemm.mm(operand, weight, torch.float32, alpha=alpha, c=c, beta=2.0),
                        nvfp4gemm.mm(operand, weight, torch.float32, alpha=float(alpha), c=c,
                                     beta=2.0)))

        def call(x, alpha):
            return nvfp4gemm.mm(x, weight, alpha=alpha)

        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(a, alpha), call(a, alpha)))
        x = a.clone().requires_grad_()
        call(x, alpha).float().sum().backward()
        gradient, x.grad = x.grad, None
        nvfp4gemm.mm(x, weight, alpha=float(alpha)).float().sum().backward()
        self.assertTrue(torch.allclose(gradient.float(), x.grad.float(), rtol=.01))

    def test_alpha_that_is_refused(self):
        a, weight = drawn(1, M, 192), nvfp4gemm.quantize(drawn(2, N, 192))
        for alpha, words in ((torch.ones(2), "alpha is .*; expected a number or one float32"),
                             (torch.ones(1).half(), "alpha is of torch.float16; expected float32"),
                             (torch.ones(1, device="meta"), "alpha lies on meta"),
                             (torch.ones(1, requires_grad=True), "alpha requires a gradient"),
                             ("one", "alpha is str; expected a number")):
            with self.subTest(words), self.assertRaisesRegex((TypeError, ValueError), words):
                nvfp4gemm.mm(a, weight, alpha=alpha)
        for alpha in (torch.ones(2), torch.ones(1).half()):
            with self.assertRaisesRegex(Exception, "alpha is torch.float.*; expected a number or"):
                make_fx(lambda x, y: nvfp4gemm.mm(x, weight, alpha=y))(a, alpha)
        with self.assertRaisesRegex(TypeError, "alpha is Tensor, b in mxfp4; expected a number"):
            nvfp4gemm.mm(a, nvfp4gemm.quantize(drawn(2, N, 192), format="mxfp4"),
                         alpha=torch.ones(1))


if __name__ == "__main__":
    unittest.main()
