# SPDX-License-Identifier: MIT
"""Gradients, autocast and casts of the Python package: on the CPU wherever torch is, and on a GPU
where torch finds one (`make check-hw PART=python`). What they are compared with is torch's own
layer on the dequantized weight."""
import unittest
import warnings

import package  # noqa: F401

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

import gpus
import nvfp4gemm
from nvfp4gemm.nn import Linear

HOPPER = not gpus.why_not(torch, 1) and torch.cuda.get_device_capability() == (9, 0)
DEVICES = ["cpu", "cuda"] if HOPPER else ["cpu"]
N, K = 48, 64


def normal(seed, *shape, dtype=torch.bfloat16, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def close(a, b):
    torch.testing.assert_close(a.float(), b.float(), rtol=2 ** -7, atol=2 ** -7)


def gradients(y, *of):
    """Of these, by a dy of y's own shape."""
    return torch.autograd.grad(y, of, normal(9, *y.shape, dtype=y.dtype, device=y.device))


class Gradients(unittest.TestCase):
    def each(self):
        for device in DEVICES:
            weight = nvfp4gemm.quantize(normal(1, N, K, device=device))
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                for shape in ((5, K), (2, 3, K), (1, K)):
                    with self.subTest(f"{device} {dtype} {shape}"):
                        x = normal(2, *shape, dtype=dtype, device=device).requires_grad_()
                        yield x, weight, weight.dequantize().to(dtype)

    def test_x_and_bias(self):
        for x, weight, w in self.each():
            bias = normal(3, N, dtype=x.dtype, device=x.device).requires_grad_()
            expected = gradients(torch.nn.functional.linear(x, w, bias), x, bias)
            for quantized in ((True,) if x.dtype == torch.float32 else (False, True)):
                y = nvfp4gemm.linear(x, weight, bias, quantize_input=quantized)
                self.assertEqual(y.dtype, x.dtype)
                for mine, torchs in zip(gradients(y, x, bias), expected):
                    self.assertEqual((mine.dtype, mine.shape), (torchs.dtype, torchs.shape))
                    close(mine, torchs)

    def test_the_result_is_that_without_a_gradient(self):
        for x, weight, _ in self.each():
            y = nvfp4gemm.linear(x, weight, quantize_input=True)
            self.assertTrue(y.requires_grad)
            with torch.no_grad():
                without = nvfp4gemm.linear(x, weight, quantize_input=True)
            self.assertFalse(without.requires_grad)
            self.assertTrue(torch.equal(y, without))

    def test_alpha_beta_and_c(self):
        for device in DEVICES:
            x, c, bias = (normal(seed, *shape, device=device).requires_grad_()
                          for seed, shape in ((2, (5, K)), (3, (5, N)), (4, (N,))))
            weight = nvfp4gemm.quantize(normal(1, N, K, device=device))
            y = nvfp4gemm.mm(x, weight, torch.float32, bias=bias, c=c, alpha=0.5, beta=-2.0)
            dy = normal(9, 5, N, dtype=torch.float32, device=device)
            dx, dbias, dc = torch.autograd.grad(y, (x, bias, c), dy)
            close(dx, 0.5 * (dy.bfloat16() @ weight.dequantize(torch.bfloat16)))
            close(dbias, dy.sum(0))
            close(dc, -2 * dy)

    def test_compiled(self):
        for device in DEVICES:
            layer = Linear(nvfp4gemm.quantize(normal(1, N, K, device=device)))
            for layer.quantize_input in (False, True):
                def step(x):
                    return layer(x * 2).relu()

                x = normal(2, 5, K, device=device).requires_grad_()
                torch._dynamo.reset()
                compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
                with warnings.catch_warnings():  # of an operator that has no gradient
                    warnings.filterwarnings("error", "nvfp4gemm")
                    y = compiled(x)
                    self.assertTrue(torch.equal(y, step(x)))
                    self.assertTrue(torch.equal(*gradients(y, x), *gradients(step(x), x)))

    def test_what_is_below_trains(self):
        """A low-rank addition below two 4-bit layers takes the steps that it takes below torch's
        layers of the same weights."""
        for device in DEVICES:
            weights = [nvfp4gemm.quantize(normal(seed, K, K, device=device)) for seed in (1, 2)]
            mine = torch.nn.Sequential(*(Linear(w) for w in weights))
            losses, down = {}, {}
            for name in ("mine", "torch"):
                down[name] = normal(3, 8, K, device=device).float().requires_grad_()
                up = torch.zeros(K, 8, device=device, requires_grad=True)
                x, target = (normal(seed, 16, K, device=device) for seed in (4, 5))
                optimizer = torch.optim.SGD([down[name], up], lr=1e-5)
                losses[name] = []
                for _ in range(20):
                    h = x + (x.float() @ down[name].T @ up.T).bfloat16()
                    if name == "mine":
                        y = mine(h)
                    else:
                        y = h
                        for w in weights:
                            y = torch.nn.functional.linear(y, w.dequantize(torch.bfloat16))
                    loss = torch.nn.functional.mse_loss(y.float(), target.float())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses[name].append(float(loss.detach()))
            self.assertLess(losses["mine"][-1], 0.9 * losses["mine"][0])
            for a, b in zip(losses["mine"], losses["torch"]):
                self.assertLess(abs(a - b), 0.02 * b)
            self.assertEqual([p for p in mine.parameters() if p.requires_grad], [])

    def test_what_has_no_gradient_raises(self):
        weight = nvfp4gemm.quantize(normal(1, N, K))
        x, plain = normal(2, 5, K).requires_grad_(), normal(2, 5, K)
        bias = normal(3, N).requires_grad_()
        out = torch.empty(5, N, dtype=torch.bfloat16)
        layer = Linear(weight, activation="relu")
        for call, name in [(lambda: layer(x), "x"),
                           (lambda: nvfp4gemm.linear(x, weight, activation="silu",
                                                     quantize_input=True), "x"),
                           (lambda: nvfp4gemm.linear(plain, weight, bias, activation="gelu"),
                            "bias"),
                           (lambda: nvfp4gemm.mm(x, weight, out=out), "a"),
                           (lambda: nvfp4gemm.mm(plain, weight, c=x.new_zeros(
                               5, N).requires_grad_(), out=out), "c")]:
            with self.assertRaisesRegex(ValueError, rf"^{name} requires a gradient, which"):
                call()
            with torch.no_grad():
                call()
        with self.assertRaisesRegex(ValueError, "out must not be written: it .* a gradient"):
            nvfp4gemm.mm(plain, weight, out=torch.empty(5, N).requires_grad_())

    def test_a_result_over_what_a_backward_pass_reads(self):
        weight, x = nvfp4gemm.quantize(normal(1, N, K)), normal(2, 5, K)
        saved = normal(3, 5, N).requires_grad_()
        kept = saved * 1
        y = kept * kept  # reads kept in its backward pass
        nvfp4gemm.mm(x, weight, out=kept.detach())
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()


class Autocast(unittest.TestCase):
    def test_as_torch_has_it(self):
        for device in DEVICES:
            x = normal(2, 2, 3, K, dtype=torch.float32, device=device)
            layer = Linear(nvfp4gemm.quantize(normal(1, N, K, device=device)),
                           normal(3, N, dtype=torch.float32, device=device))
            for dtype in (torch.bfloat16, torch.float16):
                expected = layer(x.to(dtype))
                with torch.autocast(device, dtype):
                    self.assertTrue(torch.equal(layer(x), expected))
                    self.assertEqual(layer(x.half()).dtype, dtype)
                    y = nvfp4gemm.linear(x, layer.packed(), quantize_input=True)
                    self.assertEqual((y.dtype, y.shape), (dtype, (2, 3, N)))
                    packed = nvfp4gemm.quantize(x)
                    self.assertEqual(nvfp4gemm.mm(packed, layer.packed()).dtype, dtype)
                    self.assertEqual(
                        nvfp4gemm.mm(x, layer.packed(), torch.float32).dtype, torch.float32)
                    out = torch.zeros(2, 3, N, device=device)
                    self.assertIs(nvfp4gemm.mm(x, layer.packed(), out=out), out)
                self.assertTrue(torch.equal(
                    out, nvfp4gemm.mm(x.to(dtype), layer.packed(), torch.float32)))
                with torch.autocast(device, enabled=False), self.assertRaisesRegex(
                        TypeError, "x is of torch.float32; expected float16 or bfloat16"):
                    layer(x)

    def test_with_gradients_and_compiled(self):
        for device in DEVICES:
            x = normal(2, 5, K, dtype=torch.float32, device=device).requires_grad_()
            layer = Linear(nvfp4gemm.quantize(normal(1, N, K, device=device)))

            def step(x):
                with torch.autocast(device, torch.bfloat16):
                    return layer(x)

            y = step(x)
            dx, = gradients(y, x)
            self.assertEqual((y.dtype, dx.dtype), (torch.bfloat16, torch.float32))
            close(dx, *gradients(torch.nn.functional.linear(
                x.bfloat16(), layer.packed().dequantize(torch.bfloat16)), x))
            torch._dynamo.reset()
            compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
            self.assertTrue(torch.equal(compiled(x), y))
            self.assertTrue(torch.equal(*gradients(compiled(x), x), dx))

    def test_a_result_keeps_within_its_rows(self):
        """Under autocast the result is copied into out: never by broadcast."""
        weight, x = nvfp4gemm.quantize(normal(1, N, K)), normal(2, 5, K)
        memory = torch.zeros(7, N + 2)
        with torch.autocast("cpu", torch.bfloat16):
            nvfp4gemm.mm(x, weight, out=memory[1:6, 1:-1])
            self.assertFalse(memory[[0, 6]].any() or memory[:, [0, -1]].any())
            with self.assertRaisesRegex(ValueError, "out is"):
                nvfp4gemm.mm(x, weight, out=torch.zeros(2, 5, N))
            with self.assertRaisesRegex((ValueError, RuntimeError), "single memory location|out"):
                nvfp4gemm.mm(x, weight, out=torch.zeros(1, N).expand(5, N))


class Casts(unittest.TestCase):
    def test_double_is_refused(self):
        layer = Linear(nvfp4gemm.quantize(normal(1, N, K)), normal(3, N))
        model = torch.nn.Sequential(layer)
        for cast in (layer.double, model.double, lambda: model.to(torch.float64)):
            with self.assertRaisesRegex(TypeError, "an NVFP4 layer .* cannot be cast to float64"):
                cast()
        self.assertEqual(layer.bias.dtype, torch.bfloat16)
        with self.assertRaisesRegex(TypeError, "x is of torch.float64; expected"):
            layer(normal(2, 5, K).double())


if __name__ == "__main__":
    unittest.main()
