# SPDX-License-Identifier: MIT
"""Calls that something of torch looks at: tracers, dispatch modes, transforms of torch.func and
forward-mode AD. Each gives what the call at once gives, or a refusal that says what to do."""
import copy
import subprocess
import sys
import unittest
import warnings

import package  # noqa: F401

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import gpus
import nvfp4gemm
from nvfp4gemm import nn

WHY_NOT = gpus.why_not(torch, 1)
HOPPER = not WHY_NOT and torch.cuda.get_device_capability() == (9, 0)
M, N, K = 5, 48, 64


def normal(seed, *shape, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).half().to(device)


def near(a, b):
    torch.testing.assert_close(a.float(), b.float(), rtol=2 ** -7, atol=2 ** -6)


class Names(TorchDispatchMode):
    """The operators of this package that torch was shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "nvfp4gemm":
            self.seen.append(func._schema.name.partition("::")[2])
        return func(*args, **(kwargs or {}))


class Calls(unittest.TestCase):
    """Every call of the package that computes, of an x."""
    device = "cpu"

    def normal(self, seed, *shape):
        return normal(seed, *shape, device=self.device)

    def same(self, found, expected):
        """Bit for bit; on a GPU a batch may select another variant, with an order of its own."""
        if self.device == "cpu":
            self.assertTrue(torch.equal(found, expected))
        else:
            near(found, expected)

    def setUp(self):
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        self.addCleanup(warnings.resetwarnings)
        self.x, self.other = self.normal(1, M, K), self.normal(2, M, K)
        self.bias, c = self.normal(3, N), self.normal(7, M, N)
        self.weight = w = nvfp4gemm.quantize(self.normal(4, N, K))
        self.w = w.dequantize()
        up, packed = (nvfp4gemm.quantize(self.normal(seed, rows, K))
                      for seed, rows in ((5, N), (6, M)))
        many, ups = nvfp4gemm.stack([w, w]), nvfp4gemm.stack([up, w])  # one tensor scale, and two
        ends = torch.tensor([2, M], dtype=torch.int32, device=self.device)
        layer = nn.Linear(w, self.bias)

        def into(call, *shape):
            def made(x):
                out = torch.full(shape, 7.0, device=self.device)
                call(x, out)
                return out
            return made

        self.calls = {
            "linear": lambda x: nvfp4gemm.linear(x, w, self.bias),
            "linear, 4-bit x": lambda x: nvfp4gemm.linear(x, w, quantize_input=True),
            "linear, activation": lambda x: nvfp4gemm.linear(x, w, activation="silu"),
            "mm": lambda x: nvfp4gemm.mm(x, w, bias=self.bias, c=c, alpha=0.5, beta=-2.0),
            "mm of a c": lambda x: nvfp4gemm.mm(packed, w, c=x[:, :N]),
            "mm into out": into(lambda x, out: nvfp4gemm.mm(x, w, out=out), M, N),
            "quantize": lambda x: nvfp4gemm.quantize(x).dequantize(),
            "quantize by rows": lambda x: nvfp4gemm.quantize(x, "rows").dequantize(),
            "quantize by 4over6":
                lambda x: nvfp4gemm.quantize(x, scale_rule="4over6").dequantize(),
            "with_scales": lambda x: nvfp4gemm.quantize(x).with_scales("linear").dequantize(),
            "slices": lambda x: nvfp4gemm.quantize(x).slice_rows(1, 4).slice_k(16, 48).dequantize(),
            "gated_linear": lambda x: nvfp4gemm.gated_linear(x, w, up),
            "gated_linear into out": into(
                lambda x, out: nvfp4gemm.gated_linear(x, w, up, out=out), M, N),
            "grouped_linear": lambda x: nvfp4gemm.grouped_linear(x, ends, many),
            "grouped_linear, 4-bit x": lambda x: nvfp4gemm.grouped_linear(
                x, ends, ups, quantize_input=True),
            "grouped_linear, alpha": lambda x: nvfp4gemm.grouped_linear(x, ends, ups, alpha=0.7),
            "grouped_linear into out": into(lambda x, out: nvfp4gemm.grouped_linear(
                x, ends - 1, many, out=out), M, N),  # a row of no group, which stays
            "grouped_gated_linear": lambda x: nvfp4gemm.grouped_gated_linear(x, ends, many, ups),
            "grouped_gated_linear, 4-bit result": lambda x: nvfp4gemm.grouped_gated_linear(
                x, ends, many, ups, out_scale=0.02).dequantize(),
            "nn.Linear": layer,
            "nn.Linear, 4-bit x": nn.Linear(w, self.bias, quantize_input=True),
        }

    def each(self, through, leave=()):
        """Each call on the other x where `through(call)` made it of x."""
        for name, call in self.calls.items():
            if name not in leave:
                with self.subTest(name):
                    self.assertTrue(torch.equal(through(call)(self.other), call(self.other)))

    def test_jit_trace(self):
        self.each(lambda call: torch.jit.trace(call, (self.x,)))
        traced = torch.jit.trace(nn.Linear(self.weight), (self.x,))
        nine = self.normal(9, 9, K)
        self.assertTrue(torch.equal(traced(nine), nvfp4gemm.linear(nine, self.weight)))

    def test_make_fx(self):
        self.each(lambda call: make_fx(call)(self.x))
        for mode in ("fake", "symbolic"):
            self.each(lambda call: make_fx(call, tracing_mode=mode, _allow_non_fake_inputs=True)(
                self.x))

    def test_functionalize(self):
        self.each(torch.func.functionalize)

    def test_compile(self):
        def compiled(call):
            torch._dynamo.reset()
            return torch.compile(call, fullgraph=True, backend="aot_eager")

        self.each(compiled)

    def test_a_matrix_that_compiled_code_made(self):
        torch._dynamo.reset()
        made = torch.compile(lambda x: nvfp4gemm.quantize(x, 0.01), backend="aot_eager")(self.w)
        expected = nvfp4gemm.quantize(self.w, 0.01)
        ends = torch.tensor([2, M], dtype=torch.int32, device=self.device)
        for call in (lambda w: w.dequantize(), lambda w: w.slice_rows(8, 16).dequantize(),
                     lambda w: nvfp4gemm.linear(self.x, w), lambda w: nvfp4gemm.mm(w, self.weight),
                     lambda w: nn.Linear(w)(self.x), lambda w: copy.deepcopy(w).dequantize(),
                     lambda w: nvfp4gemm.checkpoints.fuse([w, w]).dequantize(),
                     lambda w: nvfp4gemm.grouped_linear(self.x, ends, nvfp4gemm.stack([w, w])),
                     lambda w: nvfp4gemm.gated_linear(self.x, self.weight, w)):
            self.assertTrue(torch.equal(call(made), call(expected)))

    def test_export(self):
        for strict in (True, False):
            exported = torch.export.export(self.calls["nn.Linear"], (self.x,), strict=strict)
            self.assertTrue(torch.equal(exported.module()(self.other),
                                        self.calls["nn.Linear"](self.other)))

    def test_a_dispatch_mode_sees_an_operator_for_each_call(self):
        for name, call in self.calls.items():
            with self.subTest(name), Names() as mode:
                call(self.x)
                self.assertTrue(mode.seen)

    def test_flops(self):
        two = ("gated_linear", "gated_linear into out", "grouped_gated_linear",
               "grouped_gated_linear, 4-bit result")
        none = ("quantize", "quantize by rows", "quantize by 4over6", "with_scales", "slices")
        for name, call in self.calls.items():
            with self.subTest(name), FlopCounterMode(display=False) as counter:
                call(self.x)
            products = 2 if name in two else 0 if name in none else 1
            self.assertEqual(counter.get_total_flops(), products * 2 * M * N * K, name)

    def test_flops_of_the_first_call_of_a_process(self):
        """A counter has the formulas that were there when it was made."""
        code = ("import package, torch, nvfp4gemm\n"
                "from torch.utils.flop_counter import FlopCounterMode\n"
                "w = nvfp4gemm.quantize(torch.ones(48, 64))\n"
                "with FlopCounterMode(display=False) as counter:\n"
                "    nvfp4gemm.linear(torch.ones(5, 64).half(), w)\n"
                "assert counter.get_total_flops() == 2 * 5 * 48 * 64\n")
        subprocess.run([sys.executable, "-c", code], check=True, cwd=package.HERE)

    def test_vmap(self):
        batch = torch.stack([self.x, self.other])
        for name, call in self.calls.items():
            if name.endswith("into out"):
                continue
            with self.subTest(name):
                expected = torch.stack([call(x) for x in batch])
                self.same(torch.vmap(call)(batch), expected)
                self.same(torch.vmap(call, in_dims=2)(batch.movedim(0, 2)), expected)
                self.same(torch.vmap(torch.vmap(call))(batch[None]), expected[None])
        self.assertEqual(torch.vmap(self.calls["linear"])(batch[:, None]).shape, (2, 1, M, N))

    def test_vmap_of_bias_and_c(self):
        w, x = self.weight, self.x
        biases, cs = self.normal(8, 2, N), self.normal(9, 2, M, N)
        found = torch.vmap(lambda bias, c: nvfp4gemm.mm(x, w, bias=bias, c=c))(biases, cs)
        for i in range(2):
            self.assertTrue(torch.equal(found[i], nvfp4gemm.mm(x, w, bias=biases[i], c=cs[i])))

    def test_tangents(self):
        t = self.normal(8, M, K)
        for quantized in (False, True):
            def layer(x, bias):
                return nvfp4gemm.linear(x, self.weight, bias, quantize_input=quantized)

            expected = t.float() @ self.w.T + self.bias.float()
            with forward_ad.dual_level():
                y = layer(forward_ad.make_dual(self.x, t),
                          forward_ad.make_dual(self.bias, self.bias))
                primal, tangent = forward_ad.unpack_dual(y)
            self.assertTrue(torch.equal(primal, layer(self.x, self.bias)))
            self.assertEqual(tangent.dtype, primal.dtype)
            near(tangent, expected)
            _, tangent = torch.func.jvp(layer, (self.x, self.bias), (t, self.bias))
            near(tangent, expected)
            near(torch.func.linearize(layer, self.x, self.bias)[1](t, self.bias), expected)
        c, tc = self.normal(9, M, N), self.normal(10, M, N)
        _, tangent = torch.func.jvp(lambda x, c: nvfp4gemm.mm(x, self.weight, c=c, alpha=0.5,
                                                              beta=-2.0), (self.x, c), (t, tc))
        near(tangent, 0.5 * (t.float() @ self.w.T) - 2 * tc.float())

    def test_gradients_of_torch_func(self):
        dy = self.normal(8, M, N)
        for quantized in (False, True):
            def layer(x):
                return nvfp4gemm.linear(x, self.weight, quantize_input=quantized)

            near(torch.func.vjp(layer, self.x)[1](dy)[0], dy.float() @ self.w)
            near(torch.func.grad(lambda x: (layer(x) * dy).sum())(self.x), dy.float() @ self.w)
            one = self.x[:1]
            for jacobian in (torch.func.jacrev, torch.func.jacfwd):
                near(jacobian(layer)(one)[0, :, 0], self.w)
            hessian = torch.func.hessian(lambda x: (layer(x).float() ** 2).sum() / 1024)(one)
            near(hessian[0, :, 0], 2 / 1024 * (self.w.T @ self.w))
            of_each = torch.vmap(torch.func.grad(lambda x, dy: (layer(x[None]) * dy).sum()))
            near(of_each(self.x, dy), dy.float() @ self.w)
            of_all = torch.func.grad(lambda x: (torch.vmap(layer)(x) * dy).sum())
            near(of_all(self.x[None]), (dy.float() @ self.w)[None])

    def test_meta_functions_name_the_callers_operands(self):
        """As torch.compile meets them, which leaves all looks at operands to the operator."""
        with FakeTensorMode():
            b = nvfp4gemm.quantize(torch.empty(32, 64, dtype=torch.bfloat16))
            a = torch.empty(4, 64, dtype=torch.bfloat16)
            for out, words in ((torch.empty(4, 32, device="cuda"), "out lies on cuda:0, a on cpu"),
                               (torch.empty(4, 33), "out is .4, 33., expected .4, 32.")):
                with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                    torch.ops.nvfp4gemm.mm_without_gradient(
                        a, None, None, 1.0, "", "", b.codes, b.scales, b.tensor_scale, 1.0, "128x4",
                        "nvfp4", 64, None, None, None, None, 1.0, 1.0, False, None, None, out)

    def test_fake_tensors(self):
        with FakeTensorMode():
            x, weight = torch.empty(M, K).half(), nvfp4gemm.quantize(torch.empty(N, K))
            layer = nn.Linear(weight, torch.empty(N))
            self.assertEqual(layer(x).shape, (M, N))
        for result, shape in ((nvfp4gemm.linear(x, weight), (M, N)), (layer(x), (M, N)),
                              (nvfp4gemm.quantize(x).codes, (M, K // 2)),
                              (weight.dequantize(), (N, K)),
                              (weight.with_scales("linear").scales, (N * K // 16,)),
                              (weight.slice_rows(3, 8).codes, (5, K // 2)),
                              (weight.slice_k(16, 48).dequantize(), (N, 32))):
            self.assertIsInstance(result, FakeTensor)
            self.assertEqual(tuple(result.shape), shape)

    def test_a_layer_keeps_nothing_of_a_trace(self):
        layer = nn.Linear(self.weight, self.bias)
        make_fx(lambda x, state: torch.func.functional_call(layer, state, x),
                tracing_mode="fake")(self.x, layer.state_dict(keep_vars=True))
        self.assertTrue(torch.equal(layer(self.x), self.calls["linear"](self.x)))
        torch.func.jvp(layer, (self.x,), (self.x,))
        torch.vmap(layer)(self.x[None])
        self.assertTrue(torch.equal(layer(self.x), self.calls["linear"](self.x)))

    def test_what_cannot_be_is_said(self):
        x, w, many = self.x, self.weight, nvfp4gemm.stack([self.weight])
        ends = torch.tensor([M], dtype=torch.int32, device=self.device)

        def silu(x):
            return nvfp4gemm.linear(x, w, activation="silu")

        def out(x):
            return nvfp4gemm.linear(x, w, out=torch.empty(M, N, device=self.device))

        for call, words in (
                (lambda: torch.fx.symbolic_trace(nn.Linear(w)), "is Proxy of torch.fx"),
                (lambda: torch.fx.symbolic_trace(nn.Linear(w, quantize_input=True)),
                 "is Proxy of torch.fx"),
                (lambda: torch.func.jvp(silu, (x,), (x,)), "x has a tangent .* activation='silu'"),
                (lambda: torch.func.jvp(out, (x,), (x,)), "x has a tangent .* with out"),
                (lambda: torch.func.grad(lambda x: silu(x).sum())(x), "x requires a gradient"),
                (lambda: torch.func.grad(lambda x: torch.vmap(silu)(x).sum())(x[None]),
                 "a gradient is required, and activation 'silu'"),
                (lambda: torch.func.jvp(lambda x: nvfp4gemm.gated_linear(x, w, w), (x,), (x,)),
                 "x has a tangent .* gated_linear"),
                (lambda: torch.func.jvp(lambda x: nvfp4gemm.grouped_linear(x, ends, many), (x,),
                                        (x,)), "x has a tangent .* grouped_linear"),
                (lambda: torch.vmap(out)(x[None]), "out is one array, and torch.vmap has")):
            with self.subTest(words), self.assertRaisesRegex(
                    (TypeError, ValueError, RuntimeError), words):
                call()
        codes, scales = w.codes, w.with_scales("linear").scales.reshape(N, K // 16)
        for call in (lambda codes: nvfp4gemm.checkpoints.weight(codes, scales),
                     lambda codes: nvfp4gemm.layouts.from_flashinfer(codes, w.scales),
                     lambda codes: nvfp4gemm.layouts.split_gate_up(codes),
                     lambda codes: nvfp4gemm.Stack(codes[None], w.scales, 1, N, K)):
            for through in (torch.vmap, torch.func.functionalize):
                with self.assertRaisesRegex(TypeError, "(codes|both) stands for a tensor while"):
                    through(call)(codes[None] if through is torch.vmap else codes)
        with Names(), self.assertRaisesRegex(ValueError, "amax and row_amax are not there"):
            nvfp4gemm.mm(x, w, amax=torch.zeros(1, device=self.device))


@unittest.skipUnless(HOPPER, WHY_NOT or "16-bit activations: compute capability 9.0")
class CallsOnTheGpu(Calls):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
