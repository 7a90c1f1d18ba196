# SPDX-License-Identifier: MIT
"""4-bit checkpoints by transformers' from_pretrained; transformers 5.

    import nvfp4gemm.integrations.transformers as nvfp4gemm_transformers
    nvfp4gemm_transformers.register()
    model = AutoModelForCausalLM.from_pretrained("model/", device_map="cuda")

The layers that the folder has in 4 bits, and its blocks of experts, become nvfp4gemm.nn.Linear and
nvfp4gemm.nn.Experts; the weights that they have in 16 bits otherwise are never allocated.
transformers loads all the rest, which has 16 or 32 bits: a folder with layers in FP8 or INT8, too,
and one without 4-bit layers is refused (NotRead). save_pretrained then writes the layers as their
state_dict has them, which from_pretrained reads again.

One device, or one for each rank of a tensor-parallel group:

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

# quant_method of config.json: our own, and those of other programs whose files we read.
OWN = "nvfp4gemm"
METHODS = (OWN, "modelopt", "compressed-tensors", "mxfp4")


# What transformers loads as it is; it would cast other numbers, and drop the scales beside them.
_NUMBERS = ("BF16", "F16", "F32", "F64", "BOOL", "I16", "I32", "I64", "U16", "U32", "U64")
_SCALES = "weight_scale"  # how the names of scales beside a weight begin

# What a tensor-parallel plan says of a layer, and the layer of a rank.
_STYLES: dict[str, Callable[..., Any]] = {
    "colwise": parallel.ColumnLinear,
    "colwise_gather_output": partial(parallel.ColumnLinear, gather=True),
    "colwise_rep": partial(parallel.ColumnLinear, gather=True),
    "rowwise": parallel.RowLinear,
    "rowwise_split_input": partial(parallel.RowLinear, split_input=True),
    "rowwise_rep": partial(parallel.RowLinear, split_input=True),
    "replicate": lambda layer, group: layer}
_AT_ONCE = 32  # layers that a rank has whole while it divides them


class NotRead(ValueError):
    """A folder that is not read as it is meant. `tensor`: the first that is in no 4-bit layer and
    no weight in 16 or 32 bits; None where there are no 4-bit layers."""

    def __init__(self, tensor: str | None, text: str) -> None:
        super().__init__(text)
        self.tensor = tensor


class Config(QuantizationConfigMixin):
    """What config.json says of a checkpoint's 4-bit layers; its files say the rest.

    quantize_input   as nn.Linear and nn.Experts have it
    made_from        what config.json said, all of it, where another program made the folder
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
    """Keeps the layers that a folder has in 4 bits from transformers while it loads the rest, then
    loads them."""

    quantization_config: Any
    requires_calibration = True  # transformers then refuses a model in 16 bits
    is_trainable = True  # what is beside the layers
    group: Group = None  # of the ranks that have a part of each layer

    def is_serializable(self) -> bool:
        return self.group is None  # a rank would save its parts as the whole

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
        """{layer: what the plan says of it}"""
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
    """In a layer's place while transformers loads the rest, and divides it by the model's plan."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.in_features = getattr(layer, "in_features", None)
        self.out_features = getattr(layer, "out_features", None)


def _plan_of(config: Any) -> dict[str, str]:
    """What the caller's own plan changes."""
    return config.tp_plan if isinstance(config.tp_plan, dict) else {}


def _check_styles(styles: Mapping[str, str], layers: Mapping[str, Any]) -> None:
    """Raises where the plan has a style that 4-bit layers do not have. Experts are whole on each
    rank, whatever it is: every rank then has their sum."""
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
    """Raises where transformers would load what is beside the 4-bit layers as other numbers."""
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
    """Names of the layers and blocks of experts that were saved as a state_dict of ours."""
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
    """From now on from_pretrained() loads folders whose config.json has one of these quant_method
    by this module, in place of what transformers has for "compressed-tensors" and "mxfp4"."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"methods has {method!r}; there are {', '.join(map(repr, METHODS))}")
    for method in methods:
        AUTO_QUANTIZATION_CONFIG_MAPPING[method] = Config
        AUTO_QUANTIZER_MAPPING[method] = Quantizer
