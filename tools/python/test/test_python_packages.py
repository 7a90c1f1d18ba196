# SPDX-License-Identifier: MIT
"""A file that each dialect's own package wrote, where that package is: the weight is what the
package itself dequantizes. None of them is required."""
import importlib
import os
import tempfile
import unittest

import package  # noqa: F401
import numpy as np

import dialect_files as files
from nvfp4gemm import checkpoints


def packages(*names):
    """The packages, or a skip."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as missing:
        raise unittest.SkipTest(str(missing)) from None


class Written(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def weight(self, torch):
        torch.manual_seed(0)
        return (torch.randn(144, 192) * 0.02).bfloat16()

    def same(self, dialect, values, rtol):
        (name, weight), = checkpoints.load(self.folder).items()
        self.assertEqual((name, weight.dialect), ("m.up", dialect))
        np.testing.assert_allclose(weight.dequantize(), values, rtol=rtol)

    def saved(self, tensors):
        _, save = packages("torch", "safetensors.torch")
        save.save_file(tensors, os.path.join(self.folder, "m.safetensors"))

    def test_comfy_kitchen(self):
        torch, kitchen = packages("torch", "comfy_kitchen.tensor.nvfp4")
        layout, w = kitchen.TensorCoreNVFP4Layout, self.weight(torch)
        data, parameters = layout.quantize(w)
        tensors = {"m.up.weight" + suffix: tensor.contiguous() for suffix, tensor in
                   layout.state_dict_tensors(data, parameters).items()}
        tensors["m.up.comfy_quant"] = torch.tensor(list(b'{"format": "nvfp4"}'),
                                                   dtype=torch.uint8)
        self.saved(tensors)
        # It dequantizes in bfloat16, step by step.
        self.same("comfyui", layout.dequantize(data, parameters).float().numpy(), 2 ** -7)

    def test_compressed_tensors(self):
        torch, base, quantization = packages("torch", "compressed_tensors.compressors.nvfp4.base",
                                             "compressed_tensors.quantization")
        w = self.weight(torch).float()
        divisor = (448 * 6 / w.abs().max()).reshape(1)
        scale = (w.abs().reshape(len(w), -1, 16).amax(-1) / 6 * divisor).to(torch.float8_e4m3fn)
        scheme = quantization.QuantizationScheme(
            targets=["Linear"], weights=quantization.QuantizationArgs(
                num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True,
                scale_dtype=torch.float8_e4m3fn))
        made = base.NVFP4PackedCompressor.compress(
            {"weight": w, "weight_scale": scale.float(), "weight_global_scale": divisor}, scheme)
        self.saved({"m.up." + name: tensor.contiguous() for name, tensor in made.items()})
        values = base.NVFP4PackedCompressor.decompress(made, scheme)["weight"]
        # It divides by the global scale first, in the type of the weight.
        self.same("compressed_tensors", values.float().numpy(), 2 ** -7)

    def test_gguf(self):
        gguf, = packages("gguf")
        type_ = gguf.GGMLQuantizationType.NVFP4
        matrix = files.Matrix(1, 48, 192)
        blocks = files.ggml_blocks(matrix.codes, matrix.scales)
        writer = gguf.GGUFWriter(os.path.join(self.folder, "m.gguf"), "llama")
        writer.add_array("tokenizer.ggml.tokens", ["a", "bc"])
        writer.add_tensor("m.up.weight", blocks, raw_dtype=type_)
        writer.add_tensor("m.up.scale", np.array([0.5], np.float32))
        writer.add_tensor("norm.weight", np.ones(8, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.same("ggml", gguf.quants.dequantize(blocks, type_) * np.float32(0.5), 2e-7)


if __name__ == "__main__":
    unittest.main()
