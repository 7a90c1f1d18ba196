# SPDX-License-Identifier: MIT
"""The Python package on torch tensors: on the CPU wherever torch is, and on a GPU where torch finds
one (`make check-hw PART=python`)."""
import os
import re
import tempfile
import threading
import unittest
import unittest.mock

import package  # noqa: F401

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

import gpus
import host_time
import nvfp4gemm
import nvfp4gemm.nn

WHY_NOT = gpus.why_not(torch, 1)
WHY_NOT_TWO = gpus.why_not(torch, 2)
GPU = not WHY_NOT
HOPPER = GPU and torch.cuda.get_device_capability() == (9, 0)
# Host time at most, in units of host_time.py. In four runs on the host of an H200, with units of 5
# and of 10 us, mm took 2.33, quantize 4.95 to 5.16, linear 1.99 to 2.27 and nn.Linear 2.71 to 2.91;
# bench/host_python.py has it beside torch's own calls.
HOST_UNITS = {"mm": 2.6, "quantize": 5.6, "linear": 2.5, "nn.Linear": 3.2}


def normal(seed, *shape, dtype=torch.bfloat16, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def cpu(packed):
    scale = packed.tensor_scale
    return nvfp4gemm.Packed(packed.codes.cpu(), packed.scales.cpu(), packed.rows, packed.k,
                            float(scale), packed.scale_layout)


class OnTheCpu(unittest.TestCase):
    def test_host_time_sees_one_unit_more(self):
        unit = host_time.unit_of(normal(1, 1, 1024))
        units, _ = host_time.in_units(
            {"two": lambda: (unit(), unit()), "three": lambda: (unit(), unit(), unit())}, unit)
        self.assertLess(units["two"], 2.4)
        self.assertGreater(units["three"], 2.6)

    def test_a_layer(self):
        x, w = normal(1, 2, 3, 64), normal(2, 40, 64)
        weight = nvfp4gemm.quantize(w)
        y = nvfp4gemm.linear(x, weight, torch.ones(40), activation="relu")
        self.assertEqual((tuple(y.shape), y.dtype), ((2, 3, 40), torch.bfloat16))
        expected = torch.relu(x.double() @ weight.dequantize().double().T + 1)
        torch.testing.assert_close(y.double(), expected, rtol=2 ** -8, atol=1e-4)

    def test_torch_compile_keeps_a_layer_whole(self):
        weight = nvfp4gemm.quantize(normal(2, 40, 64))

        def layer(x, bias):
            packed = nvfp4gemm.quantize(x * 2)
            return nvfp4gemm.mm(packed, weight, torch.bfloat16, bias=bias) + 1

        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        x, bias = normal(1, 5, 64), normal(3, 40)
        self.assertTrue(torch.equal(compiled(x, bias), layer(x, bias)))

    def test_torch_compile_keeps_a_scale_for_each_row(self):
        weight = nvfp4gemm.quantize(normal(2, 40, 64))

        def layer(x):
            return nvfp4gemm.linear(x, weight, quantize_input=True)

        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        for m in (5, 1, 9):
            x = normal(m, m, 64)
            self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_operators_obey_torch(self):
        weight = nvfp4gemm.quantize(normal(2, 40, 64))
        x = normal(1, 5, 64)
        nvfp4gemm.mm(x, weight)
        from nvfp4gemm import _ops
        torch.library.opcheck(torch.ops.nvfp4gemm.quantize.default,
                              (x, None, 0.01, None, "linear", "nvfp4"),
                              test_utils=("test_schema", "test_faketensor"))
        torch.library.opcheck(
            torch.ops.nvfp4gemm.mm.default,
            (*_ops._parts(x), *_ops._parts(weight), 64, torch.float32, None, "silu", None, 1.0, 1.0,
             False, None, None),
            test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
        torch.library.opcheck(
            torch.ops.nvfp4gemm.dequantize.default, (*_ops._parts(weight), 64, torch.bfloat16),
            test_utils=("test_schema", "test_faketensor"))


    def test_operators_look_again_at_parts_that_changed(self):
        """Codes remember with which other parts they came through the door."""
        x, weight = normal(1, 5, 64), nvfp4gemm.quantize(normal(2, 40, 64))
        nvfp4gemm.mm(x, weight)
        from nvfp4gemm import _ops
        def product(codes, scales, scale, k=64):
            return torch.ops.nvfp4gemm.mm_without_gradient(
                *_ops._parts(x), codes, scales, None, scale, "128x4", "nvfp4", k, torch.float32,
                None, None, None, 1.0, 1.0, False, None, None)

        codes, scales, scale = weight.codes, weight.scales, weight.tensor_scale
        for _ in range(2):
            expected = nvfp4gemm.mm(x, weight, torch.float32)
            self.assertTrue(torch.equal(product(codes, scales, scale), expected))
            with self.assertRaisesRegex(ValueError, "scales are .* 256 bytes; expected 512"):
                product(codes, scales[:256], scale)  # at the same place
            self.assertTrue(torch.equal(product(codes, scales, 2 * scale), 2 * expected))
            self.assertEqual(product(codes, torch.zeros_like(scales), scale).abs().max(), 0)
            with self.assertRaisesRegex(ValueError, "scales are .* 256 bytes; expected 512"):
                product(codes, scales[:256].clone(), scale)
            with self.assertRaisesRegex(ValueError, r"codes are \(40, 32\); expected"):
                product(codes, scales, scale, 128)
        storage = scales.untyped_storage()
        size = storage.nbytes()
        storage.resize_(0)
        with self.assertRaisesRegex(ValueError, "scales is .* no memory of its own"):
            product(codes, scales, scale)
        storage.resize_(size)


class Documents(unittest.TestCase):
    def test_their_python_runs_as_written(self):
        root = os.path.join(package.HERE, "../../..")
        device = "cuda" if HOPPER else "cpu"  # bfloat16 activations: 9.0 and the CPU
        for name, blocks in (("README.md", 1), ("tools/python/README.md", 3)):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                code = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
            self.assertEqual(len(code), blocks, name)
            known = {"nvfp4gemm": nvfp4gemm, "w": normal(1, 96, 64, device=device),
                     "x": normal(2, 3, 5, 64, device=device), "bias": normal(3, 96, device=device)}
            exec(code[0], known)
            self.assertEqual(tuple(known["y"].shape), (3, 5, 96), name)
            if code[1:]:
                self.models_and_ranks(code[1], code[2], known, device)

    def models_and_ranks(self, of_models, of_ranks, known, device):
        def linear(n, k):
            return torch.nn.Linear(k, n, dtype=torch.bfloat16, device=device)

        known["model"] = torch.nn.ModuleDict({"up": linear(96, 64), "lm_head": linear(32, 64)})
        known["other"] = None
        with unittest.mock.patch("nvfp4gemm.nn.Linear.from_checkpoint") as one, \
                unittest.mock.patch("nvfp4gemm.nn.load_linear") as all_:  # test_python_nn.py loads
            exec(of_models, known)
        one.assert_called_once_with("model/", "model.layers.0.mlp.up_proj", "cuda")
        all_.assert_called_once_with(None, "model/", "cuda")
        self.assertEqual([type(x) for x in known["model"].values()],
                         [nvfp4gemm.nn.Linear, torch.nn.Linear])
        known["mlp"] = torch.nn.ModuleDict({"up": linear(96, 64), "down": linear(64, 96)})
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
            try:
                exec(of_ranks, known)
            finally:
                torch.distributed.destroy_process_group()
        self.assertEqual(tuple(known["y"].shape), (3, 5, 64))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class OnTheGpu(unittest.TestCase):
    def test_quantize_has_the_bits_of_the_cpu(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            for layout in ("128x4", "linear"):
                x = normal(3, 130, 208, dtype=dtype)
                here, there = nvfp4gemm.quantize(x, scale_layout=layout), nvfp4gemm.quantize(
                    x.cuda(), scale_layout=layout)
                self.assertEqual(float(there.tensor_scale), here.tensor_scale)
                for type_ in (torch.float32, torch.bfloat16):
                    self.assertTrue(
                        torch.equal(there.dequantize(type_).cpu(), here.dequantize(type_)))
                again = nvfp4gemm.quantize(x.cuda(), there.tensor_scale)
                self.assertTrue(torch.equal(again.codes[:, :104], there.codes[:, :104]))
                value = nvfp4gemm.quantize(x.cuda(), here.tensor_scale)
                self.assertTrue(torch.equal(value.codes[:, :104], there.codes[:, :104]))
                here, there = (nvfp4gemm.quantize(y, "rows", scale_layout=layout)
                               for y in (x, x.cuda()))
                self.assertTrue(torch.equal(there.tensor_scale.cpu(), here.tensor_scale))
                self.assertTrue(torch.equal(there.dequantize().cpu(), here.dequantize()))

    def test_a_stale_row_changes_no_bit_of_its_neighbours(self):
        x = normal(1, 33, 1024, device="cuda")
        weight = nvfp4gemm.quantize(normal(2, 512, 1024, device="cuda"))
        y = nvfp4gemm.linear(x, weight, quantize_input=True)
        for value in (6e4, float("nan"), 0):
            x[7] = value
            stale = nvfp4gemm.linear(x, weight, quantize_input=True)
            self.assertTrue(torch.equal(stale[:7], y[:7]) and torch.equal(stale[8:], y[8:]))

    def product(self, m, n, k, **given):
        a, b = (nvfp4gemm.quantize(normal(seed, rows, k, device="cuda"))
                for seed, rows in ((4, m), (5, n)))
        on_cpu = {name: x.cpu() if isinstance(x, torch.Tensor) else x for name, x in given.items()}
        there = nvfp4gemm.mm(a, b, torch.float32, **given)
        here = nvfp4gemm.mm(cpu(a), cpu(b), torch.float32, **on_cpu)
        torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-3)

    def test_products_are_those_of_the_reference(self):
        for m, n, k in ((1, 256, 512), (17, 200, 272), (300, 384, 1024)):
            self.product(m, n, k)
            self.product(m, n, k, bias=normal(6, n, device="cuda"), activation="silu",
                         c=normal(7, m, n, device="cuda"), beta=0.5, alpha=2.0)

    @unittest.skipUnless(HOPPER, "activations that are not quantized: compute capability 9.0")
    def test_linear_on_bfloat16(self):
        for m in (1, 5, 64, 300):
            x, weight = normal(8, m, 512, device="cuda"), nvfp4gemm.quantize(
                normal(9, 384, 512, device="cuda"))
            bias = normal(10, 384, device="cuda")
            y = nvfp4gemm.linear(x, weight, bias, activation="gelu")
            expected = torch.nn.functional.gelu(
                x.float() @ weight.dequantize().T + bias.float())
            torch.testing.assert_close(y.float(), expected, rtol=2 ** -7, atol=2e-2)

    def test_slices(self):
        a, b = (nvfp4gemm.quantize(normal(seed, rows, 512, device="cuda"))
                for seed, rows in ((1, 33), (2, 600)))
        for layout in ("128x4", "linear"):
            whole = b.with_scales(layout)
            for begin, end in ((128, 600), (256, 300), (37, 165)):
                part = whole.slice_rows(begin, end)
                self.assertTrue(torch.equal(part.dequantize(), b.dequantize()[begin:end]))
                torch.testing.assert_close(
                    nvfp4gemm.mm(a, part, torch.float32),
                    nvfp4gemm.mm(a, b, torch.float32)[:, begin:end], rtol=1e-4, atol=1e-3)
            for begin, end in ((64, 512), (128, 208), (48, 304)):
                part = whole.slice_k(begin, end)
                self.assertTrue(torch.equal(part.dequantize(), b.dequantize()[:, begin:end]))
                expected = a.dequantize()[:, begin:end].double() @ part.dequantize().double().T
                torch.testing.assert_close(
                    nvfp4gemm.mm(a.slice_k(begin, end), part, torch.float32).double(), expected,
                    rtol=1e-4, atol=1e-3)

    def test_a_stream_of_torch(self):
        x, weight = normal(1, 64, 1024, device="cuda"), nvfp4gemm.quantize(
            normal(2, 512, 1024, device="cuda"))
        expected = nvfp4gemm.linear(x, weight, quantize_input=True)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)  # what is on another stream would be done before
            x.add_(0)
            y = nvfp4gemm.linear(x, weight, quantize_input=True)
        torch.cuda.current_stream().wait_stream(side)
        self.assertTrue(torch.equal(y, expected))

    def test_a_graph(self):
        weight = nvfp4gemm.quantize(normal(2, 512, 1024, device="cuda"))
        x = torch.zeros(33, 1024, dtype=torch.bfloat16, device="cuda")
        nvfp4gemm.linear(x, weight, quantize_input=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = nvfp4gemm.linear(x, weight, quantize_input=True)
        for seed in (1, 2):
            x.copy_(normal(seed, 33, 1024))
            graph.replay()
            self.assertTrue(torch.equal(y, nvfp4gemm.linear(x, weight, quantize_input=True)))

    def test_torch_compile(self):
        weight = nvfp4gemm.quantize(normal(2, 512, 1024, device="cuda"))

        def layer(x, bias):
            packed = nvfp4gemm.quantize(torch.nn.functional.silu(x))
            return nvfp4gemm.mm(packed, weight, torch.bfloat16, bias=bias) * 2

        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        x, bias = normal(1, 9, 1024, device="cuda"), normal(3, 512, device="cuda")
        self.assertTrue(torch.equal(compiled(x, bias), layer(x, bias)))

    def test_threads_share_plans(self):
        weight = nvfp4gemm.quantize(normal(2, 256, 512, device="cuda"))
        xs = [normal(i, 4 + i, 512, device="cuda") for i in range(8)]
        expected = [nvfp4gemm.linear(x, weight, quantize_input=True) for x in xs]
        wrong = []

        def work(i):
            try:
                for _ in range(50):
                    y = nvfp4gemm.linear(xs[i], weight, quantize_input=True)
                    if not torch.equal(y, expected[i]):
                        wrong.append(i)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_nothing_waits(self):
        x, weight = normal(1, 64, 1024, device="cuda"), nvfp4gemm.quantize(
            normal(2, 512, 1024, device="cuda"))
        nvfp4gemm.linear(x, weight, quantize_input=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000_000)  # about a second
        done = torch.cuda.Event()
        nvfp4gemm.linear(x, weight, quantize_input=True)
        done.record()
        self.assertFalse(done.query(), "the calls came back after the work before them")
        torch.cuda.synchronize()

    def test_host_time(self):
        x, weight = normal(1, 1, 1024, device="cuda"), nvfp4gemm.quantize(
            normal(2, 512, 1024, device="cuda"))
        a = nvfp4gemm.quantize(x)
        calls = {"torch.empty": lambda: torch.empty((1, 512), dtype=torch.bfloat16, device="cuda"),
                 "mm": lambda: nvfp4gemm.mm(a, weight, torch.bfloat16),
                 "quantize": lambda: nvfp4gemm.quantize(x)}
        if HOPPER:
            calls["linear"] = lambda: nvfp4gemm.linear(x, weight)
            layer = nvfp4gemm.nn.Linear(weight)
            calls["nn.Linear"] = lambda: layer(x)
        units, us = host_time.in_units(calls, host_time.unit_of(x))
        print(f"host time in units of {us:.2f} us:",
              ", ".join(f"{name} {units[name]:.2f}" for name in calls))
        for name, limit in HOST_UNITS.items():
            if name in units:
                self.assertLess(units[name], limit, name)

    @unittest.skipIf(WHY_NOT_TWO, WHY_NOT_TWO)
    def test_the_tensors_device_counts_not_the_current_one(self):
        x, weight = normal(1, 9, 256, device="cuda:1"), nvfp4gemm.quantize(
            normal(2, 64, 256, device="cuda:1"))
        y = nvfp4gemm.linear(x, weight, quantize_input=True)
        self.assertEqual(y.device, x.device)
        here = nvfp4gemm.linear(x.to("cuda:0"),
                                nvfp4gemm.quantize(normal(2, 64, 256, device="cuda:0")),
                                quantize_input=True)
        self.assertTrue(torch.equal(y.cpu(), here.cpu()))
        with self.assertRaisesRegex(ValueError, "lies on cuda:0, b on cuda:1"):
            nvfp4gemm.mm(x.to("cuda:0"), weight)


if __name__ == "__main__":
    unittest.main()
