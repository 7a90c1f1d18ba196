# SPDX-License-Identifier: MIT
"""Loads 4-bit checkpoints by from_pretrained() of transformers 5.

    import nvfp4gemm.integrations.transformers as nvfp4gemm_transformers
    nvfp4gemm_transformers.register()
    model = AutoModelForCausalLM.from_pretrained("model/", device_map="cuda")

The layers and expert blocks that the folder has in 4 bits become nvfp4gemm.nn.Linear and
nvfp4gemm.nn.Experts. Their 16-bit weights are never allocated. transformers loads all other
weights, which must have 16 or 32 bits. A folder that also has layers in FP8 or INT8 is refused
(NotRead), and so is one without 4-bit layers. save_pretrained() then writes the state_dict of the
layers, which from_pretrained() can read again.

The model is on one device, or on one device for each rank of a tensor-parallel group:

    torchrun --nproc-per-node 2 serve.py    # from_pretrained(.., distributed_config=
                                            #                 DistributedConfig(tp_size=2))
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from safetensors import safe_open
from transformers.distributed.parallel_utils import replace_layer_number_by_wildcard
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.utils.quantization_config import QuantizationConfigMixin

from nvfp4gemm import _experts, nn, parallel
from nvfp4gemm._files import Checkpoint
from nvfp4gemm._safetensors import shown
from nvfp4gemm._types import Device, Group

# Values of quant_method in config.json: our own, and those of other programs whose files can be
# read.
OWN = "nvfp4gemm"
METHODS = (OWN, "modelopt", "compressed-tensors", "mxfp4")


# Types that transformers loads unchanged. It would cast other types, and drop their scales.
_NUMBERS = ("BF16", "F16", "F32", "F64", "BOOL", "I16", "I32", "I64", "U16", "U32", "U64")
_SCALES = "weight_scale"  # names of a weight's scales begin with this

# {style in a tensor-parallel plan: function that makes a rank's layer}
_STYLES: dict[str, Callable[..., Any]] = {
    "colwise": parallel.ColumnLinear,
    "colwise_gather_output": partial(parallel.ColumnLinear, gather=True),
    "colwise_rep": partial(parallel.ColumnLinear, gather=True),
    "rowwise": parallel.RowLinear,
    "rowwise_split_input": partial(parallel.RowLinear, split_input=True),
    "rowwise_rep": partial(parallel.RowLinear, split_input=True),
    "replicate": lambda layer, group: layer}
_AT_ONCE = 32  # layers that a rank loads whole before it keeps its parts of them


class NotRead(ValueError):
    """A folder that would be loaded wrongly. tensor is the first tensor that belongs to no 4-bit
    layer and is no weight of 16 or 32 bits; None if the folder has no 4-bit layers."""

    def __init__(self, tensor: str | None, text: str) -> None:
        super().__init__(text)
        self.tensor = tensor


class Config(QuantizationConfigMixin):
    """The quantization_config of config.json for 4-bit layers. The checkpoint's files say the rest.

    quantize_input  as in nn.Linear and nn.Experts
    made_from       the whole quantization_config that another program wrote, or None
    """

    def __init__(self, quant_method: str = OWN, quantize_input: bool = False,
                 made_from: dict[str, Any] | None = None, **others: Any) -> None:
        self.quant_method: Any = quant_method
        self.quantize_input = quantize_input
        if quant_method == OWN and others:
            raise TypeError(f"there is no option {min(others)!r}")
        if quant_method != OWN:
            made_from = {"quant_method": quant_method, **others}
        if made_from is not None:
            self.made_from = made_from


class Quantizer(HfQuantizer):
    """Hides the layers that a folder has in 4 bits while transformers loads the rest, then loads
    them."""

    quantization_config: Any
    requires_calibration = True  # transformers then refuses a model in 16 bits
    is_trainable = True  # the other layers
    group: Group = None  # the ranks among which each layer is divided

    def is_serializable(self) -> bool:
        return self.group is None  # a rank would save its parts as whole layers

    def validate_environment(self, device_map: Any = None, **_: Any) -> None:
        if device_map and isinstance(device_map, dict):
            _one_device(device_map.values())

    def _process_model_before_weight_loading(self, model: Any,
                                             checkpoint_files: Sequence[str] | None = None,
                                             **_: Any) -> None:
        if not checkpoint_files or not checkpoint_files[0].endswith(".safetensors"):
            raise ValueError("4-bit layers are read from safetensors files, which "
                             "from_pretrained() has not found here")
        self.folder = os.path.dirname(checkpoint_files[0])
        names = (_own_layers(model, self.folder) if self.quantization_config.quant_method == OWN
                 else nn.in_4_bits(model, self.folder))
        _check_the_rest(model, self.folder, names, checkpoint_files)
        self.aside = {name: model.get_submodule(name) for name in names}
        for name, layer in self.aside.items():
            nn.put(model, name, _Aside(layer))
        ignored = {rf"^{re.escape(name)}[._]" for name in names}
        model._keys_to_ignore_on_load_unexpected = ignored | set(
            model._keys_to_ignore_on_load_unexpected or ())

    def update_parallel_plan(self, model: Any, plan: dict[str, str]) -> None:
        config = getattr(model.config, "distributed_config", None)
        if config is None:
            return
        for kind in ("pp", "dp", "ep"):
            if getattr(config, kind + "_size") > 1:
                raise ValueError(f"distributed_config has {kind}_size = "
                                 f"{getattr(config, kind + '_size')}; a model with 4-bit layers is "
                                 "divided by tp_size alone")
        if plan is model.tp_plan and config.tp_size > 1:
            _check_styles(self._styles(plan | _plan_of(config)), self.aside)

    def _styles(self, plan: Mapping[str, str]) -> dict[str, str]:
        """{layer: its style in the plan}"""
        found = {name: plan.get(replace_layer_number_by_wildcard(name)) for name in self.aside}
        return {name: style for name, style in found.items() if style is not None}

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        # device_map="auto" is decided after preprocess_model().
        device = _one_device(parameter.device for parameter in model.parameters())
        for name, module in self.aside.items():
            nn.put(model, name, module)
        styles: dict[str, str] = {}
        names = list(self.aside)
        if (getattr(model, "_tp_size", None) or 1) > 1:
            self.group = model._mesh_manager.get_mesh("tp").get_group()
            styles = self._styles(model.tp_plan)
        at_once = _AT_ONCE if styles else len(names)
        for begin in range(0, len(names), at_once):
            some = names[begin:begin + at_once]
            self._load(model, some, device)
            for name in some:
                if name in styles:
                    nn.put(model, name, _divided(model, name, styles[name], self.group))
        self.quantization_config.quant_method = OWN
        self.aside = {}
        return model

    def _load(self, model: Any, names: Sequence[str], device: Device) -> None:
        options = {"quantize_input": self.quantization_config.quantize_input}
        if self.quantization_config.quant_method == OWN:
            _load_own(model, self.folder, {name: self.aside[name] for name in names}, device,
                      options)
        else:
            nn.load_linear(model, self.folder, device, names=names, **options)


class _Aside(torch.nn.Identity):
    """Stands in for a layer while transformers loads the rest and applies the model's
    tensor-parallel plan."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.in_features = getattr(layer, "in_features", None)
        self.out_features = getattr(layer, "out_features", None)


def _plan_of(config: Any) -> dict[str, str]:
    """The changes that the caller makes to the model's plan."""
    return config.tp_plan if isinstance(config.tp_plan, dict) else {}


def _check_styles(styles: Mapping[str, str], layers: Mapping[str, Any]) -> None:
    """Raises if the plan has a style that 4-bit layers do not support. Experts accept every style:
    each rank has all experts and computes the whole sum."""
    for name, style in styles.items():
        if isinstance(layers[name], torch.nn.Linear) and style not in _STYLES:
            raise ValueError(f"tp_plan has {style!r} for {name}, which the folder has in 4 bits; "
                             f"there are {', '.join(map(repr, _STYLES))}")


def _divided(model: Any, name: str, style: str, group: Group) -> Any:
    layer = model.get_submodule(name)
    if not isinstance(layer, nn.Linear):
        return layer
    try:
        return _STYLES[style](layer, group=group)
    except ValueError as error:
        raise ValueError(f"{name}: {error}; tp_plan has {style!r} for it") from None


def _one_device(devices: Iterable[Any]) -> Any:
    devices = {str(device): device for device in devices}
    if len(devices) != 1:
        raise ValueError(f"the model has {len(devices)} devices, {', '.join(sorted(devices))}; "
                         "4-bit layers are loaded to one, which device_map can name")
    return next(iter(devices.values()))


def _check_the_rest(model: Any, folder: str, names: Iterable[str], files: Iterable[str]) -> None:
    """Raises NotRead if transformers would change the values of tensors that belong to no 4-bit
    layer."""
    files = {os.path.basename(file) for file in files}
    left_out = [re.compile(one) for one in model._keys_to_ignore_on_load_unexpected or ()]
    ours = tuple(name + "." for name in names)
    for name, tensor in sorted(Checkpoint(folder).tensors.items()):
        if name.startswith(ours) or os.path.basename(tensor.file) not in files or any(
                one.search(name) for one in left_out):
            continue
        last = name.rpartition(".")[2]
        if tensor.dtype not in _NUMBERS or last.startswith(_SCALES):
            raise NotRead(name, shown(
                f"{folder} has {name} in {tensor.dtype}, which is of no 4-bit layer; beside those, "
                "weights in 16 or 32 bits are read"))
    if not names:
        raise NotRead(None, f"{folder} has no 4-bit layers of this model")


def _own_layers(model: Any, folder: str) -> list[str]:
    """The names of the layers and expert blocks that were saved as a state_dict of this package."""
    tensors, blocks = Checkpoint(folder).tensors, _experts.blocks_of(model)
    return [name for name, layer in model.named_modules() if
            type(layer) is torch.nn.Linear and f"{name}.codes" in tensors or
            name in blocks and f"{name}.gate_codes" in tensors]


def _load_own(model: Any, folder: str, layers: Mapping[str, Any], device: Device,
              options: dict[str, Any]) -> None:
    states: dict[str, dict[str, torch.Tensor]] = {name: {} for name in layers}
    files: dict[str, list[str]] = {}  # {file: the tensors in it that are ours}
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


def register(methods: Iterable[str] = METHODS) -> None:
    """From now on from_pretrained() uses this module for folders whose config.json has one of these
    quant_method. For "compressed-tensors" and "mxfp4" this replaces the loaders of transformers."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"methods has {method!r}; there are {', '.join(map(repr, METHODS))}")
    for method in methods:
        AUTO_QUANTIZATION_CONFIG_MAPPING[method] = Config
        AUTO_QUANTIZER_MAPPING[method] = Quantizer
