# SPDX-License-Identifier: MIT
"""Each dialect of NVFP4 checkpoints, correct and with each single mistake. Correct: equal element
by element to what the dialect's description says. Mistake: refused with file, layer, tensor and
what was expected, and the good layer beside it is loaded."""
import itertools
import json
import os
import tempfile
import unittest

import package  # noqa: F401
import numpy as np

import dialect_files as files
from nvfp4gemm import checkpoints

INF, NAN = float("inf"), float("nan")
NVFP4 = [name for name in files.DIALECTS if name not in files.MXFP4 + files.TOGETHER]
WITH_TENSOR_SCALE = [name for name in NVFP4 if name != "ggml"]
SAFETENSORS = WITH_TENSOR_SCALE
TRANSFORMER_ENGINE = ["transformer_engine"]
NOT_STACKED = [name for name in SAFETENSORS if name != "stacked"]
INPUT = {"modelopt": ".input_scale", "comfyui": ".input_scale", "flux2": ".input_scale",
         "compressed_tensors": ".input_global_scale", "stacked": "_input_scale",
         "ggml": ".input_scale"}
PRE_QUANT = ["modelopt", "comfyui", "comfyui_metadata"]


def bad_layer(file):
    return next(name for name in file.expected if "bad" in name).partition("[")[0]


def put(role, dtype=None, change=lambda array: array):
    """A mistake: the tensor of that role with another type or content."""
    def spoil(file):
        name = file.roles[role]
        old, array = file.tensors[name]
        file.tensors[name] = dtype or old, change(array)
        return name
    return spoil


def value(number):
    return put("tensor_scale", change=lambda array: np.full_like(array, number))


def remove(role):
    def spoil(file):
        file.tensors.pop(file.roles[role])
        return file.roles[role]
    return spoil


def beside(suffix, dtype, array):
    def spoil(file):
        name = bad_layer(file) + suffix
        file.tensors[name] = dtype, array
        return name
    return spoil


def first_byte(byte):
    def change(array):
        array = array.copy()
        array.reshape(-1)[0] = byte
        return array
    return change


def declared(text):
    return beside(".comfy_quant", "U8", np.frombuffer(text, np.uint8))


def undeclared(file):
    said = json.loads(file.metadata["_quantization_metadata"])
    del said["layers"]["m.bad"]
    file.metadata["_quantization_metadata"] = json.dumps(said)
    return file.roles["codes"]


def declared_alone(file):
    for role in ("codes", "scales", "tensor_scale"):
        del file.tensors[file.roles[role]]
    return file.roles["codes"]


# (what is wrong, in which dialects, how to make it, what the sentence says after the tensor)
MISTAKES = [
    ("no codes", SAFETENSORS, remove("codes"), "is missing; expected a tensor of that name"),
    ("no scales", SAFETENSORS, remove("scales"), "is missing; expected a tensor of that name"),
    ("no tensor scale", WITH_TENSOR_SCALE, remove("tensor_scale"), "is missing; expected"),
    ("infinite", NVFP4, value(INF), "is inf; expected a finite"),
    ("not a number", NVFP4, value(NAN), "is nan; expected a finite"),
    ("negative", NVFP4, value(-1), "is -1; expected a finite"),
    ("divided by 0", ["compressed_tensors"], value(0), "is 0; expected a finite positive"),
    ("negative scale", SAFETENSORS, put("scales", change=first_byte(0x81)),
     "row 0, block 0 is 0x81, negative; UE4M3 has no sign; expected"),
    ("NaN over codes", SAFETENSORS, put("scales", change=first_byte(0x7F)),
     "row 0, block 0 is 0x7f, NaN, over codes that are not 0; expected"),
    ("NaN with a sign", SAFETENSORS, put("scales", change=first_byte(0xFF)),
     "row 0, block 0 is 0xff, NaN, over codes that are not 0; expected"),
    ("negative scale", ["ggml"], put("codes", change=first_byte(0x81)),
     "is a scale has bit 7 set, which UE4M3 has not; expected"),
    ("codes of another type", SAFETENSORS, put("codes", "I8"), "is of I8; expected U8"),
    ("scales of another type", SAFETENSORS, put("scales", "F8_E5M2"),
     "is of F8_E5M2; expected F8_E4M3 or U8"),
    ("tensor scale of another type", SAFETENSORS,
     put("tensor_scale", "I32", lambda a: a.astype(np.int32)), "is of I32; expected F32"),
    ("a row of scales too few", SAFETENSORS,
     put("scales", change=lambda a: a[:-1] if a.ndim == 1 else a[..., :-1, :]),
     r"is of shape \[.*\]; expected \["),
    ("a column of scales too few", SAFETENSORS,
     put("scales", change=lambda a: a[..., :-1]), r"is of shape \[.*\]; expected \["),
    ("scales of 32 elements", ["stacked"],
     put("scales", change=lambda a: np.ascontiguousarray(a[..., ::2])), "is MXFP4"),
    ("codes of an odd k", NOT_STACKED, put("codes", change=lambda a: a[:, :-1]),
     "expected k, a multiple of 16"),
    ("codes in one dimension", SAFETENSORS, put("codes", change=lambda a: a.reshape(-1)),
     r"is of shape \[\d+\]; expected"),
    ("two tensor scales", SAFETENSORS, put("tensor_scale", change=lambda a: np.ones(2, "f")),
     r"is 2 values, shape \[2\]; expected one value"),
    ("no scales", ["mxfp4"], remove("scales"), "is missing; expected a tensor of that name"),
    ("scales of another type", ["mxfp4"], put("scales", "F8_E4M3"),
     "is of F8_E4M3; expected U8 or F8_E8M0"),
    ("a row of scales too few", ["mxfp4"],
     put("scales", change=lambda a: a[..., :-1, :]),
     r"is of shape \[3, 47, 3\]; expected \[3, 48, 3"),
    ("scales of 16 elements", ["mxfp4"], put("scales", change=lambda a: np.repeat(a, 2, 2)),
     r"is of shape \[3, 48, 6\]; expected \[3, 48, 3\], since codes are"),
    ("blocks in two dimensions too many", ["mxfp4"],
     put("codes", change=lambda a: a[None, None]),
     r"expected \[n, k / 32, 16\], or \[experts, n"),
    ("NaN over codes", ["mxfp4"], put("scales", change=first_byte(0xFF)),
     "row 0, block 0 is 0xff, NaN, over codes that are not 0; expected UE8M0, finite"),
    ("NaN over codes", ["ggml_mxfp4"], put("codes", change=first_byte(0xFF)),
     "row 0, block 0 is 0xff, NaN, over codes that are not 0; expected UE8M0, finite"),
    ("bias of another length", ["mxfp4"], beside("_bias", *files.f32(1, 2)),
     r"is of shape \[2\]; expected \[3, 48\]"),
    ("unknown suffix", SAFETENSORS + ["ggml", *files.MXFP4],
     beside("_zero_point", *files.f32(1)), None),
    ("no number for x", list(INPUT), None, "is 0; expected a finite positive number"),
    ("bias of another length", NOT_STACKED, beside(".bias", *files.f32(1, 2)),
     r"is of shape \[2\]; expected \[144\]"),
    ("pre_quant_scale of another length", PRE_QUANT,
     beside(".pre_quant_scale", *files.f32(1, 2)), r"is of shape \[2\]; expected \[208\]"),
    ("pre_quant_scale that is none", PRE_QUANT,
     beside(".pre_quant_scale", "F32", np.full(208, NAN, np.float32)), "is not finite everywhere"),
    ("declaration cut off", ["comfyui"], declared(b'{"format": "nvfp'), 'expected JSON with "form'),
    ("declared as another format", ["comfyui"], declared(b'{"format": "mxfp8"}'),
     "is declared as 'mxfp8'; expected 'nvfp4'"),
    ("declared with more", ["comfyui"], declared(b'{"format": "nvfp4", "convrot": true}'),
     "is declared with convrot; expected"),
    ("not in the metadata", ["comfyui_metadata"], undeclared,
     "is a layer that the metadata of its file do not name; expected an entry"),
    ("in the metadata alone", ["comfyui_metadata"], declared_alone,
     "is missing; expected a tensor of that name, since m.bad is declared as nvfp4"),
    ("another constant", TRANSFORMER_ENGINE,
     beside(".weight._nvfp4_e4m3_max", "I64", np.array(300)), "is 300; expected 448 or 256"),
]


def host(array):
    """A tensor of a GPU, where NumPy can read it."""
    return array.cpu() if hasattr(array, "cpu") else array


class Dialects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # A name that a pattern of files would not match itself.
        self.folder = os.path.join(folder.name, "model [1]")
        os.mkdir(self.folder)

    def path(self, file):
        return os.path.join(self.folder, "model." + file.kind)

    def loaded(self, file, device=None):
        file.write(self.path(file))
        return checkpoints.load(self.folder, device)

    def same(self, layers, expected):
        self.assertEqual(sorted(layers), sorted(expected))
        for name, values in expected.items():
            with self.subTest(name):
                got = np.asarray(host(layers[name].dequantize()))
                np.testing.assert_allclose(got, values, rtol=2e-7)

    def test_correct(self):
        for name, make in files.DIALECTS.items():
            with self.subTest(name):
                file = make()
                layers = self.loaded(file)
                self.same(layers, file.expected)
                dialect = name.removesuffix("_metadata")
                self.assertEqual({layer.dialect for layer in layers.values()}, {dialect})
                self.assertEqual({layer.bias for layer in layers.values()}, {None})
                os.remove(self.path(file))

    def test_nan_over_zeros_is_zero(self):
        def change(matrix):
            ue8m0 = isinstance(matrix, files.Mxfp4)
            matrix.codes[3, 32:64] = [0, 8] * 16
            if ue8m0:
                matrix.scales[3, 32 // matrix.block:64 // matrix.block] = 0xFF
            else:
                matrix.scales[3, 2:4] = 0x7F

        for name, make in files.DIALECTS.items():
            with self.subTest(name):
                file = make(change)
                layers = self.loaded(file)
                for layer, values in file.expected.items():
                    values = np.nan_to_num(values)
                    values[np.abs(values) > 1e30] = 0
                    got = layers[layer].dequantize()
                    self.assertTrue(np.isfinite(got).all())
                    rest = np.ones(values.shape, bool)
                    if layer == "m.bad[1]" or layer.endswith("bad"):
                        rest[3, 32:64] = False
                        self.assertEqual(np.abs(got[3, 32:64]).max(), 0)
                    np.testing.assert_allclose(got[rest], values[rest], rtol=2e-7)
                os.remove(self.path(file))

    def refused(self, file, tensor, said):
        """The whole file raises; without strict the bad layer alone is missing."""
        file.write(self.path(file))
        with self.assertRaises(checkpoints.CheckpointError) as caught:
            checkpoints.load(self.folder)
        layers, problems = checkpoints.load(self.folder, strict=False)
        self.assertEqual(str(caught.exception), "\n".join(map(str, problems)))
        good = {name for name in file.expected if "bad" not in name}
        self.assertLessEqual(good, set(layers))
        self.assertFalse([name for name in layers if "bad" in name])
        self.assertEqual(len(problems), 1, problems)
        self.assertEqual((problems[0].file, problems[0].layer), (self.path(file), bad_layer(file)))
        self.assertRegex(str(problems[0]), said)
        self.assertIn(f"{self.path(file)}: layer {bad_layer(file)}: {tensor}", str(problems[0]))
        self.assertIn("; expected ", str(problems[0]))

    def test_each_mistake_is_refused(self):
        tried = 0
        for what, dialects, spoil, said in MISTAKES:
            for dialect in dialects:
                with self.subTest(f"{dialect}: {what}"):
                    file = files.DIALECTS[dialect]()
                    if what == "unknown suffix":
                        sign = "_" if dialect in ("stacked", "mxfp4") else "."
                        tensor = beside(f"{sign}zero_point", *files.f32(1))(file)
                        self.refused(file, tensor, "is what .* does not have beside a weight; "
                                                   "expected none but ")
                    elif spoil is None:
                        tensor = beside(INPUT[dialect], *files.f32(0))(file)
                        self.refused(file, tensor, said)
                    else:
                        self.refused(file, spoil(file), said)
                    os.remove(self.path(file))
                    tried += 1
        self.assertGreater(tried, 120)

    def test_one_name_in_two_files(self):
        for dialect in SAFETENSORS:
            for role in ("codes", "scales", "tensor_scale"):
                with self.subTest(f"{dialect}: {role}"):
                    file = files.DIALECTS[dialect]()
                    tensor = file.roles[role]
                    second = os.path.join(self.folder, "second.safetensors")
                    files.safetensors(second, {tensor: file.tensors[tensor]})
                    self.refused(file, tensor, "is in .*model.safetensors and .*second.safetensors")
                    os.remove(second)
                    os.remove(self.path(file))

    def test_what_is_no_nvfp4_is_left_alone(self):
        file = files.modelopt()
        fp8 = np.zeros((4, 32), np.uint8)
        file.tensors.update({
            "fp8.weight": ("F8_E4M3", fp8), "fp8.weight_scale": files.f32(1),
            "mxfp8.weight": ("F8_E4M3", fp8), "mxfp8.weight_scale": ("U8", fp8[:, :1]),
            "int4.weight_packed": ("I32", np.zeros((4, 4), np.int32)),
            "int4.weight_scale": ("BF16", np.zeros((4, 1), np.uint16)),
            "m.fp8_scales": ("U8", fp8), "m.some_blocks": ("U8", fp8),
            "plain.weight": ("BF16", np.zeros((4, 32), np.uint16)), "plain.bias": files.f32(1)})
        self.same(self.loaded(file), file.expected)

    def test_beside_a_weight(self):
        for dialect, suffix in INPUT.items():
            with self.subTest(dialect):
                file = files.DIALECTS[dialect]()
                beside(suffix, *files.f32(4))(file)
                if dialect == "modelopt":
                    beside(".pre_quant_scale", "BF16", np.full(files.K, 0x4020, np.uint16))(file)
                    beside(".bias", "F16", np.arange(files.N, dtype=np.float16))(file)
                layers = self.loaded(file)
                self.same(layers, file.expected)
                layer = next(layers[name] for name in sorted(layers) if "bad" in name)
                self.assertEqual(layer.input_scale, 0.25 if "divides" in dialect or
                                 dialect == "compressed_tensors" else 4)
                if dialect == "modelopt":
                    np.testing.assert_array_equal(layer.pre_quant_scale, np.full(files.K, 2.5))
                    np.testing.assert_array_equal(layer.bias, np.arange(files.N))
                os.remove(self.path(file))

    def test_names_pick(self):
        self.loaded(files.stacked())
        self.assertEqual(sorted(checkpoints.load(self.folder, names=["m.bad[1]"])), ["m.bad[1]"])
        self.assertEqual(sorted(checkpoints.load(self.folder, names=["m.good"])),
                         [f"m.good[{i}]" for i in range(3)])
        with self.assertRaisesRegex(KeyError, r"no NVFP4 layer 'm.bad\[3\]'"):
            checkpoints.load(self.folder, names=["m.bad[3]"])

    def test_a_picked_layer_does_not_mind_a_bad_one(self):
        file = files.modelopt()
        remove("scales")(file)
        file.write(self.path(file))
        self.assertEqual(list(checkpoints.load(self.folder, names=["good"])), ["good"])
        with self.assertRaisesRegex(checkpoints.CheckpointError, "layer bad: "):
            checkpoints.load(self.folder, names=["bad"])

    def test_by_torch_too(self):
        try:
            import torch
        except ImportError as missing:
            self.skipTest(str(missing))
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        for make, device in itertools.product(files.DIALECTS.values(), devices):
            file = make()
            layers = self.loaded(file, device)
            self.assertEqual({weight.codes.device.type for weight in layers.values()}, {device})
            self.same(layers, file.expected)
            os.remove(self.path(file))


if __name__ == "__main__":
    unittest.main()
