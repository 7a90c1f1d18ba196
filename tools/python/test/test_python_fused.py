# SPDX-License-Identifier: MIT
"""Layers that a checkpoint has apart and a model as one: each dialect, bit for bit what the parts
are when each is loaded alone; and what cannot be fused, refused by name."""
import copy
import os
import tempfile
import unittest
import unittest.mock

import package  # noqa: F401
import numpy as np

import dialect_files as files
import gpus
import nvfp4gemm
from nvfp4gemm import checkpoints

ROWS, STACKED_ROWS = 192, 64  # of each part; multiples of 64, not of a tile's 128
BOTH = {"both": ["bad", "good"]}
WITH_TENSOR_SCALE = [name for name in files.DIALECTS if name not in files.MXFP4 + ("mlx",)]
INPUT = {"modelopt": ".input_scale", "comfyui": ".input_scale", "comfyui_metadata": ".input_scale",
         "flux2": ".input_scale", "compressed_tensors": ".input_global_scale",
         "stacked": "_input_scale", "ggml": ".input_scale"}


def two_parts(dialect, factor=4):
    """The dialect's file with the first part's tensor scale as many times as large."""
    with unittest.mock.patch.object(files, "N", ROWS), \
            unittest.mock.patch.object(files, "SMALL_N", STACKED_ROWS):
        file = files.DIALECTS[dialect]()
    if dialect == "flux2":  # the layer that says so stays; a second part beside the first
        for name in [name for name in file.tensors if name.startswith("double")]:
            suffix = name.removeprefix("double_blocks.0.img_attn.qkv")
            file.tensors["single_blocks.0.good" + suffix] = file.tensors[name]
    name = file.roles["tensor_scale"]
    kind, value = file.tensors[name]
    file.tensors[name] = kind, (value * np.float32(factor)).astype(np.float32)
    return file


def stem_of(file):
    return file.roles["codes"].partition("bad")[0]


def activations(k):
    return np.random.default_rng(3).standard_normal((5, k), np.float32).astype(np.float16)


class Fused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, file):
        path = os.path.join(self.folder, "m." + file.kind)
        file.write(path)
        return path

    def test_each_dialect_is_its_parts_bit_for_bit(self):
        for dialect in WITH_TENSOR_SCALE:
            with self.subTest(dialect):
                file = two_parts(dialect)
                path, stem = self.write(file), stem_of(file)
                apart = checkpoints.load(path)
                whole = checkpoints.load(path, fused=BOTH)
                experts = [f"[{i}]" for i in range(3)] if dialect == "stacked" else [""]
                others = {name for name in apart if name.startswith("double")}
                self.assertEqual(set(whole) - others, {stem + "both" + e for e in experts})
                for e in experts:
                    self.compare(whole[stem + "both" + e],
                                 [apart[f"{stem}{part}{e}"] for part in ("bad", "good")])
                    self.assertEqual(whole[stem + "both" + e].dialect,
                                     dialect.removesuffix("_metadata"))
                picked = checkpoints.load(path, names=[stem + "both"], fused=BOTH)
                self.assertEqual(set(picked), {stem + "both" + e for e in experts})
                kept = checkpoints.load(path, names=[stem + "both", stem + "good"], fused=BOTH)
                self.assertLess(set(picked), set(kept))
                os.remove(path)

    def compare(self, whole, parts):
        n = parts[0].rows
        self.assertEqual((whole.shape, whole.scale_rows), ((2 * n, parts[0].k), n))
        self.assertEqual(list(whole.tensor_scale),
                         [np.float32(part.tensor_scale) for part in parts])
        np.testing.assert_array_equal(
            whole.dequantize(), np.concatenate([part.dequantize() for part in parts]))
        x = activations(whole.k)
        for a in (x, nvfp4gemm.quantize(x), nvfp4gemm.quantize(x, "rows")):
            np.testing.assert_array_equal(
                nvfp4gemm.mm(a, whole, np.float32),
                np.concatenate([nvfp4gemm.mm(a, part, np.float32) for part in parts], axis=1))
        np.testing.assert_array_equal(
            nvfp4gemm.linear(x, whole, quantize_input=True),
            np.concatenate([nvfp4gemm.linear(x, part, quantize_input=True) for part in parts],
                           axis=1))

    def test_formats_without_a_tensor_scale(self):
        for dialect in files.MXFP4 + ("mlx",):
            file = files.DIALECTS[dialect]()
            path, stem = self.write(file), stem_of(file)
            whole = checkpoints.load(path, fused=BOTH)
            for name, weight in whole.items():
                if "both" in name:
                    parts = [file.expected[name.replace("both", part)] for part in BOTH["both"]]
                    np.testing.assert_array_equal(weight.dequantize(), np.concatenate(parts))
            self.assertIn(stem + ("both[2]" if dialect == "mxfp4" else "both"), whole)
            os.remove(path)

    def test_equal_tensor_scales_are_one(self):
        file = two_parts("modelopt", 1)
        path = self.write(file)
        whole = checkpoints.load(path, fused=BOTH)["both"]
        self.assertEqual((whole.tensor_scale, whole.scale_rows), (np.float32(0.005), 0))
        parts = checkpoints.load(path)
        np.testing.assert_array_equal(whole.dequantize(), np.concatenate(
            [parts[name].dequantize() for name in ("bad", "good")]))
        # Then parts need no common multiple of 64.
        np.testing.assert_array_equal(
            checkpoints.fuse([parts["bad"].slice_rows(0, 48), parts["good"]]).dequantize(),
            np.concatenate([parts["bad"].dequantize()[:48], parts["good"].dequantize()]))

    def test_rows_of_the_parts_are_remembered(self):
        one, two = (nvfp4gemm.quantize(np.ones((rows, 32), np.float32)) for rows in (64, 128))
        made = checkpoints.fuse([one, two])
        self.assertEqual(made.parts, (64, 128))
        self.assertEqual(checkpoints.fuse([made, one]).parts, (64, 128, 64))
        for kept in (copy.deepcopy(made), made.with_scales("linear"), made.slice_k(0, 16)):
            self.assertEqual(kept.parts, (64, 128))
        for other in (made.slice_rows(0, 64), one):
            self.assertIsNone(other.parts)

    def test_parts_of_several_sizes_have_their_greatest_common_divisor(self):
        rng = np.random.default_rng(1)
        parts = [nvfp4gemm.quantize(rng.standard_normal((n, 96), np.float32) * n)
                 for n in (384, 128, 192)]
        whole = checkpoints.fuse(parts)
        self.assertEqual((whole.shape, whole.scale_rows), ((704, 96), 64))
        np.testing.assert_array_equal(
            whole.dequantize(), np.concatenate([part.dequantize() for part in parts]))
        again = checkpoints.fuse([whole, parts[0]])
        np.testing.assert_array_equal(again.dequantize(), np.concatenate(
            [whole.dequantize(), parts[0].dequantize()]))

    def refused(self, file, layer, tensor, said):
        path = self.write(file)
        with self.assertRaises(checkpoints.CheckpointError) as caught:
            checkpoints.load(path, fused=BOTH)
        layers, (problem,) = checkpoints.load(path, strict=False, fused=BOTH)
        self.assertEqual((problem.file, problem.layer, problem.tensor), (path, layer, tensor))
        self.assertEqual(str(caught.exception), str(problem))
        self.assertRegex(str(problem), said)
        self.assertEqual([name for name in layers if "both" in name], [])
        os.remove(path)

    def test_what_cannot_be_fused_is_refused_by_name(self):
        for dialect in WITH_TENSOR_SCALE:
            with self.subTest(dialect):
                with unittest.mock.patch.dict(globals(), ROWS=48, STACKED_ROWS=48):
                    file = two_parts(dialect)
                good = file.roles["tensor_scale"].replace("bad", "good")
                layers = stem_of(file) + "both"
                if dialect == "stacked":
                    continue  # each expert is refused; the first one's sentence is as here
                self.refused(file, layers, good,
                             "is .*; expected .*, part 0's, or parts whose rows are multiples of "
                             "64; they are 48, 48")

    def test_what_stands_beside_parts_agrees(self):
        for dialect, suffix in INPUT.items():
            file = two_parts(dialect)
            stem = stem_of(file)
            for value, part in ((4, "bad"), (4, "good")):
                file.tensors[f"{stem}{part}{suffix}"] = files.f32(value)
            with self.subTest(dialect):
                path = self.write(file)
                whole = checkpoints.load(path, fused=BOTH)
                layer = next(whole[name] for name in sorted(whole) if "both" in name)
                self.assertEqual(layer.input_scale, 0.25 if "compressed" in dialect else 4)
                if dialect == "stacked":
                    continue
                for other, said in ((files.f32(8), "is .*; expected .*, part 0's"),
                                    (None, "is missing; expected one, as part 0 has")):
                    odd = copy.deepcopy(file)
                    odd.tensors[f"{stem}good{suffix}"] = other
                    if other is None:
                        del odd.tensors[f"{stem}good{suffix}"]
                        self.refused(odd, stem + "both", odd.roles["codes"].replace("bad", "good"),
                                     said)
                    else:
                        self.refused(odd, stem + "both", f"{stem}good{suffix}", said)

    def test_biases_and_smoothing_scales(self):
        file = two_parts("modelopt")
        smooth = np.linspace(0.5, 2, files.K, dtype=np.float32)
        for i, part in enumerate(("bad", "good")):
            file.tensors[part + ".pre_quant_scale"] = "F32", smooth
            file.tensors[part + ".bias"] = "F32", np.full(ROWS, 1 + i, np.float32)
        whole = checkpoints.load(self.write(file), fused=BOTH)["both"]
        np.testing.assert_array_equal(whole.bias, np.repeat(np.float32([1, 2]), ROWS))
        np.testing.assert_array_equal(whole.pre_quant_scale, smooth)
        odd = copy.deepcopy(file)
        odd.tensors["good.pre_quant_scale"] = "F32", smooth * 2
        self.refused(odd, "both", "good.pre_quant_scale", "is another one; expected part 0's")
        odd = copy.deepcopy(file)
        del odd.tensors["bad.bias"]
        self.refused(odd, "both", "good.bias", "is there; expected none, as part 0 has none")

    def test_parts_of_which_one_is_bad_make_no_whole(self):
        file = two_parts("modelopt")
        file.tensors[file.roles["tensor_scale"]] = files.scalar(-1)
        path = self.write(file)
        layers, problems = checkpoints.load(path, strict=False, fused=BOTH)
        self.assertEqual((layers, [problem.layer for problem in problems]), ({}, ["bad"]))
        layers, problems = checkpoints.load(path, names=["both"], strict=False, fused=BOTH)
        self.assertEqual((layers, [problem.layer for problem in problems]), ({}, ["bad"]))
        self.assertEqual(sorted(checkpoints.load(path, names=["good"], fused=BOTH)), ["good"])

    def test_layers_that_are_not_all_there_stay_apart(self):
        path = self.write(two_parts("modelopt"))
        for fused in ({"both": ["bad", "missing"]}, {"good": ["bad", "good"]}, {}):
            self.assertEqual(sorted(checkpoints.load(path, fused=fused)), ["bad", "good"])
        self.assertEqual(checkpoints.FUSED["qkv_proj"], ("q_proj", "k_proj", "v_proj"))

    def test_arguments_of_fuse(self):
        a, b = (nvfp4gemm.quantize(np.ones((64, k), np.float32)) for k in (64, 96))
        for parts, error, said in (
                ([], ValueError, "there are no parts"),
                ([a, a.codes], TypeError, "part 1 is ndarray"),
                ([a, b], ValueError, "codes of part 1 is of k = 96; expected k = 64, as part 0")):
            with self.assertRaisesRegex(error, said):
                checkpoints.fuse(parts)


class Groups(unittest.TestCase):
    """A Packed with a tensor scale for each group of rows."""

    def setUp(self):
        rng = np.random.default_rng(2)
        one = nvfp4gemm.quantize(rng.standard_normal((384, 96), np.float32), 0.5)
        self.whole = one.replace(tensor_scale=np.float32([1, 2, 4]))
        self.values = self.whole.dequantize()
        np.testing.assert_array_equal(
            self.values, one.dequantize() * np.repeat(np.float32([2, 4, 8]), 128)[:, None])

    def test_rows_are_cut_where_a_product_can_take_them(self):
        for packed in (self.whole, self.whole.with_scales("linear")):
            for begin, end, each in ((0, 128, 0), (128, 384, 128), (64, 256, 64), (64, 384, 64),
                                     (192, 384, 64), (130, 250, 0), (383, 384, 0), (256, 256, 0)):
                part = packed.slice_rows(begin, end)
                self.assertEqual(part.scale_rows, each, (begin, end))
                np.testing.assert_array_equal(part.dequantize(), self.values[begin:end])
            with self.assertRaisesRegex(ValueError, "rows 100 to 200 cut groups of 128 rows"):
                packed.slice_rows(100, 200)
        part = self.whole.slice_k(32, 96)
        np.testing.assert_array_equal(part.dequantize(), self.values[:, 32:])

    def test_are_refused_for_a(self):
        with self.assertRaisesRegex(ValueError, "a has a tensor scale for each 128 rows, which b"):
            nvfp4gemm.mm(self.whole, self.whole)

    def test_groups_of_other_sizes_are_none(self):
        for count in (2, 4, 5, 6, 7, 12, 383):  # 384 / 4 is 96, no multiple of 64
            if count in (2, 6):
                self.assertEqual(self.whole.replace(
                    tensor_scale=np.ones(count, np.float32)).scale_rows, 384 // count)
                continue
            with self.assertRaisesRegex(ValueError, "one for each 64 rows or a multiple of it"):
                self.whole.replace(tensor_scale=np.ones(count, np.float32))

    def test_a_number_multiplies_as_the_same_number_in_an_array(self):
        third = 1 / 3
        alpha = next(a for a in np.arange(1, 99, dtype=np.float32)
                     if np.float32(float(a) * third) != a * np.float32(third))
        x = activations(96)
        number, array = (nvfp4gemm.mm(x, self.whole.replace(tensor_scale=scale), np.float32,
                                      alpha=float(alpha))
                         for scale in (third, np.float32([third])))
        np.testing.assert_array_equal(number, array)

    def test_repr_and_copies(self):
        self.assertIn("tensor scale for each 128 rows", repr(self.whole))
        again = copy.deepcopy(self.whole)
        np.testing.assert_array_equal(again.dequantize(), self.values)


class OnTorch(gpus.OnTorch):
    def setUp(self):
        super().setUp()
        from nvfp4gemm import nn
        self.nn = nn

    def test_a_model_with_fused_layers(self):
        torch = self.torch
        with tempfile.TemporaryDirectory() as folder:
            file = two_parts("modelopt")
            file.tensors = {"m." + name.replace("bad", "gate_proj").replace("good", "up_proj"): t
                            for name, t in file.tensors.items()}
            file.write(os.path.join(folder, "m.safetensors"))
            for device in self.devices:
                model = torch.nn.ModuleDict({"m": torch.nn.ModuleDict({
                    "gate_up_proj": torch.nn.Linear(files.K, 2 * ROWS, False, device="meta")})})
                self.assertEqual(self.nn.load_linear(model, folder, device), ["m.gate_up_proj"])
                layer = model["m"]["gate_up_proj"]
                parts = checkpoints.load(folder, device)
                self.same(layer, [parts["m.gate_proj"], parts["m.up_proj"]], device)
                self.moved(layer, device)
                with self.assertRaisesRegex(ValueError, "has nothing for m.gate_up_proj"):
                    self.nn.load_linear(torch.nn.ModuleDict({"m": torch.nn.ModuleDict({
                        "gate_up_proj": torch.nn.Linear(files.K, 2 * ROWS, device="meta")})}),
                        folder, device, names=["m.gate_up_proj"], fused={})

    def same(self, layer, parts, device):
        torch = self.torch
        x = torch.from_numpy(activations(files.K)).to(device)
        expected = torch.cat([nvfp4gemm.linear(x, part) for part in parts], 1)
        torch.testing.assert_close(layer(x), expected, rtol=0 if device == "cpu" else 2 ** -9,
                                   atol=0 if device == "cpu" else 1e-3)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(x), layer(x)))
        x = x.clone().requires_grad_()
        layer(x).sum().backward()
        w = torch.cat([part.dequantize() for part in parts]).to(torch.float16)
        torch.testing.assert_close(x.grad, torch.ones(5, len(w), device=device).half() @ w)

    def moved(self, layer, device):
        torch = self.torch
        self.assertEqual(tuple(layer.state_dict()["tensor_scale"].shape), (2,))
        x = torch.from_numpy(activations(files.K)).to(device)
        before = layer(x)
        whole = self.nn.Linear(nvfp4gemm.quantize(torch.ones(2 * ROWS, files.K, device=device)))
        again = copy.deepcopy(layer)
        again.tensor_scale.zero_()
        for other in (whole, again):
            other.load_state_dict(layer.state_dict(), strict=False)
            self.assertTrue(torch.equal(other(x), before))
        layer.to("cpu").to(device).half()
        self.assertEqual(layer.tensor_scale.dtype, torch.float32)
        self.assertTrue(torch.equal(layer(x), before))


if __name__ == "__main__":
    unittest.main()
