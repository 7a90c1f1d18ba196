# SPDX-License-Identifier: MIT
"""NVFP4 checkpoints, written here in numpy as ModelOpt and compressed-tensors lay them out
(docs/integration.md), and read by nvfp4gemm.checkpoints: the values are those of each
convention."""
import json
import os
import tempfile
import unittest

import package  # noqa: F401
import numpy as np

try:
    import ml_dtypes
except ImportError as error:
    raise unittest.SkipTest("this Python has no ml_dtypes") from error

import nvfp4gemm

E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def layer(seed, n, k):
    """Random codes and scales, and what code * scale is."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (n, k), np.uint8)
    scales = (rng.random((n, k // 16), np.float32) * 4 + 0.25).astype(ml_dtypes.float8_e4m3fn)
    values = E2M1[codes] * np.repeat(scales.astype(np.float32), 16, axis=1)
    return codes[:, ::2] | codes[:, 1::2] << 4, scales.view(np.uint8), values


def safetensors(file, tensors):
    """The format of huggingface/safetensors: a length, a header of JSON, the bytes."""
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, array) in tensors.items():
        array = np.ascontiguousarray(array)
        head[name] = {"dtype": dtype, "shape": list(array.shape),
                      "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(head).encode()
    with open(file, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name):
        return os.path.join(self.folder, name)

    def test_modelopt_multiplies_and_compressed_tensors_divides(self):
        up, down = layer(1, 40, 96), layer(2, 96, 48)
        norm = np.ones(96, np.float32)
        safetensors(
            self.file("a.safetensors"), {
                "m.up.weight": ("U8", up[0]),
                "m.up.weight_scale": ("F8_E4M3", up[1]),
                "m.up.weight_scale_2": ("F32", np.array(0.005, np.float32)),
                "m.norm.weight": ("F32", norm)
            })
        safetensors(self.file("b.safetensors"), {
            "m.down.weight_packed": ("U8", down[0]), "m.down.weight_scale": ("F8_E4M3", down[1]),
            "m.down.weight_global_scale": ("F32", np.array([200], np.float32))})
        layers = nvfp4gemm.checkpoints.load(self.folder)
        self.assertEqual(set(layers), {"m.up", "m.down"})
        for name, (_, _, values) in (("m.up", up), ("m.down", down)):
            packed = layers[name]
            self.assertEqual((packed.shape, packed.scale_layout), (values.shape, "128x4"))
            np.testing.assert_allclose(packed.dequantize(), values * np.float32(0.005), rtol=1e-6)
            self.assertEqual(packed.codes.shape[1] % 16, 0)
        only = nvfp4gemm.checkpoints.load(self.file("b.safetensors"), names=["m.down"])
        np.testing.assert_array_equal(only["m.down"].dequantize(), layers["m.down"].dequantize())

    def test_what_is_none_is_said(self):
        codes, scales, _ = layer(3, 8, 64)
        with self.assertRaisesRegex(ValueError,
                                    r"scales \(8, 4\) are no 128x4 ones of \[8, 64\]: 32 bytes"):
            nvfp4gemm.checkpoints.weight(codes, scales, scale_layout="128x4")
        with self.assertRaisesRegex(ValueError, "codes are float32"):
            nvfp4gemm.checkpoints.weight(codes.astype(np.float32), scales)
        with self.assertRaisesRegex(FileNotFoundError, "is no safetensors or GGUF file and "):
            nvfp4gemm.checkpoints.load(self.folder)
        safetensors(self.file("x.safetensors"), {"w": ("F32", np.ones(2, np.float32))})
        with self.assertRaisesRegex(KeyError, "has no NVFP4 layer 'v'; it has 0"):
            nvfp4gemm.checkpoints.load(self.folder, names=["v"])
        safetensors(self.file("x.safetensors"),
                    {"q.weight": ("F8_E4M3", np.ones((16, 64), np.uint8))})
        with self.assertRaisesRegex(KeyError, "has the layer 'q' in FP8, not in 4 bits; it has 0"):
            nvfp4gemm.checkpoints.load(self.folder, names=["q"])
        with open(self.file("x.safetensors"), "wb") as out:
            out.write(b"\xff" * 9)
        with self.assertRaisesRegex(ValueError, "is no safetensors file: a header of"):
            nvfp4gemm.checkpoints.load(self.folder)

    def test_by_torch_too(self):
        try:
            import safetensors as package_  # noqa: F401
            import torch
        except ImportError as missing:
            self.skipTest(str(missing))
        codes, scales, values = layer(4, 40, 96)
        safetensors(self.file("a.safetensors"), {
            "w.weight": ("U8", codes), "w.weight_scale": ("F8_E4M3", scales),
            "w.weight_scale_2": ("F32", np.array(0.5, np.float32))})
        device = "cuda" if torch.cuda.is_available() else "cpu"
        packed = nvfp4gemm.checkpoints.load(self.folder, device)["w"]
        self.assertEqual(packed.codes.device.type, device)
        np.testing.assert_allclose(packed.dequantize().cpu().numpy(), values * 0.5, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
