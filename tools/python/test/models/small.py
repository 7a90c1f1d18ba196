# SPDX-License-Identifier: MIT
"""Small models of the transformers package, with folders as their own programs write them: gpt-oss
in MXFP4 blocks, Qwen3-MoE as ModelOpt quantizes it, DeepSeek-V3 as compressed-tensors does. Beside
each is the same model in float64 with the dequantized weights. Quantizer, dialects and dequantizer
are written here from the formats' descriptions and share no code with the package."""
import os
import re
import tempfile

import package  # noqa: F401
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, DeepseekV3Config, GptOssConfig, Qwen3MoeConfig

from nvfp4gemm.nn import load_linear

E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6]).double()
SIZES = dict(vocab_size=96, hidden_size=64, num_attention_heads=4, head_dim=16,
             attn_implementation="eager", tie_word_embeddings=False,
             experts_implementation="eager")  # a loop over experts, in float64, too


def gpt_oss():
    # A cache that slides cannot be captured in a CUDA graph: transformers counts on the host.
    return GptOssConfig(**SIZES, num_hidden_layers=3, num_key_value_heads=2, intermediate_size=96,
                        num_local_experts=8, num_experts_per_tok=4,
                        layer_types=["full_attention"] * 3)


def qwen3_moe():
    return Qwen3MoeConfig(**SIZES, num_hidden_layers=3, num_key_value_heads=2, num_experts=16,
                          num_experts_per_tok=4, moe_intermediate_size=48, norm_topk_prob=True)


def deepseek_v3():
    sizes = {**SIZES, "head_dim": 8}
    return DeepseekV3Config(**sizes, num_hidden_layers=2, num_key_value_heads=4,
                            first_k_dense_replace=1, intermediate_size=96, n_routed_experts=256,
                            num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=32,
                            q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=8,
                            qk_nope_head_dim=16, v_head_dim=16)


CONFIGS = {"gpt-oss": gpt_oss, "Qwen3-MoE": qwen3_moe, "DeepSeek-V3": deepseek_v3}


def codes_of(values):
    """The nearest E2M1 of each, one to a byte."""
    return (values[..., None] - E2M1).abs().argmin(-1).to(torch.uint8)


def packed(codes):
    return codes[..., 1::2] << 4 | codes[..., 0::2]


class Nvfp4:
    """A matrix [n, k]: codes, E4M3 scales [n, k / 16], a tensor scale."""

    def __init__(self, values, tensor_scale):
        blocks = values.double().reshape(len(values), -1, 16)
        self.tensor_scale = torch.tensor(tensor_scale, dtype=torch.float32)
        scales = blocks.abs().amax(-1) / 6 / self.tensor_scale.double()
        self.scales = scales.float().clamp(min=2 ** -6).to(torch.float8_e4m3fn)
        factor = self.scales.double()[..., None] * self.tensor_scale.double()
        codes = codes_of(blocks / factor)
        self.values = (E2M1[codes.long()] * factor).reshape(values.shape)
        self.codes = packed(codes.reshape(values.shape))


def largest(values):
    """The usual tensor scale."""
    return float(values.abs().max()) / 2688


class Mxfp4:
    """Matrices [experts, n, k]: blocks [experts, n, k / 32, 16] and UE8M0 scales."""

    def __init__(self, values):
        blocks = values.double().reshape(*values.shape[:-1], -1, 32)
        exponent = torch.floor(torch.log2(blocks.abs().amax(-1))) - 1
        self.scales = (exponent + 127).to(torch.uint8)
        codes = codes_of(blocks / 2 ** exponent[..., None])
        self.values = (E2M1[codes.long()] * 2 ** exponent[..., None]).reshape(values.shape)
        self.blocks = packed(codes)


class Model:
    """One of the three. Each matrix of an expert has its own tensor scale where its format has one.
    `input_scale`: of the tokens of 4-bit layers, in files of ModelOpt and compressed-tensors."""

    def __init__(self, name, input_scale=None):
        self.name, self.input_scale = name, input_scale
        self.folder = tempfile.TemporaryDirectory()
        self.config = CONFIGS[name]()
        torch.manual_seed(len(name))
        self.tensors, self.kept, self.exact_state = {}, {}, {}
        model = AutoModelForCausalLM.from_config(self.config)
        with torch.no_grad():
            for key, value in model.state_dict().items():
                self._put(key, self._drawn(key, value.float()))
        save_file({key: value.contiguous() for key, value in {**self.tensors, **self.kept}.items()},
                  os.path.join(self.folder.name, "model.safetensors"))

    def _drawn(self, key, value):
        """Weights that keep the size of what they multiply; norms near 1."""
        drawn = torch.randn(value.shape)
        if value.ndim == 1:
            return 1 + drawn / 8 if "norm" in key else drawn / 8
        if key.endswith(("embed_tokens.weight", "_bias")):
            return drawn / (8 if key.endswith("_bias") else 1)
        transposed = value.ndim == 3 and self.name == "gpt-oss"  # [experts, k, n]
        return drawn / value.shape[-2 if transposed else -1] ** 0.5

    def _put(self, key, value):
        if ".experts." in key and value.ndim == 3:
            self._mxfp4(key, value) if self.name == "gpt-oss" else self._experts(key, value)
        elif self.name != "gpt-oss" and re.search(r"_proj\w*\.weight$", key):
            self.exact_state[key] = self._nvfp4(key.removesuffix(".weight"), value, largest(value))
        else:
            self._keep(key, value)

    def _keep(self, key, value):
        """In 16 bits, but for a router's correction, which files have in 32."""
        value = value if key.endswith("e_score_correction_bias") else value.bfloat16()
        self.kept[key], self.exact_state[key] = value, value.double()

    def _mxfp4(self, key, value):
        made = Mxfp4(value.transpose(1, 2))
        self.tensors[f"{key}_blocks"], self.tensors[f"{key}_scales"] = made.blocks, made.scales
        self.exact_state[key] = made.values.transpose(1, 2)

    def _experts(self, key, value):
        """gate_up_proj [experts, 2 n, k] or down_proj, one matrix of an expert after the other."""
        block, _, last = key.rpartition(".")
        parts = {"down_proj": value} if last == "down_proj" else dict(
            zip(("gate_proj", "up_proj"), value.chunk(2, 1)))
        exact = []
        for part, matrices in parts.items():
            exact.append(torch.stack([
                self._nvfp4(f"{block}.{e}.{part}", one, largest(one))
                for e, one in enumerate(matrices)]))
        self.exact_state[key] = torch.cat(exact, 1)

    def _nvfp4(self, layer, values, tensor_scale):
        made = Nvfp4(values, tensor_scale)
        words = {"weight": made.codes, "weight_scale": made.scales,
                 "weight_scale_2": made.tensor_scale}
        input_ = "input_scale", self.input_scale
        if self.name == "DeepSeek-V3":
            divisor = 1 / made.tensor_scale
            made.values *= float((1 / divisor).double() / made.tensor_scale.double())
            words = {"weight_packed": made.codes, "weight_scale": made.scales,
                     "weight_global_scale": divisor.reshape(1)}
            input_ = "input_global_scale", self.input_scale and 1 / self.input_scale
        if input_[1] is not None:
            words[input_[0]] = torch.tensor([input_[1]], dtype=torch.float32)
        self.tensors.update({f"{layer}.{word}": tensor for word, tensor in words.items()})
        return made.values

    def ours(self, device="cpu", **options):
        """In bfloat16, with 4-bit layers and experts from the folder."""
        model = AutoModelForCausalLM.from_config(self.config, dtype=torch.bfloat16)
        model.load_state_dict(self.kept, strict=False)
        model = model.to(device).eval()
        load_linear(model, self.folder.name, device, skip=self.not_quantized(model), **options)
        return model

    def not_quantized(self, model):
        """The torch.nn.Linear that the file has in 16 bits."""
        return [name for name, layer in model.named_modules()
                if type(layer) is torch.nn.Linear and f"{name}.weight" in self.kept]

    def exact(self):
        """In float64, with the weights as they are dequantized."""
        model = AutoModelForCausalLM.from_config(self.config).double()
        model.load_state_dict(self.exact_state)
        return model.eval()
