# SPDX-License-Identifier: MIT
"""nvfp4gemm.nn on torch: on the CPU wherever torch is, and on a GPU where torch finds one."""
import copy
import json
import os
import tempfile
import unittest

import package  # noqa: F401

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

import dialect_files
import folder_files
import gpus
import numpy as np
import nvfp4gemm
from nvfp4gemm import checkpoints
from nvfp4gemm.nn import Experts, Linear, load_linear, replace_linear

GPU = not gpus.why_not(torch, 1)
HOPPER = GPU and torch.cuda.get_device_capability() == (9, 0)
DEVICES = ["cpu", "cuda"] if HOPPER else ["cpu"]


def stored(tensor):
    """(type, array) of a tensor, as dialect_files writes them."""
    if tensor.dtype == torch.bfloat16:
        return "BF16", tensor.view(torch.int16).numpy().view(np.uint16)
    return {torch.uint8: "U8", torch.float32: "F32"}[tensor.dtype], tensor.numpy()


def linear(n, k, bias=True, device="cpu"):
    torch.manual_seed(n + k)
    return torch.nn.Linear(k, n, bias, dtype=torch.bfloat16, device=device)


class Blocks(unittest.TestCase):
    """Experts, each matrix with a tensor scale of its own."""

    @staticmethod
    def block(seed, device):
        generator = torch.Generator().manual_seed(seed)
        return Experts(*([nvfp4gemm.quantize((torch.randn(shape, generator=generator) * (i + 1))
                                             .to(device)) for i, shape in enumerate(part)]
                         for part in ([(48, 64)] * 3, [(48, 64)] * 3, [(64, 48)] * 3)))

    def test_state_and_casts(self):
        for device in DEVICES:
            torch.manual_seed(3)
            one, other = self.block(1, device), self.block(2, device)
            x = torch.randn(5, 64, device=device).bfloat16()
            index = torch.tensor([[0, 1], [2, 0], [1, 2], [2, 1], [0, 2]], device=device)
            weights = torch.rand(5, 2, device=device)
            expected = one(x, index, weights)
            self.assertFalse(torch.equal(other(x, index, weights), expected))
            state = one.state_dict()
            for part in ("gate", "up", "down"):
                self.assertEqual(state[f"{part}_tensor_scale"].shape, (3,))
                self.assertEqual(len(set(state[f"{part}_tensor_scale"].tolist())), 3)
            other.load_state_dict(state)
            for again in (other, copy.deepcopy(one), copy.deepcopy(one).half(),
                          copy.deepcopy(one).cpu().to(device)):
                self.assertEqual(again.gate_tensor_scale.dtype, torch.float32)
                self.assertTrue(torch.equal(again(x, index, weights), expected))
            compiled = torch.compile(one, fullgraph=True, backend="aot_eager")
            self.assertTrue(torch.equal(compiled(x, index, weights), expected))
            alike = nvfp4gemm.quantize(torch.randn(48, 64, device=device), 0.01)
            down = nvfp4gemm.quantize(torch.randn(64, 48, device=device), 0.01)
            alike = Experts([alike] * 3, [alike] * 3, [down] * 3)
            alike.load_state_dict(state)
            self.assertTrue(torch.equal(alike(x, index, weights), expected))


class Layer(unittest.TestCase):
    def test_from_float(self):
        for device in DEVICES:
            float_ = linear(40, 64, device=device)
            layer = Linear.from_float(float_, activation="relu")
            x = torch.randn(2, 3, 64, device=device).bfloat16()
            w = nvfp4gemm.quantize(float_.weight.detach()).dequantize().double()
            expected = torch.relu(x.double() @ w.T + float_.bias.double())
            torch.testing.assert_close(layer(x).double(), expected, rtol=2 ** -8, atol=1e-3)
            self.assertFalse(layer(x).requires_grad)

    def test_state_dict_goes_over(self):
        for device in DEVICES:
            first, second = (Linear.from_float(linear(n, 64, device=device)) for n in (40, 40))
            second.codes.zero_()
            x = torch.randn(5, 64, device=device).bfloat16()
            self.assertFalse(torch.equal(first(x), second(x)))
            for assign in (False, True):
                state = {name: tensor.clone() for name, tensor in first.state_dict().items()}
                self.assertEqual(set(state), {"codes", "scales", "tensor_scale", "bias"})
                second.load_state_dict(state, assign=assign)
                self.assertTrue(torch.equal(first(x), second(x)))
            self.assertTrue(torch.equal(copy.deepcopy(first)(x), first(x)))

    def test_casts_leave_the_tensor_scale(self):
        layer = Linear.from_float(linear(40, 64))
        scale = layer.tensor_scale.clone()
        layer.half()
        self.assertEqual((layer.tensor_scale.dtype, layer.bias.dtype),
                         (torch.float32, torch.float16))
        self.assertTrue(torch.equal(layer.tensor_scale, scale))
        self.assertEqual(layer(torch.ones(1, 64).half()).dtype, torch.float16)

    def test_torch_compile(self):
        for device in DEVICES:
            layer = Linear.from_float(linear(40, 64, device=device))
            compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
            x = torch.randn(5, 64, device=device).bfloat16()
            self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_from_checkpoint(self):
        try:
            from safetensors.torch import save_file
        except ImportError as missing:
            self.skipTest(str(missing))
        float_ = linear(40, 96)
        packed = nvfp4gemm.quantize(float_.weight.detach(), 0.002, scale_layout="linear")
        with tempfile.TemporaryDirectory() as folder:
            save_file({"m.up.weight": packed.codes[:, :48].contiguous(),
                       "m.up.weight_scale": packed.scales.reshape(40, 6).view(torch.float8_e4m3fn),
                       "m.up.weight_scale_2": torch.tensor(packed.tensor_scale),
                       "m.up.bias": float_.bias.detach()}, os.path.join(folder, "m.safetensors"))
            for device in DEVICES:
                layer = Linear.from_checkpoint(folder, "m.up", device)
                x = torch.randn(5, 96).bfloat16().to(device)
                expected = nvfp4gemm.linear(x.cpu(), packed, float_.bias.detach())
                torch.testing.assert_close(layer(x).cpu(), expected, rtol=2 ** -7, atol=1e-4)
                with self.assertRaisesRegex(KeyError, "no NVFP4 layer 'm.down'"):
                    Linear.from_checkpoint(folder, "m.down", device)
                self.into_a_model(folder, x, layer(x), device)

    def into_a_model(self, folder, x, expected, device):
        def model(n):
            m = torch.nn.ModuleDict({"up": linear(n, 96, device="meta"), "down": linear(96, 64)})
            return torch.nn.ModuleDict({"m": m})

        good = model(40)
        with self.assertRaisesRegex(ValueError, "has nothing for m.down, which would keep"):
            load_linear(good, folder, device)
        self.assertEqual(load_linear(good, folder, device, skip=["down"]), ["m.up"])
        self.assertTrue(torch.equal(good["m"]["up"](x), expected))
        self.assertIs(type(good["m"]["down"]), torch.nn.Linear)
        with self.assertRaisesRegex(ValueError, r"m.up is \(40, 96\) in .*, \(48, 96\) in"):
            load_linear(model(48), folder, device, names=["m.up"])
        with self.assertRaisesRegex(ValueError, "has m.up, and m.up is no torch.nn.Linear of the"):
            load_linear(good["m"], folder, device)

    def test_what_a_checkpoint_has_beside_a_weight(self):
        with tempfile.TemporaryDirectory() as folder:
            file = dialect_files.modelopt()
            scale = torch.rand(dialect_files.K) + 0.5
            file.tensors.update({"bad.pre_quant_scale": ("F32", scale.numpy()),
                                 "bad.input_scale": dialect_files.scalar(0.002),
                                 "plain.weight": ("BF16", np.zeros((8, 8), np.uint16))})
            path = os.path.join(folder, "m.safetensors")
            file.write(path)
            model = torch.nn.ModuleDict({"good": linear(dialect_files.N, dialect_files.K),
                                         "bad": linear(dialect_files.N, dialect_files.K),
                                         "plain": linear(8, 8)})
            with self.assertWarnsRegex(UserWarning, "1 layers are not NVFP4 .* now: plain"):
                names = load_linear(model, path, "cpu", quantize_input=True)
            weight = nvfp4gemm.checkpoints.load(path, "cpu")["bad"]
        self.assertEqual(sorted(names), ["bad", "good"])
        layer = model["bad"].half()
        self.assertEqual(layer.pre_quant_scale.dtype, torch.float32)
        self.assertLessEqual({"pre_quant_scale", "input_scale"}, set(layer.state_dict()))
        x = torch.randn(4, dialect_files.K).half()
        expected = nvfp4gemm.linear(x, weight, quantize_input=True)
        self.assertTrue(torch.equal(layer(x), expected))
        layer.input_scale *= 1.5
        self.assertFalse(torch.equal(layer(x), expected))

    def test_a_layer_that_is_not_read_does_not_keep_its_weights(self):
        for folder, said in (
                (folder_files.unknown("U8", "F8_E8M0", ("m.1.data", "m.1.scale")),
                 "4-bit elements of a dialect"),
                (folder_files.two().index().without("b"), "m.1.weight is in b.safetensors, which"),
                (folder_files.rotated([folder_files.online("m.1")]), "with a transform")):
            with self.subTest(said), tempfile.TemporaryDirectory() as path:
                folder.write(path)
                model = torch.nn.ModuleDict({"m": torch.nn.ModuleDict({
                    name: linear(16, 64) for name in "01"})})
                for names in (None, ["m.1"]):
                    with self.assertRaisesRegex(nvfp4gemm.checkpoints.CheckpointError, said):
                        load_linear(model, path, "cpu", names=names)
                    self.assertIs(type(model["m"]["1"]), torch.nn.Linear)
                self.assertEqual(load_linear(model, path, "cpu", names=["m.0"]), ["m.0"])

    def test_names_with_a_prefix_and_rows_that_are_padding(self):
        with tempfile.TemporaryDirectory() as folder:
            file = dialect_files.comfyui()
            file.tensors = {"model.diffusion_" + name: tensor
                            for name, tensor in file.tensors.items()}
            file.write(os.path.join(folder, "m.safetensors"))
            rows = dialect_files.N - 14
            model = torch.nn.ModuleDict({name: linear(rows, dialect_files.K, device="meta")
                                         for name in ("good", "bad")})
            for names in (["bad"], None):
                loaded = load_linear(model, folder, "cpu", names=names,
                                     prefix="model.diffusion_m.")
                self.assertEqual(sorted(loaded), names or ["good"])
        values = model["bad"].packed().dequantize().numpy()
        np.testing.assert_allclose(values, file.expected["m.bad"][:rows], rtol=2e-7)

    def test_of_what_is_no_layer(self):
        layer = Linear.from_float(linear(40, 64))
        for wrong in (None, layer, torch.nn.ReLU(), torch.zeros(4, 16)):
            with self.assertRaisesRegex(TypeError, "linear is .*; expected a torch.nn.Linear"):
                Linear.from_float(wrong)

    def test_quantized_inputs(self):
        layer = Linear.from_float(linear(40, 64), quantize_input=True)
        x = torch.randn(2, 3, 64).bfloat16()
        self.assertTrue(torch.equal(layer(x), nvfp4gemm.linear(
            x, layer.packed(), layer.bias, quantize_input=True)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(linear(96, 64), torch.nn.ReLU(), linear(64, 96, False))
            for _ in range(2))
        self.head = linear(10, 64)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Replace(unittest.TestCase):
    def test_all_but_those_named(self):
        model = Model()
        x = torch.randn(7, 64).bfloat16()
        model.requires_grad_(False)
        before = model(x).float()
        names = replace_linear(model, skip=["head", "blocks.1.2"])
        self.assertEqual(names, ["blocks.0.0", "blocks.0.2", "blocks.1.0"])
        self.assertIs(type(model.blocks[0][0]), Linear)
        self.assertIs(type(model.head), torch.nn.Linear)
        error = float((model(x).float() - before).norm() / before.norm())
        self.assertLess(error, 0.3)
        self.assertGreater(error, 0.001)

    def test_what_cannot_be_is_said_before_anything_is_replaced(self):
        model = Model()
        with self.assertRaisesRegex(ValueError, "skip names 'lm_head', which is no"):
            replace_linear(model, skip=["lm_head"])
        model.head = linear(10, 72)
        with self.assertRaisesRegex(ValueError, "head has 72 input features, no multiple of 16"):
            replace_linear(model)
        self.assertIs(type(model.blocks[0][0]), torch.nn.Linear)
        self.assertEqual(json.dumps(replace_linear(model, skip=["head", "0"])),
                         '["blocks.0.2", "blocks.1.2"]')


class AsTorchs(unittest.TestCase):
    """What programs expect of a torch.nn.Linear."""

    def layers(self):
        """In each format, with and without a bias, with rows of codes that are padded, and with
        what a checkpoint has beside them."""
        for n, k, bias, format_ in ((40, 64, True, "nvfp4"), (40, 48, False, "nvfp4"),
                                    (24, 96, True, "mxfp4"), (24, 48, False, "e2m1_ue8m0")):
            float_ = linear(n, k, bias)
            weight = nvfp4gemm.quantize(float_.weight.detach(), format=format_)
            yield Linear(weight, float_.bias)
        weight = checkpoints.weight(weight.codes[:, :24], torch.full((24, 3), 0x38).byte(), 0.01)
        yield Linear(weight.beside(input_scale=0.02, pre_quant_scale=torch.rand(48)))

    def test_compiled_code_follows_the_layer(self):
        """A copy that is loaded afterwards, and a layer whose codes alone are set."""
        x = torch.randn(5, 64).bfloat16()
        with torch.no_grad():
            for ran in (False, True):
                layer = Linear.from_float(linear(40, 64))
                other = Linear.from_float(torch.nn.Linear(64, 40).bfloat16())
                if ran:
                    layer(x)
                copied = copy.deepcopy(layer)
                copied.load_state_dict(other.state_dict())
                compiled = torch.compile(copied, fullgraph=True, backend="aot_eager")
                self.assertTrue(torch.equal(compiled(x), other(x)))
                copied.codes = layer.codes
                self.assertTrue(torch.equal(compiled(x), copied(x)))
                copied._parameters["codes"] = other.codes  # as accelerate puts parameters
                self.assertTrue(torch.equal(compiled(x), copied(x)))
                copied.load_state_dict(layer.state_dict(), assign=True)
                self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_a_compiled_result_is_a_plain_tensor(self):
        layer = Linear.from_float(linear(40, 64))
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            y = compiled(torch.randn(5, 64).bfloat16())
        self.assertIs(type(y), torch.Tensor)
        y += 1

    def test_weight_is_a_parameter_of_bytes(self):
        for layer in self.layers():
            self.assertIsInstance(layer, torch.nn.Linear)
            self.assertIsInstance(layer.weight, torch.nn.Parameter)
            self.assertEqual((layer.weight.dtype, layer.weight.requires_grad), (torch.uint8, False))
            self.assertIs(next(layer.parameters()), layer.weight)
            n, k = layer.out_features, layer.in_features
            self.assertEqual(sum(one.numel() for one in layer.parameters()),
                             n * k // 2 + (0 if layer.bias is None else n))
            self.assertEqual(layer.dtype, torch.bfloat16)
            self.assertEqual(layer.half().dtype, torch.float16)

    def test_what_a_state_dict_has_is_read_as_a_checkpoint(self):
        for format_ in ("nvfp4", "mxfp4", "e2m1_ue8m0"):
            w = torch.randn(144, 192).bfloat16()
            layer = Linear(nvfp4gemm.quantize(w, format=format_), torch.randn(144).bfloat16())
            if format_ == "nvfp4":
                layer.input_scale = torch.tensor(0.25)
            with tempfile.TemporaryDirectory() as folder:
                dialect_files.safetensors(os.path.join(folder, "model.safetensors"), {
                    f"m.up.{name}": stored(tensor) for name, tensor in layer.state_dict().items()})
                layers, problems = checkpoints.load(folder, "cpu", strict=False)
            self.assertEqual((problems, list(layers)), ([], ["m.up"]))
            self.assertEqual(layers["m.up"].input_scale, 0.25 if format_ == "nvfp4" else None)
            other = Linear(layers["m.up"], layers["m.up"].bias)
            for name, tensor in layer.state_dict().items():
                self.assertTrue(torch.equal(other.state_dict()[name], tensor), name)

    def test_an_empty_layer_takes_a_state_dict(self):
        for layer in self.layers():
            x = torch.randn(5, layer.in_features).bfloat16()
            state = layer.state_dict()
            self.assertIs(type(state["codes"]), torch.Tensor)
            self.assertEqual(state["codes"].shape, (layer.out_features, layer.in_features // 2))
            for device, assign in (("meta", True), ("cpu", True), ("cpu", False)):
                empty = Linear(layer.in_features, layer.out_features, layer.bias is not None,
                               device, torch.bfloat16, format=layer.packed().format)
                self.assertEqual(empty.weight.device.type, device)
                if device == "cpu":
                    self.assertTrue(bool((empty(x) == 0).all()))
                empty.load_state_dict(state, assign=assign)
                self.assertTrue(torch.equal(empty(x), layer(x)))
                self.assertIs(type(empty.weight), type(layer.weight))
                self.assertEqual(set(empty.state_dict()), set(state))
                for name, tensor in empty.state_dict().items():
                    self.assertTrue(torch.equal(tensor, state[name]))

    def test_what_an_empty_layer_cannot_be(self):
        for arguments, words in (((60, 40), "in_features is 60, no multiple of 16"),
                                 ((64, -1), "out_features")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                Linear(*arguments)
        with self.assertRaisesRegex(ValueError, "in_features is 48, no multiple of 32"):
            Linear(48, 40, format="mxfp4")

    def test_codes_at_another_place(self):
        """As programs move them that offload weights."""
        layer, other = (Linear.from_float(linear(n, 64)) for n in (40, 40))
        other.codes.zero_()
        x = torch.randn(5, 64).bfloat16()
        before, zero = layer(x), other(x)
        layer.weight.data = other.weight.data
        self.assertTrue(torch.equal(layer(x), zero))
        self.assertFalse(torch.equal(before, zero))

    def test_nothing_is_added_to_codes(self):
        layer = Linear.from_float(linear(40, 64))
        before, x = layer.codes.clone(), torch.ones(40, 32)
        copy_ = layer.weight.data.clone()

        def in_place(codes):
            codes += x.byte()

        def set_rows(codes):
            codes[:2] = x[:2]

        for add in (lambda: in_place(layer.weight.data), lambda: in_place(copy_),
                    lambda: layer.weight + x, lambda: layer.weight.add_(1),
                    lambda: layer.weight.data * 2, lambda: layer.weight.copy_(x),
                    lambda: layer.weight.data.addcmul_(x, x), lambda: copy_.lerp_(x, 0.5),
                    lambda: copy_.addmm_(x.T, x), lambda: copy_.fill_(1.5), lambda: copy_.clamp_(1),
                    lambda: copy_.masked_fill_(x > 0, 3), lambda: copy_.index_add_(
                        0, torch.arange(40), x.byte()), lambda: set_rows(copy_),
                    lambda: torch.add(x.byte(), 1, out=copy_),
                    lambda: torch._foreach_add_([copy_], 1),
                    lambda: torch.nn.init.constant_(layer.weight, 1)):
            with self.assertRaisesRegex(ValueError, "weight has the codes of a 4-bit layer"):
                add()
        self.assertTrue(torch.equal(layer.codes, before))
        self.assertTrue(torch.equal(copy_, before))

    def test_codes_are_written_as_bytes(self):
        layer, other = (Linear.from_float(linear(40, 64)) for _ in range(2))
        with torch.no_grad():
            layer.weight.copy_(other.weight)
            self.assertTrue(torch.equal(layer.weight, other.weight))
            layer.weight.zero_()[:8] = other.weight[:8]
            self.assertTrue(torch.equal(layer.weight[:8], other.weight[:8]))
            values = torch.empty(40, 32)
            values.copy_(layer.weight)
        self.assertTrue(torch.equal(values.byte(), layer.weight))
        self.assertFalse(layer.requires_grad_(False).share_memory().weight.detach_().requires_grad)
        with self.assertRaisesRegex(RuntimeError, "weight has the codes of a 4-bit layer"):
            layer.load_state_dict({**layer.state_dict(), "codes": values})

    def test_a_tied_weight(self):
        model = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(40, 64, dtype=torch.bfloat16),
                                     "head": linear(40, 64, bias=False)})
        head = model["head"] = Linear.from_float(model["head"])
        head.weight = model["embedding"].weight
        x = torch.randn(5, 64).bfloat16()
        self.assertIs(model["head"].weight, model["embedding"].weight)
        self.assertTrue(torch.equal(model["head"](x), x @ model["embedding"].weight.T))
        self.assertEqual(set(model["head"].state_dict()), {"weight"})
        with self.assertRaisesRegex(ValueError, "weight is .64, 40.; expected .40, 64."):
            Linear.from_float(linear(40, 64)).weight = torch.nn.Parameter(torch.zeros(64, 40))
        for option in ({"activation": "relu"}, {"quantize_input": True}):
            layer = Linear.from_float(linear(40, 64), **option)
            with self.assertRaisesRegex(ValueError, f"no {next(iter(option))}"):
                layer.weight = torch.nn.Parameter(torch.zeros(40, 64))
            self.assertIs(type(layer), Linear)

    def test_layers_that_share_a_weight_stay(self):
        model = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(40, 64, dtype=torch.bfloat16),
                                     "up": linear(40, 64), "head": linear(40, 64, bias=False)})
        model["head"].weight = model["embedding"].weight
        with self.assertRaisesRegex(ValueError, "head shares its weight with embedding; skip"):
            replace_linear(model)
        self.assertIs(type(model["up"]), torch.nn.Linear)
        self.assertEqual(replace_linear(model, skip=["head"]), ["up"])


if __name__ == "__main__":
    unittest.main()
