# SPDX-License-Identifier: MIT
"""4-bit checkpoints by transformers' from_pretrained; transformers 5.

    import nvfp4gemm.integrations.transformers as nvfp4gemm_transformers
    nvfp4gemm_transformers.register()
    model = AutoModelForCausalLM.from_pretrained("model/", device_map="cuda")

The layers that the folder has in 4 bits, and its blocks of experts, become nvfp4gemm.nn.Linear and
nvfp4gemm.nn.Experts; the weights that they have in 16 bits otherwise are never allocated.
transformers loads all the rest. One device; save_pretrained then writes the layers as their
state_dict has them, which from_pretrained reads again.
"""
import os
import re

import torch
from safetensors import safe_open
from transformers.quantizers import HfQuantizer
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.utils.quantization_config import QuantizationConfigMixin

from nvfp4gemm import _experts, nn
from nvfp4gemm._files import Checkpoint

# quant_method of config.json: our own, and those of other programs whose files we read.
OWN = "nvfp4gemm"
METHODS = (OWN, "modelopt", "compressed-tensors", "mxfp4")


class Config(QuantizationConfigMixin):
    """What config.json says of a checkpoint's 4-bit layers; its files say the rest.

    quantize_input   as nn.Linear and nn.Experts have it
    """

    def __init__(self, quant_method=OWN, quantize_input=False, **_):
        self.quant_method, self.quantize_input = quant_method, quantize_input


class Quantizer(HfQuantizer):
    """Keeps the layers that a folder has in 4 bits from transformers while it loads the rest, then
    loads them."""

    requires_calibration = True  # so that no model of another kind gets here
    is_trainable = True  # what is beside the layers

    def is_serializable(self):
        return True

    def validate_environment(self, device_map=None, **_):
        if isinstance(device_map, dict) and len(set(map(str, device_map.values()))) > 1:
            raise ValueError(f"device_map has {len(set(map(str, device_map.values())))} devices; "
                             "4-bit layers are loaded to one")

    def _process_model_before_weight_loading(self, model, checkpoint_files=None, **_):
        if not checkpoint_files or not checkpoint_files[0].endswith(".safetensors"):
            raise ValueError("4-bit layers are read from safetensors files, which "
                             "from_pretrained() has not found here")
        self.folder = os.path.dirname(checkpoint_files[0])
        names = (_own_layers(model, self.folder) if self.quantization_config.quant_method == OWN
                 else nn.in_4_bits(model, self.folder))
        self.aside = {name: model.get_submodule(name) for name in names}
        for name in names:
            nn.put(model, name, torch.nn.Identity())
        ignored = {rf"^{re.escape(name)}[._]" for name in names}
        model._keys_to_ignore_on_load_unexpected = ignored | set(
            model._keys_to_ignore_on_load_unexpected or ())

    def _process_model_after_weight_loading(self, model, **_):
        device = next(model.parameters()).device
        for name, module in self.aside.items():
            nn.put(model, name, module)
        options = {"quantize_input": self.quantization_config.quantize_input}
        if self.quantization_config.quant_method == OWN:
            _load_own(model, self.folder, self.aside, device, options)
        else:
            nn.load_linear(model, self.folder, device, names=list(self.aside), **options)
        self.quantization_config.quant_method = OWN
        self.aside = {}
        return model


def _own_layers(model, folder):
    """Names of the layers and blocks of experts that were saved as a state_dict of ours."""
    tensors, blocks = Checkpoint(folder).tensors, _experts.blocks_of(model)
    return [name for name, layer in model.named_modules() if
            type(layer) is torch.nn.Linear and f"{name}.codes" in tensors or
            name in blocks and f"{name}.gate_codes" in tensors]


def _load_own(model, folder, layers, device, options):
    states = {name: {} for name in layers}
    files = {}  # {file: the tensors in it that are ours}
    for key, tensor in Checkpoint(folder).tensors.items():
        if key.rpartition(".")[0] in layers:
            files.setdefault(tensor.file, []).append(key)
    for file, keys in files.items():
        with safe_open(file, framework="pt", device=str(device)) as opened:
            for key in keys:
                layer, _, part = key.rpartition(".")
                states[layer][part] = opened.get_tensor(key)
    for name, old in layers.items():
        state = states[name]
        if not isinstance(old, torch.nn.Linear):
            nn.put(model, name, _experts.of_state(old, name, state, **options))
            continue
        made = nn.Linear(old.in_features, old.out_features, "bias" in state, "meta",
                         format=next((format_ for format_ in ("mxfp4", "e2m1_ue8m0")
                                      if format_ in state), "nvfp4"), **options)
        made.load_state_dict(state, assign=True)
        nn.put(model, name, made)


def register(methods=METHODS):
    """From now on from_pretrained() loads folders whose config.json has one of these quant_method
    by this module, in place of what transformers has for "compressed-tensors" and "mxfp4"."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"methods has {method!r}; there are {', '.join(map(repr, METHODS))}")
    for method in methods:
        AUTO_QUANTIZATION_CONFIG_MAPPING[method] = Config
        AUTO_QUANTIZER_MAPPING[method] = Quantizer
