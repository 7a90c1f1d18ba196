# SPDX-License-Identifier: MIT
"""PEFT's LoRA on 4-bit layers, beside the same on layers of their dequantized weights."""
import copy
import os
import tempfile
import unittest

import package  # noqa: F401
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from nvfp4gemm.nn import Linear, replace_linear

STEPS = 50
CHOSEN = ["q_proj", "v_proj", "up_proj", "down_proj"]


def setUpModule():
    torch.set_num_threads(1)


def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.125)).bfloat16()


def pair():
    """(a model with 4-bit layers, the same with their dequantized weights)."""
    ours = llama()
    replace_linear(ours, skip=["lm_head"])
    plain = llama()
    for name, layer in ours.named_modules():
        if isinstance(layer, Linear):
            plain.get_submodule(name).weight.data = layer.packed().dequantize(torch.bfloat16)
    return ours, plain


def adapted(model):
    torch.manual_seed(2)
    return get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=CHOSEN))


def tokens():
    return torch.randint(0, 64, (4, 16), generator=torch.Generator().manual_seed(3))


def losses(model, steps=STEPS):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer, ids, found = torch.optim.AdamW(trained, 3e-3), tokens(), []
    for _ in range(steps):
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


class Lora(unittest.TestCase):
    def test_trains_as_on_dequantized_weights(self):
        ours, plain = map(adapted, pair())
        mine, torchs = losses(ours), losses(plain)
        self.assertLess(torchs[-1], 0.8 * torchs[0])
        for one, other in zip(mine, torchs):
            self.assertLess(abs(one - other), 0.02 * other)
        for name, parameter in ours.named_parameters():
            self.assertEqual(parameter.requires_grad, "lora_" in name)

    def test_an_adapter_goes_to_a_file_and_back(self):
        ours = adapted(pair()[0])
        losses(ours, 2)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            ours.save_pretrained(folder)
            self.assertEqual([file for file in os.listdir(folder) if file.endswith("safetensors")],
                             ["adapter_model.safetensors"])
            again = PeftModel.from_pretrained(pair()[0], folder)
            self.assertTrue(torch.equal(again(tokens()).logits, ours(tokens()).logits))
            with ours.disable_adapter():
                self.assertTrue(torch.equal(ours(tokens()).logits, pair()[0](tokens()).logits))

    def test_merging_is_refused_in_words(self):
        ours = adapted(pair()[0])
        with torch.no_grad():
            for name, parameter in ours.named_parameters():
                if "lora_B" in name:
                    parameter.fill_(0.01)
            before = ours(tokens()).logits
            for safe in (False, True):
                with self.assertRaisesRegex(ValueError, "weight has the codes of a 4-bit layer"):
                    copy.deepcopy(ours).merge_and_unload(safe_merge=safe)
                with self.assertRaisesRegex(ValueError, "weight has the codes of a 4-bit layer"):
                    ours.merge_adapter(safe_merge=safe)
            self.assertTrue(torch.equal(ours(tokens()).logits, before))


if __name__ == "__main__":
    unittest.main()
