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

    def test_mxfp4_of_compressed_tensors(self):
        torch, base, quantization = packages("torch", "compressed_tensors.compressors.mxfp4.base",
                                             "compressed_tensors.quantization")
        w = self.weight(torch).float()
        scale = torch.exp2((w.abs().reshape(len(w), -1, 32).amax(-1) / 6).log2().ceil())
        scheme = quantization.preset_name_to_scheme("MXFP4A16", ["Linear"])
        made = base.MXFP4PackedCompressor.compress({"weight": w, "weight_scale": scale}, scheme)
        self.saved({"m.up." + name: tensor.contiguous() for name, tensor in made.items()})
        values = base.MXFP4PackedCompressor.decompress(made, scheme)["weight"]
        self.same("compressed_tensors_mxfp4", values.float().numpy(), 0)

    def test_a_rotation_that_is_stored_once(self):
        """Of two layers with one matrix, transformers stores it for the first alone."""
        torch, transformers, quantization, transform, compressors = packages(
            "torch", "transformers", "compressed_tensors.quantization",
            "compressed_tensors.transform", "compressed_tensors.compressors")
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, vocab_size=96)).to(torch.bfloat16)
        transform.apply_transform_config(model, transform.TransformConfig(config_groups={
            "R4": transform.TransformScheme(type="hadamard", apply=[
                transform.TransformArgs(targets=["re:.*down_proj$"], location="input"),
                transform.TransformArgs(targets=["re:.*down_proj$"], location="weight_input",
                                        inverse=True)])}))
        quantization.apply_quantization_config(model, quantization.QuantizationConfig(
            config_groups={"g": quantization.preset_name_to_scheme("NVFP4A16", ["Linear"])},
            ignore=["lm_head"]))
        for module in model.modules():
            if hasattr(module, "weight_global_scale"):
                amax = module.weight.float().abs()
                module.weight_global_scale.data.fill_(2688 / amax.max())
                blocks = amax.reshape(len(amax), -1, 16).amax(-1) / 6
                module.weight_scale.data = (blocks * module.weight_global_scale).to(
                    module.weight_scale.dtype)
        compressor = compressors.ModelCompressor.from_pretrained_model(model)
        compressor.compress_model(model)
        model.save_pretrained(self.folder)
        compressor.update_config(self.folder)
        layers, problems = checkpoints.load(self.folder, strict=False)
        self.assertEqual(len(layers), 12)
        self.assertEqual([problem.layer for problem in problems], [
            f"model.layers.{i}.mlp.down_proj" for i in (0, 1)])
        self.assertRegex(str(problems[1]), "with a transform, by transform_config of .*config.json")

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
