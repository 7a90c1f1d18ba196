# SPDX-License-Identifier: MIT
"""Layers with 4-bit weights in place of torch.nn.Linear; needs torch. The weights are not trained.

    from nvfp4gemm.nn import Linear, load_linear, replace_linear
    replace_linear(model, skip=["lm_head"])                  # every torch.nn.Linear but lm_head
    load_linear(model, "model/", "cuda")                     # what an NVFP4 checkpoint has
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, first: it refuses a torch that is too old
import torch

from nvfp4gemm import _experts, _layers, checkpoints
from nvfp4gemm._experts import Experts, Refused
from nvfp4gemm._files import Checkpoint
from nvfp4gemm._linear import Linear
from nvfp4gemm._safetensors import shown
from nvfp4gemm._types import Device, Path
from nvfp4gemm._weights import Weight

__all__ = ["Experts", "Linear", "Refused", "in_4_bits", "load_linear", "put", "replace_linear"]


def put(model: torch.nn.Module, name: str, layer: torch.nn.Module) -> None:
    """Puts `layer` into the model, in place of the module that has that name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)


def _skipped(name: str, skip: Iterable[str]) -> bool:
    return any(name == part or name.endswith("." + part) for part in skip)


def replace_linear(model: torch.nn.Module, skip: Iterable[str] = (), **options: Any) -> list[str]:
    """Replaces each torch.nn.Linear inside model by a Linear of this module, in place. The weight
    is quantized to NVFP4 by its largest value. Returns the names of the replaced layers.

    skip     layers to leave unchanged: a full name ("model.layers.0.mlp.up_proj") or its last parts
             ("lm_head"). A name that matches no layer raises ValueError
    options  keyword arguments for Linear

    Raises ValueError if in_features is not a multiple of 16, or if the layer shares its weight with
    another module. No layer is replaced then.
    """
    layers = {name: layer for name, layer in model.named_modules()
              if type(layer) is torch.nn.Linear}
    for part in skip:
        if not any(_skipped(name, [part]) for name in layers):
            raise ValueError(f"skip names {part!r}, which is no torch.nn.Linear of the model")
    layers = {name: layer for name, layer in layers.items() if not _skipped(name, skip)}
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name.rpartition(".")[0])
    for name, layer in layers.items():
        others = [other for other in owners[id(layer.weight)] if other != name]
        if others:
            raise ValueError(f"{name} shares its weight with {others[0]}; skip can name it")
    for name, layer in layers.items():
        if layer.in_features % 16:
            raise ValueError(f"{name} has {layer.in_features} input features, no multiple of 16; "
                             "skip can name it")
    for name, layer in layers.items():
        put(model, name, Linear.from_float(layer, **options))
    return list(layers)


def _chosen(layers: Mapping[str, torch.nn.Module], names: Iterable[str] | None,
            skip: Iterable[str]) -> list[str]:
    """Returns the names of the layers and expert blocks that load_linear should load."""
    for part in skip:
        if not any(_skipped(name, [part]) for name in layers):
            raise ValueError(f"skip names {part!r}, which is no torch.nn.Linear of the model, nor "
                             "its experts")
    for name in names or ():
        if name not in layers:
            raise ValueError(f"names has {name!r}, which is no torch.nn.Linear of the model, nor "
                             "its experts")
    return [name for name in (layers if names is None else names) if not _skipped(name, skip)]


def _in_4_bits(model: torch.nn.Module, checkpoint: Checkpoint, prefix: str,
               fused: Mapping[str, Sequence[str]],
               whole: bool) -> tuple[set[str], dict[str, list[str]]]:
    """Returns (names of the model's layers and expert blocks that the checkpoint has in 4 bits;
    {expert block: names of its matrices}). If `whole` is True, raises if the checkpoint has a layer
    for which the model has none."""
    layers = _layers.Finder(checkpoint).layers()
    modules = dict(model.named_modules())
    wholes = {name: parts for name, parts in _layers.wholes_of(layers, fused).items()
              if name.removeprefix(prefix) in modules}
    parts = {part for parts in wholes.values() for part in parts}
    ours = {name.removeprefix(prefix) for name in (*layers, *wholes) if name.startswith(prefix)}
    blocks = _experts.blocks_of(model)
    ours, experts = _experts.gathered(ours, blocks)
    for name in sorted(ours) if whole else ():
        if prefix + name in parts and name not in modules:
            continue
        if not isinstance(modules.get(name), (torch.nn.Linear, Linear)) and name not in blocks:
            raise ValueError(shown(f"the checkpoint has {prefix}{name}, and {name} is no "
                                   "torch.nn.Linear of the model"))
    return ours, experts


def in_4_bits(model: torch.nn.Module, path: Path, *, prefix: str = "",
              fused: Mapping[str, Sequence[str]] = checkpoints.FUSED) -> list[str]:
    """Returns the names of the model's torch.nn.Linear and expert blocks that load_linear would
    load from the checkpoint at path. Raises ValueError if the checkpoint has a layer for which the
    model has none."""
    ours, _ = _in_4_bits(model, Checkpoint(path), prefix, fused, True)
    return [name for name, _ in model.named_modules() if name in ours]


def _available(path: Path, prefix: str, chosen: Sequence[str], model: torch.nn.Module, whole: bool,
               fused: Mapping[str, Sequence[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Returns (the chosen layers that the checkpoint has in 4 bits; {expert block: names of its
    matrices}). Raises if the checkpoint has nothing for a chosen layer. Warns if it has the layer
    in another format."""
    checkpoint, blocks = Checkpoint(path), _experts.blocks_of(model)
    ours, experts = _in_4_bits(model, checkpoint, prefix, fused, whole)
    others = [name for name in chosen if name not in ours]
    begin = [prefix + name + ("." if name in blocks else ".weight") for name in others]
    lost = [name for name, first in zip(others, begin) if not any(
        tensor.startswith(first) if name in blocks else tensor == first
        for tensor in checkpoint.tensors)]
    if lost and not checkpoint.broken:
        raise ValueError(f"{path} has nothing for {', '.join(lost[:5])}"
                         f"{' and others' if len(lost) > 5 else ''}, which would keep the weights "
                         "that they have now; skip can name them, or prefix what the checkpoint's "
                         "names begin with")
    if others:
        warnings.warn(f"{len(others)} layers are not NVFP4 in {path} and keep the weights that "
                      f"they have now: {', '.join(others[:5])}{' ..' if len(others) > 5 else ''}",
                      stacklevel=3)
    return [name for name in chosen if name in ours], experts


def _fitting(name: str, weight: Weight, old: torch.nn.Linear) -> Weight:
    """Returns the weight without its padding rows: ComfyUI files pad rows to a multiple of 16."""
    expected = (old.out_features, old.in_features)
    padded = (-(-old.out_features // 16) * 16, old.in_features)
    if weight.dialect in ("comfyui", "flux2") and weight.shape == padded != expected:
        weight = weight.slice_rows(0, old.out_features)
    if weight.shape != expected:
        raise ValueError(f"{name} is {weight.shape} in the checkpoint, {expected} in the model")
    return weight


def _linear(name: str, weight: Weight, old: torch.nn.Linear, options: dict[str, Any],
            pack: bool) -> Linear:
    weight = _fitting(name, weight, old)
    made = Linear(weight, weight.bias, **options)
    return made.pack() if pack else made


def _of_block(block: torch.nn.Module, name: str, loaded: Mapping[str, Weight],
              options: dict[str, Any], pack: bool) -> Experts:
    made = _experts.of_block(block, name, loaded, **options)
    return made.pack() if pack else made


def load_linear(model: torch.nn.Module, path: Path, device: Device, *,
                names: Iterable[str] | None = None, skip: Iterable[str] = (), prefix: str = "",
                fused: Mapping[str, Sequence[str]] = checkpoints.FUSED,
                pack: bool = False, **options: Any) -> list[str]:
    """Loads the NVFP4 layers of a checkpoint into model, in place. Each torch.nn.Linear for which
    the checkpoint has an NVFP4 layer is replaced by a Linear, and each expert block (as in
    transformers 5) by an Experts. Returns the replaced names.

    Biases come from the checkpoint. The model may be on the meta device. All layers are read before
    the first one is replaced. If the checkpoint has nothing for a layer, ValueError is raised. If
    it has the layer in 16 bits, a warning is issued and the layer stays unchanged: loading it is up
    to you.

    names    the layers and expert blocks to load, by the model's names; None: all
    skip     layers to leave unchanged, as in replace_linear()
    prefix   a prefix that the checkpoint's names have and the model's names do not have, for
             example "model.diffusion_model."
    fused    {"qkv_proj": ["q_proj", "k_proj", "v_proj"], ..}: layers that the model has as one and
             the checkpoint in parts. The parts are fused as by checkpoints.load()
    pack     True: calls pack() on each Linear and Experts, one at a time, which chooses the packing
             by the device. The unpacked form of a layer is freed before the next layer is packed
    options  keyword arguments for Linear. Experts get quantize_input only
    """
    blocks = _experts.blocks_of(model)
    layers = {name: layer for name, layer in model.named_modules()
              if type(layer) is torch.nn.Linear}
    found, experts = _available(path, prefix, _chosen({**layers, **blocks}, names, skip), model,
                                names is None, fused)
    wanted = [prefix + part for name in found for part in experts.get(name, [name])]
    loaded = {name.removeprefix(prefix): weight for name, weight in checkpoints.load(
        path, device, names=wanted, fused=fused).items()}
    made = {name: _of_block(blocks[name], name, loaded, options, pack) if name in experts else
            _linear(name, loaded.pop(name), layers[name], options, pack) for name in found}
    for name, layer in made.items():
        put(model, name, layer)
    return found
