# SPDX-License-Identifier: MIT
"""from_pretrained of folders in three dialects, and of what save_pretrained writes, by
nvfp4gemm.integrations.transformers."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import package  # noqa: F401
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.utils import logging

import nvfp4gemm.integrations.transformers as integration
import small
from nvfp4gemm.nn import Experts, Linear, Refused, put, replace_linear

METHOD = {"gpt-oss": "mxfp4", "Qwen3-MoE": "modelopt", "DeepSeek-V3": "compressed-tensors"}


def setUpModule():
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    integration.register()


def tokens():
    return torch.randint(0, small.SIZES["vocab_size"], (2, 9),
                         generator=torch.Generator().manual_seed(1))


def with_config(made, **options):
    """The folder of the model with the config.json that its program writes."""
    made.config.save_pretrained(made.folder.name)
    configure(made.folder.name, quant_method=METHOD[made.name], **options)
    return made.folder.name


def configure(folder, **options):
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config.update(dtype="bfloat16", quantization_config=options)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def logits(model):
    with torch.no_grad():
        return model(tokens()).logits


class FromPretrained(unittest.TestCase):
    def test_folders_of_three_programs(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                made = small.Model(name)
                model, said = AutoModelForCausalLM.from_pretrained(
                    with_config(made), output_loading_info=True, attn_implementation="eager")
                self.assertEqual((said["missing_keys"], said["unexpected_keys"]), (set(), set()))
                expected = made.ours()
                for kind in (Linear, Experts):
                    self.assertEqual(*({at for at, layer in one.named_modules()
                                        if type(layer) is kind} for one in (model, expected)))
                self.assertTrue(torch.equal(logits(model), logits(expected)))
                self.saved_and_loaded(model)

    def saved_and_loaded(self, model):
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            again, said = AutoModelForCausalLM.from_pretrained(
                folder, output_loading_info=True, attn_implementation="eager")
        self.assertEqual((said["missing_keys"], said["unexpected_keys"]), (set(), set()))
        self.assertTrue(torch.equal(logits(again), logits(model)))
        self.assertEqual(set(again.state_dict()), set(model.state_dict()))

    def test_tokens_in_4_bits(self):
        made = small.Model("Qwen3-MoE", 6 / 2688)
        folder = with_config(made, quantize_input=True)
        model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
        self.assertTrue(torch.equal(logits(model), logits(made.ours(quantize_input=True))))
        self.saved_and_loaded(model)

    def test_what_is_refused_is_refused_here_too(self):
        made = small.Model("gpt-oss")
        made.config.intermediate_size *= 2
        with self.assertRaises(Refused) as refusal:
            AutoModelForCausalLM.from_pretrained(with_config(made))
        self.assertEqual(refusal.exception.argument, "shape")

    def test_options_that_there_are(self):
        for options in ({"quantize_inputs": True}, {"ignore": ["lm_head"]}):
            with self.subTest(options), self.assertRaises(TypeError):
                integration.Config(**options)

    def test_what_a_program_said_is_saved(self):
        made = small.Model("Qwen3-MoE")
        said = {"ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"]}}}
        model = AutoModelForCausalLM.from_pretrained(with_config(made, **said))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                model.save_pretrained(folder)
                with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                    saved = json.load(file)["quantization_config"]
                self.assertEqual(saved, {"quant_method": "nvfp4gemm", "quantize_input": False,
                                         "made_from": {"quant_method": "modelopt", **said}})
                model = AutoModelForCausalLM.from_pretrained(folder)

    def test_devices(self):
        """Where transformers has spread the rest of the model, as device_map="auto" may."""
        quantizer = integration.Quantizer(integration.Config())
        quantizer.folder, quantizer.aside = "", {}
        model = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, device="meta")])
        with self.assertRaisesRegex(ValueError, "2 devices"):
            quantizer._process_model_after_weight_loading(model)
        with self.assertRaisesRegex(ValueError, "2 devices"):
            quantizer.validate_environment(device_map={"a": 0, "b": 1})

    def test_only_known_methods(self):
        with self.assertRaisesRegex(ValueError, "methods has 'awq'"):
            integration.register(["awq"])


def in_8_bits(path, names, keep=lambda values: values.to(torch.float8_e4m3fn)):
    """Those weights of a file in FP8, or what `keep` makes of them, with a scale beside each."""
    tensors = load_file(path)
    for name in names(tensors):
        scale = tensors[name].float().abs().max() / 448
        tensors[name] = keep(tensors[name].float() / scale)
        tensors[name.removesuffix("weight") + "weight_scale"] = scale.reshape(1)
    save_file(tensors, path, metadata={"format": "pt"})


def llama():
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2), dtype=torch.bfloat16)


class OfOtherBits(unittest.TestCase):
    """Weights that are neither 4-bit layers nor numbers of 16 or 32 bits. transformers would cast
    them and drop their scales."""

    def refused(self, folder, tensor):
        with self.assertRaises(integration.NotRead) as refusal:
            AutoModelForCausalLM.from_pretrained(folder)
        self.assertEqual(refusal.exception.tensor, tensor)

    def test_a_folder_in_8_bits(self):
        kept = {"FP8": lambda values: values.to(torch.float8_e4m3fn),
                "INT8": lambda values: values.to(torch.int8),
                "numbers with scales": lambda values: values.bfloat16()}
        for what, keep in kept.items():
            for method in ("compressed-tensors", "modelopt", "nvfp4gemm"):
                with self.subTest(what, method=method), tempfile.TemporaryDirectory() as folder:
                    llama().save_pretrained(folder)
                    configure(folder, quant_method=method)
                    in_8_bits(os.path.join(folder, "model.safetensors"), lambda tensors: sorted(
                        name for name in tensors if name.endswith("_proj.weight")), keep)
                    begin = "model.layers.0.mlp.down_proj.weight"
                    self.refused(folder, begin + "_scale" * (keep is kept["numbers with scales"]))

    def test_some_layers_in_8_bits(self):
        for name in ("Qwen3-MoE", "DeepSeek-V3"):
            with self.subTest(name):
                made = small.Model(name)
                folder = with_config(made)
                in_8_bits(os.path.join(folder, "model.safetensors"), lambda _: ["lm_head.weight"])
                self.refused(folder, "lm_head.weight")

    def test_what_the_model_does_not_read(self):
        """A part of another model, which its class leaves out."""
        made = small.Model("DeepSeek-V3")
        folder = with_config(made)
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        tensors["model.layers.61.eh_proj.weight"] = torch.ones(16, 16).to(torch.float8_e4m3fn)
        save_file(tensors, path)
        AutoModelForCausalLM.from_pretrained(folder)

    def test_a_folder_in_16_bits(self):
        for method in integration.METHODS:
            with self.subTest(method), tempfile.TemporaryDirectory() as folder:
                llama().save_pretrained(folder)
                configure(folder, quant_method=method)
                self.refused(folder, None)


class RoundTrip(unittest.TestCase):
    def test_the_same_bits(self):
        torch.manual_seed(1)
        config = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=96,
                             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             attention_bias=True)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        replace_linear(model, skip=["lm_head"])
        model.config.quantization_config = integration.Config()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as again:
            model.save_pretrained(folder)
            loaded, said = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
            self.assertEqual((said["missing_keys"], said["unexpected_keys"]), (set(), set()))
            loaded.save_pretrained(again)
            twice = AutoModelForCausalLM.from_pretrained(again)
        for one in (loaded, twice):
            self.assertTrue(torch.equal(logits(one), logits(model)))
            state = model.state_dict()
            self.assertEqual(set(one.state_dict()), set(state))
            for key, tensor in one.state_dict().items():
                self.assertTrue(torch.equal(tensor, state[key]), key)


MEMORY = r"""
import re, sys, torch
import nvfp4gemm.integrations.transformers as integration
from transformers import AutoModelForCausalLM, LlamaForCausalLM  # what it imports is no weight
torch.set_num_threads(1)
integration.register()
def kilobytes(what):
    return int(re.search(what + r":\s*(\d+) kB", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak is what is there now
before = kilobytes("VmRSS")
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
print(1024 * (kilobytes("VmHWM") - before))
"""


class Memory(unittest.TestCase):
    def test_16_bit_weights_are_never_there(self):
        """The peak of a process that loads 4-bit layers is below what these have in 16 bits."""
        torch.manual_seed(1)
        config = LlamaConfig(vocab_size=96, hidden_size=1024, intermediate_size=4096,
                             num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        in_16_bits = 0
        for name, layer in list(model.named_modules()):
            if isinstance(layer, torch.nn.Linear) and name != "lm_head":
                put(model, name, Linear(layer.in_features, layer.out_features, bias=False))
                in_16_bits += 2 * layer.weight.numel()
        model.config.quantization_config = integration.Config()
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run([sys.executable, "-c", MEMORY, folder], env=environment,
                                  text=True, capture_output=True, check=True)
        self.assertLess(int(done.stdout), in_16_bits, (int(done.stdout), in_16_bits))


if __name__ == "__main__":
    unittest.main()
